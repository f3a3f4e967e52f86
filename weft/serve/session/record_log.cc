// SPDX-License-Identifier: MIT
#include "weft/serve/session/record_log.h"

#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace weft::serve {

namespace {

constexpr std::array<LogEvent, 4> kEvents{LogEvent::session_closed, LogEvent::connection_rejected,
                                          LogEvent::handler_threw, LogEvent::core_stalled};

// RecordLog: a logger for each event, in the order of LogEvent.
struct RecordLog {
  std::array<logging::Logger, kEvents.size()> loggers{};

  void write(const LogRecord& record) const noexcept {
    const logging::Logger& logger = loggers[static_cast<std::size_t>(record.event)];
    if (logger.writes(record.level)) {
      const RecordFields fields(record);
      // describe() returns a literal.
      logger.write_fields(record.level, StaticText::of_immortal(describe(record.event).data()), fields.all());
    }
  }
};

}  // namespace

Result<LogSink> log_records(logging::Log& log) {
  try {
    const auto records = std::make_shared<RecordLog>();
    for (const LogEvent event : kEvents) {
      records->loggers[static_cast<std::size_t>(event)] = WEFT_TRY(log.logger(component_of(event)));
    }
    return LogSink([records](const LogRecord& record) { records->write(record); });
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for a log");
  }
}

Result<LogSink> log_to_stderr(logging::LogOptions options) {
  const auto log = WEFT_TRY(logging::Log::make(std::move(options)));
  LogSink sink = WEFT_TRY(log_records(*log));
  return LogSink([log, sink = std::move(sink)](const LogRecord& record) { sink(record); });
}

}  // namespace weft::serve
