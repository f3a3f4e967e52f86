// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/error.h"
#include "weft/base/time.h"
#include "weft/logging/field.h"
#include "weft/logging/level.h"
#include "weft/serve/metrics/counters.h"
#include "weft/serve/session/session_id.h"

namespace weft::serve {

// info: a regular end: the peer, the service or the server closed; warning: caused by the peer, or by a bound that the
// peer met; error: caused by the server: the service threw, or memory ran out.
using LogLevel = logging::Level;
enum class LogEvent : std::uint8_t {
  session_closed,       // one for each session
  connection_rejected,  // one for each connection that became no session
  handler_threw,        // one for each exception of a service, or of a handler of a dispatcher
  core_stalled,         // one for each turn of a core that lasts for stall_after
};
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

// RecordFields: a record as the fields of a line. Owner: a value; it views the record's texts. Affinity: one thread.
class RecordFields {
 public:
  explicit RecordFields(const LogRecord& record) noexcept;
  RecordFields(const RecordFields&) = delete;
  RecordFields& operator=(const RecordFields&) = delete;

  [[nodiscard]] std::span<const logging::Field> all() const noexcept { return {fields_.data(), count_}; }

 private:
  void add(const logging::Field& field) noexcept { fields_[count_++] = field; }

  std::array<char, 256> error_;
  std::array<logging::Field, 12> fields_{};
  std::size_t count_ = 0;
};
// "serve.session": the component of the event's lines.
[[nodiscard]] std::string_view component_of(LogEvent event) noexcept;
// Appends the record as one line of logfmt, as record_log.h writes it: `time=… level=warning component=serve.session
// event=session_closed core=0 session=0x… peer=… …`.
void append_line(const LogRecord& record, std::string& out);

}  // namespace weft::serve
