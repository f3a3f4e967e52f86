// SPDX-License-Identifier: MIT
// A handler or a peer that misbehaves on one core. The other core goes on at its rate, /healthz tells the truth, a stop
// returns, and every frame is answered or counted.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/watchdog.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/server/core_health.h"
#include "weft/serve/server/test_client.h"
#include "weft/sys/clock.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using std::chrono::milliseconds;
using test::Client;
using test::frame_of;
using test::HeaderSession;
using test::kLong;
using test::Signal;
using Frame = HeaderCodec::Frame;

constexpr Duration kForever = std::chrono::hours(1000);

// What a frame asks of the service.
enum Ask : std::uint32_t { kEcho = 1, kBlock, kSpin, kThrow, kNeverAnswer, kForget };

// What the service shares with the test.
struct Shared {
  Signal entered;
  std::atomic<bool> leave{false};
};

struct Attacked {
  Shared* shared;

  rt::Task<> on_frame(HeaderSession& session, const Frame& frame) const {
    switch (frame.header.id) {
      case kBlock:
        shared->entered.give();
        while (!shared->leave) {
          std::this_thread::sleep_for(milliseconds(1));
        }
        break;
      case kSpin:
        shared->entered.give();
        while (!shared->leave) {
        }
        break;
      case kThrow: throw std::runtime_error("attack");
      case kNeverAnswer:
        shared->entered.give();
        (void)co_await rt::sleep(kForever);
        co_return;
      case kForget:
        shared->entered.give();
        while (!shared->leave) {
          (void)co_await rt::sleep(kForever);
        }
        co_return;
      default: break;
    }
    (void)session.send(frame.header, frame.body);
  }
};

class Attack : public test::ServerTest {
 protected:
  static constexpr int kRoundTrips = 200;

  void SetUp() override {
    watchdog_.begin(testing::UnitTest::GetInstance()->current_test_info()->name());
    start_runtime(2);
    ServerOptions server_options;
    server_options.stall_after = milliseconds(20);
    server_options.on_exception = [this](const HandlerException&) { ++threw_; };
    make_server(server_options);
    ListenerOptions options;
    options.accept = AcceptMode::hand_off;
    options.limits.frame_timeout = milliseconds(50);
    options.limits.write_budget = 64 * 1024;
    endpoint_ = *server_->listen<HeaderCodec>("tcp://127.0.0.1:0", options, [this] { return Attacked{&shared_}; });
    attacker();  // takes core 0
    good_ = std::make_unique<Client>(endpoint_);
    health_ = std::make_shared<CoreHealth>(*runtime_);
    (void)rate();  // warm
  }
  void TearDown() override {
    shared_.leave = true;
    test::ServerTest::TearDown();
  }
  // A client of core 0, if it is called before every other connection or after an even number of them.
  Client& attacker() { return attackers_.emplace_back(endpoint_); }
  // The time of kRoundTrips round trips on core 1.
  Duration rate() {
    const Instant begin = sys::now();
    for (int i = 0; i < kRoundTrips; ++i) {
      good_->send(kEcho, "good");
      EXPECT_EQ(good_->receive(), "good");
    }
    return sys::now() - begin;
  }
  // Whether every core answers.
  std::string complaints() {
    health_->ask(sys::now());
    for (const Instant end = sys::now() + milliseconds(100); !health_->all_answered() && sys::now() < end;) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return health_->complaints(sys::now());
  }
  void expect_core_0_held() {
    const std::string said = complaints();
    EXPECT_TRUE(said.starts_with("core 0 has not answered for ")) << said;
    EXPECT_NE(said.find("Attacked on_frame has not returned for "), std::string::npos) << said;
    EXPECT_EQ(said.find("core 1"), std::string::npos) << said;
  }
  // The other core serves. `loose`: how much slower on a machine that others use, too.
  void expect_others_served(Duration before) {
    Duration best = rate();
    for (int i = 0; i < 4; ++i) {
      best = std::min(best, rate());
    }
    EXPECT_LT(best, 20 * before) << "another core lost its rate";
  }
  void expect_balance() {
    const CounterValues counted = server_->counters();
    EXPECT_EQ(counted.frames_in, counted.frames_out + counted.refused_closed + counted.refused_memory +
                                     counted.dropped_newest + counted.unanswered)
        << "in " << counted.frames_in << " out " << counted.frames_out << " unanswered " << counted.unanswered;
  }
  // Returns by its deadline and the grace, whatever a core does.
  Result<void> stop_by(Duration wait) {
    const Instant begin = sys::now();
    const auto stopped = server_->stop(begin + wait);
    EXPECT_LT(sys::now() - begin, wait + std::chrono::seconds(3));
    return stopped;
  }

