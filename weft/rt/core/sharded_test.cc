// SPDX-License-Identifier: MIT
#include "weft/rt/core/sharded.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weft/base/random.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/async_event.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using test::Blocked;
using test::in_a_minute;
using test::on_core;
using test::Signal;
using test::start_runtime;

// The result of the task on that core.
template <typename T>
auto shard_result_on(Runtime& runtime, unsigned core, Task<T> task) {
  return std::move(spawn(runtime.core(core), std::move(task))).value().get();
}

// The makings and endings of instances, with their cores, in their order.
struct Notes {
  std::mutex mutex;
  std::vector<std::string> notes;
  void add(std::string note) {
    const std::lock_guard lock(mutex);
    notes.push_back(std::move(note));
  }
};

std::string name_of(const Core* core) { return core == nullptr ? "foreign" : std::to_string(core->index()); }

// Neither copyable nor movable.
class ShardCounter {
 public:
  explicit ShardCounter(Notes* notes = nullptr) : notes_(notes), core_(Core::current()) { note("+"); }
  ShardCounter(const ShardCounter&) = delete;
  ShardCounter& operator=(const ShardCounter&) = delete;
  ~ShardCounter() { note("-"); }

  int add(int value) {
    EXPECT_EQ(Core::current(), core_);
    return sum += value;
  }
  int sum = 0;

 private:
  void note(const char* what) const {
    if (notes_ != nullptr) {
      notes_->add(what + std::to_string(index_) + " on " + name_of(Core::current()));
    }
  }
  Notes* notes_;
  const Core* core_;
  unsigned index_ = core_->index();  // the core may end before the instance
};
using Counters = Sharded<ShardCounter>;

std::unique_ptr<Counters> start_counters(Runtime& runtime, Notes* notes = nullptr) {
  auto made = Counters::start(runtime, [notes] { return ShardCounter(notes); });
  EXPECT_TRUE(made) << made.error().message();
  return std::move(made).value();
}

// --- start and stop ---

TEST(Sharded, IsMadeInTheOrderOfTheCoresAndEndsInTheReverseOrderEachOnItsCore) {
  const auto runtime = start_runtime(3);
  Notes notes;
  const auto counters = start_counters(*runtime, &notes);
  EXPECT_EQ(counters->size(), 3u);
  EXPECT_TRUE(counters->stop(in_a_minute()));
  EXPECT_EQ(notes.notes, (std::vector<std::string>{"+0 on 0", "+1 on 1", "+2 on 2", "-2 on 2", "-1 on 1", "-0 on 0"}));
  EXPECT_TRUE(counters->stop(in_a_minute())) << "a second stop() has nothing to do";
}

TEST(Sharded, EndsWithItsOwner) {
  const auto runtime = start_runtime(2);
  Notes notes;
  start_counters(*runtime, &notes).reset();
  EXPECT_EQ(notes.notes.size(), 4u);
}

struct OfCore {
  explicit OfCore(Core& core) : index(core.index()) {}
  unsigned index;
};

TEST(Sharded, IsMadeByAFunctionOrByItsConstructor) {
  const auto runtime = start_runtime(2);
  const auto of_core = std::move(Sharded<OfCore>::start(*runtime)).value();
  on_core(*runtime, 1, [&] { EXPECT_EQ(of_core->local()->index, 1u); });
  const auto plain = std::move(Sharded<std::string>::start(*runtime)).value();
  on_core(*runtime, 1, [&] { EXPECT_EQ(*plain->local(), ""); });
  const auto text = [](Core& core) { return std::to_string(core.index()); };
  const auto texts = std::move(Sharded<std::string>::start(*runtime, text)).value();
  on_core(*runtime, 1, [&] { EXPECT_EQ(*texts->local(), "1"); });
  const auto pointer = [] { return std::make_unique<std::string>("pointer"); };
  const auto pointers = std::move(Sharded<std::string>::start(*runtime, pointer)).value();
  on_core(*runtime, 0, [&] { EXPECT_EQ(*pointers->local(), "pointer"); });
  const auto result = [] { return Result<std::unique_ptr<std::string>>(std::make_unique<std::string>("result")); };
  const auto results = std::move(Sharded<std::string>::start(*runtime, result)).value();
  on_core(*runtime, 0, [&] { EXPECT_EQ(*results->local(), "result"); });
  const auto nothing = [] { return std::unique_ptr<std::string>(); };
  EXPECT_EQ(Sharded<std::string>::start(*runtime, nothing).error(), Errc::invalid_argument);
}

