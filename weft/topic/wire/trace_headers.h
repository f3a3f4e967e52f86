// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "weft/base/result.h"
#include "weft/topic/wire/headers.h"
#include "weft/trace/trace_context.h"

namespace weft {

// Adds the headers traceparent and tracestate, so that the receivers of the message continue the trace. An empty
// context adds nothing. Errors: those of Headers::add().
Result<void> inject(const trace::TraceContext& context, Headers& headers);

// The context that a block of headers names, such as TopicMessage::headers(); empty if there is none. A name may begin
// with a capital letter, as clients of NATS in Go write it.
[[nodiscard]] trace::TraceContext context_of(std::string_view headers) noexcept;

}  // namespace weft
