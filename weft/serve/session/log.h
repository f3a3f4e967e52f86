// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "weft/base/error.h"
#include "weft/base/time.h"
#include "weft/serve/metrics/counters.h"
#include "weft/serve/session/session_id.h"

namespace weft::serve {

enum class LogLevel : std::uint8_t {
  info,     // as it should be: the peer, the service or the server closed
  warning,  // the peer's doing, or a bound that it met
  error,    // ours: the service threw, memory ran out
};
enum class LogEvent : std::uint8_t {
  session_closed,       // one for each session
  connection_rejected,  // one for each connection that never was one
};
[[nodiscard]] std::string_view describe(LogLevel level) noexcept;  // "info"
[[nodiscard]] std::string_view describe(LogEvent event) noexcept;  // "session_closed"

// What one session moved.
struct SessionCounts {
  std::uint64_t frames_in = 0, bytes_in = 0;
  std::uint64_t frames_out = 0, bytes_out = 0;  // frames that were taken for sending; bytes that were written
};

// LogRecord: how a connection ended. Its texts live as long as the call that it is given to.
struct LogRecord {
  std::chrono::system_clock::time_point time{};
  LogLevel level = LogLevel::info;
  LogEvent event = LogEvent::session_closed;
  unsigned core = 0;
  SessionId session{};        // of session_closed
  std::string_view peer{};    // its address, or what a unix peer calls itself: any bytes
  std::string_view reason{};  // describe() of the CloseReason or Rejection: under which count it is
  Error error{};              // the particulars, if any
  Duration age{};             // since it was accepted
  SessionCounts counts{};
  std::uint64_t undelivered = 0;  // frames that were queued for it
};

// Who is told. Called by every core, on several at a time, in the middle of its work: it must not wait. What it throws
// is dropped.
using LogSink = std::function<void(const LogRecord&)>;

[[nodiscard]] LogLevel level_of(CloseReason reason) noexcept;

// Appends the record as one line of logfmt: `time=… level=warning event=session_closed core=0 session=0x… peer=… …`.
// Values that are not plain words are quoted, with the escapes of JSON; whatever is not printable ASCII is escaped,
// what is no UTF-8 is U+FFFD, and what is longer than kLogTextMax bytes is cut: no peer can forge a line or steer a
// terminal.
inline constexpr std::size_t kLogTextMax = 256;
void append_line(const LogRecord& record, std::string& out);
// `… level=warning event=suppressed lines=3`
void append_suppressed_line(std::chrono::system_clock::time_point time, std::uint64_t lines, std::string& out);
void append_log_value(std::string_view value, std::string& out);  // one value, as it stands in a line

}  // namespace weft::serve