TEST(Sharded, AConstructorThatThrowsEndsTheEarlierInstances) {
  const auto runtime = start_runtime(3);
  Notes notes;
  const auto make = [&](Core& core) {
    if (core.index() == 2) {
      throw std::runtime_error("no third one");
    }
    return std::make_unique<ShardCounter>(&notes);
  };
  try {
    (void)Counters::start(*runtime, make);
    ADD_FAILURE() << "it did not throw";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "no third one");
  }
  EXPECT_EQ(notes.notes, (std::vector<std::string>{"+0 on 0", "+1 on 1", "-1 on 1", "-0 on 0"}));
}

TEST(Sharded, AConstructorThatFailsEndsTheEarlierInstances) {
  const auto runtime = start_runtime(3);
  for (unsigned failing = 0; failing < 3; ++failing) {
    Notes notes;
    const auto make = [&](Core& core) -> Result<std::unique_ptr<ShardCounter>> {
      if (core.index() == failing) {
        return Error(Errc::conflict, "not here");
      }
      return std::make_unique<ShardCounter>(&notes);
    };
    EXPECT_EQ(Counters::start(*runtime, make).error(), Errc::conflict);
    EXPECT_EQ(notes.notes.size(), std::size_t{2} * failing);
  }
}

TEST(Sharded, NeitherStartsNorStopsOnACore) {
  const auto runtime = start_runtime(2);
  const auto counters = start_counters(*runtime);
  on_core(*runtime, 0, [&] {
    EXPECT_EQ(Counters::start(*runtime, [] { return ShardCounter(); }).error(), Errc::invalid_state);
    EXPECT_EQ(counters->stop(in_a_minute()).error(), Errc::invalid_state);
    EXPECT_NE(counters->local(), nullptr) << "and nothing has ended";
  });
}

TEST(Sharded, DoesNotStartOnARuntimeThatHasStopped) {
  const auto runtime = start_runtime(2);
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  Notes notes;
  EXPECT_EQ(Counters::start(*runtime, [&] { return ShardCounter(&notes); }).error(), Errc::closed);
  EXPECT_TRUE(notes.notes.empty());
}

TEST(Sharded, HasOneInstanceForEachCoreAndNoneForOtherThreads) {
  const auto runtime = start_runtime(3);
  const auto other = start_runtime(1);
  const auto counters = start_counters(*runtime);
  std::array<ShardCounter*, 3> locals{};
  for (unsigned core = 0; core < 3; ++core) {
    on_core(*runtime, core, [&] { locals[core] = counters->local(); });
    EXPECT_NE(locals[core], nullptr);
  }
  EXPECT_NE(locals[0], locals[1]);
  EXPECT_NE(locals[1], locals[2]);
  EXPECT_EQ(counters->local(), nullptr);
  on_core(*other, 0, [&] { EXPECT_EQ(counters->local(), nullptr); });
}

// --- calls ---

