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
#include "weft/serve/admission/token_bucket.h"
#include "weft/serve/session/log.h"
#include "weft/sys/thread.h"

namespace weft::serve {

struct LogWriterOptions {
  RateLimit lines{100, 200};                             // beyond, lines are suppressed and counted
  std::size_t pending_max = 256 * 1024;                  // bytes that wait for an output that is slow; beyond, the same
  std::function<void(std::string_view lines)> output{};  // whole lines, on the writer's thread; empty: standard error
};

// LogWriter: records to lines, written by a thread of its own, so that no core waits for an output.
// Owner: the sinks that share it; with the last of them it writes what is pending, and waits for that. Affinity: any
// thread. Cost: a line is formatted into memory behind a lock that is held for nothing else; a record beyond the bounds
// costs the lock alone. Invariants: 1. lines come in the order of their records, whole. 2. what was suppressed is told
// by a line `event=suppressed lines=…` before the next one, and at the end.
class LogWriter {
 public:
  // resource_exhausted: no thread.
  [[nodiscard]] static Result<std::shared_ptr<LogWriter>> make(LogWriterOptions options = {});
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  ~LogWriter();

  void write(const LogRecord& record);
  [[nodiscard]] std::uint64_t suppressed() const;  // lines, in all

 private:
  explicit LogWriter(LogWriterOptions options) : options_(std::move(options)) {}
  void run();
  void tell_suppressed(std::chrono::system_clock::time_point time);

  const LogWriterOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string pending_;  // guarded by mutex_, as the next
  TokenBucket bucket_;
  std::uint64_t suppressed_ = 0;
  std::uint64_t told_ = 0;  // of suppressed_
  bool ending_ = false;
  sys::Thread thread_;
};

// A sink for ServerOptions::log: lines of logfmt on standard error. Errors: as make().
[[nodiscard]] Result<LogSink> log_to_stderr(LogWriterOptions options = {});

}  // namespace weft::serve
