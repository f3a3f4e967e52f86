// SPDX-License-Identifier: MIT
#include "weft/rt/core/runtime.h"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/sys/event_fd.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using test::Blocked;
using test::in_a_minute;
using test::Live;
using test::on_core;
using test::Signal;
using test::start_runtime;

// A receiver that checks for numbers 0, 1, 2 ... from each of several senders.
class Order {
 public:
  explicit Order(std::size_t senders) : next_(senders, 0) {}
  void see(std::size_t sender, int number) {
    wrong_ += next_[sender] == number ? 0 : 1;
    next_[sender] = number + 1;
  }
  void expect(int each) const {
    EXPECT_EQ(wrong_, 0) << "out of order";
    for (const int next : next_) {
      EXPECT_EQ(next, each);
    }
  }

 private:
  std::vector<int> next_;
  int wrong_ = 0;
};

// Posts `count` messages to each target as fast as their lanes take them, a few in each turn.
class Sender {
 public:
  Sender(Runtime& runtime, unsigned core, std::vector<unsigned> targets, int count,
         std::function<void(unsigned, int)> receive)
      : runtime_(runtime),
        core_(core),
        targets_(std::move(targets)),
        sent_(targets_.size(), 0),
        count_(count),
        receive_(std::move(receive)) {}

  [[nodiscard]] unsigned core() const { return core_; }
  void go_on() {
    bool more = false;
    for (std::size_t t = 0; t < targets_.size(); ++t) {
      for (int burst = 0; burst < 50 && sent_[t] < count_; ++burst) {
        const int number = sent_[t];
        const unsigned target = targets_[t];
        if (!runtime_.post(target, [this, target, number] { receive_(target, number); })) {
          break;
        }
        ++sent_[t];
      }
      more = more || sent_[t] < count_;
    }
    if (more) {
      EXPECT_TRUE(runtime_.post(core_, [this] { go_on(); }));
    }
  }

 private:
  Runtime& runtime_;
  unsigned core_;
  std::vector<unsigned> targets_;
  std::vector<int> sent_;
  int count_;
  std::function<void(unsigned, int)> receive_;
};

TEST(Runtime, RunsAMessageOnTheCoreItWasPostedTo) {
  const auto runtime = start_runtime(3);
  ASSERT_EQ(runtime->size(), 3u);
  EXPECT_EQ(Core::current(), nullptr);
  EXPECT_EQ(Loop::current(), nullptr);
  for (unsigned i = 0; i < 3; ++i) {
    on_core(*runtime, i, [&] {
      EXPECT_EQ(Core::current(), &runtime->core(i));
      EXPECT_EQ(Core::current()->index(), i);
      EXPECT_EQ(Loop::current(), &Core::current()->loop());
    });
  }
}

TEST(Runtime, StartsWithAtLeastOneCoreByDefault) {
  auto runtime = Runtime::start();
  ASSERT_TRUE(runtime);
  EXPECT_GE((*runtime)->size(), 1u);
}

TEST(Runtime, MayHaveManyMoreCoresThanThereAreProcessors) {
  constexpr unsigned kCores = 70;  // more than a doorbell has bits
  const auto runtime = start_runtime(kCores);
  std::atomic<unsigned> ran{0};
  Signal all;
  for (unsigned i = 0; i < kCores; ++i) {
    ASSERT_TRUE(runtime->post(i, [&, i] {
      EXPECT_TRUE(runtime->post((i + 1) % kCores, [&, i] {
        EXPECT_EQ(Core::current()->index(), (i + 1) % kCores);
        if (ran.fetch_add(1) + 1 == kCores) {
          all.give();
        }
      }));
    }));
  }
  EXPECT_TRUE(all.take());
  EXPECT_TRUE(runtime->stop(in_a_minute()));
}

TEST(Runtime, KeepsTheOrderOfManySendersToOne) {
  constexpr int kEach = 5000;
  const auto runtime = start_runtime(4);
  Order order(4);
  std::vector<std::unique_ptr<Sender>> senders;
  for (unsigned from = 0; from < 4; ++from) {  // core 0 sends to itself
    senders.push_back(std::make_unique<Sender>(*runtime, from, std::vector<unsigned>{0}, kEach,
                                               [&, from](unsigned, int number) { order.see(from, number); }));
  }
  for (const auto& sender : senders) {
    ASSERT_TRUE(runtime->post(sender->core(), [&] { sender->go_on(); }));
  }
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  order.expect(kEach);
}