Task<void> call_in_every_way(Counters* counters) {
  const Result<int> sum = co_await counters->invoke_on(1, [](ShardCounter& counter) { return counter.add(5); });
  EXPECT_EQ(sum.value_or(0), 5);
  const Result<void> nothing = co_await counters->invoke_on(1, [](ShardCounter& counter) { counter.add(1); });
  EXPECT_TRUE(nothing);
  const Result<int> own = co_await counters->invoke_on(0, [](ShardCounter& counter) { return counter.add(3); });
  EXPECT_EQ(own.value_or(0), 3) << "a core may call itself";
  EXPECT_EQ(counters->local()->sum, 3);
  const Result<int> refused =
      co_await counters->invoke_on(1, [](ShardCounter&) -> Result<int> { return Errc::unreachable; });
  EXPECT_EQ(refused.error(), Errc::unreachable) << "a Result comes as it is";
  const auto owner =
      co_await counters->invoke_on(1, [](ShardCounter& counter) { return std::make_unique<int>(counter.sum); });
  EXPECT_EQ(**owner, 6);
  auto owning = counters->invoke_on(1, [text = std::string(100, 'x')](ShardCounter&) { return text.size(); });
  const Result<std::size_t> size = co_await owning;
  EXPECT_EQ(size.value_or(0), 100u);
  const Result<int> slept = co_await counters->invoke_on(1, [](ShardCounter& counter) -> Task<int> {
    (void)co_await sleep(std::chrono::milliseconds(1));
    co_return counter.add(1);
  });
  EXPECT_EQ(slept.value_or(0), 7);
  const Result<void> done = co_await counters->invoke_on(1, [](ShardCounter& counter) -> Task<void> {
    (void)co_await yield();
    counter.add(1);
  });
  EXPECT_TRUE(done);
  const Result<int> failed =
      co_await counters->invoke_on(1, [](ShardCounter&) -> Task<Result<int>> { co_return Errc::conflict; });
  EXPECT_EQ(failed.error(), Errc::conflict);
  const Result<int> nowhere = co_await counters->invoke_on(7, [](ShardCounter& counter) { return counter.sum; });
  EXPECT_EQ(nowhere.error(), Errc::invalid_argument);
  EXPECT_EQ(Core::current()->index(), 0u);
}

TEST(Sharded, CallsTheInstanceOfThatCore) {
  const auto runtime = start_runtime(2);
  const auto counters = start_counters(*runtime);
  EXPECT_TRUE(shard_result_on(*runtime, 0, call_in_every_way(counters.get())));
}

template <typename Call>
Task<std::string> text_thrown_by(Call call) {
  try {
    (void)co_await std::move(call);
  } catch (const std::runtime_error& error) {
    co_return error.what();
  }
  co_return "nothing";
}

Task<void> throw_in_every_way(Counters* counters) {
  const auto at_once = [](ShardCounter&) -> int { throw std::runtime_error("at once"); };
  {
    const std::string text = co_await text_thrown_by(counters->invoke_on(1, at_once));
    EXPECT_EQ(text, "at once");
  }
  const auto later = [](ShardCounter&) -> Task<int> {
    (void)co_await yield();
    throw std::runtime_error("later");
  };
  {
    const std::string text = co_await text_thrown_by(counters->invoke_on(1, later));
    EXPECT_EQ(text, "later");
  }
  const auto no_task = [](ShardCounter&) -> Task<int> { throw std::runtime_error("no task"); };
  {
    const std::string text = co_await text_thrown_by(counters->invoke_on(1, no_task));
    EXPECT_EQ(text, "no task");
  }
}

TEST(Sharded, AnExceptionReachesTheCaller) {
  const auto runtime = start_runtime(2);
  const auto counters = start_counters(*runtime);
  EXPECT_TRUE(shard_result_on(*runtime, 0, throw_in_every_way(counters.get())));
}

Task<Result<int>> call_late(Counters* counters, unsigned core, Instant deadline) {
  co_return co_await counters->invoke_on(core, [](ShardCounter& counter) { return counter.add(1); }, deadline);
}
// Calls again, with twice the time, until the deadline passes after the task has begun.
Task<void> call_for_ever(Counters* counters) {
  bool began = false;  // in this frame, to which the called task refers
  for (Duration time = std::chrono::milliseconds(1); !began; time *= 2) {
    const auto wait = [&began](ShardCounter&) -> Task<Result<void>> {
      began = true;
      co_return co_await sleep(std::chrono::hours(1000));
    };
    const Result<void> result = co_await counters->invoke_on(1, wait, sys::now() + time);
    EXPECT_EQ(result.error(), Errc::timed_out);
  }
}

TEST(Sharded, ACallHasADeadline) {
  const auto runtime = start_runtime(2);
  const auto counters = start_counters(*runtime);
  {
    const Blocked blocked(*runtime, 1);
    EXPECT_EQ(
        shard_result_on(*runtime, 0, call_late(counters.get(), 1, sys::now() + std::chrono::milliseconds(1))).error(),
        Errc::timed_out);
  }
  on_core(*runtime, 1, [&] { EXPECT_EQ(counters->local()->sum, 0) << "it has not begun"; });
  EXPECT_TRUE(shard_result_on(*runtime, 0, call_for_ever(counters.get())));
}

