// SPDX-License-Identifier: MIT
// The published MpscQueue_1P1C is one thread that pushes and pops in turns. MpscQueue_2P1C is one producer
// that keeps the queue full, and a thread that pushes, whether that succeeds or not, and pops. The honest
// twins run a consumer and the number of producers in their name, each a thread, and count the values that
// arrived.
#include <bit>
#include <span>

#include "bench/micro/queues.h"
#include "weft/sync/mpsc_queue.h"
#if __has_include(<concurrentqueue/concurrentqueue.h>)
#include <concurrentqueue/concurrentqueue.h>
#define WEFT_RIVAL_moodycamel_mpsc
#endif

namespace {

using bench::BackOff;
using bench::Lazy;
using bench::Wide;
using Small = std::uint64_t;

constexpr std::size_t kProducersMax = 4;

// Each contender has a type Producer, which the pushing thread makes from the queue.
template <typename T>
struct Ours {
  explicit Ours(std::size_t capacity) : queue(weft::sync::MpscQueue<T>::make(kProducersMax, capacity).value()) {}
  struct Producer {
    explicit Producer(Ours& from) : lane(from.queue.producer().value()) {}
    bool push(const T& item) { return lane.try_push(item); }
    typename weft::sync::MpscQueue<T>::Producer lane;
  };
  std::size_t pop_some(std::span<T> to) { return queue.try_pop_batch(to); }
  bool pop(T& item) { return queue.try_pop(item); }
  weft::sync::MpscQueue<T> queue;
};

template <typename Queue>
struct SharedProducer {
  explicit SharedProducer(Queue& from) : queue(from) {}
  bool push(const auto& item) { return queue.push(item); }
  Queue& queue;
};

// The usual design: producers take places by compare-exchange, and each cell has the number of its turn (Vyukov's
// bounded queue with one consumer).
template <typename T>
struct Vyukov {
  using Producer = SharedProducer<Vyukov>;
  struct Cell {
    std::atomic<std::uint64_t> turn;
    T item;
  };
  explicit Vyukov(std::size_t capacity) : cells(capacity), mask(capacity - 1) {
    for (std::size_t i = 0; i < capacity; ++i) {
      cells[i].turn.store(i, std::memory_order_relaxed);
    }
  }
  bool push(const T& item) {
    std::uint64_t place = tail.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells[place & mask];
      const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == place) {
        if (tail.compare_exchange_weak(place, place + 1, std::memory_order_relaxed)) {
          cell.item = item;
          cell.turn.store(place + 1, std::memory_order_release);
          return true;
        }
      } else if (turn < place) {
        return false;
      } else {
        place = tail.load(std::memory_order_relaxed);
      }
    }
  }
  bool pop(T& item) {
    Cell& cell = cells[head & mask];
    if (cell.turn.load(std::memory_order_acquire) != head + 1) {
      return false;
    }
    item = cell.item;
    cell.turn.store(head + mask + 1, std::memory_order_release);
    ++head;
    return true;
  }
  std::size_t pop_some(std::span<T> to) {
    std::size_t count = 0;
    while (count < to.size() && pop(to[count])) {
      ++count;
    }
    return count;
  }
  std::vector<Cell> cells;
  std::uint64_t mask;
  alignas(64) std::atomic<std::uint64_t> tail{0};
  alignas(64) std::uint64_t head = 0;
};

// The published design: a flag in each slot, the slots not padded, the consumer's counter read by each push.
template <typename T>
struct PublishedModel {
  using Producer = SharedProducer<PublishedModel>;
  struct Slot {
    std::atomic<bool> ready{false};
    T item;
  };
  explicit PublishedModel(std::size_t capacity) : slots(capacity), mask(capacity - 1) {}
  bool push(const T& item) {
    std::uint64_t place = tail.load(std::memory_order_relaxed);
    do {
      if (place - head.load(std::memory_order_acquire) > mask) {
        return false;
      }
    } while (!tail.compare_exchange_weak(place, place + 1, std::memory_order_acq_rel, std::memory_order_relaxed));
    Slot& slot = slots[place & mask];
    slot.item = item;
    slot.ready.store(true, std::memory_order_release);
    return true;
  }
  bool pop(T& item) {
    const std::uint64_t place = head.load(std::memory_order_relaxed);
    Slot& slot = slots[place & mask];
    if (!slot.ready.load(std::memory_order_acquire)) {
      return false;
    }
    item = slot.item;
    slot.ready.store(false, std::memory_order_relaxed);
    head.store(place + 1, std::memory_order_release);
    return true;
  }
  std::size_t pop_some(std::span<T> to) { return pop(to[0]) ? 1 : 0; }
  std::vector<Slot> slots;
  std::uint64_t mask;
  alignas(64) std::atomic<std::uint64_t> tail{0};
  alignas(64) std::atomic<std::uint64_t> head{0};
};

#ifdef WEFT_RIVAL_moodycamel_mpsc
// With the tokens and the bulk calls that its documentation recommends. It does not keep its bound exactly.
template <typename T>
struct Moodycamel {
  explicit Moodycamel(std::size_t capacity) : queue(capacity, kProducersMax, 0), consumer(queue) {}
  struct Producer {
    explicit Producer(Moodycamel& from) : queue(from.queue), token(from.queue) {}
    bool push(const T& item) { return queue.try_enqueue(token, item); }
    moodycamel::ConcurrentQueue<T>& queue;
    moodycamel::ProducerToken token;
  };
  std::size_t pop_some(std::span<T> to) { return queue.try_dequeue_bulk(consumer, to.data(), to.size()); }
  bool pop(T& item) { return queue.try_dequeue(consumer, item); }
  moodycamel::ConcurrentQueue<T> queue;
  moodycamel::ConsumerToken consumer;
};
#endif

