// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "weft/base/result.h"

// A directory and a file of this user that the members of one group reach, and no other user.
// Affinity: any thread. Cost: some system calls; group_id() reads the system's table of groups.
namespace weft::sys {

// The number of a group: by its name, or its digits. Errors: not_found; those of the system.
[[nodiscard]] Result<std::uint32_t> group_id(const std::string& name);
[[nodiscard]] std::uint32_t own_group() noexcept;  // of this process
// Makes the directory with mode 0750 for the group if it is not there; its parent is. An existing directory stays as it
// is. Errors: invalid_state (it is another user's or another group's, a member could write to it or could not enter
// it, or others may enter it; or the path names no directory); not_permitted (this user is not a member of the group);
// those of the system.
[[nodiscard]] Result<void> make_group_directory(const std::string& path, std::uint32_t group);
// The file, in such a directory, gets the group and mode 0660. Errors: those of the system.
[[nodiscard]] Result<void> give_to_group(const std::string& path, std::uint32_t group);

}  // namespace weft::sys
