// SPDX-License-Identifier: MIT
// Peers that ask and leave, peers that are silent, and peers that take nothing.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/server/test_client.h"
#include "weft/sys/socket.h"
#include "weft/sys/test_socket_pair.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using std::chrono::milliseconds;
using test::Client;
using test::HeaderSession;
using test::kLong;
using test::ServerTest;
using test::Signal;
using Frame = HeaderCodec::Frame;

constexpr Duration kThousandHours = std::chrono::hours(1000);

class PeerLeftTest : public ServerTest {
 protected:
  void SetUp() override {
    start_runtime(1);
    watch_close();
  }
  static rt::Task<> wait_and_answer(PeerLeftTest* self, HeaderSession* session) {
    self->begun_.give();
    const auto slept = co_await rt::sleep(kThousandHours);
    EXPECT_EQ(slept.error(), rt::kCancelled);
    EXPECT_EQ(session->is_open(), self->open_when_cancelled_);
    self->ended_.give();
  }

  Signal begun_;
  Signal ended_;
  bool open_when_cancelled_ = false;
};

struct WaitingService {
  std::function<rt::Task<>(HeaderSession&)> handle;
  rt::Task<> on_frame(HeaderSession& session, const Frame&) const { return handle(session); }
};
struct EndingService : WaitingService {
  Signal* told;
  void on_end(HeaderSession& session) const {
    told->give();
    session.close();
  }
};

TEST_F(PeerLeftTest, APeerThatAsksAndLeavesTakesItsHandlerAndItsSessionAlong) {
  make_server();
  const auto endpoint = server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [this] {
    return WaitingService{[this](HeaderSession& session) { return wait_and_answer(this, &session); }};
  });
  Client client(*endpoint);
  client.send(1, "asks");
  client.send(1, "asks again");  // waits after the handler
  ASSERT_TRUE(begun_.take());
  client.close();
  ASSERT_TRUE(ended_.take());
  ASSERT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(closed_for(CloseReason::peer_closed), 1u);
  EXPECT_EQ(server_->counters().unanswered, 1u);
}

TEST_F(PeerLeftTest, AServiceHearsOfTheEndAtOnceThoughAHandlerRuns) {
  make_server();
  Signal told;
  open_when_cancelled_ = false;  // on_end() closed the session
  const auto endpoint = server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [&] {
    EndingService service;
    service.handle = [this](HeaderSession& session) { return wait_and_answer(this, &session); };
    service.told = &told;
    return service;
  });
  Client client(*endpoint);
  client.send(1, "asks");
  ASSERT_TRUE(begun_.take());
  client.close();
  ASSERT_TRUE(told.take());
  ASSERT_TRUE(ended_.take());
}

// The session owes its reply until the test ends it.
TEST_F(PeerLeftTest, AListenerMayLetHandlersAnswerAPeerThatHasEndedItsStream) {
  ListenerOptions options;
  options.limits.peer_left = PeerLeft::answer;
  Signal asked;
  SessionId id;
  script_.on_frame = [&](HeaderSession& session, const Frame&) {
    session.begin_reply();
    id = session.id();
    asked.give();
  };
  Client client(listen(options));
  client.send(1, "question");
  ASSERT_TRUE(asked.take());
  client.end_writing();
  for (int turn = 0; turn < 5; ++turn) {
    rt::test::on_core(*runtime_, 0, [] {});
  }
  ASSERT_TRUE(server_->post_to<HeaderCodec>(id, [](HeaderSession& session) {
    EXPECT_TRUE(session.send({1, 0}, as_bytes("answer")));
    session.end_reply();
  }));
  EXPECT_EQ(client.receive(), "answer");
  EXPECT_EQ(client.read_to_end(), "");
}

TEST_F(PeerLeftTest, AllFramesOfAPeerThatSendsAndLeavesAreHandled) {
  int frames = 0;
  script_.on_frame = [&](HeaderSession&, const Frame&) { ++frames; };
  Client client(listen());
  std::string burst;
  for (int i = 0; i < 10'000; ++i) {
    burst += test::frame_of(1, "fire and forget");
  }
  client.write(burst);
  client.close();
  ASSERT_TRUE(closed_.take());
  ASSERT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(frames, 10'000);
}

// --- silence ---

class SilenceTest : public PeerLeftTest {
 protected:
  void SetUp() override {
    PeerLeftTest::SetUp();
    script_.on_open = [this](HeaderSession& session) {
      send_tick(session);
      EXPECT_TRUE(session.spawn(tick(this, &session)));
    };
    options_.limits.handshake_timeout = Duration(-1);
  }
  static rt::Task<> tick(SilenceTest* self, HeaderSession* session) {
    while (session->is_open()) {
      if (const auto slept = co_await rt::sleep(milliseconds(1)); !slept) {
        co_return;
      }
      self->send_tick(*session);
    }
  }
  void send_tick(HeaderSession& session) {
    (void)session.send({1, 0}, as_bytes("tick"));
    const Instant now = runtime_->core(0).loop().now();
    longest_ = ticked_ == Instant() ? Duration::zero() : std::max(longest_, now - ticked_);
    ticked_ = now;
  }
  // The longest time in which the session has written nothing, up to now.
  Duration longest_without_tick() {
    Duration longest{};
    rt::test::on_core(*runtime_, 0, [&] { longest = std::max(longest_, runtime_->core(0).loop().now() - ticked_); });
    return longest;
  }
  // Lets the core's time pass, and its timers fire.
  void pass(Duration time) {
    Instant now{};
    const auto ask = [&] { rt::test::on_core(*runtime_, 0, [&] { now = runtime_->core(0).loop().now(); }); };
    ask();
    for (const Instant end = now + time; now < end; ask()) {
      std::this_thread::yield();
    }
  }

  ListenerOptions options_;
  Instant ticked_;  // belongs to the core, as longest_: when the session wrote
  Duration longest_{};
};

TEST_F(SilenceTest, APeerFromWhichNoByteComesEndsThoughItTakesAllThatIsWritten) {
  options_.limits.silence_timeout = milliseconds(30);
  script_.on_open = [tick_on = script_.on_open](HeaderSession& session) {
    const std::string large(Session::kThroughMin, 't');  // is written at once, however late the next turn is
    EXPECT_TRUE(session.send({1, 0}, as_bytes(large)));
    tick_on(session);
  };
  Client client(listen(options_));
  EXPECT_NE(client.read_to_end(), "");
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::silence_timeout);
}

