// SPDX-License-Identifier: MIT
#include "weft/trace/span.h"

#include <algorithm>
#include <new>
#include <string>

#include "weft/sys/clock.h"
#include "weft/trace/tracer.h"

namespace weft::trace {

namespace {
void assign_cut(std::string& target, std::string_view text) noexcept {
  try {
    target = cut_text(text, SpanRecord::kTextMax);
  } catch (const std::bad_alloc&) {
    target.clear();
  }
}
}  // namespace

Span& no_span() noexcept {
  static thread_local Span none;
  return none;
}

Span Span::child(std::string_view name, SpanKind kind) const noexcept {
  return tracer_ == nullptr ? Span() : tracer_->start(name, kind, context_);
}

void Span::name_record(std::string_view name) noexcept { assign_cut(record_->name, name); }

void Span::set_value(std::string_view name, const Attributes::Value& value) noexcept {
  if (!record_->attributes.set(name, value)) {
    ++record_->attributes_dropped;
  }
}

void Span::set_record_status(SpanStatus status, std::string_view text) noexcept {
  record_->status = status;
  assign_cut(record_->status_text, status == SpanStatus::error ? text : std::string_view());
}

void Span::finish() noexcept {
  const Duration passed = std::max(sys::now() - start_, Duration::zero());
  record_->end_ns = record_->start_ns + passed.count();
  tracer_->take_finished(std::move(record_));
}

}  // namespace weft::trace
