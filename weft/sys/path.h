// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
// Makes an empty file with mode 0600; one that is there stays as it is. Opens no descriptor: the close of any one drops
// the POSIX locks that this process has on the file. invalid_state: the path names something else than a plain file.
[[nodiscard]] Result<void> make_private_file(const std::string& path) noexcept;
[[nodiscard]] std::string absolute_path(const std::string& path);

// The directory for sockets of this user's programs: $XDG_RUNTIME_DIR/weft, or /tmp/weft-UID. Not made yet.
[[nodiscard]] std::string runtime_directory();
// Makes the directory with mode 0700 if it is not there; its parent is. invalid_state: there is one that belongs to
// another user or that others may enter, or the path names no directory; the errors of the system.
[[nodiscard]] Result<void> make_owned_directory(const std::string& path);
// The directory for the data of this user's programs: $XDG_STATE_HOME/weft, or ~/.local/state/weft. Makes it and its
// parents. Errors: invalid_state (the reasons of make_owned_directory(), or there is no home); those of the system.
[[nodiscard]] Result<std::string> make_state_directory();
// The names of the entries, at most `most`, without "." and "..", in no order. Errors of the system.
[[nodiscard]] Result<std::vector<std::string>> list_directory(const std::string& path, std::size_t most);
// The environment variables of the process, "NAME=value" each. No other thread changes them meanwhile.
[[nodiscard]] std::vector<std::string> environment();
[[nodiscard]] int process_id() noexcept;
[[nodiscard]] std::int64_t user_id() noexcept;  // the effective one

}  // namespace weft::sys
