// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/sys/fd.h"

namespace weft::cli {

// LineReader: the lines of files, one file after the other; "-" is standard input.
// Affinity: one thread. A line has at most kLineMax bytes; a longer one is a Failure. A wait ends by Stopped.
class LineReader {
 public:
  static constexpr std::size_t kLineMax = std::size_t{1} << 30U;

  explicit LineReader(std::vector<std::string> files) : files_(std::move(files)) {}
  [[nodiscard]] std::optional<std::string> next();  // without its line feed

 private:
  bool open_next();
  bool read_block();  // false: the end of the file

  std::vector<std::string> files_;
  std::size_t next_file_ = 0;
  std::string name_;
  sys::Fd owned_;
  int fd_ = -1;
  std::string buffer_;
  std::size_t begin_ = 0;
};

}  // namespace weft::cli