test::Started call_from(Counters* counters, Error* error) {
  const Result<int> sum = co_await counters->invoke_on(0, [](ShardCounter& counter) { return counter.sum; });
  *error = sum.error();
}

TEST(Sharded, AThreadThatIsNotACoreOfTheRuntimeIsRefused) {
  const auto runtime = start_runtime(2);
  const auto other = start_runtime(1);
  const auto counters = start_counters(*runtime);
  Error error;
  call_from(counters.get(), &error);
  EXPECT_EQ(error, Errc::invalid_state);
  EXPECT_EQ(shard_result_on(*other, 0, call_late(counters.get(), 0, kNever)).error(), Errc::invalid_state);
}

Task<void> await_together(Counters* counters, Runtime* runtime) {
  const auto add = [](ShardCounter& counter) { return counter.add(1); };
  const auto index = [] { return Core::current()->index(); };
  const auto [first, second, third] =
      co_await when_all(counters->invoke_on(0, add), runtime->call(1, index), counters->invoke_on(1, add));
  EXPECT_EQ(first.value_or(0), 1);
  EXPECT_EQ(second.value_or(9), 1u);
  EXPECT_EQ(third.value_or(0), 1);
}

TEST(Sharded, CallsMayBeAwaitedTogether) {
  const auto runtime = start_runtime(2);
  const auto counters = start_counters(*runtime);
  EXPECT_TRUE(shard_result_on(*runtime, 0, await_together(counters.get(), runtime.get())));
}

// --- all cores ---

Task<void> call_all(Counters* counters) {
  const Result<void> done = co_await counters->invoke_on_all([](ShardCounter& counter) { counter.add(2); });
  EXPECT_TRUE(done);
  const Result<void> waited = co_await counters->invoke_on_all([](ShardCounter& counter) -> Task<void> {
    (void)co_await sleep(std::chrono::milliseconds(1));
    counter.add(1);
  });
  EXPECT_TRUE(waited);
  const Result<void> failed = co_await counters->invoke_on_all([](ShardCounter& counter) -> Result<void> {
    counter.add(1);
    return Core::current()->index() == 0 ? Result<void>() : Error(Errc::conflict, "not here");
  });
  EXPECT_EQ(failed.error(), Errc::conflict);
  const auto throws = [](ShardCounter& counter) {
    counter.add(1);
    if (Core::current()->index() == 1) {
      throw std::runtime_error("of core 1");
    }
  };
  {
    const std::string text = co_await text_thrown_by(counters->invoke_on_all(throws));
    EXPECT_EQ(text, "of core 1");
  }
  const Result<int> sum = co_await counters->map_reduce([](ShardCounter& counter) { return counter.sum; }, 0,
                                                        [](int all, int one) { return all + one; });
  EXPECT_EQ(sum.value_or(0), 3 * 5) << "each core ran each function, those beside a failure too";
}

TEST(Sharded, AFunctionForAllCoresRunsOnEachAlsoBesideAFailure) {
  const auto runtime = start_runtime(3);
  const auto counters = start_counters(*runtime);
  EXPECT_TRUE(shard_result_on(*runtime, 1, call_all(counters.get())));
}

