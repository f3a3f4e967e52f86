// SPDX-License-Identifier: MIT
#include <memory>
#include <memory_resource>
#include <random>
#include <vector>

#include "bench/micro/heaps.h"
#include "bench/micro/micro.h"
#include "weft/base/random.h"
#include "weft/mem/arena.h"
#include "weft/mem/bump.h"

namespace weft::mem {
namespace {

// Regions that allocate pieces and free all of them at once, under one interface.
class HeapRegion {  // a malloc and a free for each piece
 public:
  explicit HeapRegion(const bench::Heap& heap) : heap_(&heap) { pieces_.reserve(1024); }
  ~HeapRegion() { reset(); }
  void* allocate(std::size_t size) { return pieces_.emplace_back(heap_->allocate(size)); }
  void reset() {
    for (void* piece : pieces_) {
      heap_->deallocate(piece);
    }
    pieces_.clear();
  }

 private:
  const bench::Heap* heap_;
  std::vector<void*> pieces_;
};

class PmrRegion {  // over a buffer of this size, then from malloc
 public:
  explicit PmrRegion(std::size_t bytes)
      : buffer_(std::make_unique<std::byte[]>(bytes)), resource_(buffer_.get(), bytes) {}
  void* allocate(std::size_t size) { return resource_.allocate(size); }
  void reset() { resource_.release(); }

 private:
  std::unique_ptr<std::byte[]> buffer_;
  std::pmr::monotonic_buffer_resource resource_;
};

// The published arena: a vector of blocks; reset frees all but the first.
class SeedArena {
 public:
  explicit SeedArena(std::size_t block_size) : block_size_(block_size) { add(block_size); }
  SeedArena(const SeedArena&) = delete;
  SeedArena& operator=(const SeedArena&) = delete;
  ~SeedArena() {
    for (const Block& block : blocks_) {
      std::free(block.bytes);
    }
  }
  void* allocate(std::size_t size) {
    size = (size + 15) & ~std::size_t{15};
    if (blocks_.back().used + size > blocks_.back().size) {
      add(std::max(block_size_, size + 15));
    }
    Block& block = blocks_.back();
    void* const piece = block.bytes + block.used;
    block.used += size;
    return piece;
  }
  void reset() {
    while (blocks_.size() > 1) {
      std::free(blocks_.back().bytes);
      blocks_.pop_back();
    }
    blocks_.front().used = 0;
  }

 private:
  struct Block {
    std::byte* bytes;
    std::size_t size;
    std::size_t used;
  };
  void add(std::size_t size) { blocks_.push_back({static_cast<std::byte*>(std::malloc(size)), size, 0}); }

