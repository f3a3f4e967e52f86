// SPDX-License-Identifier: MIT
// How a server ends. Every order of several ends: tests/server/stop_orders_test.cc.
#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weft/net/listener.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/exec/thread_pool.h"
#include "weft/rt/loop/activity.h"
#include "weft/rt/task/task_work.h"
#include "weft/serve/server/stand_in.h"
#include "weft/serve/server/test_client.h"
#include "weft/serve/session/shard.h"
#include "weft/sys/socket.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::echo;
using test::HeaderSession;
using test::kLong;
using test::Signal;

constexpr std::chrono::hours kOneHour{1};

class StopTest : public test::ServerTest {
 protected:
  // A session that owes a reply that never comes.
  std::unique_ptr<Client> connect_and_owe() {
    script_.on_frame = [this](HeaderSession& session, const HeaderCodec::Frame&) {
      session.begin_reply();
      owed_.give();
    };
    auto client = std::make_unique<Client>(listen());
    client->send(1, "");
    EXPECT_TRUE(owed_.take());
    return client;
  }

  // One core accepts, and deals the connections to all.
  std::string listen_in_turn(ListenerOptions options = {}) {
    options.accept = AcceptMode::hand_off;
    script_.on_open = [this](HeaderSession& session) {
      core_ = session.id().core();
      opened_.give();
    };
    return listen(options);
  }
  // A client whose session is on this core. A core that the machine holds up may miss its turn.
  std::unique_ptr<Client> connect_to(unsigned core, const std::string& endpoint) {
    std::unique_ptr<Client> client;
    const Instant limit = sys::now() + kLong;
    do {
      client = std::make_unique<Client>(endpoint);
      EXPECT_TRUE(opened_.take());
    } while (core_ != core && sys::now() < limit);
    EXPECT_EQ(core_, core);
    return client;
  }

  // Two cores, of which one hands connections off. Handlers say that they run, and wait for leave_: end_blocked() lets
  // them return, and ends the server before the signals.
  void start_with_blocking_handlers() {
    script_.on_frame = [this](HeaderSession&, const HeaderCodec::Frame&) {
      entered_.give();
      EXPECT_TRUE(leave_.take());
    };
    start_runtime(2);
  }
  void end_blocked() {
    leave_.give();
    server_.reset();
  }

  Signal opened_;
  std::atomic<unsigned> core_{0};  // of the session that opened last
  Signal owed_;
  Signal entered_;
  Signal leave_;
};

// --- deadlines ---

TEST_F(StopTest, AStopThatHasBegunEndsWithTheRuntime) {
  watch_close();
  const auto client = connect_and_owe();
  server_->begin_stop(sys::now() + kOneHour);
  EXPECT_TRUE(runtime_->stop(sys::now() + kLong));
  EXPECT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::server_stopped);
  EXPECT_EQ(server_->sessions(), 0u);
  server_.reset();
}

TEST_F(StopTest, AMessageThatComesAfterTheServersEndOnItsCoreIsCounted) {
  SessionId id;
  Signal opened;
  script_.on_open = [&](HeaderSession& session) {
    id = session.id();
    opened.give();
  };
  Client client(listen());
  ASSERT_TRUE(opened.take());
  client.close();
  server_->begin_stop(sys::now() + kLong);
  for (bool there = true; there;) {
    rt::test::on_core(*runtime_, id.core(), [&] { there = Shard::here(id.epoch()) != nullptr; });
  }
  ASSERT_TRUE(server_->post_to(id, [](Session&) { ADD_FAILURE(); })) << "nobody has waited for the stop";
  rt::test::on_core(*runtime_, id.core(), [] {});
  EXPECT_EQ(runtime_->core(id.core()).counts().residents_missed, 1u);
}

TEST_F(StopTest, OfTwoStopsTheEarlierDeadlineCounts) {
  const auto client = connect_and_owe();
  server_->begin_stop(sys::now() + kOneHour);
  EXPECT_EQ(stop_now().error(), Errc::timed_out);
  ASSERT_TRUE(server_->restart());
  const auto other = connect_and_owe();
  server_->begin_stop(sys::now());
  EXPECT_EQ(server_->stop(sys::now() + kOneHour).error(), Errc::timed_out);
}

TEST_F(StopTest, TheDestructorOverrulesAStopThatHasBegun) {
  watch_close();
  const auto client = connect_and_owe();
  server_->begin_stop(sys::now() + kOneHour);
  server_.reset();
  EXPECT_TRUE(closed_.take());
}

