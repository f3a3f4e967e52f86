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
  // Runs on core 0 after a message of it, or of core 1, while no message is left. Gives a stop that does not wait for
  // it time to end core 1, and then posts there.
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
  // Stops the runtime. The core goes on when the drain has begun and `meanwhile` has returned.
  void stop_while(Blocked& blocked, const std::function<void()>& meanwhile = [] {}) {
    std::optional<Result<void>> stopped;
    std::thread stopping([&] { stopped = runtime_->stop(in_a_minute()); });
    while (!(runtime_->post(1, [] {}) == Errc::closed)) {
      std::this_thread::yield();
    }
    meanwhile();
    blocked.release();
    stopping.join();
    EXPECT_TRUE(*stopped);
  }

  void pass_turns_of_core_0() {
    for (int turn = 0; turn < 4; ++turn) {
      Signal turned;
      runtime_->core(0).loop().post([&turned] { turned.give(); });
      EXPECT_TRUE(turned.take());
    }
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

// Core 0 has had turns in the drain, so that nothing is left there of the time before.
TEST_F(AftermathTest, AJobThatAMessagePostsToTheLoopOfAnotherCorePostsBeforeTheStopEnds) {
  Blocked blocked(*runtime_, 1);
  ASSERT_TRUE(runtime_->post(1, [this] { runtime_->core(0).loop().post([this] { follow(); }); }));
  stop_while(blocked, [this] { pass_turns_of_core_0(); });
  EXPECT_TRUE(ran_);
}

TEST_F(AftermathTest, ACoroutineThatAMessageOfAnotherCoreMakesReadyPostsBeforeTheStopEnds) {
  struct Follows final : detail::Ready {
    explicit Follows(std::function<void()> function)
        : Ready([](Ready& self) noexcept { static_cast<Follows&>(self).call(); }), call(std::move(function)) {}
    std::function<void()> call;
  };
  Follows follows([this] { follow(); });
  Blocked blocked(*runtime_, 1);
  ASSERT_TRUE(runtime_->post(1, [&] { runtime_->core(0).loop().tasks().post(follows); }));
  stop_while(blocked, [this] { pass_turns_of_core_0(); });
  EXPECT_TRUE(ran_);
}

TEST_F(AftermathTest, JobsThatAlwaysPostToTheLoopsOfOthersKeepNoStop) {
  std::atomic<std::uint64_t> passed{0};
  std::function<void(unsigned)> pass = [&](unsigned core) {
    passed.fetch_add(1, std::memory_order_relaxed);
    runtime_->core(core).loop().post([&pass, core] { pass(1 - core); });
  };
  on_core(*runtime_, 0, [&] { pass(1); });
  EXPECT_TRUE(runtime_->stop(in_a_minute()));
  EXPECT_NE(passed.load(), 0u);
}

TEST_F(AftermathTest, AThreadThatAlwaysPostsToALoopKeepsNoStop) {
  std::atomic<bool> stopped{false};
  std::thread posting([&] {
    while (!stopped) {
      runtime_->core(0).loop().post([] {});
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(runtime_->stop(in_a_minute()));
  stopped = true;
  posting.join();
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