Task<void> reduce_in_every_way(Counters* counters) {
  const auto index = [](ShardCounter&) {
    return std::make_unique<std::string>(std::to_string(Core::current()->index()));
  };
  const Result<std::string> in_order = co_await counters->map_reduce(
      index, std::string(">"), [](std::string& into, std::unique_ptr<std::string> one) { into += *one; });
  EXPECT_EQ(in_order.value_or(""), ">012");
  const auto later = [](ShardCounter&) -> Task<Result<std::size_t>> {
    (void)co_await yield();
    co_return Core::current()->index();
  };
  const Result<std::size_t> most =
      co_await counters->map_reduce(later, std::size_t{0}, [](std::size_t a, std::size_t b) { return std::max(a, b); });
  EXPECT_EQ(most.value_or(0), 2u);
  const auto fails = [](ShardCounter&) -> Result<int> {
    return Core::current()->index() == 2 ? Result<int>(Error(Errc::conflict, "not here")) : Result<int>(1);
  };
  const auto add = [](int a, int b) { return a + b; };
  const Result<int> failed = co_await counters->map_reduce(fails, 0, add);
  EXPECT_EQ(failed.error(), Errc::conflict);
  const auto throws = [](ShardCounter&) -> int { throw std::runtime_error("in map"); };
  {
    const std::string text = co_await text_thrown_by(counters->map_reduce(throws, 0, add));
    EXPECT_EQ(text, "in map");
  }
  const auto one = [](ShardCounter&) { return 1; };
  const auto throws_late = [](int, int) -> int { throw std::runtime_error("in reduce"); };
  {
    const std::string text = co_await text_thrown_by(counters->map_reduce(one, 0, throws_late));
    EXPECT_EQ(text, "in reduce");
  }
}

TEST(Sharded, MapReduceGivesTheValuesInTheOrderOfTheCores) {
  const auto runtime = start_runtime(3);
  const auto counters = start_counters(*runtime);
  EXPECT_TRUE(shard_result_on(*runtime, 2, reduce_in_every_way(counters.get())));
}

// --- the end ---

Task<void> call_stopped(Counters* counters) {
  const Result<int> call = co_await counters->invoke_on(1, [](ShardCounter& counter) { return counter.sum; });
  EXPECT_EQ(call.error(), Errc::closed);
  const Result<void> task = co_await counters->invoke_on(1, [](ShardCounter&) -> Task<void> { co_return; });
  EXPECT_EQ(task.error(), Errc::closed);
  const Result<void> all = co_await counters->invoke_on_all([](ShardCounter&) {});
  EXPECT_EQ(all.error(), Errc::closed);
  const Result<int> sum = co_await counters->map_reduce([](ShardCounter& counter) { return counter.sum; }, 0,
                                                        [](int all_sums, int one) { return all_sums + one; });
  EXPECT_EQ(sum.error(), Errc::closed);
}

TEST(Sharded, CallsAfterTheStopFail) {
  const auto runtime = start_runtime(2);
  const auto counters = start_counters(*runtime);
  ASSERT_TRUE(counters->stop(in_a_minute()));
  EXPECT_TRUE(shard_result_on(*runtime, 0, call_stopped(counters.get())));
  on_core(*runtime, 0, [&] { EXPECT_EQ(counters->local(), nullptr); });
}

Task<Result<int>> call_and_wait(Counters* counters, AsyncEvent* event, Signal* begun) {
  auto wait = [event, begun](ShardCounter& counter) -> Task<int> {
    begun->give();
    (void)co_await event->wait();
    co_return counter.add(1);
  };
  co_return co_await counters->invoke_on(1, wait);
}

TEST(Sharded, AnInstanceEndsAfterTheTasksThatRunOnIt) {
  const auto runtime = start_runtime(3);
  Notes notes;
  const auto counters = start_counters(*runtime, &notes);
  AsyncEvent event;
  Signal begun;
  auto called = std::move(spawn(runtime->core(0), call_and_wait(counters.get(), &event, &begun))).value();
  ASSERT_TRUE(begun.take());
  EXPECT_EQ(counters->stop(sys::now() + std::chrono::milliseconds(1)).error(), Errc::timed_out);
  // The stop reaches core 1 by the time that it answers `closed`.
  while (shard_result_on(*runtime, 0, call_late(counters.get(), 1, kNever)).error() != Errc::closed) {
  }
  EXPECT_FALSE(called.ready());
  on_core(*runtime, 1, [&] { event.set(); });
  EXPECT_GE(called.get().value_or(0), 1);
  EXPECT_TRUE(counters->stop(in_a_minute()));
  EXPECT_EQ(notes.notes.size(), 6u);
  EXPECT_EQ(notes.notes[4], "-1 on 1");
}

Task<void> destroy_inside(std::unique_ptr<Counters>* counters) {
  const Result<int> sum = co_await (*counters)->invoke_on(1, [counters](ShardCounter& counter) {
    EXPECT_EQ((*counters)->stop(in_a_minute()).error(), Errc::invalid_state);
    counters->reset();
    return counter.add(4);  // it lives until the end of this call
  });
  EXPECT_EQ(sum.value_or(0), 4);
}

