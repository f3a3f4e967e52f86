// SPDX-License-Identifier: MIT
#include "weft/logging/line.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "weft/base/random.h"
#include "weft/logging/test_line.h"
#include <gtest/gtest.h>

namespace weft::logging {
namespace {

using test::LineReader;

constexpr std::int64_t kTime = 1'700'000'000'000'123'456;  // 2023-11-14T22:13:20.000123Z

std::string line_of(const LineParts& parts, Format format, bool with_priority = false) {
  std::size_t bound = 0;
  LineParts fitting = parts;
  fitting.fields = parts.fields.first(count_fitting(parts, bound));
  std::string line(bound, '\0');
  TimeText time;
  const char* const end = write_line(fitting, format, with_priority, time, line.data());
  const auto size = static_cast<std::size_t>(end - line.data());
  EXPECT_LE(size, bound);
  line.resize(size);
  return line;
}

std::string in_quotes(std::string_view text) {
  std::string out(kQuotedMax, '\0');
  out.resize(static_cast<std::size_t>(write_quoted(text, out.data()) - out.data()));
  return out;
}

std::string word(std::string_view text) {
  std::string out(kQuotedMax, '\0');
  out.resize(static_cast<std::size_t>(write_word(text, out.data()) - out.data()));
  return out;
}

std::string time_of(std::int64_t time_ns) {
  std::string out(TimeText::kSize, '\0');
  TimeText text;
  EXPECT_EQ(text.write(time_ns, out.data()), out.data() + out.size());
  return out;
}

TEST(Line, ALineOfTextHasEachKindOfValue) {
  const Field fields[] = {{"order", 7},      {"least", std::numeric_limits<std::int64_t>::min()},
                          {"ratio", 0.5},    {"most", std::numeric_limits<std::uint64_t>::max()},
                          {"paid", true},    {"customer", "a b"},
                          {"id", Hex{0xf1}}, {"name", "plain"}};
  EXPECT_EQ(line_of({kTime, Level::warning, "shop.orders", "order placed", fields}, Format::text),
            "time=2023-11-14T22:13:20.000123Z level=warning component=shop.orders event=\"order placed\" order=7 "
            "least=-9223372036854775808 ratio=0.5 most=18446744073709551615 paid=true customer=\"a b\" "
            "id=0x00000000000000f1 name=plain\n");
}

TEST(Line, ALineOfJsonHasEachKindOfValue) {
  const Field fields[] = {{"order", -7},
                          {"ratio", 1e300},
                          {"none", std::nan("")},
                          {"paid", false},
                          {"id", Hex{0xf1}},
                          {"name", "x"},
                          {"endless", -std::numeric_limits<float>::infinity()}};
  EXPECT_EQ(
      line_of({kTime, Level::error, "shop", "placed", fields}, Format::json),
      "{\"time\":\"2023-11-14T22:13:20.000123Z\",\"level\":\"error\",\"component\":\"shop\",\"event\":\"placed\","
      "\"order\":-7,\"ratio\":1e+300,\"none\":\"nan\",\"paid\":false,\"id\":\"0x00000000000000f1\",\"name\":\"x\","
      "\"endless\":\"-inf\"}\n");
}

TEST(Line, ThePriorityOfTheJournalComesFirst) {
  const auto begin = [](Level level) { return line_of({kTime, level, "a", "b", {}}, Format::json, true).substr(0, 4); };
  EXPECT_EQ(begin(Level::trace), "<7>{");
  EXPECT_EQ(begin(Level::debug), "<7>{");
  EXPECT_EQ(begin(Level::info), "<6>{");
  EXPECT_EQ(begin(Level::warning), "<4>{");
  EXPECT_EQ(begin(Level::error), "<3>{");
}

TEST(Line, NoValueForgesAFieldALineOrATerminalsCommand) {
  EXPECT_EQ(word(""), "\"\"");
  EXPECT_EQ(word("/a/b-c_d"), "/a/b-c_d");
  EXPECT_EQ(word("a b"), "\"a b\"");
  EXPECT_EQ(word("a=b"), "\"a=b\"");
  EXPECT_EQ(in_quotes("\"\\"), "\"\\\"\\\\\"");
  EXPECT_EQ(in_quotes("x\nlevel=info\r\t"), "\"x\\nlevel=info\\r\\t\"");
  EXPECT_EQ(in_quotes(std::string_view("\0\x1b[2J\x7f", 6)), "\"\\u0000\\u001b[2J\\u007f\"");
  EXPECT_EQ(in_quotes("\xC3\xA4\xC2\x9B\xF0\x9F\x98\x80"), "\"\\u00e4\\u009b\\ud83d\\ude00\"");
  EXPECT_EQ(in_quotes("\xFF\xC3"), "\"\\ufffd\\ufffd\"");
}

TEST(Line, ALongValueIsCutBetweenCharacters) {
  EXPECT_EQ(word(std::string(kTextMax + 1, 'a')), "\"" + std::string(kTextMax, 'a') + "\"");
  EXPECT_EQ(word(std::string(kTextMax, 'a')), std::string(kTextMax, 'a'));
  EXPECT_EQ(in_quotes(std::string(kTextMax - 1, 'a') + "\xC3\xA4"), "\"" + std::string(kTextMax - 1, 'a') + "\"");
  const std::string no_text(kTextMax + 8, '\x80');  // not UTF-8: it is cut at the bound
  EXPECT_EQ(in_quotes(no_text).size(), kQuotedMax);
}

TEST(Line, AFieldHasAPlainNameAndNoneOfTheLinesOwn) {
  const Field fields[] = {{"level", 1}, {"a b=\"c\n", 2}, {"", 3}, {"http.status-code", 4}};
  const std::string line = line_of({kTime, Level::info, "a", "b", fields}, Format::text);
  EXPECT_TRUE(line.ends_with(" level_=1 a_b__c_=2 _=3 http.status-code=4\n")) << line;
}

TEST(Line, FieldsThatMayNotFitAreLeftOut) {
  const std::string large(kTextMax, '"');
  std::vector<Field> fields(10, Field("text", large));
  std::size_t bound = 0;
  const std::size_t count = count_fitting({kTime, Level::info, "a", "b", fields}, bound);
  EXPECT_EQ(count, (kLineMax - 200) / (kQuotedMax + 9));
  EXPECT_LE(bound, kLineMax);
  const std::string line = line_of({kTime, Level::info, "a", large, fields}, Format::json);
  EXPECT_LE(line.size(), kLineMax);
  EXPECT_TRUE(line.ends_with("}\n"));
}

TEST(Line, TimesAreThoseOfTheCalendar) {
  EXPECT_EQ(time_of(0), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(time_of(-1), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(time_of(951'782'399'999'999'999), "2000-02-28T23:59:59.999999Z");
  EXPECT_EQ(time_of(951'782'400'000'000'000), "2000-02-29T00:00:00.000000Z");
  EXPECT_EQ(time_of(std::numeric_limits<std::int64_t>::max()), "2262-04-11T23:47:16.854775Z");
  EXPECT_EQ(time_of(std::numeric_limits<std::int64_t>::min()), "1677-09-21T00:12:43.145224Z");
}

TEST(Line, TheTextOfASecondServesItsOtherTimes) {
  TimeText text;
  for (const std::int64_t time : {kTime, kTime + 1'000'000, kTime + 1'000'000'000, kTime}) {
    std::string out(TimeText::kSize, '\0');
    text.write(time, out.data());
    EXPECT_EQ(out, time_of(time));
  }
}

TEST(Line, AnyBytesAreReadBackFromBothFormats) {
  Random random(42);
  constexpr std::string_view kSpecial = "\"\\\n\r\t= {}:,<\x7f\xC3\xA4\xF0\x9F\x98\x80\xED\xA0\x80";
  for (int round = 0; round < 2000; ++round) {
    std::string value;
    const std::uint64_t size = random.below(64);
    for (std::uint64_t i = 0; i < size; ++i) {
      value += random.below(3) == 0 ? static_cast<char>(random.next()) : kSpecial[random.below(kSpecial.size())];
    }
    const Field fields[] = {{"value", value}, {"last", 1}};
    const LineParts parts{kTime, Level::info, "a", value, fields};
    std::string text = line_of(parts, Format::text);
    std::string json = line_of(parts, Format::json);
    ASSERT_EQ(text.find('\n'), text.size() - 1);
    ASSERT_EQ(json.find('\n'), json.size() - 1);
    text.pop_back();
    json.pop_back();
    const auto by_text = LineReader(text).read_text();
    const auto by_json = LineReader(json).read_json();
    ASSERT_TRUE(by_text) << text;
    ASSERT_TRUE(by_json) << json;
    EXPECT_EQ(by_text->size(), 6U);
    EXPECT_EQ(by_text->at("value"), test::code_units(value));
    EXPECT_EQ(by_text->at("event"), test::code_units(value));
    EXPECT_EQ(*by_text, *by_json);
  }
}

}  // namespace
}  // namespace weft::logging
