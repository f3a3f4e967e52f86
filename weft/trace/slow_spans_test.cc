// SPDX-License-Identifier: MIT
#include "weft/trace/slow_spans.h"

#include <string>
#include <vector>

#include "weft/trace/tracer.h"
#include <gtest/gtest.h>

namespace weft::trace {
namespace {

constexpr std::int64_t kMinute = SlowSpans::kWindowNs;

void note(SlowSpans& spans, const std::string& name, std::int64_t end_ns, std::int64_t duration_ns,
          SpanKind kind = SpanKind::server, SpanId parent = {}) {
  SpanRecord record;
  record.context = TraceContext({1, 2}, {3}, true);
  record.parent = parent;
  record.name = name;
  record.kind = kind;
  record.start_ns = end_ns - duration_ns;
  record.end_ns = end_ns;
  spans.note(record);
}

std::string names(const SlowSpans& spans, std::int64_t now_ns) {
  std::vector<SlowSpan> found;
  spans.slowest(now_ns, found);
  std::string text;
  for (const SlowSpan& each : found) {
    text += each.name + " ";
  }
  return text;
}

TEST(SlowSpansTest, TheSlowestComeFirst) {
  SlowSpans spans;
  note(spans, "b", 5000, 20);
  note(spans, "c", 5000, 10);
  note(spans, "a", 5000, 30);
  note(spans, "b2", 5000, 20);
  EXPECT_EQ(names(spans, 5000), "a b b2 c ");
}

TEST(SlowSpansTest, ItKeepsTheSlowestOfThisMinuteAndTheOneBefore) {
  SlowSpans spans;
  for (std::int64_t i = 0; i < 1000; ++i) {
    note(spans, std::to_string(i), 5000, i);
  }
  std::vector<SlowSpan> found;
  spans.slowest(5000, found);
  ASSERT_EQ(found.size(), SlowSpans::kMost);
  EXPECT_EQ(found.front().name, "999");
  EXPECT_EQ(found.back().name, std::to_string(1000 - SlowSpans::kMost));
  note(spans, "next", kMinute, 1);  // faster than all of the minute before
  EXPECT_TRUE(names(spans, kMinute).starts_with("999 998 "));
  EXPECT_EQ(names(spans, 2 * kMinute), "next ");
  EXPECT_EQ(names(spans, 3 * kMinute), "");
}

TEST(SlowSpansTest, ASpanOfTheMinuteBeforeMayComeLate) {
  SlowSpans spans;
  note(spans, "a", 5000, 30);
  note(spans, "next", kMinute, 1);
  note(spans, "late", kMinute - 1, 20);
  note(spans, "more", kMinute, 2);
  EXPECT_EQ(names(spans, kMinute), "a late more next ");
}

TEST(SlowSpansTest, AClockThatWentBackBeginsAMinute) {
  SlowSpans spans;
  note(spans, "later", 9 * kMinute, 5);
  note(spans, "earlier", 0, 5);
  EXPECT_EQ(names(spans, 0), "earlier ");
}

TEST(SlowSpansTest, AChildIsAPartOfItsOperation) {
  SlowSpans spans;
  note(spans, "query", 5000, 40, SpanKind::client, {7});
  note(spans, "root", 5000, 30, SpanKind::client);
  note(spans, "asked", 5000, 20, SpanKind::server, {7});  // by another process
  EXPECT_EQ(names(spans, 5000), "root asked ");
}

TEST(SlowSpansTest, ATracerKeepsThoseThatItsQueueDropped) {
  TracerOptions options;
  options.service = "test";
  options.queue_spans = 1;
  const auto tracer = Tracer::make(std::move(options)).value();
  for (int i = 0; i < 3; ++i) {
    Span span = tracer->start("work");
    span.set_status(SpanStatus::error, "text");
  }
  std::vector<SlowSpan> found;
  tracer->slow_span_source()(found);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "work");
  EXPECT_EQ(found[0].status, SpanStatus::error);
  EXPECT_TRUE(found[0].trace);
  EXPECT_EQ(tracer->counts().dropped_spans, 2u);
}

}  // namespace
}  // namespace weft::trace
