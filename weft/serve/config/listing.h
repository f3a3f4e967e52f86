// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "weft/serve/config/config.h"

namespace weft::serve::config {

// Entry: a key with its default and its value, as texts.
struct Entry {
  std::string name;          // "listener[0].backlog"; "listener[].backlog" without a configuration
  const Key* key = nullptr;  // null: a key that the program takes without a row
  std::string fallback{};
  std::string value{};
  std::string origin{};  // where it was set; empty: the default
};

// Every key of a configuration in use, and of its listeners; without one (null) every key that there is. The entries
// refer to the keys of the tables and of `program`.
[[nodiscard]] std::vector<Entry> list_entries(const Snapshot* now, const ProgramKeys& program);

}  // namespace weft::serve::config
