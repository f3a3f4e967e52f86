// SPDX-License-Identifier: MIT
#include <array>
#include <memory>
#include <memory_resource>
#include <vector>

#include "bench/micro/heaps.h"
#include "bench/micro/micro.h"
#include "weft/base/random.h"
#include "weft/mem/pool.h"
#include "weft/mem/slab.h"

namespace weft::mem {
namespace {

constexpr std::size_t kSizes[] = {64, 256, 1024};
constexpr std::size_t kLive = 10'000;

// The published slab: a list through the free blocks, a mark in each block for free or used, and statistics. Its
// functions are called, not inlined.
class SeedSlab {
 public:
  SeedSlab(std::size_t size, std::size_t count) : memory_(std::make_unique<std::byte[]>(size * count)) {
    for (std::size_t i = count; i-- > 0;) {
      free_ = ::new (&memory_[i * size]) Node{free_, kFree, 0};
    }
  }
  [[gnu::noinline]] void* allocate() {
    Node* const node = free_;
    if (node == nullptr) {
      return nullptr;
    }
    free_ = node->next;
    node->mark = kLiveMark;
    ++allocated_;
    peak_ = allocated_ > peak_ ? allocated_ : peak_;
    return node;
  }
  [[gnu::noinline]] void deallocate(void* block) {
    auto* const node = static_cast<Node*>(block);
    if (node == nullptr || node->mark == kFree) {
      ++double_frees_;
      return;
    }
    *node = {free_, kFree, 0};
    free_ = node;
    --allocated_;
  }

