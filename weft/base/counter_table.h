// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class CounterKind : std::uint8_t {
  counter,  // only grows
  gauge,    // goes up and down
};

// CounterRow: the facts of one number that Weft counts. Affinity: immutable; all text is static storage.
struct CounterRow {
  std::string_view member;  // of the C++ structs
  std::string_view metric;  // after "weft_<thing>_"; rows with the same metric stand side by side
  CounterKind kind;
  std::string_view label;  // separates the rows of one metric; empty: the metric has one row
  std::string_view label_value;
  std::string_view unit;   // the counted thing, in plural
  std::string_view help;   // of rows with a label: the shared text, a colon, the meaning of this row
  std::string_view where;  // the file below weft/ that counts

  // The text that the rows of this metric share.
  [[nodiscard]] constexpr std::string_view shared_help() const noexcept {
    return label.empty() ? help : help.substr(0, help.find(':'));
  }
};

// CounterTable: the numbers of one kind of thing. Its rows are the only list of them: sync/counter_block.h makes the
// structs that count and add from the same list. Affinity: immutable.
struct CounterTable {
  std::string_view thing;  // "server": metrics are called weft_server_…
  std::string_view help;   // the object, and the call that adds it to a page
  std::span<const CounterRow> rows;
};

struct CounterLabel {
  std::string name;
  std::string value;

  friend auto operator<=>(const CounterLabel&, const CounterLabel&) = default;
};

// CounterReading: the numbers of one thing at one moment.
struct CounterReading {
  const CounterTable* table = nullptr;
  std::vector<CounterLabel> labels;   // which thing it is
  std::vector<std::uint64_t> values;  // in the order of the table's rows
};
using CounterReadings = std::vector<CounterReading>;

// CounterSource: appends the readings of something that is called `name`; none once that has ended. Affinity: any
// thread. It neither waits for a core nor stops one.
using CounterSource = std::function<void(std::string_view name, CounterReadings& into)>;

}  // namespace weft
