// SPDX-License-Identifier: MIT
// The parts of a gate without connections. tests/topic/gate_test.cc has servers.
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/random.h"
#include "weft/topic/gate/gate_interest.h"
#include "weft/topic/gate/outbox.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

Filter tokens(std::string_view text) { return Filter::parse(text).value(); }

TEST(GateInterest, AFilterIsSubscribedWithItsFirstHandleAndEndsWithItsLast) {
  GateInterest interest;
  const std::uint64_t number = interest.want(tokens("a.*")).value();
  EXPECT_NE(number, 0U);
  EXPECT_EQ(interest.want(tokens("a.*")).value(), 0U);
  EXPECT_EQ(interest.unwant(tokens("a.*")), 0U);
  EXPECT_EQ(interest.unwant(tokens("b")), 0U);
  EXPECT_EQ(interest.unwant(tokens("a.*")), number);
  EXPECT_EQ(interest.unwant(tokens("a.*")), 0U);
  EXPECT_EQ(interest.size(), 0U);
}

TEST(GateInterest, TheOldestFilterThatMatchesBringsTheMessage) {
  GateInterest interest;
  const std::uint64_t one = interest.want(tokens("a.b")).value();
  const std::uint64_t all = interest.want(tokens(">")).value();
  const std::uint64_t star = interest.want(tokens("*.b")).value();
  EXPECT_TRUE(interest.is_first(one, "a.b"));
  EXPECT_FALSE(interest.is_first(all, "a.b"));
  EXPECT_FALSE(interest.is_first(star, "a.b"));
  EXPECT_TRUE(interest.is_first(all, "c.b"));
  EXPECT_FALSE(interest.is_first(star, "c.b"));
  EXPECT_EQ(interest.unwant(tokens("a.b")), one);
  EXPECT_TRUE(interest.is_first(all, "a.b"));
  EXPECT_EQ(interest.unwant(tokens(">")), all);
  EXPECT_TRUE(interest.is_first(star, "a.b"));
}

// More tokens filters than the index decides at once.
TEST(GateInterest, OfThousandsOfFiltersOneBringsTheMessage) {
  GateInterest interest;
  std::vector<std::uint64_t> numbers;
  for (int i = 0; i < 2000; ++i) {
    numbers.push_back(interest.want(tokens("t." + std::to_string(i) + ".>")).value());
  }
  const std::uint64_t last = interest.want(tokens("t.*.x")).value();
  EXPECT_TRUE(interest.is_first(numbers[1999], "t.1999.x"));
  EXPECT_FALSE(interest.is_first(last, "t.1999.x"));
  EXPECT_TRUE(interest.is_first(last, "t.2000.x"));
}

TEST(Outbox, OperationsOfEachSizeComeOutInOrderHoweverManyWait) {
  Random random(3);
  Outbox box;
  std::deque<std::string> wanted;
  std::size_t bytes = 0;
  for (int round = 0; round < 200; ++round) {
    for (std::uint64_t i = random.below(200); i != 0; --i) {
      const std::size_t size = random.below(50) == 0 ? random.below(200'000) : random.below(600);
      wanted.emplace_back(size, static_cast<char>('a' + random.below(26)));
      box.append({Outbox::Kind::publish, "topic", {}, {}, as_bytes(wanted.back())});
    }
    if (round % 10 == 0) {
      Outbox other;
      other.swap(box);
      box.swap(other);
      ASSERT_TRUE(other.empty());
    }
    for (std::uint64_t i = round % 20 == 0 ? wanted.size() : random.below(wanted.size() + 1); i != 0; --i) {
      ASSERT_EQ(box.front().subject, "topic");
      ASSERT_EQ(as_text(box.front().body), wanted.front());
      box.pop();
      wanted.pop_front();
    }
    ASSERT_EQ(box.count(), wanted.size());
    ASSERT_EQ(box.empty(), wanted.empty());
    bytes = 0;
    for (const std::string& each : wanted) {
      bytes += each.size();
    }
    ASSERT_GE(box.bytes(), bytes);
    ASSERT_LE(box.bytes(), bytes + wanted.size() * 64);
  }
}

TEST(Outbox, OperationsComeOutWholeAndInOrder) {
  Outbox box;
  const std::string large(100'000, 'x');
  box.append({Outbox::Kind::publish, "a.b", "re", as_bytes("headers"), as_bytes(large)});
  box.append({Outbox::Kind::want, "f", {}, {}, {}});
  EXPECT_EQ(box.count(), 2U);
  EXPECT_GT(box.bytes(), large.size());
  Outbox taken;
  taken.swap(box);
  EXPECT_TRUE(box.empty());
  EXPECT_EQ(box.bytes(), 0U);
  const Outbox::Operation first = taken.front();
  EXPECT_EQ(first.kind, Outbox::Kind::publish);
  EXPECT_EQ(first.subject, "a.b");
  EXPECT_EQ(first.reply, "re");
  EXPECT_EQ(as_text(first.headers), "headers");
  EXPECT_EQ(as_text(first.body), large);
  taken.pop();
  EXPECT_EQ(taken.front().kind, Outbox::Kind::want);
  EXPECT_EQ(taken.front().subject, "f");
  EXPECT_TRUE(taken.front().body.empty());
  taken.pop();
  EXPECT_TRUE(taken.empty());
  EXPECT_EQ(taken.bytes(), 0U);
}

}  // namespace
}  // namespace weft::topic
