// SPDX-License-Identifier: MIT
#include "weft/serve/session/log.h"

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/exec/thread_pool.h"
#include "weft/rt/task/task_work.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::echo;
using test::frame_of;
using test::HeaderSession;
using test::kLong;
using test::Signal;

TEST(LogRecord, ARecordIsOneLineOfLogfmt) {
  LogRecord record;
  record.time = std::chrono::system_clock::time_point(std::chrono::microseconds(1'700'000'000'000'123));
  record.level = LogLevel::warning;
  record.core = 3;
  record.session = {0x00f1};
  record.peer = "192.0.2.1:4711";
  record.reason = describe(CloseReason::idle_timeout);
  record.error = Error(Errc::timed_out, "nothing came");
  record.age = std::chrono::milliseconds(2500);
  record.counts = {1, 22, 3, 44};
  record.undelivered = 5;
  std::string line;
  append_line(record, line);
  EXPECT_EQ(line,
            "time=2023-11-14T22:13:20.000123Z level=warning component=serve.session event=session_closed core=3 "
            "session=0x00000000000000f1 "
            "peer=192.0.2.1:4711 reason=\"idle timeout\" error=\"timed out: nothing came\" age_ms=2500 frames_in=1 "
            "bytes_in=22 frames_out=3 bytes_out=44 undelivered=5\n");
}

// --- one record for each connection that ends ---

struct Ended {
  LogEvent event;
  LogLevel level;
  SessionId session;
  std::string peer, reason;
  Error error;
  SessionCounts counts;
  std::uint64_t undelivered;
};

class LogTest : public test::ServerTest {
 protected:
  void SetUp() override { start_runtime(1); }
  // Starts a server that logs into this fixture.
  std::string listen_logged(const SessionLimits& limits = {}, ServerOptions options = {}) {
    options.log = [this](const LogRecord& record) {
      if (record.event == LogEvent::handler_threw) {
        const std::lock_guard lock(mutex_);
        std::string line;
        append_line(record, line);
        threw_.push_back(line.substr(line.find("reason=")));
        return;
      }
      {
        const std::lock_guard lock(mutex_);
        ended_.push_back({record.event, record.level, record.session, std::string(record.peer),
                          std::string(record.reason), record.error, record.counts, record.undelivered});
      }
      logged_.give();
    };
    options.stall_after = Duration::zero();  // a turn that another program holds up has no record
    if (server_ == nullptr) {
      make_server(options);
    }
    ListenerOptions listener = listener_;
    listener.limits = limits;
    return listen(listener);
  }
  // The one record that the log holds when all sessions have ended.
  Ended only(CloseReason reason, LogLevel level) {
    EXPECT_TRUE(logged_.take()) << describe(reason);
    (void)stop_now();
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(ended_.size(), 1u) << describe(reason);
    EXPECT_EQ(closed_for(reason), 1u);
    EXPECT_EQ(ended_[0].event, LogEvent::session_closed);
    EXPECT_EQ(ended_[0].reason, describe(reason));
    EXPECT_EQ(ended_[0].level, level);
    EXPECT_TRUE(ended_[0].session);
    EXPECT_FALSE(ended_[0].error == Errc::ok);
    EXPECT_TRUE(ended_[0].peer.starts_with("127.0.0.1:")) << ended_[0].peer;
    return ended_[0];
  }

  ListenerOptions listener_;
  std::mutex mutex_;
  std::vector<Ended> ended_;
  std::vector<std::string> threw_;
  Signal logged_;
};

TEST_F(LogTest, APeerThatCloses) {
  script_.on_frame = echo;
  Client client(listen_logged());
  client.send(1, "twelve");
  EXPECT_EQ(client.receive(), "twelve");
  client.close();
  const Ended ended = only(CloseReason::peer_closed, LogLevel::info);
  EXPECT_EQ(ended.counts.frames_in, 1u);
  EXPECT_EQ(ended.counts.bytes_in, 18u);
  EXPECT_EQ(ended.counts.frames_out, 1u);
  EXPECT_EQ(ended.counts.bytes_out, 18u);
}

TEST_F(LogTest, APeerThatResets) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) { echo(session, frame); };
  Client client(listen_logged());
  client.send(1, std::string(1000, 'x'));
  std::uint8_t byte = 0;
  MutableBytes into(&byte, 1);
  while (client.stream().read({&into, 1}).bytes == 0) {
    std::this_thread::yield();
  }
  // With bytes unread: the kernel resets the connection, and the server's socket loses the peer's address.
  client.close();
  only(CloseReason::peer_failed, LogLevel::warning);
}

TEST_F(LogTest, AStreamThatEndsInsideAFrame) {
  Client client(listen_logged());
  client.write(frame_of(1, "half").substr(0, 13));
  client.end_writing();
  EXPECT_EQ(only(CloseReason::peer_failed, LogLevel::warning).counts.frames_in, 0u);
}

