// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weft/trace/span_record.h"
#include "weft/trace/tracer.h"

namespace weft::serve {

// OtlpWriter: spans as the body of a request to /v1/traces: an ExportTraceServiceRequest of OTLP 1, in JSON as the OTLP
// specification encodes it: ids as hexadecimal digits, integers of 64 bits as strings, enumerations as numbers.
// Owner: a value. Affinity: immutable. Cost: one growing string.
class OtlpWriter {
 public:
  explicit OtlpWriter(const trace::TracerOptions& options);

  [[nodiscard]] std::string write(std::span<const std::unique_ptr<trace::SpanRecord>> spans) const;

 private:
  std::string before_;  // the resource and the scope
};

// The number of spans that a collector took no part of, by the body of its answer to a request that succeeded
// (partialSuccess.rejectedSpans); 0 if the body has none.
[[nodiscard]] std::uint64_t rejected_spans(std::string_view body) noexcept;

}  // namespace weft::serve
