// SPDX-License-Identifier: MIT
// Peers that reset their connection, or end half of it, while their session does not read.
#include <string>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/server/test_client.h"
#include "weft/serve/session/session.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::frame_of;
using test::HeaderSession;
using test::kLong;
using test::Signal;
using Frame = HeaderCodec::Frame;

constexpr std::size_t kGreeting = 64 * 1024;

class SessionReset : public test::ServerTest {
 protected:
  void SetUp() override {
    start_runtime(1);
    watch_close();
    // A client that does not read all of it resets the connection when it closes.
    script_.on_open = [](HeaderSession& session) {
      EXPECT_TRUE(session.send({0, 0}, as_bytes(std::string(kGreeting, 'g'))));
    };
  }
  static void meet(Client& client) { EXPECT_EQ(client.read(100).size(), 100u); }
  void expect_reset() {
    ASSERT_TRUE(closed_.take());
    EXPECT_EQ(reason_, CloseReason::peer_failed);
  }
  // Handlers of frames run until `proceed_`.
  void handle_by_coroutine() {
    ASSERT_TRUE(dispatcher_.on(1, [this](HeaderSession& session, const Frame& frame) -> rt::Task<> {
      heard_ += as_text(frame.body);
      begun_.give();
      const auto waited = co_await proceed_.wait();
      outcome_ = waited ? Error() : waited.error();
      (void)session.send(frame.header, frame.body);
      handled_.give();
    }));
    script_.on_frame = [this](HeaderSession& session, const Frame& frame) { dispatcher_.dispatch(session, frame); };
  }

  Dispatcher<HeaderSession> dispatcher_;
  rt::AsyncEvent proceed_;
  Signal begun_, handled_;
  std::string heard_;
  Error outcome_;
};

TEST_F(SessionReset, EndsASessionWhoseHandlerRuns) {
  handle_by_coroutine();
  Client client(listen());
  meet(client);
  client.send(1, "question");
  ASSERT_TRUE(begun_.take());
  client.close();
  expect_reset();
  ASSERT_TRUE(handled_.take());
  rt::test::on_core(*runtime_, 0, [this] { EXPECT_EQ(outcome_, rt::kCancelled); });
  EXPECT_EQ(server_->sessions(), 0u);
}

TEST_F(SessionReset, EndsASessionWhenTheResetComesWithTheRequest) {
  handle_by_coroutine();
  Client client(listen());
  meet(client);
  rt::test::on_core(*runtime_, 0, [&] {  // the core sees both in one event
    client.send(1, "question");
    client.close();
  });
  expect_reset();
}

TEST_F(SessionReset, EndsASessionThatIsPaused) {
  Signal paused;
  script_.on_frame = [&](HeaderSession& session, const Frame&) {
    session.pause_reading();
    paused.give();
  };
  Client client(listen());
  meet(client);
  client.send(1, "pause");
  ASSERT_TRUE(paused.take());
  client.close();
  expect_reset();
}

TEST_F(SessionReset, EndsASessionThatReadsNoMoreBecauseTooMuchIsQueued) {
  ListenerOptions options;
  options.limits.write_budget = 64 * 1024;
  Signal queued;
  script_.on_frame = [&](HeaderSession& session, const Frame& frame) {
    const std::string reply(8 * 1024, 'r');
    while (session.queued() < 32u * 1024 && session.send(frame.header, as_bytes(reply))) {
    }
    queued.give();
  };
  Client client(listen(options));
  meet(client);
  for (int i = 0; i < 100; ++i) {
    client.send(1, "more");
  }
  ASSERT_TRUE(queued.take());
  client.close();
  expect_reset();
}

TEST_F(SessionReset, EndsASessionWhosePeerHadEndedItsStreamBefore) {
  handle_by_coroutine();
  ListenerOptions options;
  options.limits.peer_left = PeerLeft::answer;
  Client client(listen(options));
  meet(client);
  client.send(1, "question");
  client.end_writing();
  ASSERT_TRUE(begun_.take());
  client.close();
  expect_reset();
}

