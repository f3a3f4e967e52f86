// SPDX-License-Identifier: MIT
// Each allocator beside a model: the set of live pieces, by address, with the content written into each.
#include <rapidcheck.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "weft/mem/arena.h"
#include "weft/mem/bump.h"
#include "weft/mem/pool.h"
#include "weft/mem/slab.h"
#include <gtest/gtest.h>

namespace weft::mem {
namespace {

// Every run has the same cases; another RC_PARAMS chooses others.
[[maybe_unused]] const int kSeeded = setenv("RC_PARAMS", "seed=5", 0);

void require(bool holds) { RC_ASSERT(holds); }

// The live pieces: no two overlap, and each keeps its content.
class Live {
 public:
  void add(void* at, std::size_t size, std::size_t alignment) {
    auto* const begin = static_cast<unsigned char*>(at);
    RC_ASSERT(reinterpret_cast<std::uintptr_t>(begin) % alignment == 0U);
    const auto after = pieces_.lower_bound(begin);
    require(after == pieces_.end() || begin + size <= after->first);
    if (after != pieces_.begin()) {
      const auto before = std::prev(after);
      require(before->first + before->second.size <= begin);
    }
    const auto mark = static_cast<unsigned char>(++marks_);
    std::memset(begin, mark, size);
    pieces_.emplace(begin, Piece{size, mark});
  }
  void* remove(std::size_t which) {
    const auto piece = std::next(pieces_.begin(), static_cast<std::ptrdiff_t>(which % pieces_.size()));
    unsigned char* const begin = piece->first;
    check(*piece);
    pieces_.erase(piece);
    return begin;
  }
  void clear() {
    for (const auto& piece : pieces_) {
      check(piece);
    }
    pieces_.clear();
  }
  [[nodiscard]] std::size_t count() const { return pieces_.size(); }

 private:
  struct Piece {
    std::size_t size;
    unsigned char mark;
  };
  static void check(const std::pair<unsigned char* const, Piece>& piece) {
    for (std::size_t i = 0; i < piece.second.size; ++i) {
      require(piece.first[i] == piece.second.mark);
    }
  }
  std::map<unsigned char*, Piece> pieces_;
  unsigned marks_ = 0;
};

// A step: 0 gives a piece back, other numbers request one.
std::vector<unsigned> any_steps() { return *rc::gen::container<std::vector<unsigned>>(rc::gen::inRange(0U, 1U << 20)); }
std::size_t any_alignment() { return std::size_t{1} << *rc::gen::inRange(0, 9); }

TEST(SlabProperty, BehavesAsASetOfLiveBlocks) {
  EXPECT_TRUE(rc::check([] {
    const SlabOptions options{.block_size = *rc::gen::inRange<std::size_t>(1, 300),
                              .alignment = any_alignment(),
                              .blocks_max = *rc::gen::inRange<std::size_t>(1, 60),
                              .first_blocks = *rc::gen::inRange<std::size_t>(0, 10),
                              .misuse = Misuse::refuse};
    Slab slab = Slab::make(options).value();
    Live live;
    std::vector<void*> freed;
    for (const unsigned step : any_steps()) {
      if (step % 3 == 0 && live.count() != 0) {
        freed.push_back(live.remove(step / 3));
        RC_ASSERT(slab.deallocate(freed.back()));
        RC_ASSERT_FALSE(slab.deallocate(freed.back()));
      } else if (step % 3 == 1 && !freed.empty()) {
        void* const wrong = static_cast<char*>(freed[step / 3 % freed.size()]) + step % options.block_size;
        const bool owned = slab.owns(wrong);
        require(owned || !slab.deallocate(wrong));
      } else {
        void* const block = slab.allocate();
        require((block == nullptr) == (live.count() == options.blocks_max));
        if (block != nullptr) {
          live.add(block, options.block_size, options.alignment);
        }
      }
      RC_ASSERT(slab.live_count() == live.count());
    }
    std::size_t seen = 0;
    slab.for_each_live([&](void*) { ++seen; });
    RC_ASSERT(seen == live.count());
    live.clear();
  }));
}

TEST(BumpProperty, GivesPiecesThatDoNotOverlapUntilTheRegionIsFull) {
  EXPECT_TRUE(rc::check([] {
    Bump bump = Bump::make(*rc::gen::inRange<std::size_t>(1, 5000)).value();
    Live live;
    for (const unsigned step : any_steps()) {
      if (step % 50 == 0) {
        live.clear();
        bump.reset();
        RC_ASSERT(bump.used() == 0U);
        continue;
      }
      const std::size_t size = step % 200 + 1;
      const std::size_t alignment = std::size_t{1} << (step / 200 % 9);
      const std::size_t left = bump.capacity() - bump.used();
      void* const piece = bump.allocate(size, alignment);
      require(piece != nullptr || left < size + alignment - 1);
      if (piece != nullptr) {
        RC_ASSERT(bump.owns(piece));
        live.add(piece, size, alignment);
      }
    }
    live.clear();
  }));
}

TEST(ArenaProperty, GivesPiecesThatDoNotOverlapWithinItsBound) {
  EXPECT_TRUE(rc::check([] {
    Arena arena({.block_size = *rc::gen::inRange<std::size_t>(1, 1000),
                 .bytes_max = *rc::gen::inRange<std::size_t>(0, 20'000),
                 .kept_max = *rc::gen::inRange<std::size_t>(0, 20'000)});
    Live live;
    for (const unsigned step : any_steps()) {
      if (step % 20 == 0) {
        live.clear();
        arena.reset();
        RC_ASSERT(arena.used() == 0U);
        RC_ASSERT(arena.held() <= arena.options().kept_max);
        continue;
      }
      const std::size_t size = step % 7 == 0 ? step % 3000 + 1 : step % 200 + 1;
      const std::size_t alignment = std::size_t{1} << (step / 3000 % 9);
      if (void* const piece = arena.allocate(size, alignment); piece != nullptr) {
        RC_ASSERT(arena.owns(piece));
        live.add(piece, size, alignment);
      }
      RC_ASSERT(arena.held() <= arena.options().bytes_max);
      RC_ASSERT(arena.used() <= arena.held());
    }
    live.clear();
  }));
}

TEST(PoolProperty, GivesMemoryThatDoesNotOverlap) {
  EXPECT_TRUE(rc::check([] {
    Live live;
    for (const unsigned step : any_steps()) {
      if (step % 2 == 0 && live.count() != 0) {
        pool_deallocate(live.remove(step / 2));
      } else {
        const std::size_t size = step % 1000 + 1;
        void* const block = pool_allocate(size);
        require(block != nullptr);
        live.add(block, size, alignof(std::max_align_t));
      }
    }
    while (live.count() != 0) {
      pool_deallocate(live.remove(0));
    }
  }));
}

}  // namespace
}  // namespace weft::mem
