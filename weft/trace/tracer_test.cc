// SPDX-License-Identifier: MIT
#include "weft/trace/tracer.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weft::trace {
namespace {

using Records = std::vector<std::unique_ptr<SpanRecord>>;

std::shared_ptr<Tracer> tracer_of(double ratio, std::size_t queue_spans = 4096) {
  TracerOptions options;
  options.service = "test";
  options.ratio = ratio;
  options.queue_spans = queue_spans;
  auto tracer = Tracer::make(std::move(options));
  EXPECT_TRUE(tracer) << tracer.error().message();
  return std::move(tracer).value();
}

Records all_finished(Tracer& tracer) {
  Records records;
  tracer.queue().take(std::size_t{1} << 20, std::size_t{1} << 30, records);
  return records;
}

std::string attribute(const SpanRecord& record, std::string_view wanted) {
  std::string found = "none";
  record.attributes.for_each([&](std::string_view name, const Attributes::Value& value) {
    if (name == wanted) {
      found = value.type == Attributes::Type::text   ? std::string(value.text)
              : value.type == Attributes::Type::real ? std::to_string(value.real)
                                                     : std::to_string(value.integer);
    }
  });
  return found;
}

TEST(Tracer, RefusesOptionsThatMakeNoSense) {
  for (const double ratio : {-0.1, 1.1, std::nan("")}) {
    TracerOptions options;
    options.service = "test";
    options.ratio = ratio;
    EXPECT_EQ(Tracer::make(options).error(), Errc::invalid_argument) << ratio;
  }
  TracerOptions options;
  EXPECT_EQ(Tracer::make(options).error(), Errc::invalid_argument);
  options.service = "test";
  options.queue_spans = 0;
  EXPECT_EQ(Tracer::make(options).error(), Errc::invalid_argument);
  options.queue_spans = 1;
  options.queue_bytes = 0;
  EXPECT_EQ(Tracer::make(options).error(), Errc::invalid_argument);
}

TEST(Tracer, ARecordedSpanHasItsNameTimesAttributesAndStatus) {
  const auto tracer = tracer_of(1);
  Span span = tracer->start("first", SpanKind::client);
  ASSERT_TRUE(span.is_recording());
  const TraceContext context = span.context();
  EXPECT_TRUE(context.is_sampled());
  span.set_name("second");
  span.set("text", "a text");
  span.set("string", std::string("another"));
  span.set("int", -3);
  span.set("large", std::numeric_limits<std::uint64_t>::max());
  span.set("bool", true);
  span.set("real", 0.5);
  span.set_status(SpanStatus::error, "why");
  span.end();
  span.end();
  EXPECT_FALSE(span.is_recording());
  EXPECT_EQ(span.context(), context);
  span.set("late", 1);
  span.set_status(SpanStatus::ok);
  const Records records = all_finished(*tracer);
  ASSERT_EQ(records.size(), 1U);
  const SpanRecord& record = *records[0];
  EXPECT_EQ(record.context, context);
  EXPECT_FALSE(record.parent);
  EXPECT_EQ(record.name, "second");
  EXPECT_EQ(record.kind, SpanKind::client);
  EXPECT_EQ(record.status, SpanStatus::error);
  EXPECT_EQ(record.status_text, "why");
  EXPECT_GT(record.start_ns, std::int64_t{1'600'000'000'000'000'000});  // after 2020
  EXPECT_GE(record.end_ns, record.start_ns);
  EXPECT_EQ(record.attributes.count(), 6U);
  EXPECT_EQ(attribute(record, "text"), "a text");
  EXPECT_EQ(attribute(record, "string"), "another");
  EXPECT_EQ(attribute(record, "int"), "-3");
  EXPECT_EQ(attribute(record, "large"), std::to_string(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(attribute(record, "bool"), "1");
  EXPECT_EQ(attribute(record, "real"), "0.500000");
}

TEST(Tracer, AChildIsInTheTraceOfItsParentAndRecordedLikeIt) {
  for (const double ratio : {0.0, 1.0}) {
    const auto tracer = tracer_of(ratio);
    const Span parent = tracer->start("parent");
    const Span child = parent.child("child");
    EXPECT_EQ(child.context().trace_id(), parent.context().trace_id());
    EXPECT_NE(child.context().span_id(), parent.context().span_id());
    EXPECT_EQ(child.is_recording(), ratio == 1);
    EXPECT_EQ(child.context().is_sampled(), ratio == 1);
    EXPECT_EQ(tracer->counts().started, 2U);
    EXPECT_EQ(tracer->counts().sampled, ratio == 1 ? 2U : 0U);
  }
}

TEST(Tracer, TheDecisionOfAParentGoesBeforeTheRatio) {
  for (const bool sampled : {false, true}) {
    const auto tracer = tracer_of(sampled ? 0 : 1);
    const TraceContext parent(TraceId{1, 2}, SpanId{3}, sampled, "a=b");
    Span span = tracer->start("x", SpanKind::server, parent);
    EXPECT_EQ(span.is_recording(), sampled);
    EXPECT_EQ(span.context().trace_id(), (TraceId{1, 2}));
    EXPECT_EQ(span.context().tracestate(), "a=b");
    span.end();
    const Records records = all_finished(*tracer);
    ASSERT_EQ(records.size(), sampled ? 1U : 0U);
    if (sampled) {
      EXPECT_EQ(records[0]->parent, SpanId{3});
    }
  }
}

TEST(Tracer, AnEmptyParentBeginsATrace) {
  const auto tracer = tracer_of(1);
  const Span span = tracer->start("x", SpanKind::server, TraceContext());
  EXPECT_FALSE(span.context().empty());
  EXPECT_TRUE(span.is_recording());
}

TEST(Tracer, TheRatioChoosesAboutThatPartByTheIdAlone) {
  const auto tenth = tracer_of(0.1);
  const auto same = tracer_of(0.1);
  int chosen = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Span span = tenth->start("x");
    chosen += span.is_recording() ? 1 : 0;
    // A tracer with a larger ratio would choose it, too.
    EXPECT_EQ(span.is_recording(), span.context().trace_id().low < static_cast<std::uint64_t>(0.1 * 0x1p64));
  }
  EXPECT_GT(chosen, 700);  // ten standard deviations of 30
  EXPECT_LT(chosen, 1300);
}

TEST(Tracer, ASpanThatBelongsToNoTraceRecordsNothingAndNeitherDoItsChildren) {
  Span none;
  none.set("a", 1);
  none.set_name("x");
  none.set_status(SpanStatus::error);
  const Span child = none.child("y");
  EXPECT_TRUE(child.context().empty());
  EXPECT_FALSE(child.is_recording());
  none.end();
}

TEST(Tracer, AMovedSpanEndsOnce) {
  const auto tracer = tracer_of(1);
  {
    Span first = tracer->start("first");
    Span second = std::move(first);
    EXPECT_TRUE(second.is_recording());
    EXPECT_FALSE(first.is_recording());             // NOLINT(bugprone-use-after-move): empty, by contract
    EXPECT_TRUE(first.context().empty());           // NOLINT(bugprone-use-after-move)
    EXPECT_FALSE(first.child("z").is_recording());  // NOLINT(bugprone-use-after-move)
    second = tracer->start("third");                // ends `first`
    EXPECT_EQ(tracer->queue().spans(), 1U);
  }
  const Records records = all_finished(*tracer);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0]->name, "first");
  EXPECT_EQ(records[1]->name, "third");
}

