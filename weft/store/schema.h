// SPDX-License-Identifier: MIT
#pragma once

#include "weft/base/result.h"
#include "weft/store/database.h"

namespace weft::store {

// The tables of a store. The format is the number of steps that made them; each step converts the tables of the format
// before it to the next one.
inline constexpr int kFormat = 6;

// The first character of the name of a removed stream whose rows still exist. No other name has it.
inline constexpr char kGoneMark = '\x01';

// Opens the file and brings it to kFormat. Errors: not_supported (a newer build made the file); corrupt (the file is
// another program's); those of Database::open. After an error the file is unchanged.
[[nodiscard]] Result<Database> open_database(const DatabaseOptions& options);

}  // namespace weft::store
