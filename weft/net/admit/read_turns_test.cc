// SPDX-License-Identifier: MIT
#include "weft/net/admit/read_turns.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace weft::net {
namespace {

struct Reader {
  ReadTurns<Reader>::Place place{*this};
};

class ReadTurnsTest : public testing::Test {
 protected:
  using Turns = ReadTurns<Reader>;
  using Readers = std::vector<const Reader*>;

  void TearDown() override {
    for (Reader& reader : readers_) {
      turns_.leave(reader.place);
    }
  }
  void all_wait(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      turns_.wait(readers_[i].place);
    }
  }
  // A turn; `then` is called with each reader that is served.
  template <typename Then>
  Readers serve(Then then) {
    Readers served;
    const auto note = [&](Reader& reader) {
      served.push_back(&reader);
      then(reader);
    };
    turns_.serve(next_turn(), note, [this] { return ticks_; });
    return served;
  }
  Readers serve() {
    return serve([](Reader&) {});
  }
  Instant next_turn() { return turn_ = turn_ + std::chrono::seconds(1); }

  static inline const std::uint64_t kLongest = sys::ticks_per_us() * 1000;
  static constexpr std::size_t kMany = 4 * Turns::kFew;
  Turns turns_;
  Reader readers_[kMany];
  Instant turn_{};
  std::uint64_t ticks_ = 0;
};

TEST_F(ReadTurnsTest, TheLineIsServedInOrderAndOnceInATurn) {
  all_wait(3);
  turns_.wait(readers_[0].place);  // has its place
  const Readers all = {&readers_[0], &readers_[1], &readers_[2]};
  EXPECT_EQ(serve([&](Reader& reader) { turns_.wait(reader.place); }), all);
  EXPECT_EQ(serve(), all);
  EXPECT_TRUE(turns_.empty());
  EXPECT_EQ(serve(), Readers());
}

TEST_F(ReadTurnsTest, AReadThatTakesTheWholeTimeIsTheLastOfItsTurn) {
  all_wait(3);
  const auto takes_all = [&](Reader& reader) {
    ticks_ += kLongest + 1;
    turns_.wait(reader.place);
  };
  for (const int next : {0, 1, 2, 0}) {
    EXPECT_EQ(serve(takes_all), Readers{&readers_[next]});
  }
}

TEST_F(ReadTurnsTest, AfterTheTimeOfItsTurnAnEventWaitsInTheLine) {
  const Instant turn = next_turn();
  constexpr std::uint64_t kBegan = 1000;
  EXPECT_TRUE(turns_.admits(readers_[0].place, turn, kBegan));
  EXPECT_TRUE(turns_.admits(readers_[1].place, turn, kBegan + kLongest));
  EXPECT_FALSE(turns_.admits(readers_[2].place, turn, kBegan + kLongest + 1));
  EXPECT_FALSE(turns_.admits(readers_[0].place, turn, kBegan + kLongest + 1));
  EXPECT_TRUE(turns_.admits(readers_[1].place, next_turn(), kBegan + 10 * kLongest)) << "the first of a turn";
  EXPECT_EQ(serve(), (Readers{&readers_[2], &readers_[0]}));
}

TEST_F(ReadTurnsTest, TheLineIsServedAlsoInATurnThatReadLongBefore) {
  all_wait(1);
  EXPECT_TRUE(turns_.admits(readers_[1].place, turn_ + std::chrono::seconds(1), 0));
  ticks_ = 10 * kLongest;
  EXPECT_EQ(serve(), Readers{&readers_[0]});
}

TEST_F(ReadTurnsTest, FewHaveAWholeShareAndManyDivideIt) {
  constexpr std::size_t kWhole = 64 * 1024;
  all_wait(Turns::kFew);
  (void)serve();
  EXPECT_EQ(turns_.share_of(kWhole), kWhole);
  all_wait(kMany);
  (void)serve();
  EXPECT_EQ(turns_.share_of(kWhole), kWhole / 4);
  (void)serve();
  EXPECT_EQ(turns_.share_of(kWhole), kWhole) << "nobody waits";
}

TEST_F(ReadTurnsTest, TheSmallestShareIsAPartOfAWholeOne) {
  std::vector<std::unique_ptr<Reader>> crowd;
  for (std::size_t i = 0; i < 4 * Turns::kFew * Turns::kSmallest; ++i) {
    crowd.push_back(std::make_unique<Reader>());
    turns_.wait(crowd.back()->place);
  }
  (void)serve();
  EXPECT_EQ(turns_.share_of(1024), 1024 / Turns::kSmallest);
  for (const auto& reader : crowd) {
    turns_.leave(reader->place);
  }
}

TEST_F(ReadTurnsTest, AnEventIsNoSecondTurnWhileManyWait) {
  all_wait(2);
  (void)serve([&](Reader& reader) { turns_.wait(reader.place); });
  EXPECT_TRUE(turns_.admits(readers_[0].place, next_turn(), 0)) << "few wait: a read more does no harm";
  all_wait(kMany);
  (void)serve([&](Reader& reader) { turns_.wait(reader.place); });
  EXPECT_FALSE(turns_.admits(readers_[0].place, next_turn(), 0));
  turns_.leave(readers_[0].place);
  EXPECT_TRUE(turns_.admits(readers_[0].place, next_turn(), 0)) << "it does not wait";
}

TEST_F(ReadTurnsTest, OneThatLeavesIsNotServed) {
  all_wait(3);
  const Readers served = serve([&](Reader&) { turns_.leave(readers_[1].place); });
  EXPECT_EQ(served, (Readers{&readers_[0], &readers_[2]}));
  EXPECT_TRUE(turns_.empty());
}

}  // namespace
}  // namespace weft::net
