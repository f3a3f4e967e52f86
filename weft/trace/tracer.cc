// SPDX-License-Identifier: MIT
#include "weft/trace/tracer.h"

#include <new>

#include "weft/sys/clock.h"
#include "weft/sys/thread_id.h"
#include "weft/trace/id_source.h"

namespace weft::trace {

namespace {

// Relaxed: a number stands alone.
void count(std::atomic<std::uint64_t>& number, std::uint64_t by = 1) noexcept {
  number.fetch_add(by, std::memory_order_relaxed);
}

std::uint64_t threshold_of(double ratio) noexcept {
  return ratio >= 1 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(ratio * 18446744073709551616.0);  // 2^64
}

}  // namespace

Tracer::Tracer(TracerOptions options)
    : options_(std::move(options)),
      always_(options_.ratio >= 1),
      threshold_(threshold_of(options_.ratio)),
      state_(std::make_shared<State>(options_.queue_spans, options_.queue_bytes)) {}

Result<std::shared_ptr<Tracer>> Tracer::make(TracerOptions options) {
  if (options.service.empty()) {
    return Error(Errc::invalid_argument, "a tracer has the name of its service");
  }
  if (!(options.ratio >= 0 && options.ratio <= 1)) {
    return Error(Errc::invalid_argument, "the ratio of recorded traces is from 0 to 1");
  }
  if (options.queue_spans == 0 || options.queue_bytes == 0) {
    return Error(Errc::invalid_argument, "the queue of a tracer has room for a span");
  }
  try {
    return std::shared_ptr<Tracer>(new Tracer(std::move(options)));
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for a tracer");
  }
}

Span Tracer::start(std::string_view name, SpanKind kind) noexcept {
  const TraceId id = random_trace_id();
  return begin(name, kind, TraceContext(id, random_span_id(), is_chosen(id)), SpanId());
}

Span Tracer::start(std::string_view name, SpanKind kind, const TraceContext& parent) noexcept {
  if (parent.empty()) {
    return start(name, kind);
  }
  std::string state;
  try {
    state = parent.tracestate();
  } catch (const std::bad_alloc&) {
    state.clear();
  }
  return begin(name, kind, TraceContext(parent.trace_id(), random_span_id(), parent.is_sampled(), std::move(state)),
               parent.span_id());
}

Span Tracer::begin(std::string_view name, SpanKind kind, TraceContext context, SpanId parent) noexcept {
  Block& block = state_->blocks[sys::thread_number() % kBlocks];
  count(block.started);
  Span span(this, std::move(context));
  if (!span.context().is_sampled()) [[likely]] {
    return span;
  }
  count(block.sampled);
  try {
    span.record_ = std::make_unique<SpanRecord>();
    span.record_->context = span.context();
  } catch (const std::bad_alloc&) {
    span.record_.reset();
    count(state_->records.dropped_memory);
    return span;
  }
  span.record_->parent = parent;
  span.record_->kind = kind;
  span.set_name(name);
  span.record_->start_ns = sys::wall_now().time_since_epoch().count();
  span.start_ = sys::now();
  return span;
}

void Tracer::take_finished(std::unique_ptr<SpanRecord> record) noexcept {
  RecordCounters& records = state_->records;
  count(records.attributes_dropped, record->attributes_dropped);
  if (birth_.elsewhere()) {
    return count(records.dropped_forked);
  }
  state_->slow.note(*record);
  switch (state_->queue.push(std::move(record))) {
    case SpanQueue::Outcome::taken: break;
    case SpanQueue::Outcome::full_spans: count(records.dropped_spans); break;
    case SpanQueue::Outcome::full_bytes: count(records.dropped_bytes); break;
  }
}

TraceCounts Tracer::State::counts() const noexcept {
  TraceCounts sum;
  for (const Block& block : blocks) {
    sync::add_counters(static_cast<SpanNumbers<std::uint64_t>&>(sum), block);
  }
  sync::add_counters(static_cast<RecordNumbers<std::uint64_t>&>(sum), records);
  sum.queued = queue.spans();
  sum.queued_bytes = queue.bytes();
  return sum;
}

TraceCounts Tracer::counts() const noexcept { return state_->counts(); }

CounterSource Tracer::counter_source() const {
  return [weak = std::weak_ptr<const State>(state_)](std::string_view name, CounterReadings& into) {
    if (const auto state = weak.lock()) {
      into.push_back({&kTraceTable, {{"trace", std::string(name)}}, sync::read_counters(state->counts())});
    }
  };
}

SlowSpanSource Tracer::slow_span_source() const {
  return [weak = std::weak_ptr<const State>(state_)](std::vector<SlowSpan>& into) {
    if (const auto state = weak.lock()) {
      state->slow.slowest(sys::wall_now().time_since_epoch().count(), into);
    }
  };
}

}  // namespace weft::trace
