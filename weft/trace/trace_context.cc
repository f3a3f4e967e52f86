// SPDX-License-Identifier: MIT
#include "weft/trace/trace_context.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "weft/base/text/hex.h"

namespace weft::trace {

namespace {

constexpr Error kNoTraceparent(Errc::invalid_argument, "not a traceparent of W3C Trace Context");
constexpr std::size_t kTraceAt = 3;
constexpr std::size_t kSpanAt = 36;
constexpr std::size_t kFlagsAt = 53;
constexpr std::uint64_t kSampledFlag = 1;

// The number of up to 16 digits in lower case; nullopt if another character is among them.
std::optional<std::uint64_t> read_hex(std::string_view digits) noexcept {
  std::uint64_t number = 0;
  for (const char c : digits) {
    const int digit = lower_hex_value(c);
    if (digit < 0) {
      return std::nullopt;
    }
    number = number << 4 | static_cast<unsigned>(digit);
  }
  return number;
}

bool is_state(std::string_view state) noexcept {
  return state.size() <= TraceContext::kStateMax &&
         std::all_of(state.begin(), state.end(), [](char c) { return c == '\t' || (c >= 0x20 && c <= 0x7e); });
}

}  // namespace

void append_hex(std::string& out, const TraceId& id) {
  char digits[TraceId::kHexSize];
  write_hex(id.low, 16, write_hex(id.high, 16, digits));
  out.append(digits, sizeof digits);
}

void append_hex(std::string& out, const SpanId& id) {
  char digits[SpanId::kHexSize];
  write_hex(id.value, sizeof digits, digits);
  out.append(digits, sizeof digits);
}

TraceContext::TraceContext(TraceId trace, SpanId span, bool sampled, std::string state) noexcept {
  if (trace && span) {
    trace_ = trace;
    span_ = span;
    sampled_ = sampled;
    if (is_state(state)) {
      state_ = std::move(state);
    }
  }
}

Result<TraceContext> TraceContext::parse(std::string_view traceparent, std::string_view tracestate) noexcept {
  if (traceparent.size() < kTraceparentSize || traceparent[kTraceAt - 1] != '-' || traceparent[kSpanAt - 1] != '-' ||
      traceparent[kFlagsAt - 1] != '-') {
    return kNoTraceparent;
  }
  const auto version = read_hex(traceparent.substr(0, 2));
  const auto high = read_hex(traceparent.substr(kTraceAt, 16));
  const auto low = read_hex(traceparent.substr(kTraceAt + 16, 16));
  const auto span = read_hex(traceparent.substr(kSpanAt, 16));
  const auto flags = read_hex(traceparent.substr(kFlagsAt, 2));
  if (!version || *version == 0xff || !high || !low || !span || !flags) {
    return kNoTraceparent;
  }
  const bool longer = traceparent.size() > kTraceparentSize;
  if (longer && (*version == 0 || traceparent[kTraceparentSize] != '-')) {
    return kNoTraceparent;
  }
  const TraceId trace{*high, *low};
  if (!trace || *span == 0) {
    return kNoTraceparent;
  }
  std::string state;
  if (is_state(tracestate)) {
    try {
      state = tracestate;
    } catch (const std::bad_alloc&) {
      state.clear();  // the trace continues without it
    }
  }
  return TraceContext(trace, SpanId{*span}, (*flags & kSampledFlag) != 0, std::move(state));
}

void TraceContext::write_traceparent(std::span<char, kTraceparentSize> out) const noexcept {
  out[0] = out[1] = '0';
  out[kTraceAt - 1] = out[kSpanAt - 1] = out[kFlagsAt - 1] = '-';
  write_hex(trace_.low, 16, write_hex(trace_.high, 16, out.data() + kTraceAt));
  write_hex(span_.value, 16, out.data() + kSpanAt);
  write_hex(sampled_ ? kSampledFlag : 0, 2, out.data() + kFlagsAt);
}

std::string TraceContext::traceparent() const {
  if (empty()) {
    return {};
  }
  std::string text(kTraceparentSize, '0');
  write_traceparent(std::span<char, kTraceparentSize>(text.data(), kTraceparentSize));
  return text;
}

std::string TraceContext::to_text() const {
  std::string text = traceparent();
  if (!state_.empty()) {
    text.append(1, '\n').append(state_);
  }
  return text;
}

Result<TraceContext> TraceContext::from_text(std::string_view text) noexcept {
  const std::size_t end = std::min(text.find('\n'), text.size());
  return parse(text.substr(0, end), text.substr(std::min(end + 1, text.size())));
}

}  // namespace weft::trace
