// SPDX-License-Identifier: MIT
// Stops at bad moments: inside callbacks, from several threads, while connections come.
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
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

using test::Client;
using test::echo;
using test::HeaderSession;
using test::kLong;
using test::Signal;

constexpr std::chrono::hours kAnHour{1};

class StopAttack : public test::ServerTest {
 protected:
  void SetUp() override { watchdog_.begin("set-up"); }
  void TearDown() override {
    server_.reset();
    runtime_.reset();
  }
  void restart_and_echo(const std::string& endpoint) {
    ASSERT_TRUE(server_->restart());
    script_ = {};
    script_.on_frame = echo;
    Client client(endpoint);
    client.send(1, "again");
    EXPECT_EQ(client.receive(), "again");
  }

  weft::test::Watchdog watchdog_;
};

// --- inside callbacks ---

enum class Place : std::uint8_t { on_open, on_frame, on_close, coroutine };
enum class Act : std::uint8_t { begin_stop, stop, destroy };

rt::Task<void> call_later(std::function<void()> function) {
  EXPECT_TRUE(co_await rt::yield());
  function();
  (void)co_await rt::sleep(kAnHour);
}

struct Inside {
  Place place;
  Act act;
  unsigned cores;
};
class StopInside : public StopAttack, public testing::WithParamInterface<Inside> {};

TEST_P(StopInside, EndsAllAndARestartServesAgain) {
  const Inside inside = GetParam();
  watchdog_.begin("inside a callback");
  start_runtime(inside.cores);
  Signal acted;
  std::atomic<bool> once{false};
  const auto run = [&, inside] {
    if (once.exchange(true)) {
      return;
    }
    switch (inside.act) {
      case Act::begin_stop: server_->begin_stop(sys::now() + kAnHour); break;
      case Act::stop: EXPECT_TRUE(server_->stop(sys::now())); break;
      case Act::destroy: server_.reset(); break;
    }
    acted.give();
  };
  script_.on_open = [&, inside](HeaderSession&) {
    if (inside.place == Place::on_open) {
      run();
    }
  };
  script_.on_frame = [&, inside](HeaderSession& session, const HeaderCodec::Frame&) {
    if (inside.place == Place::on_frame) {
      run();
    } else if (inside.place == Place::coroutine) {
      EXPECT_TRUE(session.spawn(call_later(run)));
    }
  };
  script_.on_close = [&, inside](HeaderSession&, const Error&) {
    if (inside.place == Place::on_close) {
      run();
    }
  };
  const std::string endpoint = listen();
  std::optional<Client> idle;
  if (inside.place != Place::on_open) {
    idle.emplace(endpoint);
  }
  {
    Client client(endpoint);
    client.send(1, "");
    if (inside.place == Place::on_close) {
      client.close();
    }
    ASSERT_TRUE(acted.take());
  }
  if (inside.act != Act::destroy) {
    (void)stop_now();
    EXPECT_EQ(server_->sessions(), 0u);
    restart_and_echo(endpoint);
  }
  server_.reset();
  runtime_.reset();  // its sessions refer to variables of this function
}

std::vector<Inside> all_inside() {
  std::vector<Inside> all;
  for (const Place place : {Place::on_open, Place::on_frame, Place::on_close, Place::coroutine}) {
    for (const Act act : {Act::begin_stop, Act::stop, Act::destroy}) {
      all.push_back({place, act, 1});
      all.push_back({place, act, 4});
    }
  }
  return all;
}
std::string name_of(const testing::TestParamInfo<Inside>& inside) {
  constexpr std::array kPlaces{"OnOpen", "OnFrame", "OnClose", "Coroutine"};
  constexpr std::array kActs{"BeginStop", "Stop", "Destroy"};
  return std::string(kPlaces[static_cast<std::size_t>(inside.param.place)]) +
         kActs[static_cast<std::size_t>(inside.param.act)] + std::to_string(inside.param.cores);
}
INSTANTIATE_TEST_SUITE_P(StopAttack, StopInside, testing::ValuesIn(all_inside()), name_of);

TEST_F(StopAttack, AServiceMayStopTheServerWhileItIsMade) {
  start_runtime(4);
  make_server();
  const auto bound = server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [this](rt::Core& core) {
    if (core.index() == 2) {
      server_->begin_stop(sys::now());
    }
    return test::ScriptService{&script_};
  });
  EXPECT_TRUE(bound || bound.error() == Errc::closed) << bound.error().message();
  (void)stop_now();
  EXPECT_EQ(server_->ready().error(), Errc::closed);
}

