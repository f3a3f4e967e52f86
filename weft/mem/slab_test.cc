// SPDX-License-Identifier: MIT
#include "weft/mem/slab.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace weft::mem {
namespace {

Slab make_slab(SlabOptions options) { return Slab::make(options).value(); }
Slab make_refusing(std::size_t block_size, std::size_t first_blocks = 4) {
  return make_slab({.block_size = block_size, .first_blocks = first_blocks, .misuse = Misuse::refuse});
}

TEST(Slab, RefusesSizesAlignmentsAndBoundsThatMakeNoSense) {
  EXPECT_EQ(Slab::make({.block_size = 0}).error(), Errc::invalid_argument);
  EXPECT_EQ(Slab::make({.block_size = std::numeric_limits<std::size_t>::max()}).error(), Errc::invalid_argument);
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{48}, Slab::kAlignmentMax * 2}) {
    EXPECT_EQ(Slab::make({.block_size = 64, .alignment = alignment}).error(), Errc::invalid_argument) << alignment;
  }
  EXPECT_EQ(Slab::make({.block_size = 64, .blocks_max = 0}).error(), Errc::invalid_argument);
  EXPECT_EQ(Slab::make({.block_size = 64, .blocks_max = Slab::kBlocksMax + 1}).error(), Errc::invalid_argument);
}

TEST(Slab, GivesBlocksThatAreAlignedAndDoNotOverlapForAnySize) {
  for (const std::size_t size : {1u, 2u, 3u, 7u, 8u, 24u, 63u, 64u, 100u, 1000u, 4097u}) {
    for (const std::size_t alignment : {1u, 2u, 8u, 16u, 64u, 256u, 4096u}) {
      Slab slab = make_slab({.block_size = size, .alignment = alignment, .first_blocks = 3});
      std::vector<unsigned char*> blocks;
      for (int i = 0; i < 50; ++i) {
        auto* block = static_cast<unsigned char*>(slab.allocate());
        ASSERT_NE(block, nullptr);
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u) << size << " at " << alignment;
        std::memset(block, i, size);
        blocks.push_back(block);
      }
      for (int i = 0; i < 50; ++i) {
        ASSERT_EQ(blocks[i][0], i);
        ASSERT_EQ(blocks[i][size - 1], i);
        ASSERT_TRUE(slab.deallocate(blocks[i]));
      }
      EXPECT_EQ(slab.live_count(), 0u);
    }
  }
}

TEST(Slab, TheBlockThatWasGivenBackLastIsTheNextOneOut) {
  Slab slab = make_slab({.block_size = 64});
  void* const first = slab.allocate();
  void* const second = slab.allocate();
  slab.deallocate(first);
  slab.deallocate(second);
  EXPECT_EQ(slab.allocate(), second);
  EXPECT_EQ(slab.allocate(), first);
}

TEST(Slab, RefusesBeyondItsBoundAndGoesOnWhenABlockIsBack) {
  for (const std::size_t bound : {1u, 5u, 64u, 100u}) {
    Slab slab = make_slab({.block_size = 40, .blocks_max = bound, .first_blocks = 2});
    std::vector<void*> blocks;
    while (void* block = slab.allocate()) {
      blocks.push_back(block);
    }
    EXPECT_EQ(blocks.size(), bound);
    EXPECT_EQ(slab.capacity(), bound);
    EXPECT_EQ(slab.allocate(), nullptr);
    EXPECT_TRUE(slab.deallocate(blocks[bound / 2]));
    EXPECT_EQ(slab.allocate(), blocks[bound / 2]);
    EXPECT_EQ(slab.live_count(), bound);
  }
}

TEST(Slab, TakesNoMemoryBeforeItsFirstBlockAndRefusesWhatCannotBeHad) {
  Slab slab =
      make_slab({.block_size = Slab::kBlockSizeMax, .blocks_max = Slab::kBlocksMax, .first_blocks = Slab::kBlocksMax});
  EXPECT_EQ(slab.capacity(), 0u);
  EXPECT_EQ(slab.allocate(), nullptr);
}

TEST(Slab, KeepsItsBlocksWhenItGrows) {
  Slab slab = make_slab({.block_size = sizeof(int), .alignment = alignof(int), .first_blocks = 1});
  std::vector<int*> numbers;
  for (int i = 0; i < 5000; ++i) {
    auto* const number = static_cast<int*>(slab.allocate());
    ASSERT_NE(number, nullptr);
    *number = i;
    numbers.push_back(number);
  }
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(*numbers[i], i);
    EXPECT_TRUE(slab.owns(numbers[i]));
  }
}

