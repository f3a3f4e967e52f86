// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::trace {

// TraceId: the name of a trace: 128 random bits. All zero: none.
struct TraceId {
  static constexpr std::size_t kHexSize = 32;
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  explicit constexpr operator bool() const noexcept { return (high | low) != 0; }
  friend constexpr bool operator==(const TraceId&, const TraceId&) noexcept = default;
};

// SpanId: the name of a span in its trace: 64 random bits. All zero: none.
struct SpanId {
  static constexpr std::size_t kHexSize = 16;
  std::uint64_t value = 0;

  explicit constexpr operator bool() const noexcept { return value != 0; }
  friend constexpr bool operator==(const SpanId&, const SpanId&) noexcept = default;
};

// Lower-case hexadecimal digits.
void append_hex(std::string& out, const TraceId& id);
void append_hex(std::string& out, const SpanId& id);

// TraceContext: the place of a span in its trace, as a process passes it to the next one: the fields `traceparent` and
// `tracestate` of W3C Trace Context Level 1.
// Owner: a value. Cost: one string, which is on the heap for a tracestate of more than 15 bytes.
// Invariants:
//   1. A context has both ids, or is empty: then it belongs to no trace, and its texts are empty.
//   2. The tracestate is unchanged from the process that set it. It has at most kStateMax bytes, all of them printable
//      ASCII or tabs, so that it can stand in a field of HTTP.
class TraceContext {
 public:
  static constexpr std::size_t kTraceparentSize = 55;  // of version 00: "00-", 32 digits, "-", 16 digits, "-", 2 digits
  static constexpr std::size_t kStateMax = 512;        // bytes; section 3.3.1.5 asks for at least that many

  TraceContext() noexcept = default;  // empty
  // Empty if an id is zero. A `state` that breaks invariant 2 is dropped.
  TraceContext(TraceId trace, SpanId span, bool sampled, std::string state = {}) noexcept;

  // Reads both fields, by section 3.2 of the specification: version 00 has its exact size, a higher version may have
  // more after its first 55 characters, and version ff is refused. A tracestate that breaks invariant 2 is dropped, and
  // the trace continues without it. Errors: invalid_argument (not a traceparent).
  [[nodiscard]] static Result<TraceContext> parse(std::string_view traceparent,
                                                  std::string_view tracestate = {}) noexcept;

  [[nodiscard]] bool empty() const noexcept { return !trace_; }
  [[nodiscard]] const TraceId& trace_id() const noexcept { return trace_; }
  [[nodiscard]] const SpanId& span_id() const noexcept { return span_; }
  // Whether the maker of the context records its span.
  [[nodiscard]] bool is_sampled() const noexcept { return sampled_; }
  [[nodiscard]] const std::string& tracestate() const noexcept { return state_; }

  // The field traceparent, always of version 00; empty for an empty context.
  [[nodiscard]] std::string traceparent() const;
  // The same into room of the caller. Requires that the context is not empty.
  void write_traceparent(std::span<char, kTraceparentSize> out) const noexcept;

  // Both fields as one text, for a part of a message: the traceparent, and a line end and the tracestate if there is
  // one. An empty context has an empty text.
  [[nodiscard]] std::string to_text() const;
  // Errors: those of parse().
  [[nodiscard]] static Result<TraceContext> from_text(std::string_view text) noexcept;

  friend bool operator==(const TraceContext&, const TraceContext&) noexcept = default;

 private:
  TraceId trace_;
  SpanId span_;
  bool sampled_ = false;
  std::string state_;
};

}  // namespace weft::trace
