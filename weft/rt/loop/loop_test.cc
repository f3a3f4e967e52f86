// SPDX-License-Identifier: MIT
#include "weft/rt/loop/loop.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weft/rt/loop/test_signal.h"
#include "weft/sys/clock.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/socket.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;
using test::Signal;

constexpr auto kLong = 30s;  // passes only in a test that fails

class Turns final : public TurnHook {
 public:
  Instant handle_turn(Instant /*now*/) override {
    turns.fetch_add(1, std::memory_order_relaxed);
    if (work.exchange(false)) {
      done.give();
    }
    return kNever;
  }
  [[nodiscard]] bool has_work() const noexcept override { return work.load(std::memory_order_relaxed); }

  std::atomic<int> turns{0};
  std::atomic<bool> work{false};
  Signal done;
};

class Called final : public Watcher {
 public:
  explicit Called(std::function<void(const sys::PollEvent&)> function) : function_(std::move(function)) {}
  void handle_event(const sys::PollEvent& event) override { function_(event); }

 private:
  std::function<void(const sys::PollEvent&)> function_;
};

class LoopTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Loop::make("loop-test");
    ASSERT_TRUE(made) << made.error().message();
    loop_ = std::move(made).value();
    ASSERT_TRUE(loop_->start(&turns_));
  }

  // Runs the function on the loop's thread and waits until it returned.
  void on_loop(const std::function<void()>& function) {
    Signal done;
    loop_->post([&] {
      function();
      done.give();
    });
    ASSERT_TRUE(done.take());
  }

  Turns turns_;
  std::unique_ptr<Loop> loop_;
};

TEST_F(LoopTest, JobsRunOnTheLoopsThreadInTheOrderOfPosting) {
  std::vector<int> order;
  Signal done;
  EXPECT_FALSE(loop_->on_loop_thread());
  for (int i = 0; i < 1000; ++i) {
    loop_->post([&, i] {
      EXPECT_TRUE(loop_->on_loop_thread());
      order.push_back(i);
      if (i == 999) {
        done.give();
      }
    });
  }
  ASSERT_TRUE(done.take());
  ASSERT_EQ(order.size(), 1000u);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  }
}

TEST_F(LoopTest, JobsOfSeveralThreadsKeepEachThreadsOrder) {
  constexpr int kThreads = 3;
  constexpr int kEach = 500;
  std::vector<int> last(kThreads, -1);
  int out_of_order = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        loop_->post([&, t, i] {
          int& before = last[static_cast<std::size_t>(t)];
          out_of_order += before == i - 1 ? 0 : 1;
          before = i;
        });
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  on_loop([] {});
  EXPECT_EQ(out_of_order, 0);
  EXPECT_EQ(last, std::vector<int>(kThreads, kEach - 1));
}

TEST_F(LoopTest, AJobMayPostAnother) {
  Signal done;
  loop_->post([&] { loop_->post([&] { done.give(); }); });
  EXPECT_TRUE(done.take());
}

TEST_F(LoopTest, JobsPostedBeforeStopRunAndStopWaitsForThem) {
  std::atomic<int> ran{0};
  for (int i = 0; i < 100; ++i) {
    loop_->post([&] { ran.fetch_add(1); });
  }
  loop_->stop();
  EXPECT_EQ(ran.load(), 100);
  loop_->stop();                           // idempotent
  loop_->post([&] { ran.fetch_add(1); });  // never runs; destroyed with the loop
  loop_.reset();
  EXPECT_EQ(ran.load(), 100);
}

TEST_F(LoopTest, TimersFireInTheOrderOfTheirDeadlinesAndNotBeforeThem) {
  struct Fired {
    Loop* loop;
    std::vector<int>* order;
    int name;
    Instant deadline;
    bool early = false;
    Signal* last;
  };
  std::vector<int> order;
  Signal done;
  std::vector<Fired> timers;
  timers.reserve(4);
  on_loop([&] {
    const Instant now = sys::now();
    for (const int name : {3, 1, 2, 0}) {
      timers.push_back({loop_.get(), &order, name, now + name * 2ms, false, name == 3 ? &done : nullptr});
      (void)loop_->timers().schedule(timers.back().deadline, {[](void* self) {
                                                                auto& fired = *static_cast<Fired*>(self);
                                                                fired.early = sys::now() < fired.deadline;
                                                                fired.order->push_back(fired.name);
                                                                if (fired.last != nullptr) {
                                                                  fired.last->give();
                                                                }
                                                              },
                                                              &timers.back()});
    }
  });
  ASSERT_TRUE(done.take());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
  for (const Fired& fired : timers) {
    EXPECT_FALSE(fired.early) << fired.name;
  }
}

