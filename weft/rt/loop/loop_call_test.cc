// SPDX-License-Identifier: MIT
// A call of a loop may throw, end the loop, and run another one.
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/loop/loop.h"
#include "weft/rt/loop/test_signal.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/sys/clock.h"
#include "weft/sys/event_fd.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;
using test::Signal;

class CalledAgain final : public Watcher {
 public:
  explicit CalledAgain(std::function<void()> function) : function_(std::move(function)) {}
  void handle_event(const sys::PollEvent& /*event*/) override { function_(); }

 private:
  std::function<void()> function_;
};

class Hook final : public TurnHook {
 public:
  explicit Hook(std::function<void()> function) : function_(std::move(function)) {}
  Instant handle_turn(Instant /*now*/) override {
    function_();
    return kNever;
  }
  [[nodiscard]] bool has_work() const noexcept override { return false; }

 private:
  std::function<void()> function_;
};

// A loop whose handler keeps the exceptions.
class LoopThrow : public testing::Test {
 protected:
  void start(TurnHook* hook = nullptr) {
    loop_->set_exception_handler([this](std::exception_ptr thrown) {
      EXPECT_EQ(Loop::current(), loop_.get());
      try {
        std::rethrow_exception(std::move(thrown));
      } catch (const std::runtime_error& error) {
        thrown_.push_back(error.what());
      }
    });
    ASSERT_TRUE(loop_->start(hook));
  }
  // The texts that the handler got, once there are `count`.
  std::vector<std::string> thrown(std::size_t count) {
    std::vector<std::string> result;
    Signal done;
    std::function<void()> look = [&] {
      if (thrown_.size() < count) {
        return loop_->post([&] { look(); });
      }
      result = thrown_;
      done.give();
    };
    loop_->post([&] { look(); });
    EXPECT_TRUE(done.take());
    EXPECT_EQ(loop_->threw(), count);
    return result;
  }

  std::unique_ptr<Loop> loop_ = std::move(Loop::make("loop-throw")).value();
  std::vector<std::string> thrown_;  // of the loop's thread
};

using Texts = std::vector<std::string>;

TEST_F(LoopThrow, AJobThatThrowsEndsNeitherTheThreadNorTheJobsBehindIt) {
  start();
  Signal behind;
  const auto alive = std::make_shared<int>(1);
  loop_->post([alive] { throw std::runtime_error("job"); });
  loop_->post([&] { behind.give(); });
  EXPECT_TRUE(behind.take());
  EXPECT_EQ(thrown(1), Texts{"job"});
  EXPECT_EQ(alive.use_count(), 1);  // the closure has ended
}

TEST_F(LoopThrow, ATimerThatThrowsHasFiredAndTheOthersFire) {
  start();
  Signal fired;
  loop_->post([&] {
    (void)loop_->timers().schedule(loop_->now(), {[](void*) { throw std::runtime_error("timer"); }, nullptr});
    (void)loop_->timers().schedule(loop_->now(), {[](void* signal) { static_cast<Signal*>(signal)->give(); }, &fired});
    (void)loop_->timers().schedule(loop_->now() + 1ms,
                                   {[](void* signal) { static_cast<Signal*>(signal)->give(); }, &fired});
  });
  EXPECT_TRUE(fired.take());
  EXPECT_TRUE(fired.take());
  EXPECT_EQ(thrown(1), Texts{"timer"});
}

TEST_F(LoopThrow, AWatcherThatThrowsGetsItsNextEventAndSoDoTheOthers) {
  start();
  sys::EventFd first = std::move(sys::EventFd::make()).value();
  sys::EventFd second = std::move(sys::EventFd::make()).value();
  Signal seen;
  CalledAgain throws([&] {
    first.drain();
    seen.give();
    throw std::runtime_error("watcher");
  });
  CalledAgain other([&] {
    second.drain();
    seen.give();
  });
  loop_->post([&] {
    EXPECT_TRUE(loop_->watch(first.fd(), sys::Interest::readable, false, &throws));
    EXPECT_TRUE(loop_->watch(second.fd(), sys::Interest::readable, false, &other));
    first.signal();
    second.signal();
  });
  EXPECT_TRUE(seen.take());
  EXPECT_TRUE(seen.take());
  first.signal();
  EXPECT_TRUE(seen.take());
  EXPECT_EQ(thrown(2), (Texts{"watcher", "watcher"}));
  loop_->stop();
}

