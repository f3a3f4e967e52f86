// SPDX-License-Identifier: MIT
#include "tools/weft/bridge/names.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::bridge {
namespace {

TEST(BridgeNames, ANameHasOneNameOnTheOtherSide) {
  const Names names("plant.", '/');
  EXPECT_EQ(names.to_fleet("px/A.1"), "plant.px.A/1");
  EXPECT_EQ(names.to_zmtp("plant.px.A/1"), "px/A.1");
  EXPECT_FALSE(names.to_zmtp("other.px"));
}

TEST(BridgeNames, ASubscriptionIsAFilterOfItsPrefixAndWidensToItsParent) {
  const Names names("plant.", '.');
  const auto filter = names.filter("px.A");
  ASSERT_TRUE(filter);
  EXPECT_TRUE(filter->matches("plant.px.AAPL"));
  EXPECT_FALSE(filter->matches("plant.px.B"));
  EXPECT_EQ(filter->widen_to_tokens().text(), "plant.px.>");
  EXPECT_EQ(names.filter("px.")->widen_to_tokens().text(), "plant.px.>");
  EXPECT_EQ(Names("", '.').filter("")->widen_to_tokens().text(), ">");
  EXPECT_FALSE(names.filter(std::string(255, 'x')));
}

TEST(BridgeNames, PartsOfAnyBytesComeBack) {
  std::string all;
  for (int i = 0; i < 256; ++i) {
    all += static_cast<char>(i);
  }
  for (const std::vector<std::string>& parts : std::vector<std::vector<std::string>>{
           {""}, {"", ""}, {"a"}, {"ab", "abc", "abcd"}, {all, "", all}, std::vector<std::string>(kPartsMax, "x")}) {
    std::vector<Message> frames;
    for (const std::string& part : parts) {
      frames.emplace_back(part);
    }
    EXPECT_EQ(decode_parts(encode_parts(frames)), parts);
  }
}

TEST(BridgeNames, MalformedPartsAreRefused) {
  for (const char* const bad :
       {"", "1", ";", "2;YQ==", "0;", "1;YQ=", "1;Y===", "1;Y*==", "1;====", "x;YQ==", "1;YQ==,", "01;YQ=="}) {
    EXPECT_FALSE(decode_parts(bad)) << bad;
  }
  std::string many = std::to_string(kPartsMax + 1) + ";";
  EXPECT_FALSE(decode_parts(many + std::string(kPartsMax, ',')));
}

TEST(BridgeNames, AWayKnowsItsEntriesWhole) {
  Via via("a/out,plant");
  EXPECT_TRUE(via.has("a/out"));
  EXPECT_FALSE(via.has("a/ou"));
  EXPECT_FALSE(via.has(""));
  EXPECT_TRUE(via.passed("a"));
  EXPECT_FALSE(via.passed("plant"));
  via.add("plant");
  via.add("");
  EXPECT_EQ(via.text(), "a/out,plant");
  EXPECT_FALSE(via.full());
}

TEST(BridgeNames, AWayOfAPeerIsBounded) {
  std::string entries;
  for (int i = 0; i < 1000; ++i) {
    entries += std::to_string(i) + ",";
  }
  Via via;
  via.add_all(entries);
  EXPECT_TRUE(via.full());
  EXPECT_LT(via.text().size(), kHopsMax * (kEntryMax + 1));
  Via strange;
  strange.add_all("a b,\r\n," + std::string(kEntryMax + 1, 'x'));
  EXPECT_EQ(strange.text(), "");
}

TEST(BridgeNames, HeadersThatSteerDoNotPass) {
  Headers headers;
  ASSERT_TRUE(headers.add("Weft-Reply", "x"));
  ASSERT_TRUE(headers.add("traceparent", "00-1"));
  ASSERT_TRUE(headers.add("Nats-Msg-Id", "7"));
  const auto passing = passing_headers(headers.block());
  ASSERT_TRUE(passing);
  EXPECT_EQ(find_header(passing->block(), "traceparent"), "00-1");
  EXPECT_EQ(find_header(passing->block(), "Weft-Reply"), "");
  EXPECT_EQ(find_header(passing->block(), "Nats-Msg-Id"), "");
  EXPECT_FALSE(passing_headers("no block"));
  EXPECT_TRUE(passing_headers("")->empty());
}

}  // namespace
}  // namespace weft::bridge
