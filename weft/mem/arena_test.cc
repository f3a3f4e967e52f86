// SPDX-License-Identifier: MIT
#include "weft/mem/arena.h"

#include <chrono>
#include <coroutine>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/thread_time.h"
#include <gtest/gtest.h>

namespace weft::mem {
namespace {

constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max();

TEST(Arena, TakesNoMemoryBeforeTheFirstRequest) { EXPECT_EQ(Arena().held(), 0u); }

TEST(Arena, ChainsBlocksAndKeepsWhatIsInThem) {
  Arena arena({.block_size = 256});
  std::vector<unsigned char*> pieces;
  for (int i = 0; i < 200; ++i) {
    auto* const piece = static_cast<unsigned char*>(arena.allocate(40));
    ASSERT_NE(piece, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece) % alignof(std::max_align_t), 0u);
    std::memset(piece, i, 40);
    pieces.push_back(piece);
  }
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(pieces[i][0], i);
    EXPECT_EQ(pieces[i][39], i);
    EXPECT_TRUE(arena.owns(pieces[i]));
  }
  EXPECT_GE(arena.used(), 200u * 40);
  EXPECT_GE(arena.held(), arena.used());
}

TEST(Arena, ResetKeepsItsBlocksForTheNextRound) {
  Arena arena({.block_size = 256});
  const auto round = [&] {
    for (const std::size_t size : {100u, 1000u, 200u, 16u, 5000u, 230u, 90u}) {
      ASSERT_NE(arena.allocate(size), nullptr);
    }
  };
  round();
  const std::size_t held = arena.held();
  for (int i = 0; i < 10; ++i) {
    arena.reset();
    EXPECT_EQ(arena.used(), 0u);
    EXPECT_EQ(arena.held(), held);
    round();
    EXPECT_EQ(arena.held(), held) << "round " << i << " needed another block";
  }
}

TEST(Arena, ResetKeepsNoMoreThanItIsTold) {
  Arena arena({.block_size = 256, .kept_max = 600});
  for (int i = 0; i < 10; ++i) {
    (void)arena.allocate(200);
  }
  (void)arena.allocate(10'000);
  arena.reset();
  EXPECT_EQ(arena.held(), 2 * (256u + 16u)) << "two blocks with their headers";
}

TEST(Arena, ABlockHasRoomForAsMuchAsItsSizeSays) {
  Arena arena({.block_size = 256});
  (void)arena.allocate(1);
  arena.reset();
  const std::size_t held = arena.held();
  (void)arena.allocate(256);
  EXPECT_EQ(arena.held(), held) << "it was given a block of its own";
}

TEST(Arena, ServesAnAlignmentAndASizeAboveItsBlock) {
  Arena arena({.block_size = 256});
  for (const std::size_t alignment : {1u, 2u, 64u, 256u, 4096u, 65536u}) {
    for (const std::size_t size : {1u, 200u, 300u, 10'000u}) {
      void* const bytes = arena.allocate(size, alignment);
      ASSERT_NE(bytes, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes) % alignment, 0u);
      std::memset(bytes, 1, size);
    }
    arena.reset();
  }
}

TEST(Arena, ALargeRequestLeavesTheCurrentBlockItsRoom) {
  Arena arena({.block_size = 1024});
  auto* const first = static_cast<std::byte*>(arena.allocate(16));
  (void)arena.allocate(5000);
  EXPECT_EQ(arena.allocate(16), first + 16);
}

// Each large piece of a round like the one before gets the block of that one.
TEST(Arena, ARoundOfLargePiecesLikeTheOneBeforeTakesTheSameBlocks) {
  constexpr std::size_t kPieces = 300;
  const auto size_of = [](std::size_t piece) { return std::size_t{600} << (piece % 5); };
  Arena arena({.block_size = 512, .bytes_max = std::size_t{1} << 24, .kept_max = std::size_t{1} << 24});
  std::vector<void*> before;
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> pieces;
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      pieces.push_back(arena.allocate(size_of(piece)));
    }
    EXPECT_TRUE(round == 0 || pieces == before);
    before = pieces;
    arena.reset();
  }
}

// The processor time of a request does not depend on the number of spare blocks that do not fit.
TEST(Arena, ARequestDoesNotSearchAllSparesThatDoNotFit) {
  constexpr std::size_t kPieces = 30'000;
  constexpr Duration kBound = std::chrono::milliseconds(700);
  const auto allocate_all = [] {
    Arena arena({.block_size = 512, .bytes_max = std::size_t{1} << 32, .kept_max = std::size_t{1} << 32});
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      EXPECT_NE(arena.allocate(600), nullptr);
    }
    arena.reset();
    const Duration start = thread_time();
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      EXPECT_NE(arena.allocate(1300), nullptr);  // 9 * 10^8 blocks, if each request looked at all
    }
    return thread_time() - start;
  };
  EXPECT_LT(shortest_time(kBound, allocate_all), kBound);
}