TEST_F(LogTest, AFrameThatIsRefused) {
  Client client(listen_logged());
  client.write("no frame begins like this");
  EXPECT_EQ(client.read_to_end(), "");
  client.close();
  only(CloseReason::refused_frame, LogLevel::warning);
}

TEST_F(LogTest, TimeOuts) {
  SessionLimits limits;
  limits.handshake_timeout = std::chrono::milliseconds(1);
  const Client client(listen_logged(limits));
  only(CloseReason::handshake_timeout, LogLevel::warning);
}
TEST_F(LogTest, IdleTimeOuts) {
  SessionLimits limits;
  limits.idle_timeout = std::chrono::milliseconds(1);
  const Client client(listen_logged(limits));
  only(CloseReason::idle_timeout, LogLevel::warning);
}

// More than the kernel buffers at once.
std::string much() { return std::string(std::size_t{12} << 20, 'm'); }

TEST_F(LogTest, ASlowConsumer) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame&) {
    const std::string body = much();
    while (session.send({1, 0}, as_bytes(body))) {
    }
  };
  Client client(listen_logged());
  client.send(1, "");
  EXPECT_GT(only(CloseReason::slow_consumer, LogLevel::warning).undelivered, 0u);
}

TEST_F(LogTest, ACloseThatIsNotDeliveredInTime) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame&) {
    EXPECT_TRUE(session.send({1, 0}, as_bytes(much())));
    session.close();
  };
  SessionLimits limits;
  limits.close_timeout = std::chrono::milliseconds(1);
  Client client(listen_logged(limits));
  client.send(1, "");
  EXPECT_EQ(only(CloseReason::close_timeout, LogLevel::warning).undelivered, 1u);
}

rt::Task<> work_on(rt::ThreadPool& pool, Signal& proceed) {
  (void)co_await rt::run_on(pool, [&proceed] { return proceed.take(); });
}

TEST_F(LogTest, ASessionThatEndedBeforeItsCoroutineSaysWhatItDidNotDeliver) {
  const auto pool = std::move(rt::ThreadPool::make_fixed(1)).value();
  Signal proceed;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    EXPECT_TRUE(session.spawn(work_on(*pool, proceed)));
    for (int i = 0; i < 3; ++i) {
      echo(session, frame);
    }
    session.abort();
  };
  Client client(listen_logged());
  client.send(1, "x");
  EXPECT_EQ(client.read_to_end(), "");  // the stream has ended, and the coroutine runs
  Signal turn_ended;
  ASSERT_TRUE(runtime_->post(0, [&] { turn_ended.give(); }));
  ASSERT_TRUE(turn_ended.take());
  EXPECT_EQ(server_->counters().undelivered, 3u);
  proceed.give();
  EXPECT_EQ(only(CloseReason::service, LogLevel::info).undelivered, 3u);
  EXPECT_EQ(server_->counters().undelivered, 3u);
}

TEST_F(LogTest, AServiceThatClosesAbortsOrThrows) {
  struct Case {
    CloseReason reason;
    LogLevel level;
    std::function<void(HeaderSession&)> act;
  };
  const Case cases[] = {
      {CloseReason::service, LogLevel::info, [](HeaderSession& session) { session.close(); }},
      {CloseReason::service, LogLevel::info, [](HeaderSession& session) { session.abort(); }},
      {CloseReason::service_failed, LogLevel::error, [](HeaderSession&) { throw std::runtime_error("no"); }},
      {CloseReason::out_of_memory, LogLevel::error,
       [](HeaderSession& session) { session.abort(CloseReason::out_of_memory, Errc::resource_exhausted); }},
  };
  for (const Case& each : cases) {
    server_.reset();
    ended_.clear();
    script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) { each.act(session); };
    Client client(listen_logged());
    client.send(1, "");
    EXPECT_EQ(client.read_to_end(), "");
    client.close();
    only(each.reason, each.level);
  }
}