// --- the state after a stop ---

TEST_F(StopTest, AStopDoesNotWaitForAHandlerThatDoesNotReturnAndNamesItsCore) {
  Signal entered;
  Signal leave;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    entered.give();
    EXPECT_TRUE(leave.take());
    echo(session, frame);
  };
  start_runtime(1);
  Client client(listen());
  client.send(1, "");
  ASSERT_TRUE(entered.take());
  const auto stopped = server_->stop(sys::now());  // returns, though the handler does not
  EXPECT_EQ(stopped.error(), Errc::timed_out);
  EXPECT_STREQ(stopped.error().text(), "a handler has not returned on core 0");
  EXPECT_EQ(server_->ready().error(), Errc::terminated);
  EXPECT_EQ(server_->restart().error(), Errc::invalid_state);
  const auto make_service = [this] { return test::ScriptService{&script_}; };
  EXPECT_EQ(server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, make_service).error(), Errc::closed);
  leave.give();
  EXPECT_EQ(server_->stop(sys::now() + kLong).error(), Errc::timed_out);  // waits for it; its session was aborted
  EXPECT_EQ(server_->ready().error(), Errc::closed);
  script_.on_frame = echo;
  EXPECT_TRUE(server_->restart());
}

TEST_F(StopTest, AStopDoesNotWaitForACoroutineThatDoesNotEndAndNamesItsCore) {
  const auto pool = std::move(rt::ThreadPool::make_fixed(1)).value();
  Signal entered;
  Signal leave;
  const auto block = [&]() -> rt::Task<> {
    (void)co_await rt::run_on(*pool, [&] {  // a function that has begun is not given up
      entered.give();
      EXPECT_TRUE(leave.take());
    });
  };
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) { EXPECT_TRUE(session.spawn(block())); };
  start_runtime(2);
  const auto client = connect_to(1, listen_in_turn());
  client->send(1, "");
  ASSERT_TRUE(entered.take());
  server_->begin_stop(sys::now());
  constexpr std::string_view kExpected = "coroutines of sessions have not ended on core 1";
  std::string said;
  for (const Instant limit = sys::now() + kLong; said != kExpected && sys::now() < limit;) {
    said = server_->stop(sys::now()).error().text();  // until both cores have met the deadline
  }
  EXPECT_EQ(said, kExpected);
  leave.give();
  EXPECT_EQ(server_->stop(sys::now() + kLong).error(), Errc::timed_out);
}

TEST_F(StopTest, AnotherCoreAcceptsWhileTheOneThatHandsOffDoesNotReturn) {
  Signal entered;
  Signal leave;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (frame.header.id == 1) {
      entered.give();
      EXPECT_TRUE(leave.take());
    }
    echo(session, frame);
  };
  start_runtime(2);
  const std::string endpoint = listen_in_turn();
  const auto blocked = connect_to(0, endpoint);
  blocked->send(1, "");
  ASSERT_TRUE(entered.take());
  for (int i = 0; i < 3; ++i) {
    Client client(endpoint);
    client.send(2, "served");
    EXPECT_EQ(client.receive(), "served");
  }
  leave.give();
  EXPECT_EQ(blocked->receive(), "");
  Client after(endpoint);
  after.send(2, "after");
  EXPECT_EQ(after.receive(), "after");
}

TEST_F(StopTest, TheOneCoreThatReturnsAcceptsForAllOthers) {
  Signal entered;
  Signal leave;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (frame.header.id == 1) {
      entered.give();
      EXPECT_TRUE(leave.take());
    }
    echo(session, frame);
  };
  start_runtime(3);
  const std::string endpoint = listen_in_turn();
  const auto on_core_0 = connect_to(0, endpoint);
  const auto on_core_1 = connect_to(1, endpoint);
  for (Client* const client : {on_core_0.get(), on_core_1.get()}) {
    client->send(1, "");
    ASSERT_TRUE(entered.take());
  }
  // A core whose turn began a moment ago may get the connection.
  while (!runtime_->core(1).loop().activity()->busy_since(sys::now() - StandIn::kPatience)) {
    std::this_thread::yield();
  }
  Client client(endpoint);
  client.send(2, "served");
  EXPECT_EQ(client.receive(), "served");
  leave.give(2);
  for (Client* const blocked : {on_core_0.get(), on_core_1.get()}) {
    EXPECT_EQ(blocked->receive(), "");
  }
}