TEST(Sharded, ItsOwnCallbackMayDestroyIt) {
  const auto runtime = start_runtime(2);
  Notes notes;
  auto counters = start_counters(*runtime, &notes);
  EXPECT_TRUE(shard_result_on(*runtime, 0, destroy_inside(&counters)));
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(notes.notes, (std::vector<std::string>{"+0 on 0", "+1 on 1", "-1 on 1", "-0 on 0"}));
}

TEST(Sharded, OfCoresThatHaveEndedEndsInTheThreadThatStopsIt) {
  auto runtime = start_runtime(2);
  Notes notes;
  const auto counters = start_counters(*runtime, &notes);
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(notes.notes.size(), 2u);
  EXPECT_TRUE(counters->stop(in_a_minute()));
  EXPECT_EQ(notes.notes, (std::vector<std::string>{"+0 on 0", "+1 on 1", "-1 on foreign", "-0 on foreign"}));
}

TEST(Sharded, ARuntimeThatIsDestroyedFirstLeavesTheInstancesToIt) {
  auto runtime = start_runtime(2);
  Notes notes;
  auto counters = start_counters(*runtime, &notes);
  runtime.reset();
  EXPECT_EQ(notes.notes.size(), 2u);
  counters.reset();
  EXPECT_EQ(notes.notes.size(), 4u);
  EXPECT_EQ(notes.notes.back(), "-0 on foreign");
}

// Calls from every core to every core while the object stops, and the runtime after it.
Task<void> call_until_closed(Counters* counters, std::uint64_t seed, std::atomic<int>* added, Signal* begun) {
  Random random(seed);
  const unsigned cores = counters->size();
  for (int i = 0;; ++i) {
    const auto core = static_cast<unsigned>(random.below(cores));
    Result<int> sum = Errc::closed;
    if (i % 3 == 0) {
      sum = co_await counters->invoke_on(core, [](ShardCounter& counter) -> Task<int> {
        (void)co_await yield();
        co_return counter.add(1);
      });
    } else {
      sum = co_await counters->invoke_on(core, [](ShardCounter& counter) { return counter.add(1); });
    }
    if (!sum) {
      EXPECT_EQ(sum.error(), Errc::closed);
      co_return;
    }
    ++*added;
    if (i == 100) {
      begun->give();
    }
  }
}

TEST(Sharded, StopsWhileEveryCoreCallsEveryCore) {
  const auto runtime = start_runtime(3);
  Notes notes;
  const auto counters = start_counters(*runtime, &notes);
  std::atomic<int> added{0};
  Signal begun;
  std::vector<Future<void>> callers;
  for (unsigned core = 0; core < 3; ++core) {
    for (std::uint64_t i = 0; i < 8; ++i) {
      callers.push_back(
          std::move(spawn(runtime->core(core), call_until_closed(counters.get(), core * 8 + i, &added, &begun)))
              .value());
    }
  }
  ASSERT_TRUE(begun.take());
  EXPECT_TRUE(counters->stop(in_a_minute()));
  for (Future<void>& caller : callers) {
    EXPECT_TRUE(caller.get());
  }
  EXPECT_GT(added.load(), 100);
  EXPECT_EQ(notes.notes.size(), 6u);
}

TEST(Sharded, ManyObjectsOfARuntimeDoNotMixUp) {
  const auto runtime = start_runtime(2);
  std::vector<std::unique_ptr<Counters>> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(start_counters(*runtime));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto add = [](Counters* counters, int value) -> Task<Result<int>> {
      co_return co_await counters->invoke_on(1, [value](ShardCounter& counter) { return counter.add(value); });
    };
    EXPECT_EQ(shard_result_on(*runtime, 0, add(all[i].get(), static_cast<int>(i))).value_or(-1), static_cast<int>(i));
  }
  all.erase(all.begin() + 3, all.begin() + 9);
  for (const auto& counters : all) {
    on_core(*runtime, 1, [&] { EXPECT_NE(counters->local(), nullptr); });
  }
}

}  // namespace
}  // namespace weft::rt
