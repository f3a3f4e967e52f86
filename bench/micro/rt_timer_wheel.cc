// SPDX-License-Identifier: MIT
#include <algorithm>
#include <ctime>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/micro/micro.h"
#include "weft/base/random.h"
#include "weft/rt/loop/timer_wheel.h"

#if __has_include(<boost/heap/d_ary_heap.hpp>)
#include <boost/heap/d_ary_heap.hpp>
#include <boost/heap/pairing_heap.hpp>
#define WEFT_RIVAL_BOOST_HEAP
#endif

namespace weft::rt {
namespace {

constexpr std::uint64_t kSpan = 1000;  // ticks; the model of the published wheel has 1024 slots
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

std::uint64_t fired = 0;
void count_fired(void* /*context*/) { ++fired; }

// Each contender has schedule(ticks from now) -> Id, cancel(Id) and tick(), which fires the timers due a tick later.

class Weft {
 public:
  using Id = TimerId;
  Id schedule(std::uint64_t ticks) {
    return wheel_.schedule(now_ + TimerWheel::kDefaultTick * static_cast<Duration::rep>(ticks), {count_fired, nullptr});
  }
  void cancel(Id id) { wheel_.cancel(id); }
  void tick() {
    now_ += TimerWheel::kDefaultTick;
    wheel_.advance(now_, kAll);
  }
  // Advances as a loop does: a bounded call at a time. Returns false if more timers are due at this tick.
  void begin_tick() { now_ += TimerWheel::kDefaultTick; }
  static constexpr std::uint64_t kStepMax = 256;
  bool step() {
    wheel_.advance(now_, kStepMax);
    return wheel_.next_deadline() > now_;
  }

 private:
  Instant now_{};
  TimerWheel wheel_{Instant{}};
};

// The published design: one level of slots, a node from the heap for each timer, ids used again as they are, one
// callback for all, which gets the id. A delay of n ticks ends with the n + 1st tick.
class PublishedModel {
 public:
  using Id = std::uint64_t;
  explicit PublishedModel(std::size_t slots = 1024) : slots_(slots) {}
  PublishedModel(const PublishedModel&) = delete;
  PublishedModel& operator=(const PublishedModel&) = delete;
  ~PublishedModel() {
    for (Node* node : nodes_) {
      delete node;
    }
  }

  Id schedule(std::uint64_t ticks) {
    Id id;
    if (free_ids_.empty()) {
      id = nodes_.size();
      nodes_.push_back(nullptr);
    } else {
      id = free_ids_.back();
      free_ids_.pop_back();
    }
    Node*& head = slots_[(now_ + ticks) & (slots_.size() - 1)];
    auto* node = new Node{nullptr, head, &head, id};
    if (head != nullptr) {
      head->previous = node;
    }
    head = node;
    nodes_[id] = node;
    return id;
  }
  void cancel(Id id) {
    Node* node = id < nodes_.size() ? nodes_[id] : nullptr;
    if (node == nullptr) {
      return;
    }
    (node->previous != nullptr ? node->previous->next : *node->head) = node->next;
    if (node->next != nullptr) {
      node->next->previous = node->previous;
    }
    release(node);
  }
  void tick() {
    Node*& head = slots_[now_ & (slots_.size() - 1)];
    Node* node = head;
    head = nullptr;
    while (node != nullptr) {
      Node* next = node->next;
      const Id id = node->id;
      release(node);
      callback_(id);
      node = next;
    }
    ++now_;
  }
  void begin_tick() {}
  bool step() {
    tick();
    return true;
  }

 private:
  struct Node {
    Node* previous;
    Node* next;
    Node** head;
    Id id;
  };
  void release(Node* node) {
    nodes_[node->id] = nullptr;
    free_ids_.push_back(node->id);
    delete node;
  }

  std::uint64_t now_ = 0;
  std::vector<Node*> slots_;
  std::vector<Node*> nodes_;
  std::vector<Id> free_ids_;
  std::function<void(Id)> callback_ = [](Id) { ++fired; };
};

// An ordered container of deadlines, counted in ticks. `Queue` has Id, push(deadline, callback), erase(id), empty(),
// deadline() and pop() of the earliest one.
template <typename Queue>
class Ordered {
 public:
  using Id = typename Queue::Id;
  Id schedule(std::uint64_t ticks) { return queue_.push(now_ + ticks, {count_fired, nullptr}); }
  void cancel(Id id) { queue_.erase(id); }
  void tick() {
    ++now_;
    while (!queue_.empty() && queue_.deadline() <= now_) {
      const TimerCallback callback = queue_.pop();
      callback.function(callback.context);
    }
  }
  void begin_tick() {}
  bool step() {
    tick();
    return true;
  }

 private:
  std::uint64_t now_ = 0;
  Queue queue_;
};

class MultimapQueue {
 public:
  using Id = std::multimap<std::uint64_t, TimerCallback>::iterator;
  Id push(std::uint64_t deadline, TimerCallback callback) { return map_.emplace(deadline, callback); }
  void erase(Id id) { map_.erase(id); }
  [[nodiscard]] bool empty() const { return map_.empty(); }
  [[nodiscard]] std::uint64_t deadline() const { return map_.begin()->first; }
  TimerCallback pop() {
    const TimerCallback callback = map_.begin()->second;
    map_.erase(map_.begin());
    return callback;
  }

