// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/net/admit/token_bucket.h"
#include "weft/serve/session/log.h"
#include "weft/sys/thread.h"

namespace weft::serve {

struct LogWriterOptions {
  net::RateLimit lines{100, 200};        // beyond this rate, lines are suppressed and counted
  std::size_t pending_max = 256 * 1024;  // bytes that wait for a slow output; beyond, lines are suppressed, too
  // Receives whole lines, on the writer's thread; empty: standard error.
  std::function<void(std::string_view lines)> output{};
};

// LogWriter: writes records as lines in a thread of its own, so that no core waits for an output.
// Owner: the sinks that share it. When the last sink is destroyed, the writer writes the pending lines and
// waits for that.
// Affinity: any thread.
// Cost: a line is formatted into memory under a lock that guards nothing else. A record beyond the bounds
// costs the lock alone.
// Invariants:
//   1. Lines appear whole, in the order of their records.
//   2. A line `event=suppressed lines=…` reports suppressed lines, before the next line and at the end.
class LogWriter {
 public:
  // Fails with resource_exhausted if there is no thread.
  [[nodiscard]] static Result<std::shared_ptr<LogWriter>> make(LogWriterOptions options = {});
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  ~LogWriter();

  void write(const LogRecord& record);
  [[nodiscard]] std::uint64_t suppressed() const;  // lines, since make()

 private:
  explicit LogWriter(LogWriterOptions options) : options_(std::move(options)) {}
  void run();
  void report_suppressed(std::chrono::system_clock::time_point time);

  const LogWriterOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string pending_;  // guarded by mutex_, like the next four
  net::TokenBucket bucket_;
  std::uint64_t suppressed_ = 0;
  std::uint64_t reported_ = 0;  // the part of suppressed_ that earlier lines reported
  bool ending_ = false;
  sys::Thread thread_;
};

// Returns a sink for ServerOptions::log that writes lines of logfmt to standard error. Errors: those of make().
[[nodiscard]] Result<LogSink> log_to_stderr(LogWriterOptions options = {});

}  // namespace weft::serve
