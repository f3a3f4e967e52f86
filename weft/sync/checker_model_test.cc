// SPDX-License-Identifier: MIT
// The model checker itself: the classic litmus tests, and one mistake of each kind that the checker must
// find.
#include <new>
#include <set>
#include <string>
#include <utility>

#include "weft/sync/atomic.h"
#include <gtest/gtest.h>

namespace weft::model {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kSeqCst = std::memory_order_seq_cst;

using Pair = std::pair<int, int>;

// Every pair that `scenario` can return.
template <typename Scenario>
std::set<Pair> outcomes(Scenario scenario, Options options = {}) {
  std::set<Pair> found;
  const Outcome outcome = explore([&] { found.insert(scenario()); }, options);
  EXPECT_EQ(outcome.failure, "");
  EXPECT_TRUE(outcome.complete);
  return found;
}

template <typename Scenario>
std::string failure_of(Scenario scenario) {
  const Outcome outcome = explore(scenario);
  return outcome.failure.substr(0, outcome.failure.find('\n'));
}

template <typename Between>
Pair store_buffering(std::memory_order store, std::memory_order load, Between first, Between second) {
  Atomic<int> x{0};
  Atomic<int> y{0};
  int seen_y = 0;
  int seen_x = 0;
  run_threads(
      [&] {
        x.store(1, store);
        first();
        seen_y = y.load(load);
      },
      [&] {
        y.store(1, store);
        second();
        seen_x = x.load(load);
      });
  return {seen_y, seen_x};
}

using Fence = void (*)();
constexpr Fence kNone = [] {};
constexpr Fence kFull = [] { fence(kSeqCst, Where::current()); };
constexpr Fence kAcqRel = [] { fence(std::memory_order_acq_rel, Where::current()); };
constexpr Fence kLight = [] { light_fence(Where::current()); };
constexpr Fence kHeavy = [] { heavy_fence(Where::current()); };
constexpr Pair kBothMissed{0, 0};

TEST(Checker, LetsBothSidesOfDekkerMissEachOtherWithoutFences) {
  EXPECT_EQ(outcomes([] { return store_buffering(kRelaxed, kRelaxed, kNone, kNone); }).size(), 4u);
  EXPECT_TRUE(outcomes([] { return store_buffering(kRelease, kAcquire, kNone, kNone); }).contains(kBothMissed));
  EXPECT_TRUE(outcomes([] { return store_buffering(kRelaxed, kRelaxed, kAcqRel, kAcqRel); }).contains(kBothMissed));
  EXPECT_TRUE(outcomes([] { return store_buffering(kRelaxed, kRelaxed, kFull, kNone); }).contains(kBothMissed));
}

TEST(Checker, HonoursSequentiallyConsistentFencesAndOperations) {
  EXPECT_FALSE(outcomes([] { return store_buffering(kRelaxed, kRelaxed, kFull, kFull); }).contains(kBothMissed));
  EXPECT_FALSE(outcomes([] { return store_buffering(kSeqCst, kSeqCst, kNone, kNone); }).contains(kBothMissed));
}

TEST(Checker, PairsALightFenceWithAHeavyOneAndWithNothingElse) {
  EXPECT_FALSE(outcomes([] { return store_buffering(kRelaxed, kRelaxed, kLight, kHeavy); }).contains(kBothMissed));
  EXPECT_FALSE(outcomes([] { return store_buffering(kRelaxed, kRelaxed, kHeavy, kFull); }).contains(kBothMissed));
  EXPECT_TRUE(outcomes([] { return store_buffering(kRelaxed, kRelaxed, kLight, kLight); }).contains(kBothMissed));
  EXPECT_TRUE(outcomes([] { return store_buffering(kRelaxed, kRelaxed, kLight, kFull); }).contains(kBothMissed));
  EXPECT_TRUE(outcomes([] { return store_buffering(kRelaxed, kRelaxed, kNone, kHeavy); }).contains(kBothMissed));
}

// Message passing: {flag seen, data seen}.
Pair message_passing(std::memory_order store, std::memory_order load, bool fences) {
  Atomic<int> data{0};
  Atomic<int> flag{0};
  int seen_flag = 0;
  int seen_data = 0;
  run_threads(
      [&] {
        data.store(1, kRelaxed);
        if (fences) {
          fence(kRelease, Where::current());
        }
        flag.store(1, store);
      },
      [&] {
        seen_flag = flag.load(load);
        if (fences) {
          fence(kAcquire, Where::current());
        }
        seen_data = data.load(kRelaxed);
      });
  return {seen_flag, seen_data};
}

TEST(Checker, PassesMessagesByReleaseAndAcquireOnly) {
  constexpr Pair kStale{1, 0};
  EXPECT_TRUE(outcomes([] { return message_passing(kRelaxed, kRelaxed, false); }).contains(kStale));
  EXPECT_TRUE(outcomes([] { return message_passing(kRelease, kRelaxed, false); }).contains(kStale));
  EXPECT_TRUE(outcomes([] { return message_passing(kRelaxed, kAcquire, false); }).contains(kStale));
  EXPECT_EQ(outcomes([] { return message_passing(kRelease, kAcquire, false); }),
            (std::set<Pair>{{0, 0}, {0, 1}, {1, 1}}));
  EXPECT_FALSE(outcomes([] { return message_passing(kRelaxed, kRelaxed, true); }).contains(kStale));
}

TEST(Checker, KeepsAReleaseSequenceThroughReadModifyWritesOnly) {
  const auto run = [](bool update) {
    return outcomes([&] {
      Atomic<int> data{0};
      Atomic<int> flag{0};
      int seen_flag = 0;
      int seen_data = 0;
      run_threads(
          [&] {
            data.store(1, kRelaxed);
            flag.store(1, kRelease);
          },
          [&] {
            if (flag.load(kRelaxed) == 1) {
              update ? void(flag.fetch_add(1, kRelaxed)) : flag.store(2, kRelaxed);
            }
          },
          [&] {
            seen_flag = flag.load(kAcquire);
            seen_data = data.load(kRelaxed);
          });
      return Pair{seen_flag, seen_data};
    });
  };
  EXPECT_FALSE(run(true).contains({2, 0}));
  EXPECT_TRUE(run(false).contains({2, 0}));
}

TEST(Checker, KeepsOneAtomicCoherent) {
  const auto found = outcomes([] {
    Atomic<int> x{0};
    int first = 0;
    int second = 0;
    run_threads([&] { x.store(1, kRelaxed), x.store(2, kRelaxed); },
                [&] { first = x.load(kRelaxed), second = x.load(kRelaxed); });
    return Pair{first, second};
  });
  EXPECT_EQ(found, (std::set<Pair>{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}}));
}

