// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "weft/base/result.h"
#include "weft/sys/fd.h"

namespace weft::sys {

// Which file a path names at the moment: two paths with equal identities are one file.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool is_socket = false;
  bool is_empty = false;  // a plain file without a byte

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Does not follow a symbolic link. address_unavailable when there is no such file.
[[nodiscard]] Result<FileIdentity> identify_file(const std::string& path) noexcept;
[[nodiscard]] Result<void> remove_file(const std::string& path) noexcept;
[[nodiscard]] Result<void> remove_directory(const std::string& path) noexcept;
// A new directory of mode 0700 below $TMPDIR or /tmp.
[[nodiscard]] Result<std::string> make_private_directory();
// Takes the exclusive advisory lock of the directory that holds `path`, until the Fd closes. Gives up soon and quietly,
// with an invalid Fd, when somebody keeps the lock or the directory cannot be opened.
[[nodiscard]] Fd lock_parent_directory(const std::string& path);
[[nodiscard]] std::string absolute_path(const std::string& path);

}  // namespace weft::sys
