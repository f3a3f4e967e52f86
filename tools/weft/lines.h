// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/sys/fd.h"

namespace weft::cli {

// Input: a file, or standard input if its name is "-". Affinity: one thread. A wait ends by Stopped.
class Input {
 public:
  Input() = default;
  explicit Input(const std::string& name);  // Failure: the file cannot be opened
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  // Adds a block of bytes; false: the end of the file.
  bool read(std::string& into);

 private:
  std::string name_;
  sys::Fd owned_;
  int fd_ = -1;
};

// LineReader: the lines of files, one file after the other; "-" is standard input.
// Affinity: one thread. A line has at most kLineMax bytes; a longer one is a Failure. A wait ends by Stopped.
class LineReader {
 public:
  static constexpr std::size_t kLineMax = std::size_t{1} << 30U;

  explicit LineReader(std::vector<std::string> files) : files_(std::move(files)) {}
  [[nodiscard]] std::optional<std::string> next();  // without its line feed

 private:
  bool open_next();

  std::vector<std::string> files_;
  std::size_t next_file_ = 0;
  std::string name_;
  Input input_;
  std::string buffer_;
  std::size_t begin_ = 0;
};

// All bytes of a file, or of standard input ("-"). Failure: it cannot be read, or has more than 1 GiB.
[[nodiscard]] std::string read_whole(const std::string& name);

}  // namespace weft::cli