 private:
  static constexpr std::uint32_t kFree = 0xfee1dead;
  static constexpr std::uint32_t kLiveMark = 0x11fe11fe;
  struct Node {
    Node* next;
    std::uint32_t mark;
    std::uint32_t unused;
  };
  std::unique_ptr<std::byte[]> memory_;
  Node* free_ = nullptr;
  std::size_t allocated_ = 0;
  std::size_t peak_ = 0;
  std::size_t double_frees_ = 0;
};

Slab make_slab(std::size_t size, std::size_t first_blocks) {
  return Slab::make({.block_size = size, .first_blocks = first_blocks}).value();
}

// Takes and gives back the same block.
template <typename Allocate, typename Deallocate>
void pairs(benchmark::State& state, Allocate allocate, Deallocate deallocate) {
  for (auto _ : state) {
    void* block = allocate();
    benchmark::DoNotOptimize(block);
    deallocate(block);
  }
}

// kLive blocks are live. Each step frees one of them at random, makes another and writes into its first and
// last byte. `size_of(i)`: the size of request i.
template <typename SizeOf, typename Allocate, typename Deallocate>
void churn(benchmark::State& state, SizeOf size_of, Allocate allocate, Deallocate deallocate) {
  constexpr std::size_t kSteps = 1 << 14;
  std::vector<std::uint32_t> victims(kSteps);
  std::vector<std::uint32_t> sizes(kSteps);
  Random random(1);
  for (std::size_t i = 0; i < kSteps; ++i) {
    victims[i] = static_cast<std::uint32_t>(random.next() % kLive);
    sizes[i] = static_cast<std::uint32_t>(size_of(random.next()));
  }
  struct Piece {
    void* at;
    std::size_t size;
  };
  const auto make = [&](std::size_t size) {
    auto* const block = static_cast<volatile char*>(allocate(size));
    block[0] = 1;
    block[size - 1] = 1;
    return Piece{const_cast<char*>(block), size};
  };
  std::vector<Piece> live(kLive);
  for (std::size_t i = 0; i < kLive; ++i) {
    live[i] = make(sizes[i % kSteps]);
  }
  {
    const bench::CountedPart counted;
    std::size_t step = 0;
    for (auto _ : state) {
      Piece& piece = live[victims[step]];
      deallocate(piece.at, piece.size);
      piece = make(sizes[step]);
      step = (step + 1) % kSteps;
    }
  }
  for (const Piece& piece : live) {
    deallocate(piece.at, piece.size);
  }
}

void add_slab_rows(std::size_t size) {
  const std::string name = "SlabAllocator_AllocDealloc/" + std::to_string(size);
  auto row = bench::row(name);
  row.run("weft", [size](benchmark::State& state) {
    Slab slab = make_slab(size, 1024);
    pairs(state, [&] { return slab.allocate(); }, [&](void* block) { slab.deallocate(block); });
  });
  row.run("published_model", [size](benchmark::State& state) {
    SeedSlab slab(size, 1024);
    pairs(state, [&] { return slab.allocate(); }, [&](void* block) { slab.deallocate(block); });
  });
  for (const bench::Heap& heap : bench::heaps()) {
    row.run(heap.name, [size, &heap](benchmark::State& state) {
      pairs(state, [&] { return heap.allocate(size); }, heap.deallocate);
    });
  }
  row.run("pmr_pool", [size](benchmark::State& state) {
    std::pmr::unsynchronized_pool_resource pool;
    pairs(state, [&] { return pool.allocate(size); }, [&](void* block) { pool.deallocate(block, size); });
  });
  row.bar("glibc", 2.5);

  auto twin = bench::row(name + " (honest)");
  const auto always = [size](std::uint64_t /*random*/) { return size; };
  twin.run("weft", [=](benchmark::State& state) {
    Slab slab = make_slab(size, kLive);
    churn(
        state, always, [&](std::size_t) { return slab.allocate(); },
        [&](void* block, std::size_t) { slab.deallocate(block); });
  });
  twin.run("weft_growing", [=](benchmark::State& state) {
    Slab slab = make_slab(size, 64);
    churn(
        state, always, [&](std::size_t) { return slab.allocate(); },
        [&](void* block, std::size_t) { slab.deallocate(block); });
  });
  twin.run("published_model", [=](benchmark::State& state) {
    SeedSlab slab(size, kLive);
    churn(
        state, always, [&](std::size_t) { return slab.allocate(); },
        [&](void* block, std::size_t) { slab.deallocate(block); });
  });
  for (const bench::Heap& heap : bench::heaps()) {
    twin.run(heap.name, [=, &heap](benchmark::State& state) {
      churn(state, always, heap.allocate, [&](void* block, std::size_t) { heap.deallocate(block); });
    });
  }
  twin.run("pmr_pool", [=](benchmark::State& state) {
    std::pmr::unsynchronized_pool_resource pool;
    churn(
        state, always, [&](std::size_t) { return pool.allocate(size); },
        [&](void* block, std::size_t) { pool.deallocate(block, size); });
  });
}

// Any size: Weft's allocator here is the pool.
void add_malloc_rows(std::size_t size) {
  const std::string name = "Malloc_AllocFree/" + std::to_string(size);
  auto row = bench::row(name);
  auto twin = bench::row(name + " (honest)");  // sizes from 16 up to `size`
  const auto up_to = [size](std::uint64_t random) { return 16 + random % (size - 15); };
  row.run("weft",
          [size](benchmark::State& state) { pairs(state, [size] { return pool_allocate(size); }, pool_deallocate); });
  twin.run("weft", [=](benchmark::State& state) {
    churn(state, up_to, pool_allocate, [](void* block, std::size_t) { pool_deallocate(block); });
  });
  for (const bench::Heap& heap : bench::heaps()) {
    row.run(heap.name, [size, &heap](benchmark::State& state) {
      pairs(state, [&] { return heap.allocate(size); }, heap.deallocate);
    });
    twin.run(heap.name, [=, &heap](benchmark::State& state) {
      churn(state, up_to, heap.allocate, [&](void* block, std::size_t) { heap.deallocate(block); });
    });
  }
}

// The published row clears 256 bytes and shares them; the twin is one owner of one object.
using Object = std::array<char, 256>;

void add_shared_rows() {
  auto row = bench::row("MakeShared_AllocDealloc");
  row.run("weft", [](benchmark::State& state) {
    SlabOf<Object> slab(1024);
    for (auto _ : state) {
      auto object = slab.make_handle(Object{});
      benchmark::DoNotOptimize(object.get());
    }
  });
  row.run("make_shared", [](benchmark::State& state) {
    for (auto _ : state) {
      auto object = std::make_shared<Object>();
      benchmark::DoNotOptimize(object.get());
    }
  });
  row.run("make_unique", [](benchmark::State& state) {
    for (auto _ : state) {
      auto object = std::make_unique<Object>();
      benchmark::DoNotOptimize(object.get());
    }
  });
  row.run("pmr_pool", [](benchmark::State& state) {
    std::pmr::unsynchronized_pool_resource pool;
    for (auto _ : state) {
      auto object = std::allocate_shared<Object>(std::pmr::polymorphic_allocator<Object>(&pool));
      benchmark::DoNotOptimize(object.get());
    }
  });
}

const bool kRegistered = [] {
  for (const std::size_t size : kSizes) {
    add_slab_rows(size);
    add_malloc_rows(size);
  }
  add_shared_rows();
  return true;
}();

}  // namespace
}  // namespace weft::mem
