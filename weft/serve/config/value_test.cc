// SPDX-License-Identifier: MIT
#include "weft/serve/config/value.h"

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::serve::config {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

TEST(ConfigValue, DurationsHaveAUnitAndAreExact) {
  const std::pair<const char*, Duration> kGood[] = {
      {"250 ms", 250ms}, {"250ms", 250ms}, {"1.5 s", 1500ms}, {"0 s", 0s},       {"10 min", 10min},
      {"2 h", 2h},       {"1 d", 24h},     {"3 us", 3us},     {"0.001 us", 1ns}, {"none", kNone},
  };
  for (const auto& [text, duration] : kGood) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, duration) << text;
    EXPECT_EQ(parse_duration(to_text(*parsed)).value_or(Duration(7)), duration) << to_text(*parsed);
  }
  for (const char* text : {"", "s", "5", "5 parsecs", "-1 s", "1  s", " 1 s", "1 s ", "1. s", ".5 s", "1.2.3 s",
                           "0.5 ns", "1e3 s", "None", "300000000000 d", "1234567890123456789 ns", "1 S"}) {
    EXPECT_EQ(parse_duration(text).error(), Errc::invalid_argument) << text;
  }
  EXPECT_EQ(to_text(Duration(90s)), "90 s");
  EXPECT_EQ(to_text(Duration(120s)), "2 min");
  EXPECT_EQ(to_text(Duration(1500us)), "1500 us");
}

TEST(ConfigValue, SizesHaveAUnitAndAreExact) {
  const std::pair<const char*, std::uint64_t> kGood[] = {
      {"0 B", 0},
      {"512 B", 512},
      {"16 KiB", 16'384},
      {"1.5MiB", 1'572'864},
      {"2 GiB", 2'147'483'648},
      {"1 TiB", 1'099'511'627'776},
  };
  for (const auto& [text, bytes] : kGood) {
    const auto parsed = parse_size(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->bytes, bytes) << text;
    EXPECT_EQ(parse_size(to_text(*parsed)).value_or(Size{7}).bytes, bytes) << to_text(*parsed);
  }
  for (const char* text : {"", "16", "16 KB", "16 kib", "0.3 B", "9999999999 TiB", "none", "-1 B"}) {
    EXPECT_EQ(parse_size(text).error(), Errc::invalid_argument) << text;
  }
  EXPECT_EQ(to_text(Size{std::uint64_t{3} << 20U}), "3 MiB");
}

TEST(ConfigValue, RatesHaveANumberASecondAndABurst) {
  const auto plain = parse_rate("10/s");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->per_second, 10u);
  EXPECT_EQ(plain->burst, 1u);
  const auto burst = parse_rate("4294967295/s burst 50");
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->burst, 50u);
  EXPECT_EQ(to_text(*burst), "4294967295/s burst 50");
  EXPECT_FALSE(parse_rate("none").value_or(net::RateLimit{5}).limits());
  EXPECT_EQ(to_text(net::RateLimit()), "none");
  for (const char* text :
       {"", "10", "0/s", "10/min", "4294967296/s", "10/s burst", "10/s burst 0", "10/s burst 5 ", "-1/s"}) {
    EXPECT_EQ(parse_rate(text).error(), Errc::invalid_argument) << text;
  }
}

TEST(ConfigValue, ValuesAreComparedAndNotTheirTexts) {
  using Texts = std::vector<std::string>;
  const Value several = Texts{"a", "b"};
  const Value one = Texts{R"(a", "b)"};
  EXPECT_FALSE(same_value(several, one));
  EXPECT_EQ(to_text(several), R"(["a", "b"])");
  EXPECT_EQ(to_text(one), R"(["a\", \"b"])");
  EXPECT_TRUE(same_value(several, Texts{"a", "b"}));
  EXPECT_FALSE(same_value(several, Texts{"b", "a"}));
  EXPECT_FALSE(same_value(Value(Texts{}), Value(Texts{""})));
  EXPECT_FALSE(same_value(Value(std::string("true")), Value(true)));
  EXPECT_FALSE(same_value(Value(std::int64_t{1}), Value(1.0)));
  EXPECT_FALSE(same_value(Value(1.0), Value(1.0 + std::numeric_limits<double>::epsilon())));
  EXPECT_TRUE(same_value(Value(Duration(-5)), Value(kNone)));
  EXPECT_FALSE(same_value(Value(Duration::zero()), Value(kNone)));
  EXPECT_TRUE(same_value(Value(Size{7}), Value(Size{7})));
  EXPECT_TRUE(same_value(Value(net::RateLimit{0, 7}), Value(net::RateLimit{})));
  EXPECT_TRUE(same_value(Value(net::RateLimit{5, 0}), Value(net::RateLimit{5, 1})));
  EXPECT_FALSE(same_value(Value(net::RateLimit{5, 2}), Value(net::RateLimit{5, 1})));
}

TEST(ConfigValue, AMessageShowsNoControlCharacterAndNoLongText) {
  EXPECT_EQ(quote("plain"), "\"plain\"");
  EXPECT_EQ(quote("a\x1b[31m\n"), R"("a\x1b[31m\x0a")");
  EXPECT_EQ(quote("\xff\xc3\xa9"), "\"\\xff\xc3\xa9\"");
  EXPECT_EQ(quote("\xc2\x9b"), R"("\xc2\x9b")");
  const std::string cut = quote(std::string(1000, 'x'));
  EXPECT_LE(cut.size(), 70u);
  EXPECT_TRUE(cut.ends_with("...\"")) << cut;
}

}  // namespace
}  // namespace weft::serve::config
