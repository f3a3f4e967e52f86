// SPDX-License-Identifier: MIT
#include "weft/msg/message/options.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace weft {
namespace {

using std::chrono::milliseconds;

template <typename T>
std::string show(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, Duration>) {
    return std::to_string(value.count());
  } else {
    return std::to_string(value);
  }
}

std::vector<std::string> values_of(const Options& options) {
  std::vector<std::string> values;
  for (const AnyOption& any : option_table()) {
    std::visit([&](const auto* row) { values.push_back(show(options.*(row->member))); }, any);
  }
  return values;
}

std::string_view name_of(const AnyOption& any) {
  return std::visit([](const auto* row) { return row->name; }, any);
}

// A text of that size which the row accepts; of metadata a short one is longer.
std::string text_of(std::string_view row, std::int64_t size) {
  const std::string text(static_cast<std::size_t>(size), 'x');
  constexpr std::string_view kName = "X-n:";
  return row != "metadata" || text.empty()
             ? text
             : std::string(kName) + text.substr(0, std::max<std::size_t>(text.size(), 5) - 4);
}

// A value of the row's type with the size `measure`: a number, milliseconds, or a string of that size.
template <typename T>
T value_at(const Option<T>& row, std::int64_t measure) {
  if constexpr (std::is_same_v<T, std::string>) {
    return text_of(row.name, measure);
  } else if constexpr (std::is_same_v<T, Duration>) {
    return milliseconds(measure);
  } else {
    return static_cast<T>(measure);
  }
}

template <typename T>
std::string text_at(const Option<T>& row, std::int64_t measure) {
  return std::is_same_v<T, std::string> ? text_of(row.name, measure) : std::to_string(measure);
}

TEST(Options, TheNameOfAServerIsCheckedWhenItIsSet) {
  for (const auto* const row : {&option::tls_server_name, &option::wss_hostname}) {
    Options options;
    EXPECT_TRUE(set_option(options, *row, std::string("a.example.")));
    for (const std::string& name : {std::string(".example"), std::string("a.example\0", 10), std::string("a b")}) {
      EXPECT_EQ(set_option(options, *row, name).error(), Errc::invalid_argument);
    }
    EXPECT_EQ(options.*row->member, "a.example.");
  }
}

TEST(Options, EveryRowIsFoundByItsNameAndNamesAreUnique) {
  std::set<std::string_view> names;
  for (const AnyOption& any : option_table()) {
    EXPECT_TRUE(names.insert(name_of(any)).second) << name_of(any);
    const auto found = find_option(name_of(any));
    ASSERT_TRUE(found) << name_of(any);
    EXPECT_EQ(*found, any);
  }
}

TEST(Options, AnUnknownNameIsNotFound) {
  EXPECT_EQ(find_option("").error(), Errc::unknown_option);
  EXPECT_EQ(find_option("linge").error(), Errc::unknown_option);
  EXPECT_EQ(find_option("linger ").error(), Errc::unknown_option);
  Options options;
  EXPECT_EQ(set_option(options, "no_such_option", "1").error(), Errc::unknown_option);
}

// Whether any byte sequence of `storage` is `text`.
template <std::size_t kSize>
bool holds(const std::array<unsigned char, kSize>& storage, std::string_view text) {
  const std::string_view bytes(reinterpret_cast<const char*>(storage.data()), storage.size());
  return bytes.find(text) != std::string_view::npos;
}

// Short texts lie inside the object, so the test reads the object's memory after its end.
TEST(Options, NoCopyLeavesASecretInItsMemory) {
  constexpr std::string_view kSecret = "s3cr3t-pass";
  struct Storage {
    alignas(Options) std::array<unsigned char, sizeof(Options)> bytes{};
  };
  const auto first = std::make_unique<Storage>();
  const auto second = std::make_unique<Storage>();
  for (const auto* row : {&option::plain_password, &option::curve_secret_key, &option::socks_password}) {
    auto* const options = new (first->bytes.data()) Options;
    ASSERT_TRUE(set_option(*options, *row, std::string(kSecret)));
    auto* const copy = new (second->bytes.data()) Options(*options);
    EXPECT_TRUE(holds(second->bytes, kSecret));
    std::destroy_at(copy);
    EXPECT_FALSE(holds(second->bytes, kSecret)) << row->name << " of a copy";
    auto* const moved = new (second->bytes.data()) Options(std::move(*options));
    std::destroy_at(options);
    EXPECT_FALSE(holds(first->bytes, kSecret)) << row->name << " of the options that were moved from";
    ASSERT_TRUE(set_option(*moved, *row, std::string("n")));
    EXPECT_FALSE(holds(second->bytes, kSecret.substr(2))) << row->name << " that was replaced";
    std::destroy_at(moved);
  }
}