 private:
  std::multimap<std::uint64_t, TimerCallback> map_;
};
using Multimap = Ordered<MultimapQueue>;

#ifdef WEFT_RIVAL_BOOST_HEAP
struct HeapTimer {
  std::uint64_t deadline;
  TimerCallback callback;
  bool operator<(const HeapTimer& other) const { return deadline > other.deadline; }  // the top is the earliest
};

template <typename Heap>
class HeapQueue {
 public:
  using Id = typename Heap::handle_type;
  Id push(std::uint64_t deadline, TimerCallback callback) { return heap_.push(HeapTimer{deadline, callback}); }
  void erase(Id id) { heap_.erase(id); }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::uint64_t deadline() const { return heap_.top().deadline; }
  TimerCallback pop() {
    const TimerCallback callback = heap_.top().callback;
    heap_.pop();
    return callback;
  }

 private:
  Heap heap_;
};
using DaryHeap =
    Ordered<HeapQueue<boost::heap::d_ary_heap<HeapTimer, boost::heap::arity<4>, boost::heap::mutable_<true>>>>;
using PairingHeap = Ordered<HeapQueue<boost::heap::pairing_heap<HeapTimer>>>;
#endif

// The least that a timer costs, and so a bound for every wheel: in and out of an intrusive list, and a call. No ids, no
// memory of its own, and each list is one slot.
class Floor {
 public:
  using Id = std::uint32_t;
  Id schedule(std::uint64_t ticks) {
    if (free_.empty()) {
      free_.push_back(static_cast<Id>(nodes_.size()));
      nodes_.push_back({});
    }
    const Id id = free_.back();
    free_.pop_back();
    Id& head = slots_[(now_ + ticks) % slots_.size()];
    nodes_[id] = {kNone, head, static_cast<Id>(&head - slots_.data()), {count_fired, nullptr}};
    if (head != kNone) {
      nodes_[head].previous = id;
    }
    head = id;
    return id;
  }
  void cancel(Id id) {
    const Node& node = nodes_[id];
    (node.previous == kNone ? slots_[node.slot] : nodes_[node.previous].next) = node.next;
    if (node.next != kNone) {
      nodes_[node.next].previous = node.previous;
    }
    free_.push_back(id);
  }
  void tick() {
    Id id = std::exchange(slots_[++now_ % slots_.size()], kNone);
    while (id != kNone) {
      const Node node = nodes_[id];
      free_.push_back(id);
      node.callback.function(node.callback.context);
      id = node.next;
    }
  }
  void begin_tick() {}
  bool step() {
    tick();
    return true;
  }