TEST_F(LoopThrow, AHookThatThrowsGetsItsNextTurnSoon) {
  std::atomic<int> turns{0};
  Signal second;
  Hook hook([&] {
    if (turns.fetch_add(1) == 0) {
      throw std::runtime_error("hook");
    }
    second.give();
  });
  start(&hook);
  EXPECT_TRUE(second.take());  // nothing else asked for a turn
  EXPECT_EQ(thrown(1), Texts{"hook"});
  loop_->stop();
}

TEST_F(LoopThrow, AHandlerThatThrowsIsAsOneThatReturns) {
  loop_->set_exception_handler([](std::exception_ptr) { throw std::runtime_error("handler"); });
  ASSERT_TRUE(loop_->start(nullptr));
  Signal behind;
  loop_->post([] { throw 1; });
  loop_->post([&] { behind.give(); });
  EXPECT_TRUE(behind.take());
  EXPECT_EQ(loop_->threw(), 1u);
}

TEST(LoopMisuse, IsStartedOrRunOnce) {
  const auto loop = std::move(Loop::make("loop-once")).value();
  ASSERT_TRUE(loop->start(nullptr));
  EXPECT_EQ(loop->start(nullptr).error(), Errc::invalid_state);
  EXPECT_EQ(loop->run(nullptr, sync::WaitMode::eco).error(), Errc::invalid_state);
  Signal done;
  loop->post([&] {  // a turn inside a turn would run the jobs that run already
    EXPECT_EQ(loop->run(nullptr, sync::WaitMode::eco).error(), Errc::invalid_state);
    done.give();
  });
  EXPECT_TRUE(done.take());
  loop->stop();
  EXPECT_EQ(loop->run(nullptr, sync::WaitMode::eco).error(), Errc::invalid_state);
}

TEST(LoopMisuse, AnotherThreadThanTheLoopsWatchesNothing) {
  const auto loop = std::move(Loop::make("loop-watch")).value();
  sys::EventFd event = std::move(sys::EventFd::make()).value();
  CalledAgain nobody([] { ADD_FAILURE(); });
  const auto early = loop->watch(event.fd(), sys::Interest::none, false, &nobody);  // before the loop runs: its maker
  ASSERT_TRUE(early);
  ASSERT_TRUE(loop->start(nullptr));
  Signal runs;
  loop->post([&] { runs.give(); });
  ASSERT_TRUE(runs.take());
  EXPECT_EQ(loop->watch(event.fd(), sys::Interest::readable, false, &nobody).error(), Errc::invalid_state);
  EXPECT_EQ(loop->rewatch(*early, sys::Interest::readable, false).error(), Errc::invalid_state);
  loop->stop();
}

TEST(LoopMisuse, AJobMayRunAnotherLoopAndTheOuterOneIsCurrentAgain) {
  const auto outer = std::move(Loop::make("loop-outer")).value();
  const auto inner = std::move(Loop::make("loop-inner")).value();
  ASSERT_TRUE(outer->start(nullptr));
  Signal done;
  outer->post([&] {
    inner->post([&] {
      EXPECT_EQ(Loop::current(), inner.get());
      inner->stop();
    });
    EXPECT_TRUE(inner->run(nullptr, sync::WaitMode::eco));
    EXPECT_EQ(Loop::current(), outer.get());
    done.give();
  });
  EXPECT_TRUE(done.take());
}

// Destroys the loop inside one of its own calls, which uses the loop afterwards. No other thread is inside a call then.
class LoopDestroyed : public testing::Test {
 public:
  void destroy() {
    Loop* const before = loop_.get();
    loop_.reset();
    EXPECT_EQ(Loop::current(), before);
    before->post([destroyed = std::make_shared<Destroyed>(destroyed_)] {});  // goes with the loop, at the latest
  }
  void expect_destroyed() {
    EXPECT_TRUE(destroyed_.take());
    EXPECT_EQ(loop_, nullptr);
  }
  struct Destroyed {
    explicit Destroyed(Signal& to) : signal(to) {}
    Destroyed(const Destroyed&) = delete;
    Destroyed& operator=(const Destroyed&) = delete;
    ~Destroyed() { signal.give(); }
    Signal& signal;
  };