TEST(Options, WipingOverwritesAllMemoryOfAText) {
  std::string text(100, 'k');
  text.resize(3);
  const char* const memory = text.data();
  const std::size_t size = text.capacity();
  wipe(text);
  ASSERT_EQ(text.data(), memory);
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(std::count(memory, memory + size, 'k'), 0);
}

TEST(Options, EveryMemberHasExactlyOneRow) {
  // Rows that share a member, or a member without a row, would show as a change that no row, or two rows, report.
  EXPECT_EQ(option_table().size(), 87u);
  const std::vector<std::string> before = values_of(Options());
  for (std::size_t i = 0; i < option_table().size(); ++i) {
    std::visit(
        [&](const auto* row) {
          Options options;
          const std::int64_t least = std::max<std::int64_t>(row->min, 0);
          const std::int64_t other = show(options.*(row->member)) == show(value_at(*row, least)) ? least + 1 : least;
          ASSERT_TRUE(set_option(options, *row, value_at(*row, other))) << row->name;
          std::vector<std::string> after = values_of(options);
          EXPECT_NE(after[i], before[i]) << row->name;
          after[i] = before[i];
          EXPECT_EQ(after, before) << row->name;
        },
        option_table()[i]);
  }
}

TEST(Options, EveryDefaultIsInsideItsRange) {
  const Options defaults;
  for (const AnyOption& any : option_table()) {
    std::visit(
        [&](const auto* row) {
          Options options;
          auto value = defaults.*(row->member);
          EXPECT_TRUE(set_option(options, *row, value)) << row->name;
        },
        any);
  }
}

TEST(Options, BothEdgesOfEveryRangeAreAllowedAndOneMoreIsRefused) {
  for (const AnyOption& any : option_table()) {
    std::visit(
        [&](const auto* row) {
          using T = typename std::remove_reference_t<decltype(Options().*(row->member))>;
          Options options;
          if constexpr (!std::is_same_v<T, bool>) {
            EXPECT_TRUE(set_option(options, *row, value_at(*row, row->min))) << row->name;
            EXPECT_EQ(show(options.*(row->member)), show(value_at(*row, row->min))) << row->name;
            EXPECT_TRUE(set_option(options, *row, value_at(*row, row->max))) << row->name;
            EXPECT_EQ(show(options.*(row->member)), show(value_at(*row, row->max))) << row->name;
            const std::string before = show(options.*(row->member));
            // A value cannot exceed the limit of its own type. Every negative duration means "no limit".
            const bool below = std::is_same_v<T, std::string> ? false : !std::is_same_v<T, Duration> || row->min == 0;
            if (below && row->min > std::numeric_limits<std::int64_t>::min()) {
              EXPECT_EQ(set_option(options, *row, value_at(*row, row->min - 1)).error(), Errc::invalid_argument)
                  << row->name;
            }
            if (row->max < std::numeric_limits<std::int64_t>::max() &&
                !(std::is_same_v<T, int> && row->max == std::numeric_limits<int>::max())) {
              EXPECT_EQ(set_option(options, *row, value_at(*row, row->max + 1)).error(), Errc::invalid_argument)
                  << row->name;
            }
            EXPECT_EQ(show(options.*(row->member)), before) << row->name << " was changed by a refused value";
          }
        },
        any);
  }
}