 private:
  static constexpr Id kNone = ~Id{0};
  struct Node {
    Id previous;
    Id next;
    Id slot;
    TimerCallback callback;
  };
  std::uint64_t now_ = 0;
  std::vector<Id> slots_ = std::vector<Id>(1024, kNone);
  std::vector<Node> nodes_;
  std::vector<Id> free_;
};

// Random delays of 1 to kSpan ticks.
std::vector<std::uint64_t> random_delays(std::size_t count) {
  Random random(1);
  std::vector<std::uint64_t> delays(count);
  std::generate(delays.begin(), delays.end(), [&] { return 1 + random.below(kSpan); });
  return delays;
}

void check_fired(benchmark::State& state, std::uint64_t expected) {
  if (fired != expected) {
    state.SkipWithError(("fired " + std::to_string(fired) + " of " + std::to_string(expected)).c_str());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(expected));
}

// As published: the clock stands still while timers are scheduled; a tick fires the batch of the one before.
template <typename Timers>
void tick_batch(benchmark::State& state, std::size_t count) {
  Timers timers;
  for (auto _ : state) {
    state.PauseTiming();
    for (std::size_t i = 0; i < count; ++i) {
      timers.schedule(1);
    }
    state.ResumeTiming();
    timers.tick();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * count));
}

// Random delays. The time covers scheduling, waiting and firing.
template <typename Timers>
void schedule_and_fire(benchmark::State& state, std::size_t count) {
  const auto delays = random_delays(count);
  Timers timers;
  fired = 0;
  for (auto _ : state) {
    for (const std::uint64_t delay : delays) {
      timers.schedule(delay);
    }
    for (std::uint64_t i = 0; i <= kSpan; ++i) {
      timers.tick();
    }
  }
  check_fired(state, state.iterations() * count);
}

// Firing alone: `count` timers with random deadlines, and ticks until all have fired.
template <typename Timers>
void expire(benchmark::State& state, std::size_t count) {
  const auto delays = random_delays(count);
  Timers timers;
  fired = 0;
  for (auto _ : state) {
    state.PauseTiming();
    for (const std::uint64_t delay : delays) {
      timers.schedule(delay);
    }
    state.ResumeTiming();
    for (std::uint64_t i = 0; i <= kSpan; ++i) {
      timers.tick();
    }
  }
  check_fired(state, state.iterations() * count);
}

template <typename Timers>
void schedule_cancel(benchmark::State& state) {
  Timers timers;
  for (auto _ : state) {
    const auto id = timers.schedule(100);
    timers.cancel(id);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

// Among `count` others: cancels a random one and schedules another for it.
template <typename Timers>
void schedule_cancel_among(benchmark::State& state, std::size_t count) {
  const auto delays = random_delays(count);
  Timers timers;
  std::vector<typename Timers::Id> ids;
  std::transform(delays.begin(), delays.end(), std::back_inserter(ids),
                 [&](auto delay) { return timers.schedule(delay); });
  std::vector<std::uint32_t> victims(std::size_t{1} << 20);
  Random random(2);
  std::generate(victims.begin(), victims.end(), [&] { return static_cast<std::uint32_t>(random.below(count)); });
  std::size_t next = 0;
  for (auto _ : state) {
    const std::uint32_t victim = victims[next++ & (victims.size() - 1)];
    timers.cancel(ids[victim]);
    ids[victim] = timers.schedule(delays[victim]);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

// `count` live timers, each scheduled again when it fired. Reports the longest call and the most timers that one call
// fired: at most kStepMax for a contender that has it. `together`: all are due at once.
template <typename Timers>
void worst_call(benchmark::State& state, std::size_t count, bool together) {
  const auto delays = random_delays(count);
  Timers timers;
  std::size_t next = 0;
  const auto refill = [&](std::uint64_t number) {
    for (; number != 0; --number) {
      timers.schedule(together ? kSpan : delays[next++ % count]);
    }
  };
  refill(count);
  std::clock_t worst = 0;  // of processor time, so that preemption does not count as the wheel's
  std::uint64_t most = 0;
  std::uint64_t total = 0;
  for (auto _ : state) {
    for (std::uint64_t i = 0; i <= kSpan; ++i) {
      fired = 0;
      timers.begin_tick();
      for (bool done = false; !done;) {
        const std::uint64_t before = fired;
        const std::clock_t start = std::clock();
        done = timers.step();
        worst = std::max(worst, std::clock() - start);
        most = std::max(most, fired - before);
      }
      total += fired;
      refill(fired);
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(total));
  state.counters["worst_us"] = static_cast<double>(worst) * (1e6 / CLOCKS_PER_SEC);
  state.counters["most_fired"] = static_cast<double>(most);
  if constexpr (requires { Timers::kStepMax; }) {
    if (most > Timers::kStepMax) {
      state.SkipWithError("a call fired more than it was asked for");
    }
  }
}

// One row of all contenders; `measure` is called with each one's type.
template <typename Measure>
bench::RowBuilder compare(std::string_view name, Measure measure) {
  return bench::row(name)
      .run("weft", [=](benchmark::State& state) { measure.template operator()<Weft>(state); })
      .run("published_model", [=](benchmark::State& state) { measure.template operator()<PublishedModel>(state); })
#ifdef WEFT_RIVAL_BOOST_HEAP
      .run("boost_d_ary_heap", [=](benchmark::State& state) { measure.template operator()<DaryHeap>(state); })
      .run("boost_pairing_heap", [=](benchmark::State& state) { measure.template operator()<PairingHeap>(state); })
#endif
      .run("floor", [=](benchmark::State& state) { measure.template operator()<Floor>(state); })
      .run("std_multimap", [=](benchmark::State& state) { measure.template operator()<Multimap>(state); });
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const std::size_t count : {1000, 10'000, 50'000}) {
    const std::string name = "TimingWheel_ScheduleTick/" + std::to_string(count);
    compare(name, [=]<typename Timers>(benchmark::State& state) { tick_batch<Timers>(state, count); });
    compare(name + " (honest)",
            [=]<typename Timers>(benchmark::State& state) { schedule_and_fire<Timers>(state, count); });
  }
  compare("TimingWheel_ScheduleOnly", []<typename Timers>(benchmark::State& state) { schedule_cancel<Timers>(state); });
  for (const std::size_t count : {1000, 100'000, 1'000'000}) {
    const std::string among = "/" + std::to_string(count);
    compare("TimerWheel_ScheduleCancel" + among,
            [=]<typename Timers>(benchmark::State& state) { schedule_cancel_among<Timers>(state, count); })
        .bar("published_model", 5)
        .bar("std_multimap", 20);
    compare("TimerWheel_Expire" + among,
            [=]<typename Timers>(benchmark::State& state) { expire<Timers>(state, count); })
        .bar("published_model", 5)
        .bar("std_multimap", 20);
  }
  compare("TimerWheel_WorstCall/1000000",
          []<typename Timers>(benchmark::State& state) { worst_call<Timers>(state, 1'000'000, false); });
  compare("TimerWheel_WorstCallTogether/1000000",
          []<typename Timers>(benchmark::State& state) { worst_call<Timers>(state, 1'000'000, true); });
  return true;
}();

}  // namespace
}  // namespace weft::rt
