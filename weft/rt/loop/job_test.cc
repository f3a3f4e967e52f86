// SPDX-License-Identifier: MIT
#include "weft/rt/loop/job.h"

#include <array>
#include <memory>
#include <stdexcept>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

// Counts its copies that are alive.
struct Counted {
  explicit Counted(int* of) : count(of) { ++*count; }
  Counted(Counted&& other) noexcept : count(other.count) { ++*count; }
  Counted(const Counted& other) : count(other.count) { ++*count; }
  Counted& operator=(const Counted&) = delete;
  Counted& operator=(Counted&&) = delete;
  ~Counted() { --*count; }
  int* count;
};

template <std::size_t kSize>
struct Padded {
  Counted counted;
  int* calls;
  std::array<char, kSize> padding{};
  void operator()() const { *calls += static_cast<int>(padding.size()); }
};

template <typename Closure>
void expect_one_life(std::size_t worth) {
  int alive = 0;
  int calls = 0;
  {
    Job first(Closure{Counted(&alive), &calls});
    ASSERT_TRUE(first);
    EXPECT_EQ(alive, 1);
    Job second(std::move(first));
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): the test checks the moved-from job
    Job third;
    third = std::move(second);
    EXPECT_EQ(alive, 1);
    third();
    EXPECT_EQ(calls, static_cast<int>(worth));
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Job, RunsAndDestroysClosuresOfEverySizeOnce) {
  expect_one_life<Padded<1>>(1);
  expect_one_life<Padded<32>>(32);
  expect_one_life<Padded<33>>(33);
  expect_one_life<Padded<4096>>(4096);
  expect_one_life<Padded<mem::Buffer::kPooledMax>>(mem::Buffer::kPooledMax);
}

TEST(Job, TakesAMoveOnlyClosure) {
  auto owned = std::make_unique<int>(7);
  int seen = 0;
  Job job([owned = std::move(owned), &seen] { seen = *owned; });
  Job moved(std::move(job));
  moved();
  EXPECT_EQ(seen, 7);
}

struct alignas(256) OverAligned {
  bool* aligned;
  void operator()() const { *aligned = reinterpret_cast<std::uintptr_t>(this) % 256 == 0; }
};

TEST(Job, KeepsTheAlignmentOfAnOverAlignedClosure) {
  bool aligned = false;
  Job job(OverAligned{&aligned});
  Job moved(std::move(job));
  moved();
  EXPECT_TRUE(aligned);
}

struct ThrowsWhenTaken {
  int* alive;
  explicit ThrowsWhenTaken(int* count) : alive(count) { ++*alive; }
  ThrowsWhenTaken(const ThrowsWhenTaken& /*other*/) { throw std::runtime_error("no copy"); }
  ThrowsWhenTaken& operator=(const ThrowsWhenTaken&) = delete;
  ~ThrowsWhenTaken() { --*alive; }
  void operator()() const {}
};

TEST(Job, AClosureThatThrowsWhenItIsTakenLeavesNothingBehind) {
  int alive = 0;
  const ThrowsWhenTaken closure(&alive);
  EXPECT_THROW(Job job(closure), std::runtime_error);
  EXPECT_EQ(alive, 1);
}

TEST(Job, ACallPassesTheClosuresExceptionOn) {
  Job job([] { throw std::runtime_error("thrown"); });
  EXPECT_THROW(job(), std::runtime_error);
  EXPECT_TRUE(job);
}

}  // namespace
}  // namespace weft::rt