// A connection wakes one core of those that wait, and it may be this one: each is in a round. A core that the machine
// held up before it blocked may have the session.
TEST_F(StopTest, AConnectionIsAcceptedAlthoughTheCoreThatItWokeDoesNotReturn) {
  script_.on_frame = echo;
  const auto block = [this] {
    entered_.give();
    EXPECT_TRUE(leave_.take());
  };
  for (const unsigned second : {1U, 2U}) {
    bool held_up = true;
    for (const Instant limit = sys::now() + kLong; held_up && sys::now() < limit;) {
      start_runtime(3);
      ServerOptions server_options;
      server_options.stall_after = std::chrono::milliseconds(50);
      make_server(server_options);
      const std::string endpoint = listen_in_turn();
      const Instant began = sys::now();
      ASSERT_TRUE(runtime_->post(0, block));
      ASSERT_TRUE(entered_.take());
      Client client(endpoint);
      ASSERT_TRUE(runtime_->post(second, block));
      ASSERT_TRUE(entered_.take());
      held_up = sys::now() - began > StandIn::kPatience / 2;
      if (!held_up) {
        client.send(2, "served");
        EXPECT_EQ(client.receive(), "served");
      }
      leave_.give(2);
      server_.reset();
    }
    EXPECT_FALSE(held_up);
  }
}

TEST_F(StopTest, AConnectionThatTheOtherCoreRefusesMeanwhileIsCounted) {
  start_with_blocking_handlers();
  const auto blocked = connect_to(0, listen_in_turn());
  ListenerOptions options;
  options.filter = net::AcceptFilter::parse("10.0.0.0/8", "").value();
  const std::string closed_to_all = listen_in_turn(options);
  blocked->send(1, "");
  ASSERT_TRUE(entered_.take());
  EXPECT_EQ(Client(closed_to_all).read_to_end(), "");
  until([](const CounterValues& counters) { return counters.rejected_for(Rejection::failed) == 1; });
  end_blocked();
}

TEST_F(StopTest, AnEndpointIsFreeAlthoughTheCoreThatWouldStandInDoesNotReturn) {
  start_with_blocking_handlers();
  const std::string bound = listen_in_turn();
  const auto endpoint = net::parse_endpoint(bound, true);
  ASSERT_TRUE(endpoint);
  const auto blocked = connect_to(1, bound);
  blocked->send(1, "");
  ASSERT_TRUE(entered_.take());
  server_->begin_stop(sys::now() + kLong);
  Error outcome(Errc::would_block);
  for (const Instant limit = sys::now() + kLong; !(outcome == Errc::ok) && sys::now() < limit;) {
    outcome = net::Listener::open(*endpoint, {}).error();
    std::this_thread::yield();
  }
  EXPECT_EQ(outcome, Errc::ok) << outcome.message();
  end_blocked();
}

TEST_F(StopTest, TheDestructorWaitsForAHandlerThatDoesNotReturn) {
  Signal entered;
  Signal leave;
  std::atomic<bool> left{false};
  script_.on_frame = [&](HeaderSession&, const HeaderCodec::Frame&) {
    entered.give();
    EXPECT_TRUE(leave.take());
    left = true;
  };
  Client client(listen());
  client.send(1, "");
  ASSERT_TRUE(entered.take());
  EXPECT_EQ(server_->stop(sys::now()).error(), Errc::timed_out);
  std::thread destroys([this] { server_.reset(); });
  leave.give();
  destroys.join();
  EXPECT_TRUE(left);
}

// --- lanes ---

// Only the core itself empties its lane to itself.
TEST_F(StopTest, AStopEndsThoughACoresLaneToItselfIsFull) {
  start_runtime(1, 1);
  script_.on_close = [this](HeaderSession&, const Error&) { rt::test::fill_lanes(*runtime_); };
  const auto client = connect_and_owe();
  EXPECT_EQ(stop_now().error(), Errc::timed_out);
}

TEST_F(StopTest, AStopOnACoreWhoseLanesAreFullDoesNotWait) {
  start_runtime(2, 1);
  watch_close();
  const auto client = connect_and_owe();
  rt::test::on_core(*runtime_, 0, [this] {
    rt::test::fill_lanes(*runtime_);
    server_->begin_stop(sys::now());
  });
  EXPECT_TRUE(closed_.take());
  EXPECT_EQ(stop_now().error(), Errc::timed_out);
  server_.reset();
}

