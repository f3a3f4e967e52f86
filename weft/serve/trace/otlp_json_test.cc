// SPDX-License-Identifier: MIT
#include "weft/serve/trace/otlp_json.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using trace::Attributes;
using Records = std::vector<std::unique_ptr<trace::SpanRecord>>;

trace::TracerOptions options_of() {
  trace::TracerOptions options;
  options.service = "shop \"1\"";
  options.resource = {{"service.version", "1.2"}};
  return options;
}
const char* const kBefore = R"({"resourceSpans":[{"resource":{"attributes":[)"
                            R"({"key":"service.name","value":{"stringValue":"shop \"1\""}},)"
                            R"({"key":"service.version","value":{"stringValue":"1.2"}}]},)"
                            R"("scopeSpans":[{"scope":{"name":"weft","version":")";

// The text between the version of the scope and the end.
std::string spans_of(const Records& records) {
  const std::string text = OtlpWriter(options_of()).write(records);
  EXPECT_TRUE(text.starts_with(kBefore)) << text;
  const std::string_view begin = R"("},"spans":[)";
  const std::size_t at = text.find(begin);
  EXPECT_NE(at, std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("]}]}]}")) << text;
  return text.substr(at + begin.size(), text.size() - at - begin.size() - 6);
}

TEST(OtlpJson, ASpanHasIdsInHexAndLongNumbersAsStrings) {
  Records records;
  auto& record = *records.emplace_back(std::make_unique<trace::SpanRecord>());
  record.context = trace::TraceContext({0x0af7651916cd43dd, 0x8448eb211c80319c}, {0xb7ad6b7169203331}, true, "a=\"b");
  record.parent = {0x1};
  record.name = "GET /users/{id}";
  record.kind = trace::SpanKind::server;
  record.start_ns = 1'700'000'000'123'456'789;
  record.end_ns = 1'700'000'000'123'456'790;
  record.attributes_dropped = 3;
  record.status = trace::SpanStatus::error;
  record.status_text = "why";
  record.attributes.set("t", {Attributes::Type::text, "x"});
  record.attributes.set("i", {Attributes::Type::integer, {}, std::numeric_limits<std::int64_t>::min()});
  record.attributes.set("d", {Attributes::Type::real, {}, 0, 0.25});
  record.attributes.set("n", {Attributes::Type::real, {}, 0, std::nan("")});
  record.attributes.set("u", {Attributes::Type::real, {}, 0, -std::numeric_limits<double>::infinity()});
  record.attributes.set("b", {Attributes::Type::boolean, {}, 1});
  EXPECT_EQ(spans_of(records),
            R"({"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331",)"
            R"("parentSpanId":"0000000000000001","traceState":"a=\"b","flags":1,"name":"GET /users/{id}","kind":2,)"
            R"("startTimeUnixNano":"1700000000123456789","endTimeUnixNano":"1700000000123456790","attributes":[)"
            R"({"key":"t","value":{"stringValue":"x"}},{"key":"i","value":{"intValue":"-9223372036854775808"}},)"
            R"({"key":"d","value":{"doubleValue":0.25}},{"key":"n","value":{"doubleValue":"NaN"}},)"
            R"({"key":"u","value":{"doubleValue":"-Infinity"}},{"key":"b","value":{"boolValue":true}}],)"
            R"("droppedAttributesCount":3,"status":{"code":2,"message":"why"}})");
}

TEST(OtlpJson, SpansWithoutMoreHaveTheirRequiredFieldsAlone) {
  Records records;
  for (const std::uint64_t id : {1U, 2U}) {
    auto& record = *records.emplace_back(std::make_unique<trace::SpanRecord>());
    record.context = trace::TraceContext({0, 1}, {id}, true);
  }
  const auto one = [](const char* id) {
    return std::string(R"({"traceId":"00000000000000000000000000000001","spanId":"000000000000000)") + id +
           R"(","flags":1,"name":"","kind":1,"startTimeUnixNano":"0","endTimeUnixNano":"0"})";
  };
  EXPECT_EQ(spans_of(records), one("1") + "," + one("2"));
}

TEST(OtlpJson, TheNumberOfRejectedSpansIsFoundInEachForm) {
  EXPECT_EQ(rejected_spans(R"({"partialSuccess":{"rejectedSpans":"17","errorMessage":"x"}})"), 17U);
  EXPECT_EQ(rejected_spans(R"({"partialSuccess": {"errorMessage": "x", "rejectedSpans" : 4}})"), 4U);
  EXPECT_EQ(rejected_spans(R"({"partialSuccess":{"errorMessage":"\"rejectedSpans\":9"}})"), 0U);
  for (const char* body :
       {"", "{}", R"({"partialSuccess":{}})", R"({"partialSuccess":{"rejectedSpans":)",
        R"({"partialSuccess":{"rejectedSpans":"-1"}})", R"({"rejectedSpans":"99999999999999999999999"})"}) {
    EXPECT_EQ(rejected_spans(body), 0U) << body;
  }
}

}  // namespace
}  // namespace weft::serve