TEST(Runtime, KeepsTheOrderOfOneSenderToMany) {
  constexpr int kEach = 5000;
  const auto runtime = start_runtime(4);
  std::vector<Order> orders(4, Order(1));
  Sender sender(*runtime, 0, {0, 1, 2, 3}, kEach, [&](unsigned target, int number) {
    EXPECT_EQ(Core::current()->index(), target);
    orders[target].see(0, number);
  });
  ASSERT_TRUE(runtime->post(0, [&] { sender.go_on(); }));
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  for (const Order& order : orders) {
    order.expect(kEach);
  }
}

TEST(Runtime, KeepsTheOrderOfAllToAllThroughSmallLanes) {
  constexpr int kEach = 2000;
  RuntimeOptions options;
  options.lane_capacity = 16;
  const auto runtime = start_runtime(4, options);
  std::vector<Order> orders(4, Order(4));
  std::vector<std::unique_ptr<Sender>> senders;
  for (unsigned from = 0; from < 4; ++from) {
    // Not to itself: its own lane must have room for the message by which the sender continues.
    std::vector<unsigned> targets;
    for (unsigned to = 0; to < 4; ++to) {
      if (to != from) {
        targets.push_back(to);
      } else {
        for (int number = 0; number < kEach; ++number) {
          orders[to].see(from, number);
        }
      }
    }
    senders.push_back(std::make_unique<Sender>(
        *runtime, from, targets, kEach, [&, from](unsigned target, int number) { orders[target].see(from, number); }));
  }
  for (const auto& sender : senders) {
    ASSERT_TRUE(runtime->post(sender->core(), [&] { sender->go_on(); }));
  }
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  for (const Order& order : orders) {
    order.expect(kEach);
  }
}