TEST_F(LoopTest, SteadyPostingDoesNotKeepTimersFromFiring) {
  Signal fired;
  std::atomic<bool> stop{false};
  on_loop([&] {
    (void)loop_->timers().schedule(sys::now() + 1ms,
                                   {[](void* signal) { static_cast<Signal*>(signal)->give(); }, &fired});
  });
  std::function<void()> again = [&] {
    if (!stop.load()) {
      loop_->post(again);
    }
  };
  loop_->post(again);
  EXPECT_TRUE(fired.take());
  stop = true;
  on_loop([] {});
  on_loop([] {});  // a job that did not see `stop` may have posted another after the first of these
}

TEST_F(LoopTest, ACancelledTimerDoesNotFire) {
  int fired = 0;
  Signal later;
  on_loop([&] {
    const TimerId timer =
        loop_->timers().schedule(sys::now() + 1ms, {[](void* count) { ++*static_cast<int*>(count); }, &fired});
    (void)loop_->timers().schedule(sys::now() + 3ms,
                                   {[](void* signal) { static_cast<Signal*>(signal)->give(); }, &later});
    EXPECT_TRUE(loop_->timers().cancel(timer));
  });
  ASSERT_TRUE(later.take());
  EXPECT_EQ(fired, 0);
}

TEST_F(LoopTest, ANudgeWakesASleepingLoopForATurn) {
  for (int i = 0; i < 100; ++i) {
    turns_.work = true;
    loop_->nudge();
    ASSERT_TRUE(turns_.done.take()) << "nudge " << i << " was lost";
  }
}

TEST_F(LoopTest, AnIdleLoopMakesNoTurns) {
  on_loop([] {});
  // The loop finishes its present turn and makes perhaps one more before it sleeps.
  const int before = turns_.turns.load();
  for (int i = 0; i < 1000; ++i) {
    std::this_thread::yield();
  }
  EXPECT_LE(turns_.turns.load() - before, 2);
}

TEST_F(LoopTest, TheLoopCallsAWatcherUntilItIsUnwatched) {
  auto event = std::move(sys::EventFd::make()).value();
  Signal heard;
  Loop::WatchId id = 0;
  Called watcher([&](const sys::PollEvent& what) {
    EXPECT_TRUE(what.readable);
    EXPECT_TRUE(loop_->on_loop_thread());
    event.drain();
    heard.give();
  });
  on_loop([&] {
    id = loop_->watch(event.fd(), sys::Interest::readable, false, &watcher).value_or(Loop::WatchId{0});
    EXPECT_NE(id, 0u);
  });
  event.signal();
  EXPECT_TRUE(heard.take());
  event.signal();
  EXPECT_TRUE(heard.take());
  on_loop([&] { loop_->unwatch(id); });
  event.signal();
  on_loop([] {});  // the loop has polled its descriptors at least once since
  on_loop([] {});
  on_loop([&] { loop_->unwatch(id); });  // idempotent
}

// The handler of `first` holds the loop up until the timer is late; meanwhile `second` has become ready.
TEST_F(LoopTest, WhatCameBeforeATimerThatWasHeldUpIsHandledFirst) {
  auto first = std::move(sys::EventFd::make()).value();
  auto second = std::move(sys::EventFd::make()).value();
  Signal done;
  std::string order;
  struct Late {
    std::string& order;
    Signal& done;
  } late{order, done};
  Instant deadline = kNever;
  TimerId timer;
  Called holds_up([&](const sys::PollEvent& /*event*/) {
    if (sys::now() >= deadline) {  // others held the loop up: once more
      (void)loop_->timers().cancel(timer);
      deadline = kNever;
    }
    if (deadline == kNever) {
      deadline = sys::now() + 20ms;
      timer = loop_->timers().schedule(deadline, {[](void* self) {
                                                    static_cast<Late*>(self)->order += "timer ";
                                                    static_cast<Late*>(self)->done.give();
                                                  },
                                                  &late});
      return;  // it is called again: the event is still there
    }
    while (sys::now() < deadline + 2ms) {
    }
    first.drain();
    second.signal();
  });
  Called comes([&](const sys::PollEvent& /*event*/) {
    second.drain();
    order += "event ";
  });
  std::vector<Loop::WatchId> ids;
  first.signal();
  on_loop([&] {
    ids.push_back(loop_->watch(first.fd(), sys::Interest::readable, false, &holds_up).value_or(Loop::WatchId{0}));
    ids.push_back(loop_->watch(second.fd(), sys::Interest::readable, false, &comes).value_or(Loop::WatchId{0}));
  });
  ASSERT_TRUE(done.take());
  EXPECT_EQ(order, "event timer ");
  on_loop([&] {
    for (const Loop::WatchId id : ids) {
      loop_->unwatch(id);
    }
  });
}

