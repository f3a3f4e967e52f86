// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/store/database.h"
#include "weft/store/settings.h"

namespace weft::store {

// Rows: resets a statement at the end of a scope, also when a reader leaves its rows early.
class Rows {
 public:
  explicit Rows(Statement& statement) noexcept : statement_(statement) {}
  ~Rows() { statement_.reset(); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

 private:
  Statement& statement_;
};

// Times in the tables' form: ns since 1970.
[[nodiscard]] inline WallTime wall_time(std::int64_t ns) noexcept { return WallTime(Duration(ns)); }
[[nodiscard]] inline std::int64_t ns_of(WallTime time) noexcept { return time.time_since_epoch().count(); }
// A column `expires`: NULL is never. The time of a damaged one is not before 1970.
[[nodiscard]] inline WallTime expiry_at(const Statement& row, int column) noexcept {
  return row.is_null(column) ? WallTime::max() : std::max(wall_time(row.number(column)), WallTime());
}
inline Statement& set_expiry(Statement& statement, int parameter, WallTime expires) noexcept {
  return expires == WallTime::max() ? statement : statement.set(parameter, ns_of(expires));
}

// Numbers as 1 to 10 bytes: seven bits a byte, the lowest first; the highest bit is set if another byte follows.
inline void write_varint(std::vector<std::uint8_t>& to, std::uint64_t value) {
  while (value >= 0x80U) {
    to.push_back(static_cast<std::uint8_t>(value | 0x80U));
    value >>= 7U;
  }
  to.push_back(static_cast<std::uint8_t>(value));
}

// Takes a number from the front of `from`. Returns false if there is none, or it exceeds 64 bits.
[[nodiscard]] inline bool read_varint(Bytes& from, std::uint64_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const std::uint8_t byte = from[0];
    from = from.subspan(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) {
      return shift < 63 || byte <= 1;
    }
  }
  return false;
}

}  // namespace weft::store