TEST_F(StopTest, BeginStopDoesNotWaitForACoreThatIsBusyAndWhoseLaneIsFull) {
  start_runtime(1, 1);
  const auto client = connect_and_owe();
  {
    const rt::test::Blocked blocked(*runtime_, 0);
    rt::test::fill_lanes(*runtime_);
    server_->begin_stop(sys::now());
    EXPECT_EQ(server_->ready().error(), Errc::terminated);
  }
  EXPECT_EQ(stop_now().error(), Errc::timed_out);
}

// A core runs at most 256 messages of a lane in a turn.
TEST_F(StopTest, FramesSentBeforeAStopAreDelivered) {
  constexpr int kFrames = 1000;
  std::atomic<std::uint64_t> id{0};
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    id = session.id().value;
    owed_.give();
  };
  start_runtime(1);
  Client client(listen());
  client.send(1, "");
  ASSERT_TRUE(owed_.take());
  const auto frame = SharedFrame::encode(HeaderCodec(), {2, 0}, as_bytes("last words"));
  ASSERT_TRUE(frame);
  {
    const rt::test::Blocked blocked(*runtime_, 0);
    for (int i = 0; i < kFrames; ++i) {
      ASSERT_TRUE(server_->send_to(SessionId{id.load()}, *frame));
    }
    server_->begin_stop(sys::now() + kLong);
  }
  for (int i = 0; i < kFrames; ++i) {
    ASSERT_EQ(client.receive(), "last words") << i;
  }
  EXPECT_EQ(client.read_to_end(), "");
}

// --- who stops ---

TEST_F(StopTest, AServerDestroyedOnACoreLeavesItsSessionsWhatTheyCount) {
  script_.on_close = [this](HeaderSession& session, const Error&) {
    EXPECT_EQ(session.reason(), CloseReason::server_stopped);
    closed_.give();
  };
  const auto client = connect_and_owe();
  rt::test::on_core(*runtime_, 0, [this] { server_.reset(); });
  EXPECT_TRUE(closed_.take());
  EXPECT_EQ(client->read_to_end(), "");
}

TEST_F(StopTest, AServerOutlivesItsRuntime) {
  const auto client = connect_and_owe();
  runtime_.reset();
  EXPECT_EQ(client->read_to_end(), "");
  server_->begin_stop(sys::now());
  const std::string gone = "closed: the runtime ended before its server: destroy the server first";
  const auto make_service = [this] { return test::ScriptService{&script_}; };
  EXPECT_EQ(server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, make_service).error().message(), gone);
  EXPECT_EQ(server_->post_to(SessionId(), [](Session&) {}).error().message(), gone);
  const auto frame = SharedFrame::encode(HeaderCodec(), {1, 0}, as_bytes("x"));
  ASSERT_TRUE(frame);
  EXPECT_EQ(server_->send_to(SessionId(), *frame).error().message(), gone);
  EXPECT_EQ(server_->broadcast(*frame).error().message(), gone);
  EXPECT_EQ(server_->publish(GroupId{1}, *frame).error().message(), gone);
  EXPECT_EQ(server_->ready().error().message(), gone);
  EXPECT_EQ(server_->counters().closed_for(CloseReason::server_stopped), 1u);
  EXPECT_EQ(server_->sessions(), 0u);
  (void)stop_now();
  EXPECT_EQ(server_->restart().error().message(), gone);
  server_.reset();
}

TEST_F(StopTest, AServerOfARuntimeThatWasStoppedRefusesListeners) {
  ASSERT_TRUE(runtime_->stop(sys::now() + kLong));
  make_server();
  const auto make_service = [this] { return test::ScriptService{&script_}; };
  EXPECT_EQ(server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, make_service).error(), Errc::closed);
  EXPECT_TRUE(stop_now());
  EXPECT_TRUE(server_->restart());  // without listeners
}

TEST_F(StopTest, AServerWhoseStopHasBegunRefusesListeners) {
  listen();
  server_->begin_stop(sys::now() + kLong);
  const auto make_service = [this] { return test::ScriptService{&script_}; };
  EXPECT_EQ(server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, make_service).error(), Errc::closed);
}

TEST_F(StopTest, ARestartAfterTheRuntimesEndIsAnError) {
  listen();
  ASSERT_TRUE(runtime_->stop(sys::now() + kLong));
  EXPECT_EQ(server_->ready().error(), Errc::terminated);
  EXPECT_TRUE(stop_now());
  EXPECT_EQ(server_->restart().error(), Errc::closed);
}

