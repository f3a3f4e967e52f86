// SPDX-License-Identifier: MIT
#include "weft/msg/socket/ended_pipes.h"

#include <atomic>
#include <memory>
#include <set>
#include <vector>

#include "weft/msg/socket/test_support.h"
#include <gtest/gtest.h>

namespace weft::msg {
namespace {

using test::Owner;
using test::PipePair;

class EndedPipesTest : public testing::Test {
 protected:
  Pipe& pipe() {
    pairs_.push_back(std::make_unique<PipePair>(owner_.core()));
    return pairs_.back()->far;
  }
  Pipe& end(Pipe& pipe) {
    ended_.reserve(ended_.size() + 1);
    ended_.add(pipe);
    return pipe;
  }
  // One call of sort_out(); `full`: the pipes that have input.
  std::vector<Pipe*> sort_out(const std::set<Pipe*>& full) {
    std::vector<Pipe*> forgotten;
    checks_ = 0;
    ended_.sort_out(
        [&](Pipe& pipe) {
          ++checks_;
          return full.contains(&pipe);
        },
        [&](Pipe& pipe) { forgotten.push_back(&pipe); });
    return forgotten;
  }

  Owner owner_;
  std::vector<std::unique_ptr<PipePair>> pairs_;
  std::atomic<std::uint64_t> unread_{0};
  EndedPipes ended_{unread_};
  std::size_t checks_ = 0;
};

using Pipes = std::vector<Pipe*>;

TEST_F(EndedPipesTest, APipeStaysUntilItsInputIsTaken) {
  EXPECT_TRUE(ended_.empty());
  Pipe& a = end(pipe());
  EXPECT_FALSE(ended_.empty());
  EXPECT_EQ(sort_out({&a}), Pipes());
  EXPECT_EQ(sort_out({}), Pipes{&a});
  EXPECT_TRUE(ended_.empty());
  EXPECT_EQ(sort_out({}), Pipes());
}

TEST_F(EndedPipesTest, TheNewestPipeIsCheckedFirst) {
  std::set<Pipe*> full;
  for (std::size_t i = 0; i < 2 * EndedPipes::kChecksAtOnce; ++i) {
    full.insert(&end(pipe()));
  }
  Pipe& newest = end(pipe());
  EXPECT_EQ(sort_out(full), Pipes{&newest});
}

TEST_F(EndedPipesTest, ACallChecksFewPipesAndTheNextCallGoesOn) {
  constexpr std::size_t kPipes = 3 * EndedPipes::kChecksAtOnce;
  std::set<Pipe*> full;
  std::vector<Pipe*> all;
  for (std::size_t i = 0; i < kPipes; ++i) {
    all.push_back(&end(pipe()));
    full.insert(all.back());
  }
  for (int call = 0; call < 3; ++call) {
    EXPECT_EQ(sort_out(full), Pipes());
    EXPECT_EQ(checks_, EndedPipes::kChecksAtOnce);
  }
  // Each pipe is checked within as many calls as it takes to check all.
  Pipe* const taken = all[kPipes / 2];
  full.erase(taken);
  Pipes forgotten;
  for (int call = 0; call < 3; ++call) {
    const Pipes these = sort_out(full);
    forgotten.insert(forgotten.end(), these.begin(), these.end());
  }
  EXPECT_EQ(forgotten, Pipes{taken});
  EXPECT_EQ(ended_.size(), kPipes - 1);
}

TEST_F(EndedPipesTest, ARemovedPipeIsNotCheckedAgain) {
  Pipe& a = end(pipe());
  Pipe& b = end(pipe());
  Pipe& c = end(pipe());
  ended_.remove(a);
  EXPECT_EQ(ended_.size(), 2U);
  ended_.remove(c);
  EXPECT_EQ(sort_out({}), Pipes{&b});
  EXPECT_EQ(checks_, 1U);
}

TEST_F(EndedPipesTest, AllPipesCanBeRemovedAtOnce) {
  const std::set<Pipe*> all{&end(pipe()), &end(pipe()), &end(pipe())};
  std::set<Pipe*> forgotten;
  ended_.remove_all([&](Pipe& pipe) { forgotten.insert(&pipe); });
  EXPECT_EQ(forgotten, all);
  EXPECT_TRUE(ended_.empty());
}

TEST_F(EndedPipesTest, ThePipesOfLinksCountAsNoUnreadMemory) {
  Pipe& a = pipe();
  ASSERT_TRUE(pairs_.back()->send("a message"));
  end(a);
  EXPECT_EQ(unread_.load(), 0U);
  EXPECT_EQ(sort_out({&a}), Pipes());
  EXPECT_EQ(unread_.load(), 0U);
}

TEST_F(EndedPipesTest, TheCountsOfAForgottenPipeAreKept) {
  Pipe& a = pipe();
  ASSERT_TRUE(pairs_.back()->send("taken"));
  ASSERT_TRUE(pairs_.back()->send("lost"));
  ASSERT_TRUE(pairs_.back()->send("lost, too"));
  FrameView view;
  ASSERT_TRUE(a.peek(view));
  a.pop();
  ended_.remember(a);
  EXPECT_EQ(ended_.gone().arrived, 3U);
  EXPECT_EQ(ended_.gone().dropped_lost, 2U);
  MessageDrops drops;
  drops.dropped_no_memory = 4;
  ended_.remember(drops);
  ended_.remember(drops);
  EXPECT_EQ(ended_.gone().dropped_no_memory, 8U);
}

}  // namespace
}  // namespace weft::msg