TEST(Checker, FindsTheSameWithAndWithoutSleepSets) {
  const auto run = [](Options options) {
    return outcomes(
        [] {
          Atomic<int> x{0};
          Atomic<int> y{0};
          int seen = 0;
          run_threads([&] { x.store(1, kRelaxed), seen += 10 * y.fetch_add(1, kRelaxed); },
                      [&] { y.store(5, kRelease), seen += 100 * x.exchange(2, kAcquire); },
                      [&] { seen += x.load(kRelaxed) + 3 * y.load(kAcquire); });
          return Pair{seen, x.load(kRelaxed)};
        },
        options);
  };
  EXPECT_EQ(run({}), run({.preemptions = 20}));
}

TEST(Checker, NeverLosesAnUpdate) {
  EXPECT_EQ(outcomes([] {
              Atomic<int> x{0};
              const auto add = [&] { x.fetch_add(1, kRelaxed); };
              run_threads(add, add, add);
              return Pair{x.load(kRelaxed), 0};
            }),
            (std::set<Pair>{{3, 0}}));
}

TEST(Checker, FindsARaceOnPlainData) {
  const auto run = [](std::memory_order order) {
    return failure_of([order] {
      Plain<int> data = 0;
      Atomic<int> ready{0};
      run_threads([&] { data = 1, ready.store(1, order); }, [&] { (void)(ready.load(kAcquire) == 1 && data == 1); });
    });
  };
  EXPECT_EQ(run(kRelaxed), "data race: a read of plain data that another thread writes");
  EXPECT_EQ(run(kRelease), "");
}

struct Node {
  Atomic<int> value{7};
};
Node* make_node() { return ::new (::operator new(128, std::align_val_t{128}, std::nothrow)) Node(); }
void end_node(Node* node) {
  node->~Node();
  ::operator delete(node, std::align_val_t{128});
}

TEST(Checker, FindsUnpublishedConstructionAndEarlyDestruction) {
  const auto run = [](std::memory_order publish, bool wait) {
    return failure_of([=] {
      Atomic<Node*> shared{nullptr};
      Atomic<int> done{0};
      Node* node = make_node();
      run_threads(
          [&] {
            shared.store(node, publish);
            if (!wait || done.load(kAcquire) == 1) {
              end_node(std::exchange(node, nullptr));
            }
          },
          [&] {
            if (Node* mine = shared.load(kRelaxed); mine != nullptr) {
              (void)mine->value.load(kRelaxed);
            }
            done.store(1, kRelease);
          });
      if (node != nullptr) {
        end_node(node);
      }
    });
  };
  EXPECT_NE(run(kRelease, false), "");
  EXPECT_EQ(run(kRelease, true), "");
  EXPECT_EQ(failure_of([] {
              Atomic<Node*> shared{nullptr};
              run_threads([&] { shared.store(make_node(), kRelaxed); },
                          [&] {
                            Node* mine = shared.load(kAcquire);
                            (void)(mine == nullptr || mine->value.load(kRelaxed) == 7);
                          });
              end_node(shared.load(kRelaxed));
            }),
            "an atomic is used before its construction is visible");
}

void* make_block() { return ::operator new(64, std::align_val_t{64}, std::nothrow); }
[[gnu::noinline]] void end_block(void* block) { ::operator delete(block, std::align_val_t{64}); }

TEST(Checker, FindsLeaksDoubleFreesAndUsesAfterFree) {
  EXPECT_EQ(failure_of([] { make_block(); }), "memory is leaked");
  EXPECT_EQ(failure_of([] {
              void* block = make_block();
              end_block(block);
              end_block(block);
            }),
            "memory is freed twice");
  EXPECT_EQ(failure_of([] {
              void* block = make_block();
              end_block(block);
              note_read(block);
            }),
            "freed memory is read");
}

TEST(Checker, FindsALostWakeUp) {
  const auto run = [](bool checks_word) {
    return failure_of([=] {
      Atomic<int> word{0};
      run_threads([&] { word.store(1, kRelaxed), word.wake_all(); },
                  [&] { (void)word.wait_while_equal(checks_word ? 0 : word.load(kRelaxed)); });
    });
  };
  EXPECT_EQ(run(true), "");
  EXPECT_EQ(run(false), "every thread sleeps: a wake-up was lost");
}

TEST(Checker, FindsAScenarioThatDoesNotEnd) {
  EXPECT_EQ(failure_of([] {
              Atomic<int> x{0};
              while (x.load(kRelaxed) == 0) {
              }
            }),
            "the scenario does not end");
}

}  // namespace
}  // namespace weft::model