TEST_F(SilenceTest, APeerThatIsNotReadCannotBeSilent) {
  options_.limits.silence_timeout = milliseconds(30);
  script_.on_open = [](HeaderSession& session) { session.pause_reading(); };
  Client client(listen(options_));
  pass(milliseconds(100));
  EXPECT_EQ(server_->counters().closed_total(), 0u);
}

TEST_F(SilenceTest, APeerThatOnlyListensIsNotIdleWhileItsSystemAcknowledges) {
  options_.limits.idle_timeout = milliseconds(400);
  const std::string endpoint = listen(options_);
  bool wrote = false;  // all the time: a core that other programs held up for idle_timeout shows nothing
  for (const Instant limit = sys::now() + kLong; !wrote && sys::now() < limit;) {
    const std::uint64_t closed = server_->counters().closed_total();
    const std::uint64_t opened = server_->counters().opened;
    rt::test::on_core(*runtime_, 0, [this] { ticked_ = Instant(); });
    Client client(endpoint);
    until([opened](const CounterValues& counters) { return counters.opened == opened + 1; });
    pass(milliseconds(900));
    const std::uint64_t closed_since = server_->counters().closed_total() - closed;
    wrote = longest_without_tick() < options_.limits.idle_timeout;
    EXPECT_TRUE(!wrote || closed_since == 0);
    client.close();
    until([opened](const CounterValues& counters) { return counters.closed_total() == opened + 1; });
  }
  EXPECT_TRUE(wrote);
}

// Its window closes soon, and the system of the server takes written bytes for much longer.
TEST_F(SilenceTest, APeerThatAcknowledgesNothingIsIdleWhateverIsWritten) {
  options_.limits.idle_timeout = milliseconds(50);
  options_.socket.send_buffer = 4 * 1024 * 1024;
  options_.socket.user_timeout = 60'000;  // the system does not end it first
  sys::SocketOptions small;
  small.receive_buffer = 1;
  Client client(listen(options_), small);
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::idle_timeout);
}

TEST_F(SilenceTest, TheSystemGivesUpAPeerThatAcknowledgesNothingForTheIdleTimeout) {
  options_.limits.idle_timeout = std::chrono::seconds(77);
  int timeout = 0;
  Signal opened;
  script_.on_open = [&](HeaderSession& session) {
    timeout = sys::test::user_timeout(session.stream().fd());
    opened.give();
  };
  const Client client(listen(options_));
  ASSERT_TRUE(opened.take());
  EXPECT_EQ(timeout, 77'000);
}

// --- others ---

TEST_F(PeerLeftTest, APostedFunctionOfAnotherCodecFindsNoSession) {
  SessionId id;
  Signal opened;
  script_.on_open = [&](HeaderSession& session) {
    id = session.id();
    opened.give();
  };
  Client client(listen());
  ASSERT_TRUE(opened.take());
  ASSERT_TRUE(server_->post_to<DelimiterCodec>(id, [](SessionOf<DelimiterCodec>&) { ADD_FAILURE(); }));
  ASSERT_TRUE(server_->post_to<HeaderCodec>(
      id, [](HeaderSession& session) { EXPECT_TRUE(session.send({3, 0}, as_bytes("found"))); }));
  EXPECT_EQ(client.receive(), "found");
  EXPECT_EQ(server_->counters().stale_ids, 1u);
}

TEST_F(PeerLeftTest, TheErrorOfAServiceThatCannotBeMadeHasTheTextOfItsException) {
  make_server();
  const auto make = []() -> WaitingService { throw std::runtime_error("no config at /etc/game"); };
  const auto refused = server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, make);
  ASSERT_EQ(refused.error(), Errc::system);
  EXPECT_STREQ(refused.error().text(), "the service could not be made: no config at /etc/game");
  const auto make_badly = []() -> WaitingService { throw 7; };
  EXPECT_STREQ(server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, make_badly).error().text(),
               "the service could not be made: an exception that is no std::exception");
}

}  // namespace
}  // namespace weft::serve