rt::Task<> throw_later(std::string what) {
  (void)co_await rt::yield();
  throw std::runtime_error(what);
}
TEST_F(LogTest, TheWhatOfEachExceptionIsLoggedAndGivenToTheProgram) {
  Dispatcher<HeaderSession> dispatcher;
  ASSERT_TRUE(dispatcher.on(2, [](HeaderSession&, const HeaderCodec::Frame&) -> Result<void> {
    throw std::runtime_error("the dispatcher's");
  }));
  ASSERT_TRUE(dispatcher.on(3, [](HeaderSession&, const HeaderCodec::Frame&) -> rt::Task<Result<>> {
    (void)co_await rt::yield();
    throw std::runtime_error("the coroutine's");
  }));
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    switch (frame.header.id) {
      case 1: throw std::runtime_error("the service's");
      case 4: return (void)session.spawn(throw_later("the spawned one's"));
      case 5: throw 5;
      default: dispatcher.dispatch(session, frame);
    }
  };
  std::vector<std::string> got;
  ServerOptions options;
  options.on_exception = [&](const HandlerException& thrown) {
    EXPECT_TRUE(thrown.session);
    EXPECT_TRUE(thrown.exception);
    got.emplace_back(thrown.what);
    throw 1;  // is dropped
  };
  const std::string endpoint = listen_logged({}, options);
  for (const std::uint32_t id : {1u, 2u, 3u, 4u, 5u}) {
    Client client(endpoint);
    client.send(id, "");
    client.end_writing();
    (void)client.read_to_end();
    client.close();
    ASSERT_TRUE(logged_.take());
  }
  (void)stop_now();
  EXPECT_EQ(got, (std::vector<std::string>{"the service's", "the dispatcher's", "the coroutine's", "the spawned one's",
                                           "an exception that is no std::exception"}));
  ASSERT_EQ(threw_.size(), 5u);
  EXPECT_EQ(threw_[1], "reason=\"service failed\" what=\"the dispatcher's\"\n");
  ASSERT_EQ(ended_.size(), 5u);
  EXPECT_EQ(ended_[0].error, Errc::job_threw);
  EXPECT_EQ(ended_[1].reason, describe(CloseReason::peer_closed)) << "the session goes on";
}

TEST_F(LogTest, ADrainAndWhatIsLeftAtItsDeadline) {
  for (const bool abort : {false, true}) {
    server_.reset();
    ended_.clear();
    Signal asked;
    script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
      session.begin_reply();
      if (!abort) {
        session.end_reply();
      }
      asked.give();
    };
    Client client(listen_logged());
    client.send(1, "");
    ASSERT_TRUE(asked.take());
    server_->begin_stop(abort ? sys::now() : sys::now() + kLong);
    client.read_to_end();
    client.close();
    only(CloseReason::server_stopped, LogLevel::info);
  }
}

TEST_F(LogTest, ConnectionsThatNeverWereSessions) {
  ServerOptions options;
  options.sessions_max = 1;
  const std::string endpoint = listen_logged({}, options);
  Client first(endpoint);
  first.send(1, "");
  Client second(endpoint);
  EXPECT_EQ(second.read_to_end(), "");
  ASSERT_TRUE(logged_.take());
  {
    const std::lock_guard lock(mutex_);
    ASSERT_EQ(ended_.size(), 1u);
    EXPECT_EQ(ended_[0].event, LogEvent::connection_rejected);
    EXPECT_EQ(ended_[0].reason, describe(Rejection::full));
    EXPECT_TRUE(ended_[0].peer.starts_with("127.0.0.1:"));
    EXPECT_FALSE(ended_[0].session);
  }
}

TEST_F(LogTest, APeerThatIsNotAdmittedIsLoggedWithTheReasonOfAdmission) {
  net::AdmissionOptions admission;
  admission.address_connections_max = 1;
  listener_.admission = std::move(net::Admission::make(std::move(admission))).value();
  const std::string endpoint = listen_logged();
  Client first(endpoint);
  first.send(1, "");
  Client second(endpoint);
  EXPECT_EQ(second.read_to_end(), "");
  ASSERT_TRUE(logged_.take());
  const std::lock_guard lock(mutex_);
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].reason, "admission");
  EXPECT_EQ(ended_[0].error.text(), std::string(describe(net::AdmissionRejection::address_connections)));
}

TEST_F(LogTest, AStreamThatCannotBeMadeIsLoggedWithItsError) {
  listener_.wrap = [](std::unique_ptr<net::ByteStream>) -> Result<std::unique_ptr<net::ByteStream>> {
    return Error(Errc::handshake_refused, "no stream for you");
  };
  Client client(listen_logged());
  EXPECT_EQ(client.read_to_end(), "");
  ASSERT_TRUE(logged_.take());
  const std::lock_guard lock(mutex_);
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].reason, "failed");
  EXPECT_EQ(ended_[0].error, Errc::handshake_refused);
  EXPECT_TRUE(ended_[0].peer.starts_with("127.0.0.1:"));
}

TEST_F(LogTest, ASinkThatThrowsEndsNothing) {
  script_.on_frame = echo;
  ServerOptions options;
  options.log = [](const LogRecord&) { throw std::runtime_error("no"); };
  make_server(options);
  const std::string endpoint = listen();
  for (int i = 0; i < 3; ++i) {
    Client client(endpoint);
    client.send(1, "served");
    EXPECT_EQ(client.receive(), "served");
  }
}

}  // namespace
}  // namespace weft::serve
