// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/weft/lines.h"
#include "weft/base/time.h"

namespace weft::cli {

using Parts = std::vector<std::string>;

// The messages that a command sends.
struct SourceOptions {
  Parts parts{};                     // of one message
  std::vector<std::string> files{};  // each is one message; "-" is standard input
  std::vector<std::string> lines{};  // files whose lines are messages
  std::uint64_t count = 0;           // 0: all of them; a message of `parts` once
  double rate = 0;                   // messages a second; 0: as fast as receivers take them
  double interval = 0;               // seconds between two
  bool hex = false;
};

// Source: the messages of the command line, of files, or without both the lines of standard input, at their pace.
// Affinity: one thread. A wait ends by Stopped. A message has at most 1 GiB.
class Source {
 public:
  explicit Source(const SourceOptions& options);  // throws Usage
  std::optional<Parts> next();

 private:
  std::optional<Parts> take();
  void pace();

  SourceOptions options_;
  LineReader lines_;
  std::size_t next_file_ = 0;
  std::uint64_t given_ = 0;
  Duration interval_{0};
  Instant due_{};
};

}  // namespace weft::cli
