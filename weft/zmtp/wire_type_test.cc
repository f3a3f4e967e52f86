// SPDX-License-Identifier: MIT
#include "weft/zmtp/wire_type.h"

#include <set>
#include <utility>

#include "weft/zmtp/test_support.h"
#include <gtest/gtest.h>

namespace weft::zmtp::test {
namespace {

using enum WireType;

// The pairs of the pattern RFCs, written once each. No other pair may connect.
const std::set<std::pair<WireType, WireType>> kPairs = {
    {pair, pair},     {pub, sub},    {pub, xsub},       {xpub, sub},      {xpub, xsub},       {req, rep},
    {req, router},    {rep, dealer}, {dealer, dealer},  {dealer, router}, {router, router},   {push, pull},
    {server, client}, {radio, dish}, {scatter, gather}, {peer, peer},     {channel, channel},
};

bool expected(WireType a, WireType b) { return kPairs.contains({a, b}) || kPairs.contains({b, a}); }

template <typename Function>
void for_every_pair(Function function) {
  for (int i = 0; i < kSocketTypeCount; ++i) {
    for (int j = 0; j < kSocketTypeCount; ++j) {
      function(static_cast<WireType>(i), static_cast<WireType>(j));
    }
  }
}

// Moves output between the two ends until neither has more.
void converse(LocalEnd& a, LocalEnd& b) {
  const auto move = [](LocalEnd& from, LocalEnd& to, Buffer& unread) {
    const Bytes offered = from.pending_output();
    unread.insert(unread.end(), offered.begin(), offered.end());
    from.consume_output(offered.size());
    const std::size_t taken = to.handle_input(unread, kStart);
    unread.erase(unread.begin(), unread.begin() + static_cast<std::ptrdiff_t>(taken));
    return !offered.empty();
  };
  Buffer to_a;
  Buffer to_b;
  bool moved = true;
  while (moved) {
    moved = move(a, b, to_b);
    moved = move(b, a, to_a) || moved;
  }
}

TEST(WireType, NamesRoundTripAndAreExact) {
  for (int i = 0; i < kSocketTypeCount; ++i) {
    const auto type = static_cast<WireType>(i);
    EXPECT_EQ(parse_socket_type(socket_type_name(type)), type);
  }
  EXPECT_EQ(socket_type_name(pair), "PAIR");
  EXPECT_EQ(socket_type_name(xsub), "XSUB");
  EXPECT_EQ(socket_type_name(channel), "CHANNEL");
  for (const std::string_view name : {"", "pair", "PAI", "PAIRS", "PAIR "}) {
    EXPECT_EQ(parse_socket_type(name), std::nullopt) << name;
  }
}

TEST(WireType, OnlyThreeTypesSendAnIdentity) {
  for (int i = 0; i < kSocketTypeCount; ++i) {
    const auto type = static_cast<WireType>(i);
    EXPECT_EQ(sends_identity(type), type == req || type == dealer || type == router);
  }
}

TEST(WireType, CompatibilityIsTheTableOfTheRfcs) {
  for_every_pair([](WireType a, WireType b) {
    EXPECT_EQ(compatible(a, b), expected(a, b)) << socket_type_name(a) << ' ' << socket_type_name(b);
  });
}

TEST(WireType, TwoPeersOfEveryPairOfTypesAgreeOrBothRefuse) {
  for_every_pair([](WireType first, WireType second) {
    LocalEndConfig config = config_of(first);
    config.identity = "first";
    config.metadata = {{"X-Colour", "blue"}};
    LocalEnd a = started(config);
    LocalEnd b = started(config_of(second));
    converse(a, b);
    const auto names = std::string(socket_type_name(first)) + " " + std::string(socket_type_name(second));
    EXPECT_EQ(a.ready(), expected(first, second)) << names;
    EXPECT_EQ(b.ready(), expected(first, second)) << names;
    if (expected(first, second)) {
      EXPECT_FALSE(a.fault() || b.fault()) << names;
      EXPECT_EQ(a.peer_type(), second);
      EXPECT_EQ(b.peer_type(), first);
      EXPECT_EQ(a.minor_version(), 1);
      EXPECT_EQ(as_text(b.peer_identity()), sends_identity(first) ? "first" : "");
      EXPECT_EQ(b.peer_metadata().back(), (std::pair<std::string, std::string>("X-Colour", "blue")));
    } else {
      ASSERT_TRUE(a.fault() && b.fault()) << names;
      EXPECT_EQ(b.fault()->code, Errc::incompatible_peer) << names;
      EXPECT_STREQ(b.fault()->text, "peer's socket type cannot talk to ours");
      EXPECT_EQ(a.fault()->code, Errc::incompatible_peer) << names;
    }
  });
}

}  // namespace
}  // namespace weft::zmtp::test