TEST(Slab, RefusesADoubleFree) {
  Slab slab = make_refusing(64);
  void* const block = slab.allocate();
  EXPECT_TRUE(slab.deallocate(block));
  EXPECT_FALSE(slab.deallocate(block));
  EXPECT_EQ(slab.live_count(), 0u);
  EXPECT_EQ(slab.allocate(), block);
  EXPECT_NE(slab.allocate(), block);  // the stack had it once
}

// A slab that marks free blocks inside them mistakes a live block with the mark's bytes for a free one.
TEST(Slab, NothingThatABlockHoldsIsTakenForAMark) {
  Slab slab = make_refusing(64);
  auto* const block = static_cast<unsigned char*>(slab.allocate());
  std::memset(block, 0x5a, 64);
  slab.deallocate(block);
  ASSERT_EQ(slab.allocate(), block);
  std::array<unsigned char, 64> remains{};
  std::memcpy(remains.data(), block, 64);  // the bytes of a block that was freed
  for (const int filler : {-1, 0x00, 0xff, 0xfe, 0xdd, 0xfd, 0xef, 0xbe, 0xad, 0xde}) {
    if (filler < 0) {
      std::memcpy(block, remains.data(), 64);
    } else {
      std::memset(block, filler, 64);
    }
    EXPECT_TRUE(slab.owns(block));
    EXPECT_TRUE(slab.deallocate(block)) << filler;
    EXPECT_EQ(slab.live_count(), 0u);
    ASSERT_EQ(slab.allocate(), block);
  }
}

TEST(Slab, RefusesForeignAddressesAndTheMiddlesOfItsBlocks) {
  Slab slab = make_refusing(48, 2);
  Slab other = make_refusing(48, 2);
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 20; ++i) {  // several chunks
    blocks.push_back(static_cast<std::byte*>(slab.allocate()));
  }
  std::uint64_t local = 0;
  void* const theirs = other.allocate();
  EXPECT_FALSE(slab.deallocate(&local));
  EXPECT_FALSE(slab.deallocate(theirs));
  EXPECT_FALSE(slab.deallocate(reinterpret_cast<void*>(std::uintptr_t{1})));
  EXPECT_FALSE(slab.deallocate(reinterpret_cast<void*>(~std::uintptr_t{0})));
  for (std::byte* block : blocks) {
    for (const int offset : {1, 8, 16, 47}) {
      EXPECT_FALSE(slab.deallocate(block + offset));
      EXPECT_FALSE(slab.owns(block + offset));
    }
  }
  EXPECT_FALSE(slab.deallocate(blocks[0] - 48));
  EXPECT_EQ(slab.live_count(), 20u);
  for (std::byte* block : blocks) {
    EXPECT_TRUE(slab.deallocate(block));
  }
}

TEST(Slab, RefusesABlockThatItNeverHandedOut) {
  Slab slab = make_refusing(64, 8);
  auto* const first = static_cast<std::byte*>(slab.allocate());
  EXPECT_FALSE(slab.deallocate(first + 64));  // inside the chunk, but never handed out
}

TEST(Slab, AcceptsNull) {
  Slab slab = make_slab({.block_size = 8});
  EXPECT_TRUE(slab.deallocate(nullptr));
  EXPECT_EQ(slab.live_count(), 0u);
}

TEST(SlabDeathTest, NamesTheBugWhenItIsToldTo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Slab slab = make_slab({.block_size = 64, .misuse = Misuse::name_it});
  void* const block = slab.allocate();
  EXPECT_DEATH(slab.deallocate(static_cast<std::byte*>(block) + 1), "not a block of this slab");
  slab.deallocate(block);
  EXPECT_DEATH(slab.deallocate(block), "given back that is free already");
}

TEST(Slab, MovedFromRefusesEverything) {
  Slab slab = make_refusing(64);
  void* const block = slab.allocate();
  Slab moved = std::move(slab);
  EXPECT_EQ(slab.allocate(), nullptr);   // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  EXPECT_FALSE(slab.deallocate(block));  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(moved.deallocate(block));
  slab = std::move(moved);
  EXPECT_EQ(slab.allocate(), block);
}

#ifdef WEFT_HAVE_POISON
TEST(Slab, FreeBlocksArePoisonedForTheAddressSanitizer) {
  Slab slab = make_slab({.block_size = 64});
  auto* const block = static_cast<char*>(slab.allocate());
  EXPECT_EQ(__asan_region_is_poisoned(block, 64), nullptr);
  EXPECT_NE(__asan_region_is_poisoned(block + 64, 64), nullptr);  // never handed out
  slab.deallocate(block);
  EXPECT_EQ(__asan_region_is_poisoned(block, 64), block);
}
#endif