TEST(Options, TheSameEdgesHoldForTexts) {
  for (const AnyOption& any : option_table()) {
    std::visit(
        [&](const auto* row) {
          using T = typename std::remove_reference_t<decltype(Options().*(row->member))>;
          Options options;
          EXPECT_TRUE(set_option(options, row->name, text_at(*row, row->min))) << row->name;
          EXPECT_TRUE(set_option(options, row->name, text_at(*row, row->max))) << row->name;
          const std::string before = show(options.*(row->member));
          if (!std::is_same_v<T, std::string>) {
            EXPECT_EQ(set_option(options, row->name, text_at(*row, row->min - 1)).error(), Errc::invalid_argument)
                << row->name;
          }
          if (row->max < std::numeric_limits<std::int64_t>::max()) {
            EXPECT_EQ(set_option(options, row->name, text_at(*row, row->max + 1)).error(), Errc::invalid_argument)
                << row->name;
          }
          EXPECT_EQ(show(options.*(row->member)), before) << row->name;
        },
        any);
  }
}

TEST(Options, TextsThatAreNoNumbersAreRefused) {
  Options options;
  for (const std::string_view text : {"", " 1", "1 ", "x", "1x", "0x10", "1.5", "+1", "99999999999999999999", "--1"}) {
    EXPECT_EQ(set_option(options, "backlog", text).error(), Errc::invalid_argument) << text;
    EXPECT_EQ(set_option(options, "linger", text).error(), Errc::invalid_argument) << text;
    EXPECT_EQ(set_option(options, "max_message_size", text).error(), Errc::invalid_argument) << text;
  }
  EXPECT_EQ(options.backlog, 100);
}

TEST(Options, BooleansAreWordsOrDigits) {
  Options options;
  for (const auto& [text, value] : {std::pair{"true", true}, {"false", false}, {"1", true}, {"0", false}}) {
    EXPECT_TRUE(set_option(options, "immediate", text));
    EXPECT_EQ(options.immediate, value);
  }
  for (const std::string_view text : {"", "yes", "True", "2", "-1", "10"}) {
    EXPECT_EQ(set_option(options, "immediate", text).error(), Errc::invalid_argument) << text;
  }
}

TEST(Options, DurationsAreMillisecondsAndMinusOneIsNoLimit) {
  Options options;
  EXPECT_TRUE(set_option(options, "linger", "250"));
  EXPECT_EQ(options.linger, milliseconds(250));
  EXPECT_TRUE(set_option(options, "linger", "-1"));
  EXPECT_LT(options.linger, Duration::zero());
  EXPECT_TRUE(set_option(options, option::linger, Duration::min()));
  EXPECT_TRUE(set_option(options, option::linger, Duration(1)));
  EXPECT_EQ(options.linger, Duration(1));
  EXPECT_EQ(set_option(options, option::heartbeat_interval, Duration(-1)).error(), Errc::invalid_argument);
}

TEST(Options, TheLastSecurityOptionThatWasSetDecidesTheMechanism) {
  Options options;
  EXPECT_EQ(options.security, Security::null);
  EXPECT_TRUE(set_option(options, option::plain_server, true));
  EXPECT_EQ(options.security, Security::plain);
  EXPECT_TRUE(set_option(options, option::curve_public_key, std::string(32, 'k')));
  EXPECT_EQ(options.security, Security::curve);
  EXPECT_TRUE(set_option(options, option::plain_username, std::string("admin")));
  EXPECT_EQ(options.security, Security::plain);
  EXPECT_FALSE(options.plain_server) << "who has a name is a client";
  EXPECT_TRUE(set_option(options, option::curve_server, true));
  EXPECT_EQ(options.security, Security::curve);
  EXPECT_TRUE(set_option(options, option::curve_server_key, std::string(32, 's')));
  EXPECT_FALSE(options.curve_server) << "who has a server's key is a client";
  EXPECT_TRUE(set_option(options, option::curve_server, false));
  EXPECT_EQ(options.security, Security::null);
  EXPECT_TRUE(set_option(options, option::zap_domain, std::string("global")));
  EXPECT_EQ(options.security, Security::null);
}

TEST(Options, ARefusalNamesTheOption) {
  Options options;
  EXPECT_STREQ(set_option(options, option::backlog, -1).error().text(), "backlog");
}

}  // namespace
}  // namespace weft
