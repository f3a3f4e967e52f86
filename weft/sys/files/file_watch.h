// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/sys/fd.h"

namespace weft::sys {

// FileWatch: notices that one of some paths has another content: the file was written, or the path names another file,
// because one was renamed over it or over a symbolic link in its directory (inotify on the directories).
// Owner: a move-only value. Affinity: one thread. Cost: a descriptor; nothing between changes of the directories.
// If a directory itself is removed or replaced, the watch notices no more in it.
class FileWatch {
 public:
  // Errors: not_found (there is no such directory); resource_exhausted (no descriptor or no watch); those of the
  // system.
  [[nodiscard]] static Result<FileWatch> open(std::span<const std::string> paths);

  // Readable after an event in one of the directories.
  [[nodiscard]] int fd() const noexcept { return events_.fd(); }
  // Takes all events. Returns whether a path may have another content than at the last call, or than at open(). It may
  // return true without a change, and misses none.
  [[nodiscard]] bool take_change() noexcept;

 private:
  struct Identity {  // zeros: there is no file
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t size = 0;
    std::int64_t modified_ns = 0;
    friend bool operator==(const Identity&, const Identity&) noexcept = default;
  };

  struct File {
    std::string path;
    std::string name;  // in its directory
    Identity last;
  };

  FileWatch(Fd events, std::vector<File> files) noexcept : events_(std::move(events)), files_(std::move(files)) {}
  [[nodiscard]] static Identity identify(const std::string& path) noexcept;

  Fd events_;
  std::vector<File> files_;
};

}  // namespace weft::sys