TEST_F(LoopTest, RewatchChangesTheEventsThatAWatcherGets) {
  auto event = std::move(sys::EventFd::make()).value();  // always writable
  Signal heard;
  Loop::WatchId id = 0;
  Called watcher([&](const sys::PollEvent& what) {
    EXPECT_TRUE(what.writable);
    EXPECT_TRUE(loop_->rewatch(id, sys::Interest::readable, false));
    heard.give();
  });
  on_loop([&] { id = loop_->watch(event.fd(), sys::Interest::readable, false, &watcher).value_or(Loop::WatchId{0}); });
  on_loop([&] { EXPECT_TRUE(loop_->rewatch(id, sys::Interest::writable, false)); });
  EXPECT_TRUE(heard.take());
  on_loop([&] { loop_->unwatch(id); });
}

TEST_F(LoopTest, RewatchOfAWatchThatHasEndedIsRefused) {
  auto event = std::move(sys::EventFd::make()).value();
  Called watcher([](const sys::PollEvent& /*event*/) {});
  on_loop([&] {
    const Loop::WatchId id = loop_->watch(event.fd(), sys::Interest::readable, false, &watcher).value();
    loop_->unwatch(id);
    for (const Loop::WatchId stale : {id, Loop::WatchId{0}, ~Loop::WatchId{0}}) {
      EXPECT_EQ(loop_->rewatch(stale, sys::Interest::readable, false).error(), Errc::invalid_argument);
    }
  });
}

TEST_F(LoopTest, UnwatchingInsideAHandlerSilencesEventsThatWereFetchedAlready) {
  auto first = std::move(sys::EventFd::make()).value();
  auto second = std::move(sys::EventFd::make()).value();
  std::vector<Loop::WatchId> ids(2);
  int calls = 0;
  Signal heard;
  // Both are ready in one turn; the first handler call unwatches both.
  Called watcher([&](const sys::PollEvent& /*event*/) {
    ++calls;
    loop_->unwatch(ids[0]);
    loop_->unwatch(ids[1]);
    heard.give();
  });
  first.signal();
  second.signal();
  on_loop([&] {
    ids[0] = loop_->watch(first.fd(), sys::Interest::readable, false, &watcher).value_or(Loop::WatchId{0});
    ids[1] = loop_->watch(second.fd(), sys::Interest::readable, false, &watcher).value_or(Loop::WatchId{0});
  });
  ASSERT_TRUE(heard.take());
  on_loop([] {});
  on_loop([] {});
  EXPECT_EQ(calls, 1);
}

TEST_F(LoopTest, AnEventOfAnUnwatchedDescriptorDoesNotReachTheNextOneInItsSlot) {
  auto first = std::move(sys::EventFd::make()).value();
  auto second = std::move(sys::EventFd::make()).value();
  auto third = std::move(sys::EventFd::make()).value();
  std::vector<Loop::WatchId> ids(3);
  int strangers = 0;
  Signal heard;
  Called stranger([&](const sys::PollEvent& /*event*/) { ++strangers; });
  bool done = false;
  // The handler that runs first unwatches the other descriptor and puts the silent third into the same slot.
  const auto replace = [&](std::size_t other) {
    if (!done) {
      done = true;
      loop_->unwatch(ids[other]);
      ids[2] = loop_->watch(third.fd(), sys::Interest::readable, false, &stranger).value_or(Loop::WatchId{0});
      loop_->unwatch(ids[1 - other]);
      heard.give();
    }
  };
  Called one([&](const sys::PollEvent& /*event*/) { replace(1); });
  Called two([&](const sys::PollEvent& /*event*/) { replace(0); });
  first.signal();
  second.signal();
  on_loop([&] {
    ids[0] = loop_->watch(first.fd(), sys::Interest::readable, false, &one).value_or(Loop::WatchId{0});
    ids[1] = loop_->watch(second.fd(), sys::Interest::readable, false, &two).value_or(Loop::WatchId{0});
  });
  ASSERT_TRUE(heard.take());
  on_loop([&] {
    EXPECT_EQ(strangers, 0);
    third.signal();
  });
  on_loop([] {});
  on_loop([&] {  // on the loop's thread: the loop calls the stranger until it is unwatched
    EXPECT_GE(strangers, 1) << "the watch itself works";
    loop_->unwatch(ids[2]);
  });
}