TEST(Runtime, KeepsTheOrderOfEachForeignThreadAlsoWhenTheyShareALane) {
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  RuntimeOptions options;
  options.foreign_lanes = 1;
  options.lane_capacity = 64;
  const auto runtime = start_runtime(1, options);
  Order order(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int number = 0; number < kEach; ++number) {
        while (!runtime->post(0, [&, t, number] { order.see(static_cast<std::size_t>(t), number); })) {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  order.expect(kEach);
}

TEST(Runtime, AFullLaneRefusesAndCountsAndTheMessageIsDestroyed) {
  RuntimeOptions options;
  options.lane_capacity = 4;
  const auto runtime = start_runtime(2, options);
  Blocked blocked(*runtime, 1);
  on_core(*runtime, 0, [&] {
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(runtime->post(1, [counted = Live()] {}));
    }
    const auto refused = runtime->post(1, [counted = Live()] {});
    EXPECT_EQ(refused.error(), Errc::resource_exhausted);
    EXPECT_EQ(Live::alive.load(), 4);
  });
  EXPECT_EQ(runtime->core(0).counts().refused, 1u);
  EXPECT_EQ(runtime->core(0).counts().posted, 4u);
  int taken = 0;
  while (runtime->post(1, [] {})) {
    ++taken;
  }
  EXPECT_LE(taken, 4) << "foreign lanes are bounded too";
  EXPECT_EQ(runtime->core(1).counts().foreign_refused, 1u);
  blocked.release();
  on_core(*runtime, 0, [&] { EXPECT_LE(Live::alive.load(), 4); });
  EXPECT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(Live::alive.load(), 0);
}

// The sender shows the second message to a core with later ones, or when the job that posted it ends.
TEST(Runtime, FlushShowsTheMessagesOfAJobThatStillRuns) {
  const auto runtime = start_runtime(2);
  std::atomic<int> seen{0};
  on_core(*runtime, 0, [&] {
    for (int i = 1; i <= 4; ++i) {
      EXPECT_TRUE(runtime->post(1, [&] { seen.fetch_add(1); }));
      EXPECT_TRUE(runtime->post(1, [&] { seen.fetch_add(1); }));
      Core::current()->flush();
      while (seen.load() != 2 * i) {
        std::this_thread::yield();
      }
    }
  });
}

// A closure whose copy constructor posts a message, or throws.
struct Restless {
  Restless(Runtime& its_runtime, std::vector<int>& its_seen) : runtime(&its_runtime), seen(&its_seen) {}
  Restless(const Restless& other) : runtime(other.runtime), seen(other.seen), copies(other.copies + 1) {
    if (copies == 1) {
      EXPECT_TRUE(runtime->post(1, [to = seen] { to->push_back(1); }));
    } else if (copies == 3) {
      throw std::runtime_error("no more copies");
    }
  }
  Restless(Restless&&) noexcept = default;
  void operator()() const { seen->push_back(2); }

  Runtime* runtime;
  std::vector<int>* seen;
  int copies = 0;
};

TEST(Runtime, AClosureThatPostsOrThrowsWhileItIsCopiedSpoilsNoOther) {
  const auto runtime = start_runtime(2);
  std::vector<int> seen;
  Signal done;
  on_core(*runtime, 0, [&] {
    Restless restless(*runtime, seen);
    EXPECT_TRUE(runtime->post(1, restless));
    restless.copies = 2;
    EXPECT_THROW((void)runtime->post(1, restless), std::runtime_error);
    EXPECT_TRUE(runtime->post(1, [&] {
      seen.push_back(3);
      done.give();
    }));
  });
  EXPECT_TRUE(done.take());
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(runtime->stop(in_a_minute()));
}

TEST(Runtime, RefusesACoreThatIsNotThere) {
  const auto runtime = start_runtime(1);
  EXPECT_EQ(runtime->post(1, [] {}).error(), Errc::invalid_argument);
  on_core(*runtime, 0, [&] { EXPECT_EQ(runtime->post(7, [] {}).error(), Errc::invalid_argument); });
}

TEST(Runtime, RefusesOptionsBeyondTheirBounds) {
  RuntimeOptions options;
  options.cores = Runtime::kCoresMax + 1;
  EXPECT_EQ(Runtime::start(options).error(), Errc::invalid_argument);
  options.cores = 1;
  options.lane_capacity = 0;
  EXPECT_EQ(Runtime::start(options).error(), Errc::invalid_argument);
  options.lane_capacity = 1;
  options.foreign_lanes = 0;
  EXPECT_EQ(Runtime::start(options).error(), Errc::invalid_argument);
}

TEST(Runtime, ABroadcastReachesEveryCoreInOrderWithPosts) {
  const auto runtime = start_runtime(3);
  std::vector<std::vector<int>> seen(3);
  on_core(*runtime, 1, [&] {
    for (unsigned i = 0; i < 3; ++i) {
      EXPECT_TRUE(runtime->post(i, [&] { seen[Core::current()->index()].push_back(1); }));
    }
    EXPECT_EQ(runtime->broadcast([&] { seen[Core::current()->index()].push_back(2); }), 3u);
    for (unsigned i = 0; i < 3; ++i) {
      EXPECT_TRUE(runtime->post(i, [&] { seen[Core::current()->index()].push_back(3); }));
    }
  });
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  for (const auto& core : seen) {
    EXPECT_EQ(core, (std::vector{1, 2, 3}));
  }
}

TEST(Runtime, MessagesPostedBeforeStopRunWithAllThatTheyLeadTo) {
  const auto runtime = start_runtime(3);
  std::atomic<int> ran{0};
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(runtime->post(0, [&] {
      ran.fetch_add(1);
      EXPECT_TRUE(runtime->post(1, [&] {
        ran.fetch_add(1);
        EXPECT_TRUE(runtime->post(2, [&] { ran.fetch_add(1); }));
      }));
    }));
  }
  EXPECT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(ran.load(), 1500);
  EXPECT_TRUE(runtime->stop(in_a_minute())) << "idempotent";
  EXPECT_EQ(runtime->post(0, [] {}).error(), Errc::closed);
}

TEST(Runtime, MessagesThatComeAfterTheStopAreRefusedAndCounted) {
  struct PostsAtEnd final : TurnJob {
    PostsAtEnd() noexcept
        : TurnJob([](TurnJob&) noexcept { EXPECT_EQ(Core::current()->post(0, [] {}).error(), Errc::closed); }) {}
  };
  PostsAtEnd posts;
  const auto runtime = start_runtime(1);
  on_core(*runtime, 0, [&] { Core::current()->at_end(posts); });
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(runtime->post(0, [] {}).error(), Errc::closed);
  const CoreCounts counts = runtime->core(0).counts();
  EXPECT_EQ(counts.after_stop, 1u);
  EXPECT_EQ(counts.foreign_after_stop, 1u);
  EXPECT_EQ(counts.refused + counts.foreign_refused, 0u);
}

TEST(Runtime, StopGivesUpAtItsDeadlineOnMessagesThatNeverEnd) {
  const auto runtime = start_runtime(2);
  std::atomic<int> ran{0};
  std::function<void()> forever = [&] {
    ran.fetch_add(1);
    (void)runtime->post(1 - Core::current()->index(), [&] { forever(); });
  };
  ASSERT_TRUE(runtime->post(0, [&] { forever(); }));
  EXPECT_EQ(runtime->stop(sys::now()).error(), Errc::timed_out);
  EXPECT_TRUE(runtime->stop(in_a_minute())) << "the threads end all the same";
}

