// SPDX-License-Identifier: MIT
// Every order in which clients, pools and their runtime can end.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/watchdog.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/serve/client/client_pool.h"
#include "weft/serve/client/test_serve_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::HeaderClient;
using test::HeaderSession;
using test::kLong;
using test::Signal;
using Pool = ClientPool<HeaderCodec>;

enum class Step : std::uint8_t { close, destroy, drop_host, end_runtime };
struct Act {
  Step step;
  bool on_core;
};
using Order = std::vector<Act>;

std::string describe(const Order& order) {
  constexpr const char* kNames[] = {"close", "destroy", "drop_host", "end_runtime"};
  std::string text;
  for (const Act& act : order) {
    text += text.empty() ? "" : ", ";
    text += kNames[static_cast<int>(act.step)];
    text += act.on_core ? " on the core" : "";
  }
  return text;
}

// Every permutation of the steps, each on the core and elsewhere. Clients close on their core and before their
// destruction only, and no step is on a core that has ended.
std::vector<Order> all_orders() {
  std::vector<Order> orders;
  std::set<std::string> known;
  std::array steps{Step::close, Step::destroy, Step::drop_host, Step::end_runtime};
  do {
    for (unsigned on_core = 0; on_core < 16; ++on_core) {
      Order order;
      bool destroyed = false;
      bool ended = false;
      for (const Step step : steps) {
        if (step == Step::close) {
          if (!destroyed && !ended) {
            order.push_back({step, true});
          }
          continue;
        }
        ended = ended || step == Step::end_runtime;
        destroyed = destroyed || step == Step::destroy;
        order.push_back({step, !ended && (on_core >> static_cast<unsigned>(step) & 1) != 0});
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
  bool connected;   // false: no listener
  bool full_lanes;  // of the thread that acts
};

rt::Task<void> ask_for_ever(HeaderClient* client, bool connected, Signal* answered) {
  if (connected) {
    (void)co_await client->connected();
  }
  const auto response = co_await client->request({1, 0}, as_bytes("?"));
  EXPECT_FALSE(response);
  answered->give();
}
rt::Task<void> ask_pool_for_ever(Pool* pool, Signal* answered) {
  const auto response = co_await pool->request({1, 0}, as_bytes("?"));
  EXPECT_FALSE(response);
  answered->give();
}
rt::Task<void> close_both(HeaderClient* client, Pool* pool, Signal* closed) {
  rt::TaskScope scope(*rt::Loop::current());
  const auto end = [](rt::Task<Result<void>> close) -> rt::Task<void> { (void)co_await std::move(close); };
  (void)scope.spawn(end(client->close(kNever)));
  (void)scope.spawn(end(pool->close(kNever)));
  (void)co_await scope.join();
  closed->give();
}

constexpr int kRequests = 4;

// A client and a pool on core 0, each with requests in flight, or without a connection.
class World {
 public:
  World(const Situation& situation, const std::string& endpoint, Signal& asked) : situation_(situation) {
    rt::RuntimeOptions options;
    options.cores = situation.cores;
    options.pinning = rt::Pinning::never;
    options.wait_mode = sync::WaitMode::eco;
    options.lane_capacity = situation.full_lanes ? 1 : 1024;
    runtime_ = rt::Runtime::start(options).value();
    on_core([&] {
      host_ = std::make_shared<ClientHost>(runtime_->core(0));
      ClientOptions each;
      each.on_event = [token = token_](const ClientEvent&) {};
      client_ = test::open_client(endpoint, each, host_);
      PoolOptions several;
      several.connections = 2;
      several.client = each;
      pool_ = Pool::open(host_, endpoint, several).value();
      for (int i = 0; i < kRequests; ++i) {
        start(ask_for_ever(client_.get(), situation_.connected, &answered_));
        start(ask_pool_for_ever(pool_.get(), &answered_));
      }
    });
    for (int i = 0; situation.connected && i < 2 * kRequests; ++i) {
      EXPECT_TRUE(asked.take());
    }
  }

  void act(const Act& act) {
    if (act.on_core) {
      on_core([&] {
        fill_lanes();
        run(act.step);
      });
    } else {
      if (act.step != Step::end_runtime) {
        fill_lanes();
      }
      run(act.step);
    }
  }

  void end() {
    runtime_.reset();
    for (int i = 0; i < 2 * kRequests + closes_; ++i) {
      EXPECT_TRUE(answered_.take());
    }
    EXPECT_EQ(token_.use_count(), 1);
  }

 private:
  template <typename F>
  void on_core(F function) {
    Signal done;
    while (!runtime_->post(0, [&] {
      function();
      done.give();
    })) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(done.take());
  }
  void start(rt::Task<void> task) { EXPECT_TRUE(rt::spawn(runtime_->core(0), std::move(task))); }
  void fill_lanes() {
    if (situation_.full_lanes) {
      rt::test::fill_lanes(*runtime_);
    }
  }
  void run(Step step) {
    switch (step) {
      case Step::close: ++closes_; return start(close_both(client_.get(), pool_.get(), &answered_));
      case Step::destroy: pool_.reset(); return client_.reset();
      case Step::drop_host: return host_.reset();
      case Step::end_runtime: return static_cast<void>(runtime_->stop(sys::now() + kLong));
    }
  }

  const Situation situation_;
  std::unique_ptr<rt::Runtime> runtime_;
  std::shared_ptr<ClientHost> host_;
  std::unique_ptr<HeaderClient> client_;
  std::unique_ptr<Pool> pool_;
  const std::shared_ptr<int> token_ = std::make_shared<int>(0);
  Signal answered_;
  int closes_ = 0;
};

class EveryClient : public testing::TestWithParam<Situation> {};

TEST_P(EveryClient, EndsInEveryOrderWithItsRuntime) {
  weft::test::Watchdog watchdog;
  Signal asked;
  rt::RuntimeOptions options;
  options.cores = 1;
  const auto runtime = rt::Runtime::start(options).value();
  const auto server = Server::make(*runtime).value();
  test::Script script;
  script.on_frame = [&](HeaderSession&, const HeaderCodec::Frame&) { asked.give(); };  // and never answers
  const std::string endpoint =
      server->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [&] { return test::ScriptService{&script}; }).value();
  for (const Order& order : all_orders()) {
    SCOPED_TRACE(describe(order));
    watchdog.begin(std::string(GetParam().name) + ": " + describe(order));
    World world(GetParam(), GetParam().connected ? endpoint : "tcp://127.0.0.1:1", asked);
    for (const Act& act : order) {
      world.act(act);
    }
    world.end();
    ASSERT_FALSE(HasFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(ClientOrders, EveryClient,
                         testing::Values(Situation{"OneCoreInFlight", 1, true, false},
                                         Situation{"OneCoreFullLanes", 1, true, true},
                                         Situation{"OneCoreNobodyListens", 1, false, false},
                                         Situation{"FourCoresInFlight", 4, true, false},
                                         Situation{"FourCoresFullLanes", 4, true, true},
                                         Situation{"FourCoresNobodyListens", 4, false, true}),
                         [](const auto& situation) { return std::string(situation.param.name); });

TEST(ClientEnds, SeveralThreadsMayDestroyClientsWhileTheirRuntimeStops) {
  constexpr std::size_t kClients = 8;
  weft::test::Watchdog watchdog;
  for (int round = 0; round < 20; ++round) {
    watchdog.begin("several threads");
    rt::RuntimeOptions options;
    options.cores = 1;
    options.lane_capacity = 1;
    const auto runtime = rt::Runtime::start(options).value();
    const auto token = std::make_shared<int>(0);
    std::vector<std::unique_ptr<HeaderClient>> clients;
    Signal made;
    while (!runtime->post(0, [&] {
      ClientOptions each;
      each.on_event = [token](const ClientEvent&) {};
      for (std::size_t i = 0; i < kClients; ++i) {
        clients.push_back(test::open_client("tcp://127.0.0.1:1", each));
      }
      made.give();
    })) {
      std::this_thread::yield();
    }
    ASSERT_TRUE(made.take());
    std::vector<std::thread> threads;
    for (std::size_t half = 0; half < 2; ++half) {
      threads.emplace_back([&clients, half] {
        for (std::size_t i = half; i < kClients; i += 2) {
          clients[i].reset();
        }
      });
    }
    ASSERT_TRUE(runtime->stop(sys::now() + kLong));
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(token.use_count(), 1);
  }
}

}  // namespace
}  // namespace weft::serve
