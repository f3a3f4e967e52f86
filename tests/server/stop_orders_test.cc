// SPDX-License-Identifier: MIT
// Every order in which a server and its runtime can end.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/watchdog.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::HeaderSession;
using test::kLong;
using test::Signal;

enum class Step : std::uint8_t { begin_stop, stop, destroy, end_runtime };
struct Act {
  Step step;
  bool on_core;
};
using Order = std::vector<Act>;

std::string describe(const Order& order) {
  constexpr const char* kNames[] = {"begin_stop", "stop", "destroy", "end_runtime"};
  std::string text;
  for (const Act& act : order) {
    text += (text.empty() ? "" : ", ") + std::string(kNames[static_cast<int>(act.step)]) +
            (act.on_core ? " on a core" : "");
  }
  return text;
}

// Every permutation of the steps, each on a core and elsewhere. No step of a server follows its destruction, and no
// step is on a core of a runtime that has ended.
std::vector<Order> all_orders() {
  std::vector<Order> orders;
  std::set<std::string> known;
  std::array steps{Step::begin_stop, Step::stop, Step::destroy, Step::end_runtime};
  do {
    for (unsigned on_core = 0; on_core < 8; ++on_core) {
      Order order;
      bool destroyed = false;
      bool ended = false;
      for (const Step step : steps) {
        if (step == Step::end_runtime) {
          ended = true;
          order.push_back({step, false});
        } else if (!destroyed) {
          destroyed = step == Step::destroy;
          order.push_back({step, !ended && (on_core >> static_cast<unsigned>(step) & 1) != 0});
        }
      }
      if (known.insert(describe(order)).second) {
        orders.push_back(std::move(order));
      }
    }
  } while (std::next_permutation(steps.begin(), steps.end()));
  return orders;
}

struct Situation {
  const char* name;
  unsigned cores;
  bool owed;        // a session owes a reply that never comes
  bool coroutine;   // a session runs a coroutine that sleeps for an hour
  bool full_lanes;  // every lane of the thread that acts, and of each core whose session closes, is full
};

// The frames that the peers send.
constexpr std::uint32_t kPlain = 1;
constexpr std::uint32_t kOwe = 2;
constexpr std::uint32_t kSleep = 3;

rt::Task<void> sleep_for_an_hour() { (void)co_await rt::sleep(std::chrono::hours(1)); }

// World: a server with sessions, in one situation.
class World {
 public:
  explicit World(const Situation& situation) : situation_(situation) {
    rt::RuntimeOptions options;
    options.cores = situation.cores;
    options.pinning = rt::Pinning::never;
    options.wait_mode = sync::WaitMode::eco;
    options.lane_capacity = situation.full_lanes ? 1 : 1024;
    runtime_ = rt::Runtime::start(options).value();
    server_ = Server::make(*runtime_).value();
    const std::string endpoint =
        server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [this, token = token_] { return Service{*this, token}; })
            .value();
    for (const std::uint32_t kind : {kPlain, situation.owed ? kOwe : kPlain, situation.coroutine ? kSleep : kPlain}) {
      peers_.push_back(std::make_unique<test::Client>(endpoint));
      peers_.back()->send(kind, "");
      EXPECT_TRUE(heard_.take());
    }
  }

  void act(const Act& act) {
    if (!act.on_core) {
      if (situation_.full_lanes && act.step != Step::end_runtime) {
        rt::test::fill_lanes(*runtime_);
      }
      return run(act.step);
    }
    Signal done;
    while (!runtime_->post(situation_.cores - 1, [&] {
      if (situation_.full_lanes) {
        rt::test::fill_lanes(*runtime_);
      }
      run(act.step);
      done.give();
    })) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(done.take());
  }

  // Ends the rest. Then nothing is left.
  void end() {
    server_.reset();
    runtime_.reset();
    EXPECT_EQ(opened_.load(), 3);
    EXPECT_EQ(closed_.load(), 3);
    EXPECT_EQ(token_.use_count(), 1);
    for (const auto& peer : peers_) {
      EXPECT_EQ(peer->read_to_end(), "");
    }
  }

 private:
  struct Service {
    World& world;
    std::shared_ptr<int> token;

    void on_open(HeaderSession& /*session*/) { ++world.opened_; }
    void on_frame(HeaderSession& session, const HeaderCodec::Frame& frame) {
      if (frame.header.id == kOwe) {
        session.begin_reply();
      } else if (frame.header.id == kSleep) {
        EXPECT_TRUE(session.spawn(sleep_for_an_hour()));
      }
      world.heard_.give();
    }
    void on_close(HeaderSession& /*session*/, const Error& /*why*/) {
      ++world.closed_;
      if (world.situation_.full_lanes) {
        rt::test::fill_lanes(*world.runtime_);
      }
    }
  };

  void run(Step step) {
    switch (step) {
      case Step::begin_stop: return server_->begin_stop(sys::now() + std::chrono::hours(1));
      case Step::stop: return static_cast<void>(server_->stop(sys::now()));
      case Step::destroy: return server_.reset();
      case Step::end_runtime: return static_cast<void>(runtime_->stop(sys::now() + kLong));
    }
  }

  const Situation situation_;
  std::unique_ptr<rt::Runtime> runtime_;
  std::unique_ptr<Server> server_;
  std::vector<std::unique_ptr<test::Client>> peers_;
  const std::shared_ptr<int> token_ = std::make_shared<int>(0);
  Signal heard_;
  std::atomic<int> opened_{0};
  std::atomic<int> closed_{0};
};

class EverySituation : public testing::TestWithParam<Situation> {};

TEST_P(EverySituation, EveryOrderOfStopsAndDestructionEnds) {
  weft::test::Watchdog watchdog;
  for (const Order& order : all_orders()) {
    SCOPED_TRACE(describe(order));
    watchdog.begin(std::string(GetParam().name) + ": " + describe(order));
    World world(GetParam());
    for (const Act& act : order) {
      world.act(act);
    }
    world.end();
    ASSERT_FALSE(HasFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(StopOrders, EverySituation,
                         testing::Values(Situation{"OneCoreIdleSessions", 1, false, false, false},
                                         Situation{"OneCoreOwedReplies", 1, true, false, false},
                                         Situation{"OneCoreCoroutines", 1, false, true, false},
                                         Situation{"OneCoreFullLanes", 1, false, false, true},
                                         Situation{"OneCoreAll", 1, true, true, true},
                                         Situation{"FourCoresIdleSessions", 4, false, false, false},
                                         Situation{"FourCoresOwedReplies", 4, true, false, false},
                                         Situation{"FourCoresCoroutines", 4, false, true, false},
                                         Situation{"FourCoresFullLanes", 4, false, false, true},
                                         Situation{"FourCoresAll", 4, true, true, true}),
                         [](const auto& situation) { return std::string(situation.param.name); });

}  // namespace
}  // namespace weft::serve