TEST(Tracer, CountsWhatTheQueueDropsAndTheNumbersBalance) {
  const auto tracer = tracer_of(1, 3);
  for (int i = 0; i < 5; ++i) {
    (void)tracer->start("x");
  }
  TraceCounts counts = tracer->counts();
  EXPECT_EQ(counts.sampled, 5U);
  EXPECT_EQ(counts.queued, 3U);
  EXPECT_GT(counts.queued_bytes, 3 * sizeof(SpanRecord));
  EXPECT_EQ(counts.dropped_spans, 2U);

  TracerOptions options;
  options.service = "test";
  options.queue_bytes = 100;  // less than a span has
  const auto narrow = Tracer::make(options).value();
  (void)narrow->start("x");
  counts = narrow->counts();
  EXPECT_EQ(counts.dropped_bytes, 1U);
  EXPECT_EQ(counts.queued, 0U);
}

TEST(Tracer, AttributesWithoutRoomAreCounted) {
  const auto tracer = tracer_of(1);
  Span span = tracer->start(std::string(1000, 'n'));
  for (std::size_t i = 0; i < Attributes::kCountMax + 3; ++i) {
    span.set("a" + std::to_string(i), i);
  }
  span.set_status(SpanStatus::error, std::string(1000, 't'));
  span.end();
  EXPECT_EQ(tracer->counts().attributes_dropped, 3U);
  const Records records = all_finished(*tracer);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0]->attributes_dropped, 3U);
  EXPECT_EQ(records[0]->name.size(), SpanRecord::kTextMax);
  EXPECT_EQ(records[0]->status_text.size(), SpanRecord::kTextMax);
}

TEST(Tracer, ThreadsShareItAndEachSpanIsCountedOnce) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 500;
  const auto tracer = tracer_of(1, kThreads * kEach);
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&tracer] {
      for (std::uint64_t j = 0; j < kEach; ++j) {
        Span span = tracer->start("x");
        span.set("j", j);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const TraceCounts counts = tracer->counts();
  EXPECT_EQ(counts.started, kThreads * kEach);
  EXPECT_EQ(counts.sampled, kThreads * kEach);
  EXPECT_EQ(counts.queued, kThreads * kEach);
}

TEST(Tracer, APageOfMetricsMayOutliveIt) {
  CounterSource source;
  CounterReadings readings;
  {
    const auto tracer = tracer_of(0);
    (void)tracer->start("x");
    source = tracer->counter_source();
    source("shop", readings);
    ASSERT_EQ(readings.size(), 1U);
    EXPECT_EQ(readings[0].labels, (std::vector<CounterLabel>{{"trace", "shop"}}));
    EXPECT_EQ(readings[0].values.size(), std::size(kTraceRows));
    EXPECT_EQ(readings[0].values[0], 1U);
  }
  readings.clear();
  source("shop", readings);
  EXPECT_TRUE(readings.empty());
}

}  // namespace
}  // namespace weft::trace
