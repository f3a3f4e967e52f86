// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

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

}  // namespace weft::store
