// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/counter_table.h"
#include "weft/sync/counter_block.h"

namespace weft::logging {

// clang-format off
// The counters of threads that log. Each counts in one of a few blocks.
#define WEFT_LOG_STRIPE_COUNTERS(ROW)                                                                                 \
  ROW(lines, counter, "lines_total", "", "", "lines",                                                                 \
      "Lines that were taken into the queue.", "logging/line_queue.cc")                                               \
  ROW(suppressed, counter, "lines_suppressed_total", "", "", "lines",                                                 \
      "Lines beyond `repeats_max`. A line `event=suppressed` reports them.", "logging/line_queue.cc")                 \
  ROW(fields_dropped, counter, "fields_dropped_total", "", "", "fields",                                              \
      "Fields that had no room in their line.", "logging/line_queue.cc")                                              \
  ROW(dropped_queue, counter, "lines_dropped_total", "reason", "queue_bytes", "lines",                                \
      "Lines that no output got: `queue_bytes` waited.", "logging/line_queue.cc")                                     \
  ROW(dropped_memory, counter, "lines_dropped_total", "reason", "no_memory", "lines",                                 \
      "Lines that no output got: there was no memory.", "logging/line_queue.cc")                                      \
  ROW(dropped_forked, counter, "lines_dropped_total", "reason", "forked", "lines",                                    \
      "Lines that no output got: they are of a forked child, which has no writer.", "logging/line_queue.cc")          \
  ROW(dropped_stopped, counter, "lines_dropped_total", "reason", "stopped", "lines",                                  \
      "Lines that no output got: the log had stopped.", "logging/line_queue.cc")

// The counters of the writer.
#define WEFT_LOG_WRITER_COUNTERS(ROW)                                                                                 \
  ROW(dropped_failed, counter, "lines_dropped_total", "reason", "failed", "lines",                                    \
      "Lines that no output got: the output failed, such as a full disk.", "logging/output.cc")                       \
  ROW(written, counter, "lines_written_total", "", "", "lines",                                                       \
      "Lines that the output took.", "logging/output.cc")                                                             \
  ROW(reports, counter, "reports_written_total", "", "", "lines",                                                     \
      "Lines `event=suppressed` and `event=dropped` that the output took.", "logging/log_state.cc")                   \
  ROW(written_bytes, counter, "bytes_written_total", "", "", "bytes",                                                 \
      "The bytes of these and of the reports.", "logging/output.cc")                                                  \
  ROW(rotations, counter, "rotations_total", "", "", "files",                                                         \
      "Files that became `FILE.1`.", "logging/output.cc")                                                             \
  ROW(rotations_failed, counter, "rotations_failed_total", "", "", "attempts",                                        \
      "Attempts to rename a file, or to make the next one, that failed. The old one grows.", "logging/output.cc")
// clang-format on

template <typename Number>
struct StripeNumbers {
  WEFT_COUNTER_BLOCK(WEFT_LOG_STRIPE_COUNTERS)
};
template <typename Number>
struct WriterNumbers {
  WEFT_COUNTER_BLOCK(WEFT_LOG_WRITER_COUNTERS)
};

// LogCounts: the numbers of a log at one moment. After stop(), lines = written + dropped_failed.
struct LogCounts : StripeNumbers<std::uint64_t>, WriterNumbers<std::uint64_t> {
  template <typename Visitor, typename... Blocks>
  static constexpr void visit(Visitor&& visitor, Blocks&... blocks) {
    StripeNumbers::visit(visitor, blocks...);
    WriterNumbers::visit(visitor, blocks...);
  }
};
inline constexpr CounterRow kLogRows[] = {WEFT_LOG_STRIPE_COUNTERS(WEFT_COUNTER_ROW)
                                              WEFT_LOG_WRITER_COUNTERS(WEFT_COUNTER_ROW)};
inline constexpr CounterTable kLogTable = {"log", "A `logging::Log`: `admin->add(name, *log)`.", kLogRows};

}  // namespace weft::logging