TEST(Runtime, StopCannotBeCalledByACore) {
  const auto runtime = start_runtime(1);
  on_core(*runtime, 0, [&] { EXPECT_EQ(runtime->stop(kNever).error(), Errc::invalid_state); });
}

TEST(Runtime, StopWaitsForARunningJobUntilItsDeadlineAndMayBeCalledAgain) {
  const auto runtime = start_runtime(1);
  Blocked blocked(*runtime, 0);
  EXPECT_EQ(runtime->stop(sys::now()).error(), Errc::timed_out);
  blocked.release();
  EXPECT_TRUE(runtime->stop(in_a_minute()));
}

TEST(Runtime, DestroysLeftMessagesOnceAndRefusesThePostsOfTheirDestructors) {
  auto runtime = start_runtime(2);
  struct PostsAtItsEnd {
    explicit PostsAtItsEnd(Runtime* r) : runtime(r) {}
    PostsAtItsEnd(PostsAtItsEnd&& other) noexcept : runtime(std::exchange(other.runtime, nullptr)) {}
    ~PostsAtItsEnd() {
      if (runtime != nullptr) {
        EXPECT_FALSE(runtime->post(0, [] {}));
        EXPECT_FALSE(runtime->post(1, [] {}));
      }
    }
    Runtime* runtime;
  };
  auto blocked = std::make_unique<Blocked>(*runtime, 1);
  on_core(*runtime, 0, [&] {
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(runtime->post(1, [counted = Live(), last = PostsAtItsEnd(runtime.get())] {}));
    }
  });
  EXPECT_EQ(runtime->stop(sys::now()).error(), Errc::timed_out);
  blocked.reset();
  runtime.reset();
  EXPECT_EQ(Live::alive.load(), 0);
}

TEST(Runtime, TwoRuntimesInOneProcessAreForeignToEachOther) {
  const auto one = start_runtime(2);
  const auto two = start_runtime(2);
  Signal done;
  ASSERT_TRUE(one->post(1, [&] {
    EXPECT_EQ(&Core::current()->runtime(), one.get());
    EXPECT_TRUE(two->post(1, [&] {
      EXPECT_EQ(&Core::current()->runtime(), two.get());
      EXPECT_TRUE(one->post(0, [&] { done.give(); }));
    }));
  }));
  EXPECT_TRUE(done.take());
  EXPECT_EQ(two->core(1).counts().foreign_posted, 1u);
  EXPECT_TRUE(two->stop(in_a_minute()));
  EXPECT_TRUE(one->stop(in_a_minute()));
}

TEST(Runtime, ATurnJobRunsOnceAtTheEndOfTheTurnAndMayListItselfForTheNext) {
  const auto runtime = start_runtime(2);
  struct Flush : TurnJob {
    Flush()
        : TurnJob([](TurnJob& self) noexcept {
            auto& flush = static_cast<Flush&>(self);
            if (++flush.runs == 1) {
              Core::current()->at_turn_end(flush);
            }
          }) {}
    int runs = 0;
  } flush;
  on_core(*runtime, 0, [&] {
    Core::current()->at_turn_end(flush);
    Core::current()->at_turn_end(flush);
    EXPECT_EQ(flush.runs, 0);
  });
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(flush.runs, 2);
}

TEST(Runtime, ABusyLaneDoesNotKeepOthersDescriptorsOrTimersWaiting) {
  const auto runtime = start_runtime(2);
  std::atomic<bool> over{false};
  std::function<void()> busy = [&] {
    if (!over.load()) {
      EXPECT_TRUE(runtime->post(0, [&] { busy(); }));
    }
  };
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(runtime->post(0, [&] { busy(); }));
  }
  struct Ready : Watcher {
    void handle_event(const sys::PollEvent&) override { heard.give(); }
    Signal heard;
  } watcher;
  auto event = std::move(sys::EventFd::make()).value();
  Loop::WatchId id = 0;
  Signal fired;
  on_core(*runtime, 0, [&] {
    id = Core::current()->loop().watch(event.fd(), sys::Interest::readable, true, &watcher).value_or(Loop::WatchId{0});
    (void)Core::current()->loop().timers().schedule(
        sys::now() + std::chrono::milliseconds(1),
        {[](void* signal) { static_cast<Signal*>(signal)->give(); }, &fired});
  });
  event.signal();
  EXPECT_TRUE(watcher.heard.take());
  EXPECT_TRUE(fired.take());
  on_core(*runtime, 1, [&] { EXPECT_TRUE(runtime->post(0, [&] { fired.give(); })); });
  EXPECT_TRUE(fired.take());
  over = true;
  on_core(*runtime, 0, [&] { Core::current()->loop().unwatch(id); });
  EXPECT_TRUE(runtime->stop(in_a_minute()));  // one that did not see the end may still have posted
}