  std::size_t block_size_;
  std::vector<Block> blocks_;
};

Bump make_bump(std::size_t bytes) { return Bump::make(bytes).value(); }
Arena make_arena(std::size_t block_size) { return Arena({.block_size = block_size}); }

// One piece per iteration; all are freed after `count` of them. The twin writes into each piece.
template <bool kTouch, typename Region>
void pieces(benchmark::State& state, Region&& region, std::size_t size, std::size_t count) {
  std::size_t left = count;
  for (auto _ : state) {
    if (left-- == 0) {
      region.reset();
      left = count - 1;
    }
    void* piece = region.allocate(size);
    benchmark::DoNotOptimize(piece);
    if constexpr (kTouch) {
      static_cast<volatile char*>(piece)[0] = 1;
      static_cast<volatile char*>(piece)[size - 1] = 1;
    }
  }
}

// A request: `from` to `to` pieces of `smallest` to `largest` bytes, then freeing all.
struct Cycle {
  std::size_t from, to;
  std::size_t smallest, largest;
};

// As published: the loop draws the sizes while the clock runs, and that is most of the time.
template <typename Region>
void drawn_cycles(benchmark::State& state, Region&& region, const Cycle& cycle) {
  std::mt19937 random(42);  // NOLINT(bugprone-random-generator-seed): the same requests for every contender
  std::uniform_int_distribution<std::size_t> counts(cycle.from, cycle.to);
  std::uniform_int_distribution<std::size_t> sizes(cycle.smallest, cycle.largest);
  for (auto _ : state) {
    for (std::size_t left = counts(random); left > 0; --left) {
      void* piece = region.allocate(sizes(random));
      benchmark::DoNotOptimize(piece);
    }
    region.reset();
  }
}

// The sizes are drawn before the clock starts, and the loop writes into each piece.
template <typename Region>
void traced_cycles(benchmark::State& state, Region&& region, const Cycle& cycle) {
  constexpr std::size_t kRequests = 1024;
  std::vector<std::vector<std::size_t>> requests(kRequests);
  Random random(1);
  for (auto& sizes : requests) {
    sizes.resize(cycle.from + random.below(cycle.to - cycle.from + 1));
    for (std::size_t& size : sizes) {
      size = cycle.smallest + random.below(cycle.largest - cycle.smallest + 1);
    }
  }
  std::size_t request = 0;
  for (auto _ : state) {
    for (const std::size_t size : requests[request]) {
      auto* const piece = static_cast<volatile char*>(region.allocate(size));
      piece[0] = 1;
      piece[size - 1] = 1;
    }
    region.reset();
    request = (request + 1) % kRequests;
  }
}

// `run(state, region)` for each contender; `ours()` makes Weft's region.
template <typename Run, typename Ours>
void add_row(const std::string& name, std::size_t bytes, Ours ours, bool chained, Run run) {
  auto row = bench::row(name);
  row.run("weft", [=](benchmark::State& state) { run(state, ours()); });
  if (chained) {
    row.run("published_model", [=](benchmark::State& state) { run(state, SeedArena(bytes)); });
  }
  row.run("pmr_monotonic", [=](benchmark::State& state) { run(state, PmrRegion(bytes)); });
  for (const bench::Heap& heap : bench::heaps()) {
    row.run(heap.name, [=, &heap](benchmark::State& state) { run(state, HeapRegion(heap)); });
  }
}

void add_rows() {
  constexpr std::size_t kChained = 64;  // pieces a cycle, whatever the block
  for (const std::size_t size : {64, 256, 1024}) {
    const auto plain = [size](std::size_t count) {
      return [=](benchmark::State& state, auto&& region) { pieces<false>(state, region, size, count); };
    };
    const auto touched = [size](std::size_t count) {
      return [=](benchmark::State& state, auto&& region) { pieces<true>(state, region, size, count); };
    };
    for (const std::size_t bytes : {16'384, 65'536, 262'144}) {
      const std::string name = "BumpAllocator_Alloc/" + std::to_string(size) + "/" + std::to_string(bytes);
      const auto ours = [bytes] { return make_bump(bytes); };
      add_row(name, bytes, ours, false, plain(bytes / size));
      add_row(name + " (honest)", bytes, ours, false, touched(bytes / size));
    }
    for (const std::size_t bytes : {1024, 4096, 16'384}) {
      const std::string name = "ArenaAllocator_Alloc/" + std::to_string(size) + "/" + std::to_string(bytes);
      const auto ours = [bytes] { return make_arena(bytes); };
      add_row(name, bytes, ours, true, plain(bytes / size));  // as published, freed when the first block is full
      add_row(name + " (honest)", bytes, ours, true, touched(kChained));
    }
  }
  constexpr Cycle kRequest{3, 8, 32, 512};
  constexpr Cycle kTransaction{4, 12, 128, 2048};
  const auto drawn = [](const Cycle& cycle) {
    return [=](benchmark::State& state, auto&& region) { drawn_cycles(state, region, cycle); };
  };
  const auto traced = [](const Cycle& cycle) {
    return [=](benchmark::State& state, auto&& region) { traced_cycles(state, region, cycle); };
  };
  for (const std::size_t bytes : {16'384, 65'536, 262'144}) {
    const std::string name = "BumpAllocator_RequestCycle/" + std::to_string(bytes);
    const auto ours = [bytes] { return make_bump(bytes); };
    add_row(name, bytes, ours, false, drawn(kRequest));
    add_row(name + " (honest)", bytes, ours, false, traced(kRequest));
  }
  for (const std::size_t bytes : {1024, 4096, 16'384}) {
    const std::string name = "ArenaAllocator_TransactionCycle/" + std::to_string(bytes);
    const auto ours = [bytes] { return make_arena(bytes); };
    add_row(name, bytes, ours, true, drawn(kTransaction));
    add_row(name + " (honest)", bytes, ours, true, traced(kTransaction));
  }
}

const bool kRegistered = (add_rows(), true);

}  // namespace
}  // namespace weft::mem
