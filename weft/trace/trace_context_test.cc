// SPDX-License-Identifier: MIT
#include "weft/trace/trace_context.h"

#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace weft::trace {
namespace {

constexpr std::string_view kTraceHex = "0af7651916cd43dd8448eb211c80319c";
constexpr std::string_view kSpanHex = "b7ad6b7169203331";

std::string text_of(std::string_view version, std::string_view trace, std::string_view span, std::string_view flags) {
  return std::string(version).append("-").append(trace).append("-").append(span).append("-").append(flags);
}
std::string usual() { return text_of("00", kTraceHex, kSpanHex, "01"); }

TEST(TraceContext, ATraceparentOfVersion00IsReadAndWrittenUnchanged) {
  const auto context = TraceContext::parse(usual());
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace_id(), (TraceId{0x0af7651916cd43dd, 0x8448eb211c80319c}));
  EXPECT_EQ(context->span_id(), SpanId{0xb7ad6b7169203331});
  EXPECT_TRUE(context->is_sampled());
  EXPECT_FALSE(context->empty());
  EXPECT_EQ(context->traceparent(), usual());
}

TEST(TraceContext, OnlyTheSampledFlagIsTakenAndTheOthersAreWrittenAsZero) {
  constexpr std::pair<const char*, bool> kCases[] = {
      {"00", false}, {"01", true}, {"02", false}, {"03", true}, {"ff", true}};
  for (const auto& [flags, sampled] : kCases) {
    const auto context = TraceContext::parse(text_of("00", kTraceHex, kSpanHex, flags));
    ASSERT_TRUE(context) << flags;
    EXPECT_EQ(context->is_sampled(), sampled) << flags;
    EXPECT_EQ(context->traceparent(), text_of("00", kTraceHex, kSpanHex, sampled ? "01" : "00"));
  }
}

TEST(TraceContext, AnIdOfZerosIsRefused) {
  EXPECT_FALSE(TraceContext::parse(text_of("00", std::string(32, '0'), kSpanHex, "01")));
  EXPECT_FALSE(TraceContext::parse(text_of("00", kTraceHex, std::string(16, '0'), "01")));
  EXPECT_TRUE(TraceContext::parse(text_of("00", std::string(31, '0') + "1", std::string(15, '0') + "1", "01")));
  EXPECT_TRUE(TraceContext::parse(text_of("00", "1" + std::string(31, '0'), "1" + std::string(15, '0'), "01")));
}

TEST(TraceContext, EachCharacterIsADigitInLowerCaseOrADashInItsPlace) {
  const std::string good = usual();
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const char wrong : {'A', 'F', 'g', 'x', ' ', '/', ':', '`', '\0', '\x80', '-', '0'}) {
      std::string text = good;
      if (text[i] == wrong || (wrong == '0' && good[i] != '-')) {
        continue;
      }
      text[i] = wrong;
      EXPECT_FALSE(TraceContext::parse(text)) << text;
    }
  }
}

TEST(TraceContext, Version00HasItsExactSize) {
  const std::string good = usual();
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(TraceContext::parse(good.substr(0, size))) << size;
  }
  for (const char* more : {"-", "-01", "0", " ", "-what-the-future-will-be-like"}) {
    EXPECT_FALSE(TraceContext::parse(good + more)) << more;
  }
}

TEST(TraceContext, AHigherVersionMayHaveMoreAfterADashAndIsWrittenAsVersion00) {
  for (const char* version : {"01", "cc", "fe"}) {
    for (const char* more : {"", "-", "-what-the-future-will-be-like"}) {
      const auto context = TraceContext::parse(text_of(version, kTraceHex, kSpanHex, "01") + more);
      ASSERT_TRUE(context) << version << more;
      EXPECT_EQ(context->traceparent(), usual());
    }
    EXPECT_FALSE(TraceContext::parse(text_of(version, kTraceHex, kSpanHex, "01") + ".x")) << version;
    EXPECT_FALSE(TraceContext::parse(text_of(version, kTraceHex, kSpanHex, "010"))) << version;
    EXPECT_FALSE(TraceContext::parse(text_of(version, kTraceHex, kSpanHex, "0"))) << version;
  }
  EXPECT_FALSE(TraceContext::parse(text_of("ff", kTraceHex, kSpanHex, "01")));
  EXPECT_FALSE(TraceContext::parse(text_of("0", kTraceHex, kSpanHex, "01") + "0"));
}

TEST(TraceContext, TheTracestateIsCarriedUnchanged) {
  const std::string state = "rojo=00f067aa0ba902b7, congo=t61rcWkgMzE\t,x@y=1";
  const auto context = TraceContext::parse(usual(), state);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->tracestate(), state);
}

TEST(TraceContext, ATracestateThatIsTooLongOrNotPrintableIsDroppedAndTheTraceContinues) {
  const std::string longest = "a=" + std::string(TraceContext::kStateMax - 2, 'x');
  EXPECT_EQ(TraceContext::parse(usual(), longest)->tracestate(), longest);
  for (const std::string& wrong : {longest + "x", std::string("a=\r\nSet-Cookie: b"), std::string("a=\xc3\xa4"),
                                   std::string("a=\0", 3), std::string("a=\x7f")}) {
    const auto context = TraceContext::parse(usual(), wrong);
    ASSERT_TRUE(context);
    EXPECT_EQ(context->tracestate(), "");
    EXPECT_EQ(context->traceparent(), usual());
    EXPECT_EQ(TraceContext(context->trace_id(), context->span_id(), true, wrong).tracestate(), "");
  }
}

TEST(TraceContext, AContextWithoutAnIdIsEmptyAndHasNoText) {
  for (const TraceContext& context : {TraceContext(), TraceContext(TraceId{}, SpanId{1}, true, "a=b"),
                                      TraceContext(TraceId{1, 0}, SpanId{}, true, "a=b")}) {
    EXPECT_TRUE(context.empty());
    EXPECT_FALSE(context.is_sampled());
    EXPECT_EQ(context.traceparent(), "");
    EXPECT_EQ(context.to_text(), "");
    EXPECT_EQ(context, TraceContext());
  }
}

TEST(TraceContext, ATextOfOnePartHasBothFields) {
  for (const char* state : {"", "a=b", "a=b,c=d"}) {
    const auto context = TraceContext::parse(usual(), state);
    ASSERT_TRUE(context);
    const auto again = TraceContext::from_text(context->to_text());
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, *context);
  }
  EXPECT_EQ(TraceContext::parse(usual())->to_text(), usual());
  EXPECT_EQ(TraceContext::parse(usual(), "a=b")->to_text(), usual() + "\na=b");
  EXPECT_FALSE(TraceContext::from_text(""));
  EXPECT_FALSE(TraceContext::from_text("\n" + usual()));
  EXPECT_EQ(TraceContext::from_text(usual() + "\na=b\nc")->tracestate(), "");
}

TEST(TraceContext, AnIdIsAppendedWithItsZeros) {
  std::string out = "x";
  append_hex(out, TraceId{1, 0x23});
  append_hex(out, SpanId{0xabc});
  EXPECT_EQ(out, "x000000000000000100000000000000230000000000000abc");
}

}  // namespace
}  // namespace weft::trace
