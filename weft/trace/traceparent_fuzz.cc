// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/trace/trace_context.h"

// The input is a traceparent, a line end and a tracestate. Checks besides the sanitizers: a context that was taken has
// both ids and a bounded tracestate, is written as version 00, and reads the same again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weft::trace::TraceContext;
  const std::string_view text = weft::as_text({data, size});
  const auto context = TraceContext::from_text(text);
  if (!context) {
    WEFT_ASSERT(context.error() == weft::Errc::invalid_argument);
    return 0;
  }
  WEFT_ASSERT(context->trace_id() && context->span_id() && !context->empty());
  WEFT_ASSERT(context->tracestate().size() <= TraceContext::kStateMax);
  WEFT_ASSERT(context->tracestate().find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
  const std::string parent = context->traceparent();
  WEFT_ASSERT(parent.size() == TraceContext::kTraceparentSize && parent.starts_with("00-"));
  WEFT_ASSERT(parent.substr(3, 49) == text.substr(3, 49));
  const auto again = TraceContext::from_text(context->to_text());
  WEFT_ASSERT(again && *again == *context);
  return 0;
}
