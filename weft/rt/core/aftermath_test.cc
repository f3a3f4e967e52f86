// SPDX-License-Identifier: MIT
// A stop waits for the work that messages cause after they ran.
#include "weft/rt/core/aftermath.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_time.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using test::Blocked;
using test::in_a_minute;
using test::on_core;
using test::Signal;
using test::start_runtime;
using test::Started;

class AftermathTest : public testing::Test {
 protected:
  AftermathTest() {
    on_core(*runtime_, 1, [this] { Core::current()->at_end(note_end_); });
  }
  // Runs on core 0 after a message, while no message is left. Gives a stop that does not wait for it time to end core
  // 1, and then posts there.
  void follow() {
    (void)runtime_->post(1, [] {});  // a turn of core 1, at whose end the stop counts
    Core::current()->flush();
    for (const Instant limit = sys::now() + std::chrono::milliseconds(50); !ended_ && sys::now() < limit;) {
      std::this_thread::yield();
    }
    auto posted = runtime_->post(1, [this] { ran_ = true; });
    while (posted == Errc::resource_exhausted) {
      std::this_thread::yield();
      posted = runtime_->post(1, [this] { ran_ = true; });
    }
    EXPECT_TRUE(posted);
  }
  // Stops the runtime. The core goes on when the drain has begun.
  void stop_while(Blocked& blocked) {
    std::optional<Result<void>> stopped;
    std::thread stopping([&] { stopped = runtime_->stop(in_a_minute()); });
    while (!(runtime_->post(1, [] {}) == Errc::closed)) {
      std::this_thread::yield();
    }
    blocked.release();
    stopping.join();
    EXPECT_TRUE(*stopped);
  }

  struct NotesEnd final : TurnJob {
    explicit NotesEnd(std::atomic<bool>& flag) noexcept
        : TurnJob([](TurnJob& job) noexcept { static_cast<NotesEnd&>(job).ended = true; }), ended(flag) {}
    std::atomic<bool>& ended;
  };
  static RuntimeOptions small_lanes() {
    RuntimeOptions options;
    options.lane_capacity = 4;
    return options;
  }

  std::atomic<bool> ended_{false};
  std::atomic<bool> ran_{false};
  NotesEnd note_end_{ended_};
  AsyncEvent event_;
  std::unique_ptr<Runtime> runtime_ = start_runtime(2, small_lanes());
};

TEST_F(AftermathTest, ACoroutineThatWaitedForRoomPostsBeforeTheStopEnds) {
  Blocked blocked(*runtime_, 1);
  const auto waiter = [this]() -> Started {
    EXPECT_TRUE(co_await runtime_->post_wait(1, [] {}));
    follow();
  };
  on_core(*runtime_, 0, [&] {
    while (runtime_->post(1, [] {})) {
    }
    waiter();
  });
  stop_while(blocked);
  EXPECT_TRUE(ran_);
}

TEST_F(AftermathTest, AJobOfTheTurnsEndPostsBeforeTheStopEnds) {
  struct Follows final : TurnJob {
    explicit Follows(std::function<void()> function)
        : TurnJob([](TurnJob& job) noexcept { static_cast<Follows&>(job).call(); }), call(std::move(function)) {}
    std::function<void()> call;
  };
  Follows follows([this] { follow(); });
  Blocked blocked(*runtime_, 0);
  ASSERT_TRUE(runtime_->post(0, [&] { Core::current()->at_turn_end(follows); }));
  stop_while(blocked);
  EXPECT_TRUE(ran_);
}

TEST_F(AftermathTest, AJobThatAMessagePostsToItsLoopPostsBeforeTheStopEnds) {
  Blocked blocked(*runtime_, 0);
  ASSERT_TRUE(runtime_->post(0, [this] { runtime_->core(0).loop().post([this] { follow(); }); }));
  stop_while(blocked);
  EXPECT_TRUE(ran_);
}

// More of them than a turn of the loop resumes, and the last one wakes another.
TEST_F(AftermathTest, CoroutinesThatAMessageWakesPostBeforeTheStopEnds) {
  AsyncEvent last;
  const auto waiting = [this, &last](std::size_t number) -> Task<> {
    const auto woken = co_await event_.wait();
    EXPECT_TRUE(woken);
    if (number == TaskRunner::kTurnMax) {
      last.set();
    }
  };
  const auto waiting_last = [this, &last]() -> Task<> {
    const auto woken = co_await last.wait();
    EXPECT_TRUE(woken);
    follow();
  };
  for (std::size_t number = 0; number <= TaskRunner::kTurnMax; ++number) {
    on_core(*runtime_, 0, [&] { (void)spawn(runtime_->core(0), waiting(number)); });
  }
  on_core(*runtime_, 0, [&] { (void)spawn(runtime_->core(0), waiting_last()); });
  on_core(*runtime_, 0, [] {});
  Blocked blocked(*runtime_, 0);
  ASSERT_TRUE(runtime_->post(0, [this] { event_.set(); }));
  stop_while(blocked);
  EXPECT_TRUE(ran_);
}

TEST_F(AftermathTest, ACoroutineThatIsAlwaysReadyKeepsNoStop) {
  bool cancelled = false;
  const auto always = [&]() -> Task<> {
    while (!cancelled) {
      const auto yielded = co_await yield();
      cancelled = !yielded;
    }
  };
  on_core(*runtime_, 0, [&] { EXPECT_TRUE(spawn(runtime_->core(0), always())); });
  EXPECT_TRUE(runtime_->stop(in_a_minute()));
  EXPECT_TRUE(cancelled);
}

}  // namespace
}  // namespace weft::rt
