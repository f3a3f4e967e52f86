// SPDX-License-Identifier: MIT
#include "weft/serve/trace/otlp_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "weft/base/text/json_string.h"
#include "weft/base/version.h"

namespace weft::serve {

namespace {

using trace::Attributes;
using trace::SpanRecord;

template <typename Number>
void append_json_number(std::string& out, Number number) {
  char digits[32];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), number);
  out.append(digits, end);
}

// An integer of 64 bits is a string in JSON, because a number of JavaScript has 53 bits.
void append_long(std::string& out, std::int64_t number) {
  out += '"';
  append_json_number(out, number);
  out += '"';
}

void append_double(std::string& out, double number) {
  if (std::isfinite(number)) {
    append_json_number(out, number);
  } else {
    out += std::isnan(number) ? "\"NaN\"" : number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  }
}

void append_attribute(std::string& out, std::string_view name, const Attributes::Value& value) {
  out += R"({"key":)";
  append_json_string(name, out);
  switch (value.type) {
    case Attributes::Type::text:
      out += R"(,"value":{"stringValue":)";
      append_json_string(value.text, out);
      break;
    case Attributes::Type::integer:
      out += R"(,"value":{"intValue":)";
      append_long(out, value.integer);
      break;
    case Attributes::Type::real:
      out += R"(,"value":{"doubleValue":)";
      append_double(out, value.real);
      break;
    case Attributes::Type::boolean:
      out += value.integer != 0 ? R"(,"value":{"boolValue":true)" : R"(,"value":{"boolValue":false)";
      break;
  }
  out += "}}";
}

void append_status(std::string& out, const SpanRecord& span) {
  if (span.status != trace::SpanStatus::unset) {
    out += R"(,"status":{"code":)";
    append_json_number(out, static_cast<int>(span.status));
    if (!span.status_text.empty()) {
      out += R"(,"message":)";
      append_json_string(span.status_text, out);
    }
    out += '}';
  }
}

void append_span(std::string& out, const SpanRecord& span) {
  out += R"({"traceId":")";
  append_hex(out, span.context.trace_id());
  out += R"(","spanId":")";
  append_hex(out, span.context.span_id());
  if (span.parent) {
    out += R"(","parentSpanId":")";
    append_hex(out, span.parent);
  }
  out += '"';
  if (!span.context.tracestate().empty()) {
    out += R"(,"traceState":)";
    append_json_string(span.context.tracestate(), out);
  }
  out += R"(,"flags":1,"name":)";  // sampled
  append_json_string(span.name, out);
  out += R"(,"kind":)";
  append_json_number(out, static_cast<int>(span.kind));
  out += R"(,"startTimeUnixNano":)";
  append_long(out, span.start_ns);
  out += R"(,"endTimeUnixNano":)";
  append_long(out, span.end_ns);
  if (span.attributes.count() != 0) {
    out += R"(,"attributes":[)";
    span.attributes.for_each([&out](std::string_view name, const Attributes::Value& value) {
      append_attribute(out, name, value);
      out += ',';
    });
    out.back() = ']';
  }
  if (span.attributes_dropped != 0) {
    out += R"(,"droppedAttributesCount":)";
    append_json_number(out, span.attributes_dropped);
  }
  append_status(out, span);
  out += '}';
}

}  // namespace

OtlpWriter::OtlpWriter(const trace::TracerOptions& options) {
  before_ = R"({"resourceSpans":[{"resource":{"attributes":[)";
  append_attribute(before_, "service.name", {Attributes::Type::text, options.service});
  for (const auto& [name, value] : options.resource) {
    before_ += ',';
    append_attribute(before_, name, {Attributes::Type::text, value});
  }
  before_ += R"(]},"scopeSpans":[{"scope":{"name":"weft","version":")";
  append_json_number(before_, WEFT_VERSION_MAJOR);
  append_json_number(before_ += '.', WEFT_VERSION_MINOR);
  append_json_number(before_ += '.', WEFT_VERSION_PATCH);
  before_ += R"("},"spans":[)";
}

std::string OtlpWriter::write(std::span<const std::unique_ptr<trace::SpanRecord>> spans) const {
  std::string out = before_;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (i != 0) {
      out += ',';
    }
    append_span(out, *spans[i]);
  }
  out += "]}]}]}";
  return out;
}

// The answer is a message of one field, so a search needs no parser. A wrong number would change a counter alone.
std::uint64_t rejected_spans(std::string_view body) noexcept {
  constexpr std::string_view kName = "\"rejectedSpans\"";
  const std::size_t at = body.find(kName);
  if (at == std::string_view::npos) {
    return 0;
  }
  body.remove_prefix(at + kName.size());
  body.remove_prefix(std::min(body.find_first_not_of(": \t\r\n\""), body.size()));
  std::uint64_t number = 0;
  (void)std::from_chars(body.data(), body.data() + body.size(), number);
  return number;
}

}  // namespace weft::serve
