// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/headers.h"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "weft/nats/protocol/limits.h"
#include <gtest/gtest.h>

namespace weft::nats {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

HeadersView view_of(std::string_view block) { return HeadersView(as_bytes(block)); }

Pairs pairs_of(const HeadersView& headers) {
  Pairs pairs;
  headers.for_each([&pairs](const HeadersView::Field& field) {
    pairs.emplace_back(std::string(field.name), std::string(field.value));
  });
  return pairs;
}

TEST(NatsHeaders, ABlockIsReadAsItWasMade) {
  Headers made;
  ASSERT_TRUE(made.add("Nats-Msg-Id", "17"));
  ASSERT_TRUE(made.add("Empty", ""));
  ASSERT_TRUE(made.add("Nats-Msg-Id", "a: b"));
  EXPECT_EQ(as_text(made.block()), "NATS/1.0\r\nNats-Msg-Id: 17\r\nEmpty: \r\nNats-Msg-Id: a: b\r\n\r\n");
  const HeadersView read(made.block());
  EXPECT_EQ(read.status(), 0);
  EXPECT_EQ(pairs_of(read), (Pairs{{"Nats-Msg-Id", "17"}, {"Empty", ""}, {"Nats-Msg-Id", "a: b"}}));
  EXPECT_EQ(read.find("Nats-Msg-Id"), "17");
  EXPECT_EQ(read.find("nats-msg-id"), std::nullopt);
}

TEST(NatsHeaders, AStatusHasANumberAndAText) {
  EXPECT_EQ(view_of("NATS/1.0 503\r\n\r\n").status(), kStatusNoResponders);
  EXPECT_EQ(view_of("NATS/1.0 503\r\n\r\n").status_text(), "");
  const HeadersView heartbeat = view_of("NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Stream: 4\r\n\r\n");
  EXPECT_EQ(heartbeat.status(), 100);
  EXPECT_EQ(heartbeat.status_text(), "Idle Heartbeat");
  EXPECT_EQ(heartbeat.find("Nats-Last-Stream"), "4");
  EXPECT_EQ(view_of("NATS/1.0 5034\r\n\r\n").status(), 0);
  EXPECT_EQ(view_of("NATS/1.0 5x3\r\n\r\n").status(), 0);
  EXPECT_EQ(view_of("NATS/1.0\r\n\r\n").status(), 0);
  EXPECT_EQ(HeadersView().status(), 0);
}

TEST(NatsHeaders, LinesOfAnotherFormAreSkipped) {
  EXPECT_EQ(pairs_of(view_of("NATS/1.0\r\nno colon\r\n: no name\r\na:1\r\nb:   2 \t\r\n\r\n")),
            (Pairs{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(pairs_of(HeadersView()), Pairs());
  EXPECT_EQ(pairs_of(view_of("NATS/1.0")), Pairs());
}

TEST(NatsHeaders, ANameOrAValueMakesNoSecondLine) {
  Headers made;
  for (const std::string_view name : {"", "a b", "a:", "a\r", "a\n", "\x7F"}) {
    EXPECT_EQ(made.add(name, "x").error().code(), Errc::invalid_argument) << name;
  }
  for (const std::string_view value :
       std::initializer_list<std::string_view>{"a\r\nb: c", "a\n", "\r", " a", "a\t", std::string_view("\0", 1)}) {
    EXPECT_EQ(made.add("a", value).error().code(), Errc::invalid_argument) << value;
  }
  EXPECT_TRUE(made.empty());
}

TEST(NatsHeaders, ABlockHasABound) {
  Headers made;
  const std::size_t rest = kHeadersMax - std::string_view("NATS/1.0\r\na: \r\n\r\n").size();
  EXPECT_EQ(made.add("a", std::string(rest + 1, 'x')).error().code(), Errc::message_too_large);
  EXPECT_TRUE(made.empty());
  ASSERT_TRUE(made.add("a", std::string(rest, 'x')));
  EXPECT_EQ(made.block().size(), kHeadersMax);
  EXPECT_EQ(made.add("b", "").error().code(), Errc::message_too_large);
  EXPECT_EQ(made.block().size(), kHeadersMax);
}

}  // namespace
}  // namespace weft::nats