TEST(Runtime, EveryWaitModeWakesUp) {
  for (const auto mode : {sync::WaitMode::eco, sync::WaitMode::adaptive, sync::WaitMode::latency}) {
    RuntimeOptions options;
    options.wait_mode = mode;
    const auto runtime = start_runtime(2, options);
    for (int i = 0; i < 200; ++i) {
      Signal done;
      ASSERT_TRUE(runtime->post(0, [&] { EXPECT_TRUE(runtime->post(1, [&] { done.give(); })); }));
      ASSERT_TRUE(done.take());
    }
  }
}

// --- defects of the published design ---

TEST(RuntimeRegression, AnExceptionOfAMessageTerminatesNothing) {
  std::atomic<int> told{0};
  RuntimeOptions options;
  options.on_exception = [&](std::exception_ptr) {
    told.fetch_add(1);
    throw std::runtime_error("and the handler throws too");
  };
  const auto runtime = start_runtime(2, options);
  on_core(*runtime, 0, [&] {
    EXPECT_TRUE(runtime->post(1, [] { throw std::runtime_error("of a message"); }));
    EXPECT_TRUE(runtime->post(1, [] { throw 1; }));
  });
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(told.load(), 2);
  EXPECT_EQ(runtime->core(1).counts().threw, 2u);
  EXPECT_EQ(runtime->core(1).counts().executed, 2u);
}

// The sender rings just when the receiver falls asleep.
TEST(RuntimeRegression, NoMessageIsStrandedWhenItsReceiverFallsAsleep) {
  RuntimeOptions options;
  options.wait_mode = sync::WaitMode::eco;
  const auto runtime = start_runtime(2, options);
  Signal done;
  int left = 5000;
  std::function<void()> ball = [&] {
    if (--left == 0) {
      done.give();
    } else {
      EXPECT_TRUE(runtime->post(1 - Core::current()->index(), [&] { ball(); }));
    }
  };
  ASSERT_TRUE(runtime->post(0, [&] { ball(); }));
  EXPECT_TRUE(done.take());
}

TEST(RuntimeRegression, NoPayloadIsLeakedAtShutdown) {
  for (int round = 0; round < 20; ++round) {
    auto runtime = start_runtime(3);
    const auto payload = std::make_shared<Live>();
    on_core(*runtime, 0, [&] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(runtime->broadcast([payload] {}), 3u);
      }
    });
    runtime.reset();  // without stop(): some messages run, the rest are destroyed
    EXPECT_EQ(payload.use_count(), 1);
  }
  EXPECT_EQ(Live::alive.load(), 0);
}

// In the published design posts from a core, to itself and from outside take three paths, without an order between
// them.
TEST(RuntimeRegression, PostsToItselfAndBroadcastsKeepTheOrder) {
  const auto runtime = start_runtime(2);
  std::vector<int> seen;
  on_core(*runtime, 0, [&] {
    for (int i = 0; i < 300; ++i) {
      if (i % 3 == 0) {
        EXPECT_EQ(runtime->broadcast([&, i] {
          if (Core::current()->index() == 0) {
            seen.push_back(i);
          }
        }),
                  2u);
      } else {
        EXPECT_TRUE(runtime->post(0, [&, i] { seen.push_back(i); }));
      }
    }
  });
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  ASSERT_EQ(seen.size(), 300u);
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
  }
}

TEST(Runtime, NamesThePollerOfItsCoresAndWhyItIsNotAnother) {
  RuntimeOptions options;
  options.poller = sys::PollerKind::epoll;
  EXPECT_EQ(start_runtime(1, options)->poller().kind, sys::PollerKind::epoll);
  options.poller = sys::PollerKind::io_uring;
  const auto runtime = start_runtime(2, options);
  const sys::PollerChoice& choice = runtime->poller();
  EXPECT_EQ(choice.kind == sys::PollerKind::io_uring, choice.refusal == Errc::ok);
  on_core(*runtime, 1, [] {});
}

}  // namespace
}  // namespace weft::rt
