// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/base/time.h"
#include "weft/trace/span_record.h"
#include "weft/trace/trace_context.h"

namespace weft::trace {

class Tracer;

// Span: one operation of a trace, from its start to end() or its destruction.
//   trace::Span query = request.span().child("SELECT orders", trace::SpanKind::client);
//   query.set("db.system.name", "postgresql");
// Owner: a move-only value; the tracer outlives it. Affinity: one thread at a time; start and end may be on two.
// Cost: a span that is not recorded: a few words; each call is a branch. A recorded one: three allocations, and a lock
// at its end.
// No call throws or fails: an attribute without room or memory is dropped and counted.
// Invariants:
//   1. A span that is not recorded has a context nevertheless, so that its children and other processes make the same
//      decision.
//   2. After end() the span is not recorded any more, and its context stays.
class Span {
 public:
  Span() noexcept = default;  // belongs to no trace; its children neither
  Span(Span&& other) noexcept
      : tracer_(std::exchange(other.tracer_, nullptr)),
        record_(std::move(other.record_)),
        start_(other.start_),
        context_(std::exchange(other.context_, TraceContext())) {}
  Span& operator=(Span&& other) noexcept {
    if (this != &other) {
      end();
      tracer_ = std::exchange(other.tracer_, nullptr);
      record_ = std::move(other.record_);
      start_ = other.start_;
      context_ = std::exchange(other.context_, TraceContext());
    }
    return *this;
  }
  ~Span() { end(); }

  // For the next process, and for logs.
  [[nodiscard]] const TraceContext& context() const noexcept { return context_; }
  [[nodiscard]] bool is_recording() const noexcept { return record_ != nullptr; }

  void set_name(std::string_view name) noexcept {
    if (record_ != nullptr) {
      name_record(name);
    }
  }
  // Sets an attribute: a text, a number or a bool. Its bounds are those of Attributes.
  template <typename T>
  void set(std::string_view name, const T& value) noexcept {
    if (record_ == nullptr) {
      return;
    }
    using Type = Attributes::Type;
    if constexpr (std::same_as<T, bool>) {
      set_value(name, {Type::boolean, {}, value ? 1 : 0});
    } else if constexpr (std::integral<T>) {
      constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
      set_value(name,
                {Type::integer, {}, std::in_range<std::int64_t>(value) ? static_cast<std::int64_t>(value) : kMost});
    } else if constexpr (std::floating_point<T>) {
      set_value(name, {Type::real, {}, 0, static_cast<double>(value)});
    } else {
      static_assert(std::is_convertible_v<const T&, std::string_view>,
                    "weft: an attribute is a text, a number or a bool");
      set_value(name, {Type::text, std::string_view(value)});
    }
  }
  // The text is for people, and only of an error.
  void set_status(SpanStatus status, std::string_view text = {}) noexcept {
    if (record_ != nullptr) {
      set_record_status(status, text);
    }
  }

  // Begins a span of the same trace whose parent is this one. It is recorded if this one was made to be recorded.
  [[nodiscard]] Span child(std::string_view name, SpanKind kind = SpanKind::internal) const noexcept;

  // Idempotent.
  void end() noexcept {
    if (record_ != nullptr) {
      finish();
    }
  }

 private:
  friend class Tracer;
  Span(Tracer* tracer, TraceContext context) noexcept : tracer_(tracer), context_(std::move(context)) {}

  void name_record(std::string_view name) noexcept;
  void set_value(std::string_view name, const Attributes::Value& value) noexcept;
  void set_record_status(SpanStatus status, std::string_view text) noexcept;
  void finish() noexcept;

  Tracer* tracer_ = nullptr;
  std::unique_ptr<SpanRecord> record_;  // null: not recorded, or ended
  Instant start_{};                     // of a recorded span
  TraceContext context_;
};

// The calling thread's own span that belongs to no trace, for code that may or may not have one.
[[nodiscard]] Span& no_span() noexcept;

}  // namespace weft::trace
