// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/base/counter_table.h"
#include "weft/sync/counter_block.h"

namespace weft::trace {

// clang-format off
// The counters of each span. Each thread counts in one of a few blocks, so that threads rarely share one.
#define WEFT_TRACE_SPAN_COUNTERS(ROW)                                                                                 \
  ROW(started, counter, "spans_started_total", "", "", "spans",                                                       \
      "Spans that began.", "trace/tracer.cc")                                                                         \
  ROW(sampled, counter, "spans_sampled_total", "", "", "spans",                                                       \
      "Spans that began and are recorded.", "trace/tracer.cc")

// The counters of recorded spans.
#define WEFT_TRACE_RECORD_COUNTERS(ROW)                                                                               \
  ROW(exported, counter, "spans_exported_total", "", "", "spans",                                                     \
      "Spans that the collector took.", "serve/trace/trace_exporter.cc")                                              \
  ROW(dropped_spans, counter, "spans_dropped_total", "reason", "queue_spans", "spans",                                \
      "Recorded spans that no collector got: `queue_spans` of them waited.", "trace/tracer.cc")                       \
  ROW(dropped_bytes, counter, "spans_dropped_total", "reason", "queue_bytes", "spans",                                \
      "Recorded spans that no collector got: `queue_bytes` of them waited.", "trace/tracer.cc")                       \
  ROW(dropped_memory, counter, "spans_dropped_total", "reason", "no_memory", "spans",                                 \
      "Recorded spans that no collector got: there was no memory.", "trace/tracer.cc")                                \
  ROW(dropped_forked, counter, "spans_dropped_total", "reason", "forked", "spans",                                    \
      "Recorded spans that no collector got: they ended in a forked child, which has no exporter.",                   \
      "trace/tracer.cc")                                                                                              \
  ROW(dropped_refused, counter, "spans_dropped_total", "reason", "refused", "spans",                                  \
      "Recorded spans that no collector got: the collector refused them.", "serve/trace/trace_exporter.cc")           \
  ROW(dropped_failed, counter, "spans_dropped_total", "reason", "failed", "spans",                                    \
      "Recorded spans that no collector got: their export failed `attempts_max` times.",                              \
      "serve/trace/trace_exporter.cc")                                                                                \
  ROW(dropped_stopped, counter, "spans_dropped_total", "reason", "stopped", "spans",                                  \
      "Recorded spans that no collector got: the exporter ended before.", "serve/trace/trace_exporter.cc")            \
  ROW(exports, counter, "exports_total", "", "", "requests",                                                          \
      "Requests to the collector, also those that were sent again.", "serve/trace/trace_exporter.cc")                 \
  ROW(exports_failed, counter, "exports_failed_total", "", "", "requests",                                            \
      "Requests to the collector that it did not answer, or not with success.", "serve/trace/trace_exporter.cc")      \
  ROW(attributes_dropped, counter, "attributes_dropped_total", "", "", "attributes",                                  \
      "Attributes that had no room in their span.", "trace/tracer.cc")                                                \
  ROW(queued, gauge, "spans_queued", "", "", "spans",                                                                 \
      "Finished spans that wait for their export.", "trace/tracer.cc")                                                \
  ROW(queued_bytes, gauge, "spans_queued_bytes", "", "", "bytes",                                                     \
      "The memory of these spans.", "trace/tracer.cc")
// clang-format on

template <typename Number>
struct SpanNumbers {
  WEFT_COUNTER_BLOCK(WEFT_TRACE_SPAN_COUNTERS)
};
template <typename Number>
struct RecordNumbers {
  WEFT_COUNTER_BLOCK(WEFT_TRACE_RECORD_COUNTERS)
};

// TraceCounts: the numbers of a tracer at one moment. When no span is unfinished and no export under way, then
// sampled = exported + dropped for each reason + queued.
struct TraceCounts : SpanNumbers<std::uint64_t>, RecordNumbers<std::uint64_t> {
  template <typename Visitor, typename... Blocks>
  static constexpr void visit(Visitor&& visitor, Blocks&... blocks) {
    SpanNumbers::visit(visitor, blocks...);
    RecordNumbers::visit(visitor, blocks...);
  }
};
inline constexpr CounterRow kTraceRows[] = {WEFT_TRACE_SPAN_COUNTERS(WEFT_COUNTER_ROW)
                                                WEFT_TRACE_RECORD_COUNTERS(WEFT_COUNTER_ROW)};
inline constexpr CounterTable kTraceTable = {
    "trace", "A `trace::Tracer` and its exporter: `admin->add(name, *tracer)`.", kTraceRows};

}  // namespace weft::trace