TEST(Arena, HoldsNoMoreThanItsBound) {
  Arena arena({.block_size = 1024, .bytes_max = 10'000});
  int count = 0;
  while (arena.allocate(1000) != nullptr) {
    ++count;
  }
  EXPECT_EQ(count, 9);
  EXPECT_LE(arena.held(), 10'000u);
  EXPECT_EQ(arena.allocate(5000), nullptr);
  arena.reset();
  EXPECT_NE(arena.allocate(5000), nullptr) << "blocks kept for later stand in the way";
  EXPECT_LE(arena.held(), 10'000u);
}

TEST(Arena, RefusesWhatWouldWrapAroundAndAlignmentsThatAreNone) {
  Arena arena({.block_size = 256, .bytes_max = kHuge});
  for (const std::size_t size : {kHuge, kHuge - 15}) {
    EXPECT_EQ(arena.allocate(size), nullptr);
    EXPECT_EQ(arena.allocate(size, 64), nullptr);
  }
  for (const std::size_t alignment : {0u, 3u, 24u}) {
    EXPECT_EQ(arena.allocate(8, alignment), nullptr);
    EXPECT_EQ(arena.allocate(800, alignment), nullptr);
  }
  EXPECT_EQ(Arena({.bytes_max = 0}).allocate(1), nullptr);
  EXPECT_NE(Arena({.block_size = 4096, .bytes_max = 1000}).allocate(100), nullptr);
}

TEST(Arena, OfNoBytesIsAnAddressOfItsOwn) {
  Arena arena;
  void* const first = arena.allocate(0);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(arena.allocate(0), first);
}

TEST(Arena, MovedFromIsEmptyAndCanBeUsed) {
  Arena arena({.block_size = 512, .bytes_max = 5000});
  auto* const text = static_cast<char*>(arena.allocate(100));
  std::strcpy(text, "hello");
  Arena moved = std::move(arena);
  EXPECT_EQ(arena.used(), 0u);               // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  EXPECT_EQ(arena.held(), 0u);               // NOLINT(bugprone-use-after-move)
  EXPECT_FALSE(arena.owns(text));            // NOLINT(bugprone-use-after-move)
  EXPECT_NE(arena.allocate(100), nullptr);   // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(arena.allocate(5000), nullptr);  // NOLINT(bugprone-use-after-move): the same bound
  EXPECT_TRUE(moved.owns(text));
  EXPECT_STREQ(text, "hello");
  arena.reset();
  arena = std::move(moved);
  EXPECT_STREQ(text, "hello");
  EXPECT_NE(moved.allocate(10), nullptr);  // NOLINT(bugprone-use-after-move)
}

TEST(Arena, MakesObjects) {
  Arena arena;
  EXPECT_EQ(*arena.make_object<int>(7), 7);
}

// A handler like a server's: it waits in the middle while other handlers run.
struct Handler {
  // NOLINTBEGIN(readability-identifier-naming): the names that coroutines have
  struct promise_type {
    Handler get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  // NOLINTEND(readability-identifier-naming)
  std::coroutine_handle<promise_type> handle;
};

Handler handle_request(ArenaPool& pool, char letter, std::string& answer) {
  const ArenaPool::Lease arena = pool.lease();
  auto* const text = static_cast<char*>(arena->allocate(1000));
  std::memset(text, letter, 1000);
  co_await std::suspend_always{};
  auto* const more = static_cast<char*>(arena->allocate(3000));
  std::memset(more, letter, 3000);
  co_await std::suspend_always{};
  answer = std::string(text, 1000) + std::string(more, 3000);
}

TEST(ArenaPool, HandlersThatInterleaveKeepTheirMemoryApart) {
  ArenaPool pool(8, {.block_size = 2048});
  for (int round = 0; round < 3; ++round) {
    std::string answers[3];
    Handler first = handle_request(pool, 'a', answers[0]);
    Handler second = handle_request(pool, 'b', answers[1]);
    first.handle.resume();
    first.handle.resume();  // the handler ends, and its memory is free
    EXPECT_TRUE(first.handle.done());
    Handler third = handle_request(pool, 'c', answers[2]);  // gets the memory of the first
    second.handle.resume();
    third.handle.resume();
    third.handle.resume();
    second.handle.resume();
    EXPECT_EQ(answers[0], std::string(4000, 'a'));
    EXPECT_EQ(answers[1], std::string(4000, 'b'));
    EXPECT_EQ(answers[2], std::string(4000, 'c'));
    for (const Handler& handler : {first, second, third}) {
      handler.handle.destroy();
    }
  }
}

TEST(ArenaPool, AnEndedLeaseMakesRoomAndItsBlocksAreUsedAgain) {
  ArenaPool pool(2);
  ArenaPool::Lease first = pool.lease();
  ArenaPool::Lease second = pool.lease();
  EXPECT_FALSE(pool.lease());
  void* const bytes = second->allocate(100);
  second.release();
  EXPECT_FALSE(second);
  ArenaPool::Lease third = pool.lease();
  ASSERT_TRUE(third);
  EXPECT_EQ(third->allocate(100), bytes);
  second = std::move(third);
  EXPECT_FALSE(third);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(second->owns(bytes));
  first = std::move(second);  // ends the first lease
  EXPECT_TRUE(pool.lease());
}

#ifdef WEFT_HAVE_POISON
TEST(Arena, MemoryIsPoisonedForTheAddressSanitizerAfterAReset) {
  Arena arena({.block_size = 512});
  std::vector<void*> pieces;
  for (const std::size_t size : {400u, 400u, 2000u}) {
    pieces.push_back(arena.allocate(size));
  }
  for (void* piece : pieces) {
    EXPECT_EQ(__asan_region_is_poisoned(piece, 400), nullptr);
  }
  arena.reset();
  for (void* piece : pieces) {
    EXPECT_NE(__asan_region_is_poisoned(piece, 400), nullptr);
  }
}
#endif

}  // namespace
}  // namespace weft::mem
