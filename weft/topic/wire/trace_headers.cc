// SPDX-License-Identifier: MIT
#include "weft/topic/wire/trace_headers.h"

#include <span>
#include <utility>

namespace weft {

namespace {
std::string_view either_header(std::string_view headers, std::string_view name, std::string_view capital) noexcept {
  const std::string_view found = find_header(headers, name);
  return found.empty() ? find_header(headers, capital) : found;
}
}  // namespace

Result<void> inject(const trace::TraceContext& context, Headers& headers) {
  if (context.empty()) {
    return {};
  }
  char parent[trace::TraceContext::kTraceparentSize];
  context.write_traceparent(parent);
  WEFT_TRY(headers.add("traceparent", std::string_view(parent, sizeof parent)));
  return context.tracestate().empty() ? Result<void>() : headers.add("tracestate", context.tracestate());
}

trace::TraceContext context_of(std::string_view headers) noexcept {
  auto context = trace::TraceContext::parse(either_header(headers, "traceparent", "Traceparent"),
                                            either_header(headers, "tracestate", "Tracestate"));
  return context ? *std::move(context) : trace::TraceContext();
}

}  // namespace weft
