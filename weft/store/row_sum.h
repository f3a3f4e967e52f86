// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/store/settings.h"

namespace weft::store {

// Checksums of a row's data outside of its block. A row of an older format has none, and counts as whole.
// Affinity: any thread.

// The column `topics` of a block: the topics, one a line, or empty if they are too many; then kSumMark and the checksum
// of the row in 8 hexadecimal digits. An older format had no checksum, and NULL for the empty list.
inline constexpr char kSumMark = '\x01';
inline constexpr std::size_t kSumSize = 9;

struct BlockRow {
  std::uint32_t stream;
  std::uint64_t first;
  std::uint64_t last;
  WallTime time;
};
void add_sum(std::string& topics, const BlockRow& row);

struct BlockTopics {
  std::string_view listed;  // empty: any topic may be in the block
  bool whole = true;        // the checksum of the row is right, or there is none
};
[[nodiscard]] BlockTopics read_topics(std::string_view column, const BlockRow& row) noexcept;

// The column `erased` of a value: bit 0 is the flag; bit 33 is set if bits 1 to 32 are the checksum of the row.
struct ValueRow {
  std::uint32_t stream;
  std::string_view topic;
  std::uint64_t revision;
  WallTime time;
  WallTime expires = WallTime::max();  // never
};
[[nodiscard]] std::int64_t erased_with_sum(bool erased, const ValueRow& row) noexcept;
[[nodiscard]] bool is_whole(std::int64_t column, const ValueRow& row) noexcept;
[[nodiscard]] constexpr bool is_erased(std::int64_t column) noexcept { return (column & 1) != 0; }

// The sequence after the newest one. `whole`: the last one of a row that is whole, 0 without one; `damaged`: of a row
// after it that is not, 0 without one. The store trusts the numbers of a damaged row within a million.
[[nodiscard]] std::uint64_t next_behind(std::uint64_t whole, std::uint64_t damaged) noexcept;

// The first sequence of [low, high) from which on no row is older than `time`, by bisection: times never decrease.
// `lookup(sequence)` returns the row with the sequence or the next one, or nullopt.
struct TimeRow {
  std::uint64_t first;
  std::uint64_t last;
  std::optional<WallTime> time;  // empty: the row is damaged, and counts as late
};
template <typename Lookup>
[[nodiscard]] Result<std::uint64_t> find_time(std::uint64_t low, std::uint64_t high, WallTime time, Lookup lookup) {
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const std::optional<TimeRow> row = WEFT_TRY(lookup(middle));
    if (row && row->last >= middle && row->time && *row->time < time) {
      low = row->last + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace weft::store