// Calls run(name, Queue of T) for each contender.
template <typename T, typename Run>
void each(Run run) {
  run("weft", std::type_identity<Ours<T>>());
  run("vyukov_model", std::type_identity<Vyukov<T>>());
#ifdef WEFT_RIVAL_moodycamel_mpsc
  run("moodycamel", std::type_identity<Moodycamel<T>>());
#endif
  run("published_model", std::type_identity<PublishedModel<T>>());
}

// A queue with one producer in the same thread.
template <typename Queue, typename T>
struct Alone {
  explicit Alone(std::size_t capacity) : queue(capacity), producer(queue) {}
  bool push(const T& item) { return producer.push(item); }
  bool pop(T& item) { return queue.pop(item); }
  Queue queue;
  typename Queue::Producer producer;
};

// The published work of MpscQueue_2P1C.
template <typename Queue>
void against_a_flood(bench::RowBuilder row, const char* name) {
  auto lazy = std::make_shared<Lazy<Queue>>(65536);
  row.run_two(
      name,
      [lazy](benchmark::State& state) {
        Queue& queue = lazy->get();
        typename Queue::Producer producer(queue);
        Small item = 0;
        for (auto _ : state) {
          benchmark::DoNotOptimize(producer.push(1));
          benchmark::DoNotOptimize(queue.pop(item));
        }
        state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
      },
      [lazy](benchmark::State& state) {
        typename Queue::Producer producer(lazy->get());
        for (auto _ : state) {
          benchmark::DoNotOptimize(producer.push(2));
        }
      });
}

// A consumer, which takes up to 64 values at a time, and `producers`, which push one at a time. Thread 0
// consumes.
template <typename Queue, typename T>
void fan_in(bench::RowBuilder row, const char* name, int producers, std::size_t capacity) {
  auto lazy = std::make_shared<Lazy<Queue>>(capacity);
  row.run_threads(name, producers + 1, [lazy, producers](benchmark::State& state) {
    Queue& queue = lazy->get();
    BackOff back_off;
    if (state.thread_index() == 0) {
      std::array<T, 64> batch;
      std::uint64_t total = 0;
      std::uint64_t sum = 0;
      std::uint64_t behind = 0;
      for (auto _ : state) {
        behind += static_cast<std::uint64_t>(producers);
        // Takes whole batches while more values will come, and the remaining values at the end.
        while (behind >=
               (total + behind < static_cast<std::uint64_t>(producers) * state.max_iterations ? batch.size() : 1)) {
          const std::size_t count = queue.pop_some(std::span(batch).first(std::min<std::size_t>(batch.size(), behind)));
          if (count == 0) {
            back_off();
          }
          for (std::size_t i = 0; i < count; ++i) {
            sum += bench::number_of(batch[i]);
          }
          total += count;
          behind -= count;
        }
      }
      const auto each = static_cast<std::uint64_t>(state.iterations());
      const std::uint64_t rest = each % bench::kItems;
      const std::uint64_t laps = each / bench::kItems * (bench::kItems * (bench::kItems - 1) / 2);
      if (sum != static_cast<std::uint64_t>(producers) * (laps + (rest == 0 ? 0 : rest * (rest - 1) / 2))) {
        bench::fail("items are lost or doubled");
      }
      state.SetItemsProcessed(static_cast<std::int64_t>(total));
      return;
    }
    typename Queue::Producer producer(queue);
    std::uint64_t index = 0;
    for (auto _ : state) {
      while (!producer.push(bench::items<T>()[index % bench::kItems])) {
        back_off();
      }
      ++index;
    }
  });
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const std::size_t capacity : {1024u, 4096u, 32768u, 65536u}) {
    each<Small>([&](const char* who, auto queue) {
      using Queue = Alone<typename decltype(queue)::type, Small>;
      bench::row(std::string("MpscQueue_1P1C/").append(std::to_string(capacity)))
          .run(who, bench::pairs<Queue, Small>(capacity));
    });
  }
  each<Small>([](const char* who, auto queue) {
    using Queue = typename decltype(queue)::type;
    against_a_flood<Queue>(bench::row("MpscQueue_2P1C"), who);
  });
  each<Wide>([](const char* who, auto queue) {
    using Queue = typename decltype(queue)::type;
    fan_in<Queue, Wide>(bench::row("MpscQueue_1P1C/1024 (honest)"), who, 1, 1024);
    fan_in<Queue, Wide>(bench::row("MpscQueue_2P1C (honest)"), who, 2, 1024);
    fan_in<Queue, Wide>(bench::row("MpscQueue_4P1C (honest)"), who, 4, 1024);
  });
  each<Small>([](const char* who, auto queue) {
    using Queue = typename decltype(queue)::type;
    fan_in<Queue, Small>(bench::row("MpscQueue_2P1C/8 B (honest)"), who, 2, 1024);
    using One = Alone<Queue, Small>;
    if (std::string_view(who) != "moodycamel") {  // moodycamel does not refuse a value for lack of room alone
      bench::row("MpscQueue_Backpressure").run(who, bench::refused<One, Small>(64));
    }
  });
  for (const char* name : {"MpscQueue_2P1C (honest)", "MpscQueue_4P1C (honest)", "MpscQueue_2P1C/8 B (honest)"}) {
    bench::row(name).bar("vyukov_model", 3);
  }
  return true;
}();

}  // namespace
