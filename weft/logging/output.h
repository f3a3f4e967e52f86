// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/logging/log_counts.h"
#include "weft/sys/files/append_file.h"

namespace weft::logging {

// Rotation: a file that would exceed `bytes` becomes FILE.1, that one FILE.2, and so on to FILE.<files>.
struct Rotation {
  std::uint64_t bytes = 0;  // 0: the file grows
  std::uint32_t files = 5;  // at least 1
};

using WriterCounters = WriterNumbers<std::atomic<std::uint64_t>>;

// Output: the place of finished lines: standard error, a file that rotates, or a function.
// Owner: the writer of a Log. Affinity: the writer's thread; open() any thread.
// Cost: a system call for each write().
// Invariants:
//   1. Lines are whole. After a write that failed inside of a line, the next one begins at a new line.
//   2. A line is counted as written or as dropped_failed, once.
//   3. A file that cannot be rotated grows on. The next attempt is a second later at the earliest.
class Output {
 public:
  // Receives whole lines on the writer's thread. It may wait; then the queue fills up. Its exceptions drop the lines.
  using Function = std::function<void(std::string_view lines)>;
  // Whether to give up the wait for a pipe or a terminal that takes no bytes.
  using GiveUp = std::function<bool()>;

  // Standard error if `file` is empty. Errors: those of sys::AppendFile::open().
  [[nodiscard]] static Result<Output> open(std::string file);
  explicit Output(Function function) : function_(std::move(function)) {}

  void rotate_by(const Rotation& rotation) noexcept { rotation_ = rotation; }
  // Opens the file again, after another program has renamed it. The old one stays open if that fails. Errors: those of
  // open().
  Result<void> reopen() noexcept;
  // Whether lines begin with a priority for the journal.
  [[nodiscard]] bool takes_priorities() const noexcept { return priorities_; }

  // Writes the lines, each with its end. Counts them.
  void write(std::string_view lines, const GiveUp& give_up, WriterCounters& counters) noexcept;

 private:
  explicit Output(std::string file, sys::AppendFile opened) : name_(std::move(file)), file_(std::move(opened)) {}

  // Writes lines that fit into the file.
  void append(std::string_view lines, const GiveUp& give_up, WriterCounters& counters) noexcept;
  [[nodiscard]] std::size_t append_bytes(std::string_view bytes, const GiveUp& give_up) noexcept;
  void rotate(WriterCounters& counters) noexcept;
  [[nodiscard]] Result<void> rename_chain() const;
  // The first lines that the file takes before it is rotated; one at least.
  [[nodiscard]] std::string_view fitting(std::string_view lines) const noexcept;

  Function function_;
  std::string name_;
  sys::AppendFile file_ = sys::AppendFile::standard_error();
  Rotation rotation_{};
  Instant retry_{};    // no rotation before
  bool torn_ = false;  // the last write ended inside of a line
  bool priorities_ = false;
};

}  // namespace weft::logging
