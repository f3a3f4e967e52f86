// SPDX-License-Identifier: MIT
#include "weft/store/settings.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;

TEST(Settings, OfAStreamComeBackAsTheyWent) {
  StreamSettings settings{{"orders.>", "b"}, Keep::latest, Survives::process, 24h, 1 << 20, Discard::refuse, 7s, 5};
  const auto again = parse_stream_settings(write_settings(settings));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, settings);
  EXPECT_EQ(*parse_stream_settings(""), StreamSettings());
  EXPECT_TRUE(check_settings(settings));
}

TEST(Settings, OfAConsumerComeBackAsTheyWent) {
  ConsumerSettings settings{"a.*", From::sequence(17), 5, 2s, 3, {1s, 10s}, "dead.a"};
  const auto again = parse_consumer_settings(write_settings(settings));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, settings);
  EXPECT_TRUE(check_settings(settings));
}

TEST(Settings, ThatAreMalformedOrUnknownAreRefused) {
  for (const char* text : {"keep=all", "keep", "bytes_max=", "bytes_max=12x", "colour=red", "survives=fire",
                           "when_full=never", "age_max=1h", "history=-1"}) {
    EXPECT_EQ(parse_stream_settings(text).error(), Errc::invalid_argument) << text;
  }
  for (const char* text : {"from=there", "unacked_max=99999999999", "filter", "keep=log"}) {
    EXPECT_EQ(parse_consumer_settings(text).error(), Errc::invalid_argument) << text;
  }
}

TEST(Settings, OutsideTheirRangeAreRefused) {
  const auto refused = [](auto change) {
    StreamSettings settings;
    change(settings);
    return check_settings(settings).error();
  };
  EXPECT_EQ(refused([](auto& s) { s.bytes_max = 1; }), Errc::invalid_argument);
  EXPECT_EQ(refused([](auto& s) { s.history = 2; }), Errc::invalid_argument);
  EXPECT_EQ(refused([](auto& s) { s.keep = Keep::latest, s.history = 65; }), Errc::invalid_argument);
  EXPECT_EQ(refused([](auto& s) { s.age_max = -1s; }), Errc::invalid_argument);
  EXPECT_EQ(refused([](auto& s) { s.topics = {""}; }), Errc::invalid_argument);
  EXPECT_EQ(refused([](auto& s) { s.topics.assign(65, "a"); }), Errc::invalid_argument);
  EXPECT_EQ(refused([](auto& s) { s.topics = {"a\nkeep=work"}; }), Errc::invalid_argument);
  EXPECT_EQ(refused([](auto& s) { s.keep = static_cast<Keep>(9); }), Errc::invalid_argument);
  const auto consumer = [](auto change) {
    ConsumerSettings settings;
    change(settings);
    return check_settings(settings).error();
  };
  EXPECT_EQ(consumer([](auto& s) { s.unacked_max = 0; }), Errc::invalid_argument);
  EXPECT_EQ(consumer([](auto& s) { s.unacked_max = 65'537; }), Errc::invalid_argument);
  EXPECT_EQ(consumer([](auto& s) { s.ack_wait = 0s; }), Errc::invalid_argument);
  EXPECT_EQ(consumer([](auto& s) { s.retry_waits.assign(33, 1s); }), Errc::invalid_argument);
  EXPECT_EQ(consumer([](auto& s) { s.dead_letters = "d"; }), Errc::invalid_argument);
}

}  // namespace
}  // namespace weft
