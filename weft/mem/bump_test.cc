// SPDX-License-Identifier: MIT
#include "weft/mem/bump.h"

#include <array>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

namespace weft::mem {
namespace {

constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max();

TEST(Bump, GivesWhatIsAlignedAndDoesNotOverlapUntilItIsFull) {
  Bump bump = Bump::make(1000).value();
  auto* const first = static_cast<std::byte*>(bump.allocate(10, 1));
  auto* const second = static_cast<std::byte*>(bump.allocate(10, 64));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) % 64, 0u);
  EXPECT_GE(second, first + 10);
  EXPECT_EQ(bump.allocate(1000), nullptr);
  std::size_t more = 0;
  while (bump.allocate(1, 1) != nullptr) {
    ++more;
  }
  EXPECT_EQ(bump.used(), bump.capacity());
  EXPECT_EQ(more, 1000u - static_cast<std::size_t>(second + 10 - first));
}

TEST(Bump, RefusesWhatWouldWrapAround) {
  Bump bump = Bump::make(1000).value();
  for (const std::size_t size : {kHuge, kHuge - 1, kHuge - 15, kHuge - 999, kHuge / 2}) {
    EXPECT_EQ(bump.allocate(size), nullptr);
    EXPECT_EQ(bump.allocate(size, 1), nullptr);
  }
  EXPECT_EQ(bump.allocate(1, std::size_t{1} << 63), nullptr);
  EXPECT_EQ(bump.used(), 0u);
}

TEST(Bump, RefusesAnAlignmentThatIsNoPowerOfTwo) {
  Bump bump = Bump::make(1000).value();
  for (const std::size_t alignment : {0u, 3u, 6u, 24u}) {
    EXPECT_EQ(bump.allocate(8, alignment), nullptr) << alignment;
  }
}

TEST(Bump, OfNoBytesIsAnAddressOfItsOwn) {
  Bump bump = Bump::make(100).value();
  void* const first = bump.allocate(0, 1);
  void* const second = bump.allocate(0, 1);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(first, second);
}

TEST(Bump, RefusesARegionOfNoBytesOrOfAllMemory) {
  EXPECT_EQ(Bump::make(0).error(), Errc::invalid_argument);
  Bump empty{std::span<std::byte>{}};
  EXPECT_EQ(empty.allocate(1), nullptr);
  EXPECT_EQ(empty.allocate(0), nullptr);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // a sanitizer's malloc ends the program
  EXPECT_EQ(Bump::make(kHuge / 2).error(), Errc::resource_exhausted);
#endif
}

TEST(Bump, ResetBeginsAgainInTheSamePlace) {
  std::array<std::byte, 256> region{};
  Bump bump(region);
  void* const first = bump.allocate(100);
  EXPECT_TRUE(bump.owns(first));
  bump.reset();
  EXPECT_FALSE(bump.owns(first));
  EXPECT_EQ(bump.allocate(100), first);
}

TEST(Bump, MovedFromHasNoRegion) {
  Bump bump = Bump::make(100).value();
  auto* const text = static_cast<char*>(bump.allocate(6, 1));
  std::memcpy(text, "hello", 6);
  Bump moved = std::move(bump);
  EXPECT_EQ(bump.allocate(1), nullptr);  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  bump.reset();                          // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(moved.owns(text));
  EXPECT_STREQ(text, "hello");
  bump = std::move(moved);
  EXPECT_STREQ(text, "hello");
}

struct Point {
  int x;
  int y;
};

TEST(Bump, MakesObjects) {
  Bump bump = Bump::make(64).value();
  const Point* const point = bump.make_object<Point>(3, 4);
  ASSERT_NE(point, nullptr);
  EXPECT_EQ(point->y, 4);
  EXPECT_EQ((bump.make_object<std::array<char, 100>>()), nullptr);
}

#ifdef WEFT_HAVE_POISON
TEST(Bump, FreeMemoryIsPoisonedForTheAddressSanitizer) {
  std::array<std::byte, 256> region{};
  {
    Bump bump(region);
    auto* const bytes = static_cast<std::byte*>(bump.allocate(64));
    EXPECT_EQ(__asan_region_is_poisoned(bytes, 64), nullptr);
    EXPECT_NE(__asan_region_is_poisoned(bytes + 64, 8), nullptr);
    bump.reset();
    EXPECT_NE(__asan_region_is_poisoned(bytes, 64), nullptr);
  }
  EXPECT_EQ(__asan_region_is_poisoned(region.data(), region.size()), nullptr);
}
#endif

}  // namespace
}  // namespace weft::mem