  Signal destroyed_;
  std::unique_ptr<Loop> loop_ = std::move(Loop::make("loop-destroyed")).value();
};

TEST_F(LoopDestroyed, ByItsJob) {
  loop_->post([this] { destroy(); });
  ASSERT_TRUE(loop_->start(nullptr));
  expect_destroyed();
}

TEST_F(LoopDestroyed, ByItsTimerAndNoOtherTimerFires) {
  (void)loop_->timers().schedule(Instant::min(),
                                 {[](void* self) { static_cast<LoopDestroyed*>(self)->destroy(); }, this});
  (void)loop_->timers().schedule(loop_->now(),
                                 {[](void*) { ADD_FAILURE() << "a loop that is gone has no timers"; }, this});
  ASSERT_TRUE(loop_->start(nullptr));
  expect_destroyed();
}

TEST_F(LoopDestroyed, ByItsWatcherAndNoOtherWatcherIsCalled) {
  sys::EventFd event = std::move(sys::EventFd::make()).value();
  sys::EventFd other = std::move(sys::EventFd::make()).value();
  int calls = 0;
  CalledAgain either([&] {
    ++calls;
    destroy();
  });
  ASSERT_TRUE(loop_->watch(event.fd(), sys::Interest::readable, false, &either));
  ASSERT_TRUE(loop_->watch(other.fd(), sys::Interest::readable, false, &either));
  event.signal();
  other.signal();
  ASSERT_TRUE(loop_->start(nullptr));
  expect_destroyed();
  EXPECT_EQ(calls, 1);
}

TEST_F(LoopDestroyed, ByItsHookAndTheHookIsCalledNoMore) {
  int calls = 0;
  Hook hook([&] {
    ++calls;
    destroy();
  });
  ASSERT_TRUE(loop_->start(&hook));
  expect_destroyed();
  EXPECT_EQ(calls, 1);
}

TEST_F(LoopDestroyed, ByItsTaskAndTheOtherTasksEnd) {
  ASSERT_TRUE(loop_->start(nullptr));
  Signal begun;
  const Future<void> other = spawn(*loop_, [](Signal* signal) -> Task<> {
    signal->give();
    (void)co_await sleep(1h);
  }(&begun));
  ASSERT_TRUE(begun.take());
  Signal spawned;
  const Future<void> task = spawn(*loop_, [](LoopDestroyed* self, Signal* returned) -> Task<> {
    EXPECT_TRUE(returned->take());
    self->destroy();
    (void)co_await sleep(1h);  // cancelled
  }(this, &spawned));
  spawned.give();
  expect_destroyed();
  EXPECT_TRUE(task.wait_until(kNever));
  EXPECT_TRUE(other.wait_until(kNever));
}

TEST_F(LoopDestroyed, InTheThreadThatRunsIt) {
  bool ran = false;
  loop_->post([&] {
    ran = true;
    destroy();
  });
  EXPECT_TRUE(loop_->run(nullptr, sync::WaitMode::eco));
  EXPECT_TRUE(ran);
  expect_destroyed();
}

TEST_F(LoopDestroyed, ByAJobOfALoopInsideOfItsJob) {
  const auto inner = std::move(Loop::make("loop-inner")).value();
  loop_->post([&] {
    inner->post([&] {
      Loop* const before = loop_.get();
      loop_.reset();
      before->post([destroyed = std::make_shared<Destroyed>(destroyed_)] {});
      inner->stop();
    });
    EXPECT_TRUE(inner->run(nullptr, sync::WaitMode::eco));
  });
  ASSERT_TRUE(loop_->start(nullptr));
  expect_destroyed();
}

TEST(LoopEnd, DestructionWaitsForTheThreadThatRunsTheLoop) {
  auto loop = std::move(Loop::make(nullptr)).value();
  Signal inside;
  Signal leave;
  std::atomic<bool> left{false};
  std::thread runs([loop = loop.get()] { (void)loop->run(nullptr, sync::WaitMode::eco); });
  loop->post([&] {
    inside.give();
    EXPECT_TRUE(leave.take());
    left.store(true);
  });
  ASSERT_TRUE(inside.take());
  std::thread releases([&] { leave.give(); });
  loop.reset();
  EXPECT_TRUE(left.load());
  releases.join();
  runs.join();
}

}  // namespace
}  // namespace weft::rt
