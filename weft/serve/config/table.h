// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "weft/serve/config/key.h"
#include "weft/serve/config/settings.h"

// The table of keys: each is one row, which has its name, bounds and sentence, and the member that it sets. The parser,
// the environment, reload() and `weft config` have no other list.
namespace weft::serve::config {

template <typename Of>
struct Row {
  Key key;
  Value (*read)(const Of& from);
  // Returns false, and the reason, if the value is not one of the member. Only lists of prefixes have such values.
  bool (*write)(Of& into, const Value& value, std::string& why);
};

[[nodiscard]] std::span<const Row<Settings>> settings_rows();          // [server], [stop], [admin], [logging]
[[nodiscard]] std::span<const Row<ListenerSettings>> listener_rows();  // [[listener]]

}  // namespace weft::serve::config
