// SPDX-License-Identifier: MIT
#include <memory>
#include <thread>

#include "bench/micro/heaps.h"
#include "bench/micro/micro.h"
#include "weft/mem/pool.h"
#include "weft/sync/atomic.h"
#include "weft/sync/spsc_queue.h"

namespace weft::mem {
namespace {

// One thread allocates blocks and hands them to another, which frees them. At most kAhead are in between.
class Lane {
 public:
  void push(void* block) {
    *queue_.claim() = block;
    queue_.stage();
    queue_.publish();
    if ((++pushed_ & 63) == 0) {
      // Acquire pairs with the release in pop().
      while (pushed_ - popped_.load(std::memory_order_acquire) > kAhead) {
        std::this_thread::yield();
      }
    }
  }
  void* pop() {
    void** cell = queue_.front();
    for (int looks = 0; cell == nullptr; cell = queue_.front()) {
      if (++looks > 1000) {
        std::this_thread::yield();
      }
    }
    void* const block = *cell;
    queue_.pop();
    if ((++taken_ & 31) == 0) {
      popped_.store(taken_, std::memory_order_release);
    }
    return block;
  }

 private:
  static constexpr std::uint64_t kAhead = 512;
  sync::SpscQueue<void*> queue_;
  alignas(sync::kLineSize) std::uint64_t pushed_ = 0;
  alignas(sync::kLineSize) std::uint64_t taken_ = 0;
  alignas(sync::kLineSize) sync::Atomic<std::uint64_t> popped_{0};
};

// The twin writes into the block on one side and reads it on the other.
template <typename Allocate, typename Deallocate>
void add(bench::RowBuilder row, const std::string& name, bool touch, Allocate allocate, Deallocate deallocate) {
  auto lane = std::make_shared<Lane>();
  row.run_two(
      name,
      [=](benchmark::State& state) {
        for (auto _ : state) {
          void* block = allocate();
          if (touch) {
            *static_cast<volatile char*>(block) = 1;
          }
          lane->push(block);
        }
      },
      [=](benchmark::State& state) {
        for (auto _ : state) {
          void* block = lane->pop();
          if (touch) {
            benchmark::DoNotOptimize(*static_cast<volatile char*>(block));
          }
          deallocate(block);
        }
      });
}

void add_rows(std::size_t size, double bar_glibc) {
  for (const bool touch : {false, true}) {
    auto row = bench::row("Pool_AllocHereFreeThere/" + std::to_string(size) + (touch ? " (honest)" : ""));
    add(row, "weft", touch, [=] { return pool_allocate(size); }, pool_deallocate);
    for (const bench::Heap& heap : bench::heaps()) {
      add(row, heap.name, touch, [=, &heap] { return heap.allocate(size); }, heap.deallocate);
    }
    if (!touch && bar_glibc > 0) {
      row.bar("glibc", bar_glibc);
    }
  }
}

const bool kRegistered = (add_rows(64, 5), add_rows(256, 0), add_rows(1024, 30), true);

}  // namespace
}  // namespace weft::mem
