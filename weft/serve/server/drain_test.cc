// SPDX-License-Identifier: MIT
// A stop: the frames that it still delivers, the order of its phases, and its counts.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/serve/server/test_client.h"
#include "weft/sys/socket.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::HeaderSession;
using test::kLong;
using test::ServerTest;
using test::Signal;
using Frame = HeaderCodec::Frame;

constexpr GroupId kRoom{1};
constexpr std::chrono::hours kAnHour{1};

SharedFrame shared(std::string_view text) {
  return std::move(SharedFrame::encode(HeaderCodec(), {9, 0}, as_bytes(text))).value();
}

// Two cores. Frame 1 joins the room. Frame 2 owes a reply, which answer() gives. The first client is on core 0.
class DrainTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    ServerOptions options;
    options.settle_timeout = kLong;  // a busy machine may need that long
    make_server(options);
    script_.on_frame = [this](HeaderSession& session, const Frame& frame) {
      if (frame.header.id == 1) {
        EXPECT_TRUE(session.join(kRoom));
        test::echo(session, frame);
        return;
      }
      session.begin_reply();
      owing_ = session.id();
      owed_.give();
    };
  }
  std::string listen_in_turn() {
    ListenerOptions options;
    options.accept = AcceptMode::hand_off;
    return listen(options);
  }
  static void join(Client& client) {
    client.send(1, "in");
    ASSERT_EQ(client.receive(), "in");
  }
  void owe(Client& client) {
    client.send(2, "question");
    ASSERT_TRUE(owed_.take());
  }
  // begin_stop(), until both cores have seen it.
  void begin_stop() {
    server_->begin_stop(sys::now() + kAnHour);
    pass_turns(0);
    pass_turns(1);
  }
  // Both join the room, and the speaker's session owes an answer.
  void begin_stop_while_owing(Client& speaker, Client& member) {
    join(speaker);
    join(member);
    owe(speaker);
    begin_stop();
  }
  void pass_turns(unsigned core) {
    for (int turn = 0; turn < 3; ++turn) {
      rt::test::on_core(*runtime_, core, [] {});
    }
  }
  void on_owing_core(std::function<void(Session&)> function) {
    ASSERT_TRUE(server_->post_to(owing_, std::move(function)));
  }

  std::atomic<SessionId> owing_{};
  Signal owed_;
};

TEST_F(DrainTest, AMemberThatOwesNothingGetsWhatTheHandlerOfAnotherCorePublishesDuringTheDrain) {
  const std::string endpoint = listen_in_turn();
  Client speaker(endpoint);
  Client member(endpoint);
  begin_stop_while_owing(speaker, member);
  on_owing_core([this](Session& session) {
    EXPECT_TRUE(server_->publish(kRoom, shared("news")));
    session.end_reply();
  });
  EXPECT_EQ(speaker.receive(), "news");
  EXPECT_EQ(member.receive(), "news");
  EXPECT_EQ(speaker.read_to_end(), "");
  EXPECT_EQ(member.read_to_end(), "");
}

// The last handler posts to the other core, which posts back, and only that message publishes.
TEST_F(DrainTest, AFrameThatLeavesByWayOfSeveralCoresReachesTheMembersOfAll) {
  const std::string endpoint = listen_in_turn();
  Client speaker(endpoint);
  Client member(endpoint);
  begin_stop_while_owing(speaker, member);
  {
    const rt::test::Blocked blocked(*runtime_, 1);
    on_owing_core([this](Session& session) {
      EXPECT_TRUE(runtime_->post(1, [this] {
        EXPECT_TRUE(runtime_->post(0, [this] { EXPECT_TRUE(server_->publish(kRoom, shared("news"))); }));
      }));
      session.end_reply();
    });
    pass_turns(0);
  }
  EXPECT_EQ(speaker.receive(), "news");
  EXPECT_EQ(member.receive(), "news");
}

// Each job posts the next one to the other core's loop, and only the last one publishes.
TEST_F(DrainTest, AFrameThatLeavesByWayOfJobsOfSeveralLoopsReachesTheMembersOfAll) {
  const std::string endpoint = listen_in_turn();
  Client speaker(endpoint);
  Client member(endpoint);
  begin_stop_while_owing(speaker, member);
  std::function<void(unsigned)> pass = [&](unsigned left) {
    if (left == 0) {
      EXPECT_TRUE(server_->publish(kRoom, shared("news")));
      return;
    }
    runtime_->core(left % 2).loop().post([&pass, left] { pass(left - 1); });
  };
  on_owing_core([&pass](Session& session) {
    pass(12);
    session.end_reply();
  });
  EXPECT_EQ(speaker.receive(), "news");
  EXPECT_EQ(member.receive(), "news");
  EXPECT_EQ(speaker.read_to_end(), "");  // the stop is over, and uses `pass` no longer
}

