// SPDX-License-Identifier: MIT
#pragma once

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

}  // namespace weft::store
