// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/list.h"
#include "weft/trace/attributes.h"
#include "weft/trace/trace_context.h"

namespace weft::trace {

// The place of an operation beside its parent, with the numbers of OTLP.
enum class SpanKind : std::uint8_t {
  internal = 1,  // inside a program
  server = 2,    // answers a request
  client = 3,    // sends a request and waits for its answer
  producer = 4,  // sends a message
  consumer = 5,  // handles a message
};

// How an operation ended, with the numbers of OTLP.
enum class SpanStatus : std::uint8_t { unset = 0, ok = 1, error = 2 };

// SpanRecord: the data of a recorded span.
// Owner: the Span, then the queue of its tracer, then an exporter. Affinity: one thread at a time.
struct SpanRecord : ListHook {
  static constexpr std::size_t kTextMax = 256;  // bytes of a name or a status's text; a longer one is cut

  TraceContext context{};
  SpanId parent{};  // zero: none
  std::string name{};
  SpanKind kind = SpanKind::internal;
  SpanStatus status = SpanStatus::unset;
  std::string status_text{};
  std::int64_t start_ns = 0;  // since 1970, by the clock of the day at the start
  std::int64_t end_ns = 0;    // the same plus the time that passed by the monotonic clock
  Attributes attributes{};
  std::uint32_t attributes_dropped = 0;

  // Its memory, about.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return sizeof(SpanRecord) + name.size() + status_text.size() + attributes.bytes() + context.tracestate().size();
  }
};

}  // namespace weft::trace
