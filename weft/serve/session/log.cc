// SPDX-License-Identifier: MIT
#include "weft/serve/session/log.h"

#include <algorithm>

#include "weft/logging/line.h"

namespace weft::serve {

std::string_view describe(LogEvent event) noexcept {
  switch (event) {
    case LogEvent::session_closed: return "session_closed";
    case LogEvent::connection_rejected: return "connection_rejected";
    case LogEvent::handler_threw: return "handler_threw";
    case LogEvent::core_stalled: return "core_stalled";
  }
  return "unknown";
}

std::string_view component_of(LogEvent event) noexcept {
  switch (event) {
    case LogEvent::session_closed: return "serve.session";
    case LogEvent::connection_rejected: return "serve.admission";
    case LogEvent::handler_threw: return "serve.handler";
    case LogEvent::core_stalled: return "serve.core";
  }
  return "serve";
}

LogLevel level_of(CloseReason reason) noexcept {
  switch (reason) {
    case CloseReason::peer_closed:
    case CloseReason::service:
    case CloseReason::server_stopped: return LogLevel::info;
    case CloseReason::out_of_memory:
    case CloseReason::service_failed: return LogLevel::error;
    default: return LogLevel::warning;
  }
}

RecordFields::RecordFields(const LogRecord& record) noexcept {
  add({"core", record.core});
  if (record.session) {
    add({"session", logging::Hex{record.session.value}});
  }
  add({"peer", record.peer});
  add({"reason", record.reason});
  if (!(record.error == Errc::ok)) {
    add({"error", record.error.write_message(error_)});
  }
  if (record.event == LogEvent::handler_threw || record.event == LogEvent::core_stalled) {
    add({"what", record.what});
  }
  if (record.event == LogEvent::session_closed) {
    using std::chrono::floor;
    using std::chrono::milliseconds;
    add({"age_ms", std::max<std::int64_t>(0, floor<milliseconds>(record.age).count())});
    add({"frames_in", record.counts.frames_in});
    add({"bytes_in", record.counts.bytes_in});
    add({"frames_out", record.counts.frames_out});
    add({"bytes_out", record.counts.bytes_out});
    add({"undelivered", record.undelivered});
  }
}

void append_line(const LogRecord& record, std::string& out) {
  const RecordFields fields(record);
  const logging::LineParts parts{std::chrono::floor<std::chrono::nanoseconds>(record.time).time_since_epoch().count(),
                                 record.level, component_of(record.event), describe(record.event), fields.all()};
  std::size_t bound = 0;
  (void)logging::count_fitting(parts, bound);  // all fit: of 1 KiB at most, there are five texts
  const std::size_t before = out.size();
  out.resize(before + bound);
  logging::TimeText time;
  const char* const end = logging::write_line(parts, logging::Format::text, false, time, out.data() + before);
  out.resize(static_cast<std::size_t>(end - out.data()));
}

}  // namespace weft::serve