TEST_F(DrainTest, FramesThatHadComeWhenTheDrainBeganReachEveryMember) {
  script_.on_frame = [this](HeaderSession& session, const Frame& frame) {
    if (frame.header.id == 1) {
      EXPECT_TRUE(session.join(kRoom));
      return test::echo(session, frame);
    }
    EXPECT_TRUE(server_->publish(kRoom, shared(as_text(frame.body))));
  };
  const std::string endpoint = listen_in_turn();
  Client speaker(endpoint);
  Client member(endpoint);
  join(speaker);
  join(member);
  {
    const rt::test::Blocked blocked(*runtime_, 0);
    std::size_t sent = test::frame_of(1, "in").size();
    for (int i = 0; i < 100; ++i) {
      speaker.send(2, "text");
      sent += test::frame_of(2, "text").size();
    }
    const auto came = [&] { return sys::acknowledged_bytes(speaker.stream().fd()).value_or(sent) >= sent; };
    for (const Instant limit = sys::now() + kLong; !came() && sys::now() < limit;) {
      std::this_thread::yield();
    }
    server_->begin_stop(sys::now() + kAnHour);
    pass_turns(1);
  }
  const std::string all = speaker.read_to_end();
  EXPECT_EQ(all.size(), 100 * test::frame_of(9, "text").size());
  EXPECT_EQ(member.read_to_end(), all);
  EXPECT_EQ(server_->counters().refused_closed, 0u);
}

TEST_F(DrainTest, ASessionWaitsForTheHandlersOfOthersNoLongerThanTheSettleTimeout) {
  ServerOptions options;
  options.settle_timeout = Duration::zero();
  make_server(options);
  const std::string endpoint = listen_in_turn();
  Client speaker(endpoint);
  Client member(endpoint);
  join(member);
  owe(speaker);
  server_->begin_stop(sys::now() + kAnHour);
  EXPECT_EQ(member.read_to_end(), "");
  on_owing_core([](Session& session) {
    EXPECT_TRUE(session.send_shared(shared("answer")));
    session.end_reply();
  });
  EXPECT_EQ(speaker.receive(), "answer");
}

TEST_F(DrainTest, AFrameThatAClosedSessionRefusesIsCounted) {
  script_.on_close = [](HeaderSession& session, const Error&) {
    EXPECT_EQ(session.send({1, 0}, as_bytes("late")).error(), Errc::closed);
    EXPECT_EQ(session.send_shared(shared(std::string(100'000, 'l'))).error(), Errc::closed);
    EXPECT_EQ(session.send_bytes(as_bytes(std::string(100'000, 'l'))).error(), Errc::closed);
  };
  Client client(listen());
  until([](const CounterValues& counters) { return counters.opened == 1; });
  client.close();
  ASSERT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(server_->counters().refused_closed, 3u);
}

TEST_F(DrainTest, RepliesThatTheEndOfASessionLeavesOwedAreCounted) {
  const std::string endpoint = listen_in_turn();
  Client aborted(endpoint);
  owe(aborted);
  Client by_the_service(endpoint);
  owe(by_the_service);
  on_owing_core([](Session& session) { session.abort(); });
  EXPECT_EQ(by_the_service.read_to_end(), "");
  EXPECT_EQ(stop_now().error(), Errc::timed_out);
  EXPECT_EQ(server_->counters().unanswered, 1u) << "not that of the service's own decision";
}

TEST_F(DrainTest, APeerThatLingersAfterItGotAllDoesNotMakeAStopTimeOut) {
  Client client(listen());
  join(client);
  server_->begin_stop(sys::now() + kAnHour);
  EXPECT_EQ(client.read_to_end(), "");  // and the client does not end its side
  EXPECT_TRUE(stop_now());
}

// --- the word to services ---

struct ToldService {
  std::vector<std::string>* said;
  Signal* owed;

  void on_frame(HeaderSession& session, const Frame&) {
    session.begin_reply();
    owed->give();
  }
  void on_drain() const { said->push_back("service"); }
  void on_drain(HeaderSession& session) const {
    said->push_back("session");
    EXPECT_TRUE(session.is_open());
    EXPECT_TRUE(session.send({7, 0}, as_bytes("farewell")));
    session.end_reply();
  }
  void on_close(HeaderSession&, const Error&) const { said->push_back("closed"); }
};

TEST_F(DrainTest, AServiceHearsOfADrainBeforeItsSessionsAndMaySendAndEndWhatWaits) {
  start_runtime(1);
  make_server();
  std::vector<std::string> said;
  const auto endpoint =
      server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [&] { return ToldService{&said, &owed_}; });
  ASSERT_TRUE(endpoint);
  Client client(*endpoint);
  client.send(1, "long poll");
  ASSERT_TRUE(owed_.take());
  server_->begin_stop(sys::now() + kAnHour);
  EXPECT_EQ(client.receive(), "farewell");
  EXPECT_EQ(client.read_to_end(), "");
  client.close();
  ASSERT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(said, (std::vector<std::string>{"service", "session", "closed"}));
}

struct ThrowingService {
  void on_frame(HeaderSession& session, const Frame& frame) const { test::echo(session, frame); }
  void on_drain() const { throw 1; }
  void on_drain(HeaderSession&) const { throw 2; }
};

TEST_F(DrainTest, AServiceThatThrowsWhenItHearsOfADrainEndsItsSessionAndNotTheStop) {
  start_runtime(1);
  std::vector<SessionId> threw;
  ServerOptions options;
  options.on_exception = [&](const HandlerException& thrown) { threw.push_back(thrown.session); };
  make_server(options);
  const auto endpoint = server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [] { return ThrowingService(); });
  ASSERT_TRUE(endpoint);
  Client client(*endpoint);
  client.send(1, "x");
  ASSERT_EQ(client.receive(), "x");
  ASSERT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(closed_for(CloseReason::service_failed), 1u);
  ASSERT_EQ(threw.size(), 2u);
  EXPECT_FALSE(threw[0]);
  EXPECT_TRUE(threw[1]);
}

}  // namespace
}  // namespace weft::serve
