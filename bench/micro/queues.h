// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "bench/cell.h"
#include "bench/micro/micro.h"
#include "weft/sys/clock.h"
#include "weft/sys/cpu.h"

// Shared by the rows about queues.
namespace bench {

struct Wide {  // the 64 bytes of the reports
  std::uint64_t number;
  std::uint64_t rest[7];
};
inline std::uint64_t number_of(std::uint64_t item) { return item; }
inline std::uint64_t number_of(const Wide& item) { return item.number; }

// Item i is items()[i % kItems]: read from memory that no thread wrote recently, and checked at the other end.
inline constexpr std::size_t kItems = 64;
template <typename T>
const std::array<T, kItems>& items() {
  static const std::array<T, kItems> all = [] {
    std::array<T, kItems> made{};
    for (std::size_t i = 0; i < kItems; ++i) {
      reinterpret_cast<std::uint64_t&>(made[i]) = i;
    }
    return made;
  }();
  return all;
}

// BackOff: a thread that finds a queue full or empty pauses for about 100 ns, and yields every 32nd time.
class BackOff {
 public:
  void operator()() {
    const std::uint64_t end = weft::sys::ticks() + tenth_;
    while (weft::sys::ticks() < end) {
      weft::sys::pause();
    }
    if (++times_ % 32 == 0) {
      weft::sys::yield();
    }
  }

 private:
  std::uint64_t tenth_ = weft::sys::ticks_per_us() / 10;
  unsigned times_ = 0;
};

// Makes its queue when its row runs.
template <typename Queue>
class Lazy {
 public:
  explicit Lazy(std::size_t capacity) : capacity_(capacity) {}
  Queue& get() {
    std::call_once(once_, [&] { queue_ = std::make_unique<Queue>(capacity_); });
    return *queue_;
  }

 private:
  std::size_t capacity_;
  std::once_flag once_;
  std::unique_ptr<Queue> queue_;
};

inline void check_item(std::uint64_t seen, std::uint64_t index) {
  if (seen != index % kItems) [[unlikely]] {
    fail("an item is lost or out of order");
  }
}

// One thread: push and pop in turns; a pair is one item.
template <typename Queue, typename T>
Body pairs(std::size_t capacity) {
  return [lazy = std::make_shared<Lazy<Queue>>(capacity)](benchmark::State& state) {
    Queue& queue = lazy->get();
    std::uint64_t index = 0;
    for (auto _ : state) {
      T item{};
      benchmark::DoNotOptimize(queue.push(items<T>()[index % kItems]));
      benchmark::DoNotOptimize(queue.pop(item));
      benchmark::DoNotOptimize(item);
      ++index;
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(index));
  };
}

// One thread: pushes that a full queue refuses.
template <typename Queue, typename T>
Body refused(std::size_t capacity) {
  return [lazy = std::make_shared<Lazy<Queue>>(capacity)](benchmark::State& state) {
    Queue& queue = lazy->get();
    while (queue.push(items<T>()[0])) {
    }
    for (auto _ : state) {
      benchmark::DoNotOptimize(queue.push(items<T>()[0]));
    }
  };
}

// Two threads, one item an iteration, which is counted when it has arrived.
template <typename Queue, typename T>
void stream(RowBuilder row, std::string_view name, std::size_t capacity) {
  auto lazy = std::make_shared<Lazy<Queue>>(capacity);
  row.run_two(
      name,
      [lazy](benchmark::State& state) {
        Queue& queue = lazy->get();
        BackOff back_off;
        std::uint64_t index = 0;
        for (auto _ : state) {
          T item;
          while (!queue.pop(item)) {
            back_off();
          }
          benchmark::DoNotOptimize(item);
          check_item(number_of(item), index++);
        }
        state.SetItemsProcessed(static_cast<std::int64_t>(index));
      },
      [lazy](benchmark::State& state) {
        Queue& queue = lazy->get();
        BackOff back_off;
        std::uint64_t index = 0;
        for (auto _ : state) {
          while (!queue.push(items<T>()[index % kItems])) {
            back_off();
          }
          ++index;
        }
      });
}

}  // namespace bench