  weft::test::Watchdog watchdog_;
  Shared shared_;
  std::atomic<int> threw_{0};
  std::string endpoint_;
  std::deque<Client> attackers_;
  std::unique_ptr<Client> good_;
  std::shared_ptr<CoreHealth> health_;
};

TEST_F(Attack, OfAHandlerThatBlocksHoldsOneCoreAndIsNamed) {
  const Duration before = rate();
  attackers_[0].send(kBlock, "");
  ASSERT_TRUE(shared_.entered.take());
  expect_others_served(before);
  expect_core_0_held();
  EXPECT_STREQ(stop_by(milliseconds(100)).error().text(), "a handler has not returned on core 0");
  shared_.leave = true;
  (void)server_->stop(sys::now() + kLong);
  expect_balance();
}

TEST_F(Attack, OfAHandlerThatSpinsHoldsOneCoreAndIsNamed) {
  attackers_[0].send(kSpin, "");
  ASSERT_TRUE(shared_.entered.take());
  EXPECT_GT(rate(), Duration::zero());
  expect_core_0_held();
  EXPECT_STREQ(stop_by(milliseconds(100)).error().text(), "a handler has not returned on core 0");
  shared_.leave = true;
  (void)server_->stop(sys::now() + kLong);
  expect_balance();
}

TEST_F(Attack, OfHandlersThatThrowEndsTheirSessions) {
  const Duration before = rate();
  for (int i = 0; i < 50; ++i) {
    Client client(endpoint_);
    client.send(kThrow, "");
    EXPECT_EQ(client.read_to_end(), "");
  }
  expect_others_served(before);
  EXPECT_EQ(complaints(), "");
  EXPECT_TRUE(stop_by(std::chrono::seconds(3)));
  EXPECT_EQ(threw_, 50);
  expect_balance();
}

TEST_F(Attack, OfHandlersThatNeverAnswerEndsWithTheStop) {
  const Duration before = rate();
  for (int i = 0; i < 50; ++i) {
    attacker().send(kNeverAnswer, "");
    ASSERT_TRUE(shared_.entered.take());
  }
  expect_others_served(before);
  EXPECT_EQ(complaints(), "");
  EXPECT_EQ(stop_by(milliseconds(200)).error(), Errc::timed_out);
  (void)server_->stop(sys::now() + kLong);
  expect_balance();
}

TEST_F(Attack, OfHandlersThatForgetTheirCancellationLeavesTheCoreToOthers) {
  const Duration before = rate();
  for (int i = 0; i < 10; ++i) {
    Client& client = attacker();
    client.send(kForget, "");
    ASSERT_TRUE(shared_.entered.take());
    client.close();
  }
  expect_others_served(before);
  EXPECT_EQ(complaints(), "");
  shared_.leave = true;
  EXPECT_TRUE(stop_by(std::chrono::seconds(3)));
  expect_balance();
}

TEST_F(Attack, OfPeersThatDribbleHalfCloseResetAndReconnectTakesNothingFromOthers) {
  const Duration before = rate();
  const std::string whole = frame_of(kEcho, "whole");
  for (int i = 0; i < 300; ++i) {
    Client client(endpoint_);
    switch (i % 5) {
      case 0: client.write(std::string_view(whole).substr(0, 5)); break;  // and no more of it
      case 1:
        client.write(whole);
        client.end_writing();
        break;
      case 2: {
        client.write(whole);
        const linger reset{1, 0};
        (void)::setsockopt(client.stream().fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        break;
      }
      case 3: client.send(kNeverAnswer, ""); break;
      default: break;
    }
    if (i % 5 == 1) {
      EXPECT_EQ(client.receive(), "whole");
    }
  }
  expect_others_served(before);
  EXPECT_EQ(complaints(), "");
  EXPECT_TRUE(stop_by(std::chrono::seconds(3)));
  expect_balance();
}

TEST_F(Attack, OfPeersThatReadNothingEndsTheirSessionsAlone) {
  const Duration before = rate();
  std::string much;
  for (int i = 0; i < 16; ++i) {
    much += frame_of(kEcho, std::string(60'000, 'm'));
  }
  for (int i = 0; i < 8; ++i) {
    for (int times = 0; times < 8; ++times) {
      (void)attacker().write_some(much, milliseconds(1));
    }
  }
  expect_others_served(before);
  EXPECT_EQ(complaints(), "");
  (void)stop_by(milliseconds(200));
  (void)server_->stop(sys::now() + kLong);
  expect_balance();
}

}  // namespace
}  // namespace weft::serve