// The first write after the reset fails. The bytes that the peer sent before it can still be read.
TEST_F(SessionReset, AFailedWriteLosesNoFrameThatThePeerSent) {
  const auto greet = script_.on_open;
  HeaderSession* opened = nullptr;
  script_.on_open = [&](HeaderSession& session) {
    greet(session);
    opened = &session;
  };
  script_.on_frame = [this](HeaderSession&, const Frame& frame) { heard_ += as_text(frame.body); };
  for (const char* const endpoint : {"tcp://127.0.0.1:0", "ipc://*"}) {
    SCOPED_TRACE(endpoint);
    heard_.clear();
    Client client(listen({}, endpoint));
    meet(client);
    rt::test::on_core(*runtime_, 0, [&] {
      client.send(1, "news");
      client.close();
      const std::string large(Session::kThroughMin, 'x');
      EXPECT_EQ(opened->send({0, 0}, as_bytes(large)).error(), Errc::closed);
      EXPECT_EQ(opened->send({0, 0}, as_bytes("x")).error(), Errc::closed);
      EXPECT_TRUE(opened->is_open());
    });
    expect_reset();
    EXPECT_EQ(heard_, "news");
  }
}

// The peer's end alone is not a failure: replies can be read.
TEST_F(SessionReset, AnEndOfThePeersStreamDoesNotEndASessionWhoseHandlerMayAnswer) {
  handle_by_coroutine();
  ListenerOptions options;
  options.limits.peer_left = PeerLeft::answer;
  for (const char* const endpoint : {"tcp://127.0.0.1:0", "ipc://*"}) {
    SCOPED_TRACE(endpoint);
    rt::test::on_core(*runtime_, 0, [this] { proceed_.reset(); });
    Client client(listen(options, endpoint));
    meet(client);
    client.send(1, "question");
    ASSERT_TRUE(begun_.take());
    client.end_writing();
    rt::test::on_core(*runtime_, 0, [] {});
    rt::test::on_core(*runtime_, 0, [this] { proceed_.set(); });
    const std::string answers = client.read_to_end();
    EXPECT_TRUE(answers.ends_with(frame_of(1, "question")));
    ASSERT_TRUE(closed_.take());
    EXPECT_EQ(reason_, CloseReason::peer_closed);
  }
}

// Both directions are closed then, in order: the poller reports a hang-up and the socket has no error.
TEST_F(SessionReset, AHangUpWithoutAnErrorLosesNoFrameThatThePeerSent) {
  script_.on_open = nullptr;
  Signal paused;
  SessionId id;
  script_.on_frame = [&](HeaderSession& session, const Frame& frame) {
    heard_ += as_text(frame.body);
    id = session.id();
    if (heard_.size() == 1) {
      session.end_writing();
      session.pause_reading();
      paused.give();
    }
  };
  for (const char* const endpoint : {"tcp://127.0.0.1:0", "ipc://*"}) {
    SCOPED_TRACE(endpoint);
    heard_.clear();
    Client client(listen({}, endpoint));
    client.send(1, "a");
    ASSERT_TRUE(paused.take());
    EXPECT_EQ(client.read_to_end(), "");
    client.send(1, "b");
    client.send(1, "c");
    client.close();
    rt::test::on_core(*runtime_, 0, [] {});
    ASSERT_TRUE(server_->post_to(id, [](Session& session) { session.resume_reading(); }));
    ASSERT_TRUE(closed_.take());
    EXPECT_EQ(reason_, CloseReason::peer_closed);
    EXPECT_EQ(heard_, "abc");
  }
}

TEST_F(SessionReset, EndsASessionWhoseStreamEndsBeforeTheEndOfItsBody) {
  script_.on_open = nullptr;
  script_.on_frame = [](HeaderSession& session, const Frame&) {
    session.begin_last_body();
    session.end_writing();
  };
  Client client(listen());
  client.send(1, "body");
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::service);
  rt::test::on_core(*runtime_, 0, [] {});
  EXPECT_EQ(server_->sessions(), 0u);
}

}  // namespace
}  // namespace weft::serve
