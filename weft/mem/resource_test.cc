// SPDX-License-Identifier: MIT
#include "weft/mem/resource.h"

#include <list>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weft::mem {
namespace {

Slab make_slab(SlabOptions options) { return Slab::make(options).value(); }

TEST(SlabResource, ServesNodesAndSendsTheRestUpstream) {
  Slab slab = make_slab({.block_size = 64, .blocks_max = 1000});
  SlabResource resource(slab, std::pmr::new_delete_resource());
  {
    std::pmr::set<int> numbers(&resource);
    for (int i = 0; i < 500; ++i) {
      numbers.insert(i);
    }
    EXPECT_EQ(slab.live_count(), 500u);
    void* const large = resource.allocate(65);
    void* const wide = resource.allocate(64, 64);
    EXPECT_EQ(slab.live_count(), 500u);
    resource.deallocate(large, 65);
    resource.deallocate(wide, 64, 64);
  }
  EXPECT_EQ(slab.live_count(), 0u);
}

TEST(SlabResource, SaysByExceptionThatTheBoundIsReached) {
  Slab slab = make_slab({.block_size = 64, .blocks_max = 1});
  SlabResource resource(slab);
  void* const block = resource.allocate(64);
  EXPECT_THROW((void)resource.allocate(64), std::bad_alloc);
  EXPECT_THROW((void)resource.allocate(65), std::bad_alloc);
  resource.deallocate(block, 64);
}

TEST(BumpResource, FeedsAContainerUntilTheRegionIsFull) {
  Bump bump = Bump::make(4096).value();
  BumpResource resource(bump);
  {
    std::pmr::vector<int> numbers(&resource);
    numbers.reserve(100);
    EXPECT_TRUE(bump.owns(numbers.data()));
    EXPECT_THROW(numbers.reserve(4096), std::bad_alloc);
  }
  bump.reset();
  EXPECT_EQ(bump.used(), 0u);
}

TEST(ArenaResource, FeedsContainersOfOneRequest) {
  Arena arena({.block_size = 256});
  ArenaResource resource(arena);
  for (int round = 0; round < 3; ++round) {
    {
      std::pmr::list<std::pmr::string> lines(&resource);
      for (int i = 0; i < 50; ++i) {
        lines.emplace_back(std::string(100, 'x'));
        EXPECT_TRUE(arena.owns(lines.back().data()));
      }
    }
    arena.reset();
  }
}

TEST(PoolResource, MayGiveBackOnAnotherThreadWhateverTheAlignment) {
  PoolResource resource;
  PoolResource another;
  EXPECT_EQ(resource, another);
  EXPECT_NE(resource, *std::pmr::new_delete_resource());
  for (const std::size_t alignment : {1u, 16u, 64u, 4096u}) {
    void* const block = resource.allocate(100, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
    std::thread([&] { another.deallocate(block, 100, alignment); }).join();
  }
}

}  // namespace
}  // namespace weft::mem
