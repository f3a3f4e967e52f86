// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "weft/base/result.h"
#include "weft/sys/fd.h"

namespace weft::sys {

// The file that a path names at the moment: two paths with equal identities are one file.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool is_socket = false;
  bool is_empty = false;  // a plain file of 0 bytes

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Does not follow a symbolic link. address_unavailable: there is no such file.
[[nodiscard]] Result<FileIdentity> identify_file(const std::string& path) noexcept;
[[nodiscard]] Result<void> remove_file(const std::string& path) noexcept;
[[nodiscard]] Result<void> remove_directory(const std::string& path) noexcept;
// A new directory of mode 0700 below $TMPDIR or /tmp.
[[nodiscard]] Result<std::string> make_private_directory();
// Takes the exclusive advisory lock of the directory that holds `path`, until the Fd closes. Returns an
// invalid Fd when another process keeps the lock for 1000 attempts, or when the directory cannot be opened.
[[nodiscard]] Fd lock_parent_directory(const std::string& path);
// Opens the file, or makes it with mode 0600, and takes its exclusive advisory lock, which the kernel drops when the Fd
// closes or the process dies, however it dies. Does not follow a symbolic link and does not wait. would_block: another
// open file has the lock.
[[nodiscard]] Result<Fd> lock_file(const std::string& path) noexcept;
// Makes an empty file with mode 0600; one that is there stays as it is.
[[nodiscard]] Result<void> make_private_file(const std::string& path) noexcept;
[[nodiscard]] std::string absolute_path(const std::string& path);

}  // namespace weft::sys