// --- listeners ---

// After a stop the descriptor's number may be another's.
TEST_F(StopTest, ARestartDoesNotAdoptADescriptorOnceMore) {
  auto listener = sys::open_tcp_listener(*sys::SocketAddress::parse_numeric("127.0.0.1", 0), {});
  ASSERT_TRUE(listener);
  const std::string endpoint = "tcp://" + sys::local_address(listener->fd())->to_text();
  ListenerOptions options;
  options.socket.adopt_fd = listener->release();
  script_.on_frame = echo;
  Client client(listen(options, endpoint));
  client.send(1, "adopted");
  EXPECT_EQ(client.receive(), "adopted");
  client.close();
  ASSERT_TRUE(server_->stop(sys::now() + kLong));
  std::vector<sys::Fd> others;  // a new descriptor gets the lowest free number, and the session's may be lower
  do {
    others.push_back(std::move(sys::open_tcp_listener(*sys::SocketAddress::parse_numeric("127.0.0.1", 0), {})).value());
  } while (others.back().fd() < options.socket.adopt_fd);
  ASSERT_EQ(others.back().fd(), options.socket.adopt_fd);
  EXPECT_EQ(server_->restart().error(), Errc::not_supported);
  EXPECT_EQ(server_->ready().error(), Errc::closed);
  EXPECT_TRUE(sys::local_address(others.back().fd()));  // open
}

class BothAcceptModes : public StopTest, public testing::WithParamInterface<AcceptMode> {};

TEST_P(BothAcceptModes, AWrapFunctionThatThrowsCostsItsConnectionAlone) {
  std::atomic<int> calls{0};
  ListenerOptions options;
  options.accept = GetParam();
  options.wrap = [&calls](std::unique_ptr<net::ByteStream> stream) -> Result<std::unique_ptr<net::ByteStream>> {
    switch (calls++) {
      case 0: throw std::bad_alloc();
      case 1: throw std::runtime_error("no");
      case 2: throw 3;
      case 3: return std::unique_ptr<net::ByteStream>();
      default: return stream;
    }
  };
  script_.on_frame = echo;
  const std::string endpoint = listen(options);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Client(endpoint).read_to_end(), "");
  }
  Client client(endpoint);
  client.send(1, "wrapped");
  EXPECT_EQ(client.receive(), "wrapped");
  EXPECT_EQ(server_->sessions(), 1u);
  (void)stop_now();  // a core counts after the peer saw the end
  EXPECT_EQ(server_->counters().rejected_for(Rejection::failed), 4u);
}

INSTANTIATE_TEST_SUITE_P(StopTest, BothAcceptModes, testing::Values(AcceptMode::automatic, AcceptMode::hand_off),
                         [](const auto& parameter) { return parameter.index == 0 ? "Automatic" : "HandOff"; });

TEST_F(StopTest, EachCoreMakesItsServiceWithACopyOfTheFunction) {
  start_runtime(4);
  make_server();
  struct Echo {
    static void on_frame(HeaderSession& session, const HeaderCodec::Frame& frame) { echo(session, frame); }
  };
  std::atomic<int> sum{0};
  ASSERT_TRUE(server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [&sum, calls = 0]() mutable {
    sum += ++calls;
    return Echo();
  }));
  EXPECT_EQ(sum, 4);
}

TEST_F(StopTest, AListenerThatFailsOnOneOfFourCoresLeavesNothing) {
  start_runtime(4);
  make_server();
  const auto token = std::make_shared<int>(0);
  struct Counted {
    std::shared_ptr<int> token;
    void on_frame(HeaderSession& session, const HeaderCodec::Frame& frame) { echo(session, frame); }
  };
  std::string endpoint = "tcp://127.0.0.1:0";
  for (unsigned failing = 0; failing < 4; ++failing) {
    const auto bound = server_->listen<HeaderCodec>(endpoint, {}, [token, failing](rt::Core& core) {
      if (core.index() == failing) {
        throw std::bad_alloc();
      }
      return Counted{token};
    });
    EXPECT_EQ(bound.error(), Errc::system);
    EXPECT_EQ(token.use_count(), 1);
    EXPECT_EQ(server_->ready().error(), Errc::invalid_state);  // no listener yet
  }
  script_.on_frame = echo;
  Client client(listen());
  client.send(1, "x");
  EXPECT_EQ(client.receive(), "x");
}

}  // namespace
}  // namespace weft::serve
