// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/sync/atomic.h"
#include "weft/sys/fork.h"
#include "weft/trace/slow_spans.h"
#include "weft/trace/span.h"
#include "weft/trace/span_queue.h"
#include "weft/trace/trace_context.h"
#include "weft/trace/trace_counts.h"

namespace weft::trace {

struct TracerOptions {
  std::string service;  // the attribute service.name of every span; not empty
  // Further attributes of the program, such as {"service.version", "1.2"} or {"deployment.environment.name", "test"}.
  std::vector<std::pair<std::string, std::string>> resource{};
  // The part of the traces that begin here and are recorded, from 0 to 1. A span with a parent is recorded if its
  // parent is.
  double ratio = 1.0;
  std::size_t queue_spans = 4096;                  // finished spans that wait for their export
  std::size_t queue_bytes = std::size_t{4} << 20;  // their memory
};

// Tracer: makes the spans of a program, and keeps those that are recorded until an exporter takes them
// (weft/serve/trace/trace_exporter.h). Without an exporter its queue fills up, and drops.
// Owner: shared_ptrs, held by the program, the exporter and the middleware. Its spans refer to it: it outlives them.
// Affinity: any thread. Cost: a span that is not recorded: two random numbers and one relaxed atomic addition.
// Invariants:
//   1. The decision to record a trace is made once, where it begins, from the id of the trace and the ratio: tracers
//      with the same ratio decide alike.
//   2. A recorded span is in the queue, was taken by an exporter, or is counted as dropped.
class Tracer {
 public:
  // Errors: invalid_argument (no service, a ratio outside of 0 to 1, a queue of 0 spans or bytes); resource_exhausted.
  [[nodiscard]] static Result<std::shared_ptr<Tracer>> make(TracerOptions options);
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  ~Tracer() = default;

  // Begins a trace.
  [[nodiscard]] Span start(std::string_view name, SpanKind kind = SpanKind::internal) noexcept;
  // Begins a span whose parent is in another process, or anywhere; a trace if the context is empty.
  [[nodiscard]] Span start(std::string_view name, SpanKind kind, const TraceContext& parent) noexcept;

  [[nodiscard]] TraceCounts counts() const noexcept;
  // The same for a page of metrics, as long as the tracer exists: admin->add("shop", *tracer).
  [[nodiscard]] CounterSource counter_source() const;
  // The slowest operations of this minute and the one before, for the page /debug/traces; as long as the tracer exists.
  [[nodiscard]] SlowSpanSource slow_span_source() const;
  [[nodiscard]] const TracerOptions& options() const noexcept { return options_; }

  // --- for exporters ---
  using RecordCounters = RecordNumbers<std::atomic<std::uint64_t>>;
  [[nodiscard]] SpanQueue& queue() noexcept { return state_->queue; }
  [[nodiscard]] RecordCounters& record_counters() noexcept { return state_->records; }

 private:
  friend class Span;

  static constexpr std::size_t kBlocks = 16;
  struct alignas(sync::kLineSize) Block : SpanNumbers<std::atomic<std::uint64_t>> {};
  struct State {
    State(std::size_t spans, std::size_t bytes) noexcept : queue(spans, bytes) {}
    [[nodiscard]] TraceCounts counts() const noexcept;

    std::array<Block, kBlocks> blocks{};  // by the number of the thread
    RecordCounters records{};
    SpanQueue queue;
    SlowSpans slow{};
  };

  explicit Tracer(TracerOptions options);
  [[nodiscard]] Span begin(std::string_view name, SpanKind kind, TraceContext context, SpanId parent) noexcept;
  [[nodiscard]] bool is_chosen(const TraceId& id) const noexcept { return always_ || id.low < threshold_; }
  void take_finished(std::unique_ptr<SpanRecord> record) noexcept;

  const TracerOptions options_;
  const bool always_;
  const std::uint64_t threshold_;
  const sys::Birth birth_;
  const std::shared_ptr<State> state_;  // a page of metrics may outlive the tracer
};

}  // namespace weft::trace
