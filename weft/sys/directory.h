// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"

namespace weft::sys {

// The directory for sockets of this user's programs: $XDG_RUNTIME_DIR/weft, or /tmp/weft-UID. Not made yet.
[[nodiscard]] std::string runtime_directory();
// Makes the directory with mode 0700 if it is not there; its parent is. invalid_state: there is one that belongs to
// another user or that others may enter, or the path names no directory; the errors of the system.
[[nodiscard]] Result<void> make_owned_directory(const std::string& path);
// The directory for what this user's programs keep: $XDG_STATE_HOME/weft, or ~/.local/state/weft. Makes it and its
// parents. invalid_state: as make_owned_directory(), or there is no home; the errors of the system.
[[nodiscard]] Result<std::string> make_state_directory();
// The names of the entries, at most `most`, without "." and "..", in no order. Errors of the system.
[[nodiscard]] Result<std::vector<std::string>> list_directory(const std::string& path, std::size_t most);
[[nodiscard]] int process_id() noexcept;
[[nodiscard]] std::int64_t user_id() noexcept;  // the effective one

}  // namespace weft::sys
