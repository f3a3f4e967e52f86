// SPDX-License-Identifier: MIT
// The published SpscQueue rows are one thread that pushes and pops in turns, so that neither capacity nor
// another core matters; its "latency" is the same loop. The honest twins are two threads.
// SpscQueue_ConcurrentThroughput counted the values pushed; here it counts the values that arrived.
#include <cstring>
#include <span>

#include "bench/micro/queues.h"
#include "weft/sync/spsc_ring.h"
#if __has_include(<boost/lockfree/spsc_queue.hpp>)
#include <boost/lockfree/spsc_queue.hpp>
#define WEFT_RIVAL_boost_spsc
#endif
#if __has_include(<readerwriterqueue/readerwriterqueue.h>)
#include <readerwriterqueue/readerwriterqueue.h>
#define WEFT_RIVAL_moodycamel_spsc
#endif

namespace {

using bench::BackOff;
using bench::Lazy;
using bench::Wide;
using Small = std::uint64_t;

template <typename T>
struct Ours {
  explicit Ours(std::size_t capacity) : ring(weft::sync::SpscRing<T>::make(capacity).value()) {}
  bool push(const T& item) { return ring.try_push(item); }
  bool pop(T& item) { return ring.try_pop(item); }
  std::size_t push_some(std::span<const T> from) { return ring.try_push_batch(from); }
  std::size_t pop_some(std::span<T> to) { return ring.try_pop_batch(to); }
  weft::sync::SpscRing<T> ring;
};

// The published design: no copy of the other side's counter, so that each operation reads the other core's
// line. Values come out in an optional.
template <typename T>
struct PublishedModel {
  explicit PublishedModel(std::size_t capacity) : slots(capacity), mask(capacity - 1) {}
  bool push(const T& item) {
    if (tail - consumed.load(std::memory_order_acquire) > mask) {
      return false;
    }
    slots[tail & mask] = item;
    published.store(++tail, std::memory_order_release);
    return true;
  }
  std::optional<T> take() {
    if (head == published.load(std::memory_order_acquire)) {
      return std::nullopt;
    }
    std::optional<T> item = slots[head & mask];
    consumed.store(++head, std::memory_order_release);
    return item;
  }
  bool pop(T& item) {
    const std::optional<T> taken = take();
    if (taken) {
      item = *taken;
    }
    return taken.has_value();
  }
  alignas(64) std::uint64_t tail = 0;
  alignas(64) std::uint64_t head = 0;
  alignas(64) std::atomic<std::uint64_t> published{0};
  alignas(64) std::atomic<std::uint64_t> consumed{0};
  std::vector<T> slots;
  std::uint64_t mask;
};

// The usual ring of Rigtorp's kind, which no package brings: each side keeps a copy of the other's counter, on a line
// of its own, and reads the counter itself only if the copy has no room or no item.
template <typename T>
struct RigtorpModel {
  explicit RigtorpModel(std::size_t capacity) : slots(capacity), mask(capacity - 1) {}
  bool push(const T& item) {
    const std::uint64_t place = tail.load(std::memory_order_relaxed);
    if (place - known_head > mask) {
      known_head = head.load(std::memory_order_acquire);
      if (place - known_head > mask) {
        return false;
      }
    }
    slots[place & mask] = item;
    tail.store(place + 1, std::memory_order_release);
    return true;
  }
  bool pop(T& item) {
    const std::uint64_t place = head.load(std::memory_order_relaxed);
    if (place == known_tail) {
      known_tail = tail.load(std::memory_order_acquire);
      if (place == known_tail) {
        return false;
      }
    }
    item = slots[place & mask];
    head.store(place + 1, std::memory_order_release);
    return true;
  }
  // It has no batches.
  std::size_t push_some(std::span<const T> from) { return push(from[0]) ? 1 : 0; }
  std::size_t pop_some(std::span<T> to) { return pop(to[0]) ? 1 : 0; }
  std::vector<T> slots;
  std::uint64_t mask;
  alignas(64) std::atomic<std::uint64_t> tail{0};
  alignas(64) std::uint64_t known_head = 0;
  alignas(64) std::atomic<std::uint64_t> head{0};
  alignas(64) std::uint64_t known_tail = 0;
};

#ifdef WEFT_RIVAL_boost_spsc
template <typename T>
struct Boost {
  explicit Boost(std::size_t capacity) : queue(capacity) {}
  bool push(const T& item) { return queue.push(item); }
  bool pop(T& item) { return queue.pop(item); }
  std::size_t push_some(std::span<const T> from) { return queue.push(from.data(), from.size()); }
  std::size_t pop_some(std::span<T> to) { return queue.pop(to.data(), to.size()); }
  boost::lockfree::spsc_queue<T> queue;
};
#endif
#ifdef WEFT_RIVAL_moodycamel_spsc
template <typename T>
struct Moodycamel {
  explicit Moodycamel(std::size_t capacity) : queue(capacity) {}
  bool push(const T& item) { return queue.try_enqueue(item); }
  bool pop(T& item) { return queue.try_dequeue(item); }
  // It has no batches.
  std::size_t push_some(std::span<const T> from) { return queue.try_enqueue(from[0]) ? 1 : 0; }
  std::size_t pop_some(std::span<T> to) { return queue.try_dequeue(to[0]) ? 1 : 0; }
  moodycamel::ReaderWriterQueue<T> queue;
};
#endif

// Calls run(name, Queue of T) for each contender.
template <typename T, typename Run>
void each(Run run) {
  run("weft", std::type_identity<Ours<T>>());
  run("rigtorp_model", std::type_identity<RigtorpModel<T>>());
#ifdef WEFT_RIVAL_boost_spsc
  run("boost", std::type_identity<Boost<T>>());
#endif
#ifdef WEFT_RIVAL_moodycamel_spsc
  run("moodycamel", std::type_identity<Moodycamel<T>>());
#endif
}
template <typename T, typename Run>
void each_and_published(Run run) {
  each<T>(run);
  run("published_model", std::type_identity<PublishedModel<T>>());
}

// Two threads, 64 items an iteration, in batches where a queue has them.
template <typename Queue, typename T>
void stream_batches(bench::RowBuilder row, const char* name, std::size_t capacity) {
  constexpr std::size_t kBatch = bench::kItems;
  auto lazy = std::make_shared<Lazy<Queue>>(capacity);
  row.run_two(
      name,
      [lazy](benchmark::State& state) {
        Queue& queue = lazy->get();
        BackOff back_off;
        std::array<T, kBatch> batch;
        std::uint64_t index = 0;
        for (auto _ : state) {
          for (std::size_t done = 0; done < kBatch;) {
            const std::size_t count = queue.pop_some(std::span(batch).subspan(done));
            if (count == 0) {
              back_off();
            }
            done += count;
          }
          if (std::memcmp(batch.data(), bench::items<T>().data(), sizeof batch) != 0) {
            bench::fail("an item is lost or out of order");
          }
          index += kBatch;
        }
        state.SetItemsProcessed(static_cast<std::int64_t>(index));
      },
      [lazy](benchmark::State& state) {
        Queue& queue = lazy->get();
        BackOff back_off;
        const std::span<const T> batch(bench::items<T>());
        for (auto _ : state) {
          for (std::size_t done = 0; done < kBatch;) {
            const std::size_t count = queue.push_some(batch.subspan(done));
            if (count == 0) {
              back_off();
            }
            done += count;
          }
        }
      });
}

// Two threads, there and back through two queues. A waiting thread polls all the time.
template <typename Queue>
void round_trips(bench::RowBuilder row, const char* name) {
  auto there = std::make_shared<Lazy<Queue>>(1024);
  auto back = std::make_shared<Lazy<Queue>>(1024);
  const auto wait_for = [](Queue& queue, Small& item) {
    for (unsigned looks = 1; !queue.pop(item); ++looks) {
      if (looks % 4096 == 0) {
        weft::sys::yield();
      }
    }
  };
  row.run_two(
      name,
      [there, back, wait_for](benchmark::State& state) {
        Small item = 0;
        for (auto _ : state) {
          benchmark::DoNotOptimize(there->get().push(item));
          wait_for(back->get(), item);
        }
        state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
      },
      [there, back, wait_for](benchmark::State& state) {
        Small item = 0;
        for (auto _ : state) {
          wait_for(there->get(), item);
          benchmark::DoNotOptimize(back->get().push(item + 1));
        }
      });
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const std::size_t capacity : {1024u, 4096u, 32768u, 65536u}) {
    const std::string name = std::string("SpscQueue_Throughput/").append(std::to_string(capacity));
    each_and_published<Small>([&](const char* who, auto queue) {
      bench::row(name).run(who, bench::pairs<typename decltype(queue)::type, Small>(capacity));
    });
    each_and_published<Wide>([&](const char* who, auto queue) {
      bench::stream<typename decltype(queue)::type, Wide>(bench::row(name + " (honest)"), who, capacity);
    });
    bench::row(name + " (honest)").bar("boost", 1.8, "near").bar("boost", 3, "far");
    bench::row(name + " (honest)").bar("moodycamel", 2.5, "near").bar("moodycamel", 3, "far");
  }
  each_and_published<Small>([](const char* who, auto queue) {
    using Queue = typename decltype(queue)::type;
    bench::row("SpscQueue_Latency").run(who, bench::pairs<Queue, Small>(1024));
    round_trips<Queue>(bench::row("SpscQueue_Latency (honest)"), who);
    bench::stream<Queue, Small>(bench::row("SpscQueue_ConcurrentThroughput"), who, 65536);
  });
  each<Small>([](const char* who, auto queue) {
    using Queue = typename decltype(queue)::type;
    stream_batches<Queue, Small>(bench::row("SpscQueue_Batches/8 B (honest)"), who, 1024);
  });
  each<Wide>([](const char* who, auto queue) {
    using Queue = typename decltype(queue)::type;
    stream_batches<Queue, Wide>(bench::row("SpscQueue_Batches/64 B (honest)"), who, 1024);
  });
  bench::row("SpscQueue_Batches/8 B (honest)").bar("moodycamel", 4);
  each_and_published<Small>([](const char* who, auto queue) {
    bench::row("SpscQueue_Backpressure").run(who, bench::refused<typename decltype(queue)::type, Small>(64));
  });
  return true;
}();

}  // namespace
