// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/counter_table.h"

// A list of counters is a macro that calls ROW once for each of them:
//
//   #define WEFT_POOL_COUNTERS(ROW)
//     ROW(waited, counter, "waits_total", "", "", "requests", "Requests that waited.", "serve/client/client_pool.h")
//
// The arguments after the member are those of CounterRow, in that order. From the list are made: the members of the
// struct that counts (Number is sync::Counter or std::atomic) and of the struct of plain values, by
// WEFT_COUNTER_BLOCK in a template with the parameter Number; and the rows of a CounterTable, by WEFT_COUNTER_ROW.
// A new counter is a row, and the line that counts.
#define WEFT_COUNTER_MEMBER(member, ...) Number member{};
#define WEFT_COUNTER_VISIT(member, ...) visitor(blocks.member...);
#define WEFT_COUNTER_ROW(member, kind, metric, label, value, unit, help, where) \
  ::weft::CounterRow{#member, metric, ::weft::CounterKind::kind, label, value, unit, help, where},

// The members, and visit(visitor, blocks...), which calls visitor(a.member, b.member, ...) in the order of the rows.
#define WEFT_COUNTER_BLOCK(LIST)                                      \
  LIST(WEFT_COUNTER_MEMBER)                                           \
  template <typename Visitor, typename... Blocks>                     \
  static constexpr void visit(Visitor&& visitor, Blocks&... blocks) { \
    LIST(WEFT_COUNTER_VISIT)                                          \
  }

namespace weft::sync {

// Relaxed: a number stands alone.
template <typename Number>
[[nodiscard]] constexpr std::uint64_t number_of(const Number& number) noexcept {
  if constexpr (std::integral<Number>) {
    return static_cast<std::uint64_t>(number);
  } else if constexpr (requires { number.value(); }) {
    return number.value();
  } else {
    return number.load(std::memory_order_relaxed);
  }
}

// Adds the numbers of a block that counts, or of other values, to plain values.
template <typename Values, typename Block>
void add_counters(Values& values, const Block& block) noexcept {
  Values::visit([](auto& sum, const auto& number) { sum += number_of(number); }, values, block);
}

// How much was counted since `before`; gauges stay as they are now.
template <typename Values>
[[nodiscard]] Values counters_since(Values now, const Values& before, std::span<const CounterRow> rows) noexcept {
  std::size_t row = 0;
  Values::visit(
      [&](auto& number, const auto& earlier) {
        if (rows[row++].kind == CounterKind::counter) {
          number -= earlier;
        }
      },
      now, before);
  return now;
}

// The numbers in the order of the rows.
template <typename Block>
[[nodiscard]] std::vector<std::uint64_t> read_counters(const Block& block) {
  std::vector<std::uint64_t> values;
  Block::visit([&](const auto& number) { values.push_back(number_of(number)); }, block);
  return values;
}

// For a static_assert: how many rows the table of these values has.
template <typename Values>
[[nodiscard]] consteval std::size_t count_of_rows() {
  Values values{};
  std::size_t count = 0;
  Values::visit([&count](auto& /*number*/) { ++count; }, values);
  return count;
}

}  // namespace weft::sync