TEST_F(LoopTest, WatchingABadDescriptorIsRefusedAndTheSlotIsReused) {
  Called watcher([](const sys::PollEvent& /*event*/) {});
  auto event = std::move(sys::EventFd::make()).value();
  on_loop([&] {
    EXPECT_FALSE(loop_->watch(-1, sys::Interest::readable, false, &watcher));
    const auto id = loop_->watch(event.fd(), sys::Interest::readable, false, &watcher);
    ASSERT_TRUE(id);
    EXPECT_FALSE(loop_->watch(event.fd(), sys::Interest::readable, false, &watcher)) << "twice the same descriptor";
    loop_->unwatch(*id);
  });
}

TEST_F(LoopTest, AHandlerMayWatchMoreDescriptorsThanThereWereSlots) {
  auto event = std::move(sys::EventFd::make()).value();
  std::vector<sys::EventFd> more;
  for (int i = 0; i < 50; ++i) {
    more.push_back(std::move(sys::EventFd::make()).value());
  }
  std::atomic<int> calls{0};
  std::vector<Loop::WatchId> ids;
  Signal all;
  Called counted([&](const sys::PollEvent& what) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == what.tag) {
        more[i].drain();
      }
    }
    if (calls.fetch_add(1) + 1 == 50) {
      all.give();
    }
  });
  Loop::WatchId id = 0;
  Called first([&](const sys::PollEvent& /*event*/) {
    loop_->unwatch(id);
    for (sys::EventFd& another : more) {
      ids.push_back(loop_->watch(another.fd(), sys::Interest::readable, false, &counted).value_or(Loop::WatchId{0}));
    }
  });
  on_loop([&] { id = loop_->watch(event.fd(), sys::Interest::readable, false, &first).value_or(Loop::WatchId{0}); });
  event.signal();
  on_loop([] {});
  for (sys::EventFd& another : more) {
    another.signal();
  }
  EXPECT_TRUE(all.take());
  on_loop([&] {
    for (const Loop::WatchId watch : ids) {
      loop_->unwatch(watch);
    }
  });
}

TEST(Loop, MayBeDestroyedWithoutHavingStarted) {
  auto loop = Loop::make("loop-test");
  ASSERT_TRUE(loop);
  (*loop)->post([] { FAIL() << "nobody runs this"; });
}

TEST(LoopPoller, IsTheOneThatTheEnvironmentNames) {
  const char* const name = std::getenv("WEFT_POLLER");
  const auto loop = std::move(Loop::make("loop-test")).value();
  const sys::PollerChoice& choice = loop->poller();
  if (choice.refusal != Errc::ok) {
    EXPECT_EQ(choice.kind, sys::PollerKind::epoll);
    GTEST_SKIP() << "these tests run with epoll here: " << choice.refusal.message();
  }
  const bool ring = name != nullptr && std::string_view(name) == "io_uring";
  EXPECT_EQ(choice.kind, ring ? sys::PollerKind::io_uring : sys::PollerKind::epoll);
}

TEST(LoopPoller, LetsGoOfDescriptorsWhenItsThreadEnds) {
  for (const auto kind : {sys::PollerKind::epoll, sys::PollerKind::io_uring}) {
    const auto loop = std::move(Loop::make("loop-test", {}, kind)).value();
    ASSERT_TRUE(loop->start(nullptr));
    const auto anywhere = sys::SocketAddress::parse_numeric("127.0.0.1", 0).value();
    sys::Fd listener = std::move(sys::open_tcp_listener(anywhere, {})).value();
    const auto address = sys::local_address(listener.fd()).value();
    Called nobody([](const sys::PollEvent&) {});
    Loop::WatchId id = 0;
    Signal watched;
    loop->post([&] {
      id = loop->watch(listener.fd(), sys::Interest::readable, true, &nobody).value();
      loop->post([&] { watched.give(); });  // runs a turn later
    });
    ASSERT_TRUE(watched.take());
    loop->stop();
    loop->unwatch(id);  // on another thread, as destructors do
    listener.close();
    EXPECT_TRUE(sys::open_tcp_listener(address, {}));  // the first listener is gone
  }
}

}  // namespace
}  // namespace weft::rt
