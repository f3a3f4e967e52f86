// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sys/fd.h"

namespace weft::sys {

// AppendFile: a file, a pipe or a terminal to which a thread appends text.
// Owner: a move-only value. Affinity: one thread. Cost: a descriptor.
// The calling thread has SIGPIPE and SIGXFSZ blocked (SignalsBlocked) until it ends: a pipe without a reader and a file
// at its limit are then errors of append().
class AppendFile {
 public:
  // Opens the path for writing at its end, and makes a file of mode 0640 if there is none. Errors: not_found (there is
  // no such directory, or no reader of a FIFO); not_permitted; invalid_argument (a directory or a socket);
  // resource_exhausted (no descriptor); those of the system.
  [[nodiscard]] static Result<AppendFile> open(const std::string& path) noexcept;
  // Descriptor 2, which stays open, and follows a later redirection.
  [[nodiscard]] static AppendFile standard_error() noexcept;

  [[nodiscard]] bool is_regular() const noexcept { return regular_; }
  [[nodiscard]] std::uint64_t size() const noexcept {
    return size_;
  }  // of a regular file, with the bytes of this object alone

  // Writes bytes from the front, and returns their number. It waits for a pipe and a terminal at most for `wait`, and
  // returns 0 if they then have no room. It waits for a regular file only as long as its disk takes. Errors: closed (a
  // pipe without a reader); resource_exhausted (the disk is full, or the file is at a limit); those of the system.
  [[nodiscard]] Result<std::size_t> append(Bytes bytes, Duration wait) noexcept;

  // Whether systemd connected this file to its journal (JOURNAL_STREAM), which takes "<4>" at a line's start for a
  // priority.
  [[nodiscard]] bool leads_to_journal() const noexcept;

 private:
  AppendFile(Fd own, int fd, bool regular, std::uint64_t size) noexcept
      : own_(std::move(own)), fd_(fd), size_(size), regular_(regular) {}

  Fd own_;
  int fd_;
  std::uint64_t size_;
  bool regular_;
};

// Renames a file over another one, at once. Errors: not_found; not_permitted; those of the system.
[[nodiscard]] Result<void> rename_file(const std::string& from, const std::string& to) noexcept;

}  // namespace weft::sys
