// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/sys/fd.h"
#include "weft/sys/socket.h"

namespace weft::sys {

// A file that is open to be read, or a directory.
struct OpenFile {
  Fd fd;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;  // since 1970, in UTC
  bool is_directory = false;
};

// FileTree: the regular files below a directory, for paths that strangers choose. No path leads out of the directory:
// neither "..", nor a symbolic link, which is followed nowhere below it, nor a change of the tree during the call.
// Affinity: immutable; any thread. Cost: open_file() is one system call for the path (openat2), and one for its size; a
// kernel without openat2 takes one for each segment.
class FileTree {
 public:
  // Errors of the system; address_unavailable: there is no such directory.
  [[nodiscard]] static Result<FileTree> open(const std::string& directory) noexcept;

  // Opens "a/b.txt", for reading. Errors: invalid_argument: the path begins or ends with '/', or has a segment that is
  // empty, "." or "..", or a byte 0; not_found: there is no regular file and no directory of that name, or a symbolic
  // link is on the way; not_permitted; resource_exhausted: the process has no descriptor left; those of the system.
  [[nodiscard]] Result<OpenFile> open_file(const std::string& path) const noexcept;
  // The same without openat2.
  [[nodiscard]] Result<OpenFile> open_by_segments(const std::string& path) const noexcept;

 private:
  explicit FileTree(Fd root) noexcept : root_(std::move(root)) {}

  Fd root_;
};

// Reads from that offset. Fewer bytes: the file ends there. It waits for the disk.
[[nodiscard]] Result<std::size_t> read_file_at(int file, std::uint64_t offset, MutableBytes into) noexcept;
// Writes bytes of a file to a socket without a copy in this process (sendfile). `done` with 0 bytes: the file ends
// before. It does not wait for the socket, but for the disk.
[[nodiscard]] IoResult send_file(int socket, int file, std::uint64_t offset, std::size_t size) noexcept;

}  // namespace weft::sys