struct Counted {
  explicit Counted(int* count) : count_(count) { ++*count_; }
  ~Counted() { --*count_; }
  int* count_;
};
struct alignas(256) Wide {
  char byte = 1;
};
struct Thrower {
  Thrower() { throw std::runtime_error("no"); }
};

TEST(SlabOf, MakesAndDestroysObjectsAndRefusesBeyondItsBound) {
  int count = 0;
  SlabOf<Counted> slab(2, Misuse::refuse);
  Counted* const first = slab.make(&count);
  Counted* const second = slab.make(&count);
  EXPECT_EQ(slab.make(&count), nullptr);
  EXPECT_EQ(count, 2);
  EXPECT_TRUE(slab.destroy(first));
  EXPECT_FALSE(slab.destroy(first));  // no destructor runs
  EXPECT_EQ(count, 1);
  EXPECT_TRUE(slab.destroy(second));
  EXPECT_EQ(count, 0);
}

TEST(SlabOf, OfNoObjectsRefusesEach) {
  SlabOf<int> slab(0);
  EXPECT_EQ(slab.make(1), nullptr);
}

TEST(SlabOf, AHandleEndsItsObject) {
  int count = 0;
  SlabOf<Counted> slab(4);
  {
    const auto handle = slab.make_handle(&count);
    ASSERT_NE(handle, nullptr);
    EXPECT_EQ(count, 1);
  }
  EXPECT_EQ(count, 0);
  EXPECT_EQ(slab.live_count(), 0u);
}

TEST(SlabOf, EndsTheObjectsThatStillLive) {
  int count = 0;
  {
    SlabOf<Counted> slab(100);
    std::vector<Counted*> objects;
    for (int i = 0; i < 100; ++i) {
      objects.push_back(slab.make(&count));
    }
    for (int i = 0; i < 100; i += 3) {
      slab.destroy(objects[i]);
    }
    EXPECT_EQ(count, 66);
  }
  EXPECT_EQ(count, 0);
}

TEST(SlabOf, LosesNothingWhenAConstructorThrows) {
  SlabOf<Thrower> slab(1);
  EXPECT_THROW((void)slab.make(), std::runtime_error);
  EXPECT_THROW((void)slab.make(), std::runtime_error);
  EXPECT_EQ(slab.live_count(), 0u);
}

TEST(SlabOf, HonoursTheAlignmentOfItsType) {
  SlabOf<Wide> slab(10);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slab.make()) % 256, 0u);
  }
}

// A node that owns the next one of its slab.
struct Node {
  std::vector<int>* ended;
  int name;
  SlabOf<Node>* makes = nullptr;
  SlabOf<Node>::Handle next;

  Node(std::vector<int>& list, int number) : ended(&list), name(number) {}
  ~Node() {
    ended->push_back(name);
    if (makes != nullptr) {
      while (Node* const made = makes->make(*ended, 100)) {  // until the slab has grown twice, and is full
        EXPECT_NE(made, this) << "the block of an object whose destructor runs";
      }
    }
  }
};

TEST(SlabOf, ObjectsThatOwnOthersOfTheirSlabEndOnceWithIt) {
  for (const bool child_first : {false, true}) {
    std::vector<int> ended;
    {
      SlabOf<Node> slab(8, Misuse::refuse);
      Node* const a = slab.make(ended, 0);
      Node* const b = slab.make(ended, 1);
      Node* const c = slab.make(ended, 2);
      (child_first ? b : a)->next = SlabOf<Node>::Handle(child_first ? a : b, {&slab});
      (child_first ? c : b)->next = SlabOf<Node>::Handle(child_first ? b : c, {&slab});
      b->makes = child_first ? &slab : nullptr;  // refused while the slab ends
    }
    std::sort(ended.begin(), ended.end());
    EXPECT_EQ(ended, (std::vector<int>{0, 1, 2}));
  }
}

TEST(SlabOf, ABlockIsNeitherOwnedNorHandedOutWhileItsDestructorRuns) {
  std::vector<int> ended;
  SlabOf<Node> slab(3000, Misuse::refuse);
  Node* const root = slab.make(ended, 0);
  root->makes = &slab;
  root->next = SlabOf<Node>::Handle(root, {&slab});  // owns itself
  EXPECT_TRUE(slab.destroy(root));
  EXPECT_EQ(ended, std::vector<int>{0});
  EXPECT_EQ(slab.live_count(), 2999u);
  EXPECT_FALSE(slab.owns(root));
  EXPECT_FALSE(slab.destroy(root)) << "it is free";
  EXPECT_EQ(slab.make(ended, 1), root);
  EXPECT_EQ(slab.make(ended, 2), nullptr);
}

}  // namespace
}  // namespace weft::mem
