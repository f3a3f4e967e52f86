// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "weft/base/result.h"
#include "weft/sys/fd.h"

namespace weft::sys {

// FileWatch: notices that a path has another content: the file was written, or the path names another file, because
// one was renamed over it or over a symbolic link in its directory (inotify on the directory).
// Owner: a move-only value. Affinity: one thread. Cost: a descriptor; nothing between changes of the directory.
// If the directory itself is removed or replaced, the watch notices no more.
class FileWatch {
 public:
  // Errors: not_found (there is no such directory); resource_exhausted (no descriptor or no watch); those of the
  // system.
  [[nodiscard]] static Result<FileWatch> open(const std::string& path);

  // Readable after an event in the directory.
  [[nodiscard]] int fd() const noexcept { return events_.fd(); }
  // Takes all events. Returns whether the path may have another content than at the last call, or than at open(). It
  // may return true without a change, and misses none.
  [[nodiscard]] bool take_change() noexcept;

 private:
  struct Identity {  // zeros: there is no file
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t size = 0;
    std::int64_t modified_ns = 0;
    friend bool operator==(const Identity&, const Identity&) noexcept = default;
  };

  FileWatch(Fd events, std::string path, std::string name) noexcept
      : events_(std::move(events)), path_(std::move(path)), name_(std::move(name)), last_(identity()) {}
  [[nodiscard]] Identity identity() const noexcept;

  Fd events_;
  std::string path_;
  std::string name_;  // in the directory
  Identity last_;
};

}  // namespace weft::sys