TEST_F(StopAttack, AServerMadeOnACoreMayBeDestroyedThere) {
  start_runtime(2);
  rt::test::on_core(*runtime_, 1, [this] {
    make_server();
    EXPECT_EQ(
        server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [] { return test::ScriptService{nullptr}; }).error(),
        Errc::invalid_state);
    server_.reset();
  });
}

TEST_F(StopAttack, AServerMayBeDestroyedOnACoreOfAnotherRuntime) {
  start_runtime(2);
  script_.on_frame = echo;
  watch_close();
  Client client(listen());
  client.send(1, "x");
  EXPECT_EQ(client.receive(), "x");
  const auto other = rt::test::start_runtime(1);
  rt::test::on_core(*other, 0, [this] { server_.reset(); });
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(client.read_to_end(), "");
}

// --- several threads ---

TEST_F(StopAttack, SeveralThreadsMayStopAServerThatIsUsed) {
  for (int round = 0; round < 30; ++round) {
    watchdog_.begin("several threads");
    start_runtime(2);
    std::atomic<int> open{0};
    std::atomic<std::uint64_t> id{0};
    Signal asked;
    script_.on_open = [&](HeaderSession&) { ++open; };
    script_.on_close = [&](HeaderSession&, const Error&) { --open; };
    script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
      (void)session.join(GroupId{1});
      session.begin_reply();
      id = session.id().value;
      asked.give();
    };
    const std::string endpoint = listen();
    Client client(endpoint);
    client.send(1, "");
    ASSERT_TRUE(asked.take());
    const auto frame = SharedFrame::encode(HeaderCodec(), {2, 0}, as_bytes("news")).value();
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    threads.emplace_back([&] { (void)server_->stop(sys::now() + kAnHour); });
    threads.emplace_back([&] { (void)server_->stop(sys::now() + kAnHour); });
    threads.emplace_back([&] { server_->begin_stop(sys::now()); });
    threads.emplace_back([&] {
      while (!over) {
        (void)server_->publish(GroupId{1}, frame);
        (void)server_->send_to(SessionId{id.load()}, frame);
        (void)server_->post_to(SessionId{id.load()}, [](Session& session) { session.close(); });
        (void)server_->ready();
        (void)server_->sessions();
      }
    });
    if (round % 2 == 0) {
      threads.emplace_back([&] { (void)runtime_->stop(sys::now() + kLong); });
    }
    for (std::size_t i = 0; i < threads.size(); ++i) {
      if (i != 3) {
        threads[i].join();
      }
    }
    over = true;
    threads[3].join();
    EXPECT_EQ(open.load(), 0);
    server_.reset();
  }
}

// --- while connections come ---

class StopWhileAccepting : public StopAttack, public testing::WithParamInterface<AcceptMode> {};

TEST_P(StopWhileAccepting, LosesNoConnectionAndLeavesNone) {
  start_runtime(4);
  std::atomic<int> open{0};
  script_.on_open = [&](HeaderSession&) { ++open; };
  script_.on_close = [&](HeaderSession&, const Error&) { --open; };
  ListenerOptions options;
  options.accept = GetParam();
  const std::string endpoint = listen(options);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!over) {
        net::Dialer dialer(*net::parse_endpoint(endpoint, false), {});
        (void)dialer.begin();  // and closes at once
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    watchdog_.begin("while connections come");
    const std::uint64_t before = server_->counters().opened;
    while (server_->counters().opened < before + 10) {
      std::this_thread::yield();
    }
    (void)(round % 2 == 0 ? stop_now() : server_->stop(sys::now() + kLong));
    EXPECT_EQ(open.load(), 0);
    EXPECT_EQ(server_->counters().opened, server_->counters().closed_total());
    Result<void> restarted = server_->restart();
    for (const Instant limit = sys::now() + kLong;
         restarted.error() == Errc::address_in_use && sys::now() < limit;) {  // a thread's own end may have the port
      (void)stop_now();
      restarted = server_->restart();
    }
    ASSERT_TRUE(restarted) << restarted.error().message();
  }
  over = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  server_.reset();  // its sessions refer to variables of this function
}
INSTANTIATE_TEST_SUITE_P(StopAttack, StopWhileAccepting, testing::Values(AcceptMode::automatic, AcceptMode::hand_off),
                         [](const auto& parameter) { return parameter.index == 0 ? "Automatic" : "HandOff"; });

}  // namespace
}  // namespace weft::serve
