// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "weft/base/error.h"
#include "weft/base/time.h"
#include "weft/serve/metrics/counters.h"
#include "weft/serve/session/session_id.h"

namespace weft::serve {

enum class LogLevel : std::uint8_t {
  info,     // a regular end: the peer, the service or the server closed
  warning,  // caused by the peer, or by a bound that the peer met
  error,    // caused by the server: the service threw, or memory ran out
};
enum class LogEvent : std::uint8_t {
  session_closed,       // one for each session
  connection_rejected,  // one for each connection that became no session
  handler_threw,        // one for each exception of a service, or of a handler of a dispatcher
  core_stalled,         // one for each turn of a core that lasts for stall_after
};
[[nodiscard]] std::string_view describe(LogLevel level) noexcept;  // "info"
[[nodiscard]] std::string_view describe(LogEvent event) noexcept;  // "session_closed"

// Frames and bytes of one session.
struct SessionCounts {
  std::uint64_t frames_in = 0, bytes_in = 0;
  std::uint64_t frames_out = 0, bytes_out = 0;  // frames: taken by send(); bytes: written
};

// LogRecord: how a connection ended. Its texts are valid during the call of the sink.
struct LogRecord {
  std::chrono::system_clock::time_point time{};
  LogLevel level = LogLevel::info;
  LogEvent event = LogEvent::session_closed;
  unsigned core = 0;
  SessionId session{};        // for all but connection_rejected, if it is about a session
  std::string_view peer{};    // its address, or the name that a unix peer chose: any bytes
  std::string_view reason{};  // describe() of the CloseReason or Rejection that counts it
  Error error{};              // the cause, if there is one
  Duration age{};             // time since accept
  SessionCounts counts{};
  std::uint64_t undelivered = 0;  // frames that were queued and not written
  std::string_view what{};  // for handler_threw: the text of the exception; for core_stalled: the running activity
};

// HandlerException: an exception of a service, or of a handler of a dispatcher. Valid during the call of its function.
struct HandlerException {
  unsigned core = 0;
  SessionId session{};
  std::string_view what{};
  std::exception_ptr exception{};
};
// The program's function for them. Every core calls it, several at a time, inside the core's turn: it must not wait.
// Its exceptions are dropped.
using HandlerExceptionSink = std::function<void(const HandlerException&)>;

// The program's log function. Every core calls it, several at a time, inside the core's turn: it must not wait.
// Its exceptions are dropped.
using LogSink = std::function<void(const LogRecord&)>;

[[nodiscard]] LogLevel level_of(CloseReason reason) noexcept;

// Appends the record as one line of logfmt: `time=… level=warning event=session_closed core=0 session=0x… peer=… …`. A
// value that is not a plain word is quoted, with the escapes of JSON. Characters other than printable ASCII are
// escaped, bytes that are not UTF-8 become U+FFFD, and a value longer than kLogTextMax bytes is cut. So no peer can
// forge a line or send a terminal a command.
inline constexpr std::size_t kLogTextMax = 256;
void append_line(const LogRecord& record, std::string& out);
// `… level=warning event=suppressed lines=3`
void append_suppressed_line(std::chrono::system_clock::time_point time, std::uint64_t lines, std::string& out);
void append_log_value(std::string_view value, std::string& out);  // one value, like in a line

}  // namespace weft::serve
