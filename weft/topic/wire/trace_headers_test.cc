// SPDX-License-Identifier: MIT
#include "weft/topic/wire/trace_headers.h"

#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr std::string_view kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceHeaders, CarryAContextBesideOtherHeaders) {
  for (const char* state : {"", "a=b,c=d"}) {
    const trace::TraceContext context = trace::TraceContext::parse(kParent, state).value();
    Headers headers;
    ASSERT_TRUE(headers.add("Content-Type", "text/plain"));
    ASSERT_TRUE(inject(context, headers));
    EXPECT_EQ(find_header(headers.block(), "traceparent"), kParent);
    EXPECT_EQ(find_header(headers.block(), "Content-Type"), "text/plain");
    EXPECT_EQ(context_of(headers.block()), context);
  }
}

TEST(TraceHeaders, AnEmptyContextAddsNothing) {
  Headers headers;
  EXPECT_TRUE(inject(trace::TraceContext(), headers));
  EXPECT_TRUE(headers.empty());
}

TEST(TraceHeaders, AreFoundWithACapitalLetter) {
  const std::string block = "NATS/1.0\r\nTraceparent: " + std::string(kParent) + "\r\nTracestate: a=b\r\n\r\n";
  EXPECT_EQ(context_of(block), trace::TraceContext::parse(kParent, "a=b").value());
}

TEST(TraceHeaders, NoOrMalformedHeadersAreAnEmptyContext) {
  for (const std::string_view block :
       {"", "NATS/1.0\r\n\r\n", "NATS/1.0\r\ntraceparent: 00-1-2-01\r\n\r\n", "traceparent: x\r\n\r\n"}) {
    EXPECT_TRUE(context_of(block).empty()) << block;
  }
}

TEST(TraceHeaders, TheBoundOfHeadersHoldsForThem) {
  Headers headers;
  ASSERT_TRUE(headers.add("x", std::string(Headers::kBytesMax - 60, 'x')));
  EXPECT_EQ(inject(trace::TraceContext::parse(kParent).value(), headers).error(), Errc::message_too_large);
}

}  // namespace
}  // namespace weft
