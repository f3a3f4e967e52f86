// SPDX-License-Identifier: MIT
// The parts of a gate without connections. tests/topic/gate_test.cc has servers.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
