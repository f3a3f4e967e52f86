// SPDX-License-Identifier: MIT
#include "weft/serve/metrics/prometheus.h"

#include <limits>
#include <memory>
#include <thread>

#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/metrics/test_prometheus.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using Type = PrometheusWriter::Type;
using test::Scrape;
using test::ScrapeReader;

TEST(Prometheus, WritesWhatTheFormatsDescriptionShows) {
  PrometheusWriter writer;
  ASSERT_TRUE(writer.family("weft_frames_total", Type::counter, "Frames that came."));
  ASSERT_TRUE(writer.sample({{"core", "0"}, {"codec", "header"}}, std::uint64_t{3}));
  ASSERT_TRUE(writer.sample({}, std::numeric_limits<std::uint64_t>::max()));
  ASSERT_TRUE(writer.family("weft_load", Type::gauge, ""));
  ASSERT_TRUE(writer.sample({}, 0.25));
  EXPECT_EQ(writer.text(),
            "# HELP weft_frames_total Frames that came.\n"
            "# TYPE weft_frames_total counter\n"
            "weft_frames_total{codec=\"header\",core=\"0\"} 3\n"
            "weft_frames_total 18446744073709551615\n"
            "# HELP weft_load \n"
            "# TYPE weft_load gauge\n"
            "weft_load 0.25\n");
  EXPECT_EQ(ScrapeReader::read(writer.text()).mistake, "");
}

TEST(Prometheus, ValuesAndHelpAreEscapedEachInItsWay) {
  PrometheusWriter writer;
  ASSERT_TRUE(writer.family("a", Type::gauge, "back\\slash, \"quotes\" and\nlines"));
  ASSERT_TRUE(writer.sample({{"x", "back\\slash, \"quotes\" and\nlines"}}, 1.0));
  EXPECT_EQ(writer.text(),
            "# HELP a back\\\\slash, \"quotes\" and\\nlines\n# TYPE a gauge\n"
            "a{x=\"back\\\\slash, \\\"quotes\\\" and\\nlines\"} 1\n");
  EXPECT_EQ(ScrapeReader::read(writer.text()).helps.at("a"), "back\\slash, \"quotes\" and\nlines");
}

TEST(Prometheus, WhatIsNoUtf8IsReplaced) {
  PrometheusWriter writer;
  ASSERT_TRUE(writer.family("a", Type::gauge, "\xC3\xA4 \xF0\x9F\x98\x80"));
  ASSERT_TRUE(writer.sample({{"x", "\xFFz\xC3"}, {"y", "\xED\xA0\x80"}, {"z", "\xC0\xAF\xE0\x80\x80"}}, 1.0));
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_NE(writer.text().find("\xC3\xA4 \xF0\x9F\x98\x80"), std::string::npos);
  EXPECT_NE(writer.text().find("x=\"" + bad + "z" + bad + "\",y=\"" + bad + bad + bad + "\""), std::string::npos);
}

TEST(Prometheus, NumbersThatAreNoneHaveTheirNames) {
  PrometheusWriter writer;
  ASSERT_TRUE(writer.family("a", Type::gauge, ""));
  ASSERT_TRUE(writer.sample({{"n", "1"}}, HUGE_VAL));
  ASSERT_TRUE(writer.sample({{"n", "2"}}, -HUGE_VAL));
  ASSERT_TRUE(writer.sample({{"n", "3"}}, std::nan("")));
  EXPECT_NE(writer.text().find("a{n=\"1\"} +Inf\na{n=\"2\"} -Inf\na{n=\"3\"} NaN\n"), std::string::npos);
}

TEST(Prometheus, WhatWouldSpoilTheScrapeIsRefusedAndNotWritten) {
  PrometheusWriter writer;
  EXPECT_EQ(writer.sample({}, 1.0).error(), Errc::invalid_state);
  for (const char* name : {"", "9a", "a-b", "a b", "a{", "\xC3\xA4"}) {
    EXPECT_EQ(writer.family(name, Type::gauge, "").error(), Errc::invalid_argument) << name;
  }
  ASSERT_TRUE(writer.family("a:b_9", Type::gauge, ""));
  for (const char* name : {"", "9a", "a-b", "a:b", "__a"}) {
    EXPECT_EQ(writer.sample({{name, ""}}, 1.0).error(), Errc::invalid_argument) << name;
  }
  EXPECT_EQ(writer.sample({{"x", "1"}, {"y", ""}, {"x", "2"}}, 1.0).error(), Errc::invalid_argument);
  EXPECT_TRUE(writer.sample({{"x", "1"}, {"y", "2"}}, 1.0));
  EXPECT_EQ(writer.sample({{"y", "2"}, {"x", "1"}}, 2.0).error(), Errc::invalid_state);
  EXPECT_EQ(writer.histogram({}, LatencyHistogram(), 0).error(), Errc::invalid_state);
  EXPECT_EQ(writer.family("a:b_9", Type::counter, "").error(), Errc::invalid_state);
  EXPECT_EQ(writer.sample({}, 1.0).error(), Errc::invalid_state);
  ASSERT_TRUE(writer.family("h", Type::histogram, ""));
  EXPECT_EQ(writer.histogram(std::array{Label{"le", "1"}}, LatencyHistogram(), 0).error(), Errc::invalid_argument);
  EXPECT_EQ(writer.family("h_sum", Type::gauge, "").error(), Errc::invalid_state);
  const Scrape scrape = ScrapeReader::read(writer.text());
  EXPECT_EQ(scrape.mistake, "");
  EXPECT_EQ(scrape.samples.size(), 1u);
}

TEST(Prometheus, AHistogramIsCumulativeExactAndEndsWithItsCount) {
  PrometheusWriter writer;
  auto recorder = std::make_unique<LatencyRecorder>();
  for (const std::int64_t ns : {-5, 0, 1023, 1024, 2047, 2048, 1'000'000}) {
    recorder->add(Duration(ns));
  }
  recorder->add(std::chrono::hours(1));
  LatencyHistogram durations;
  std::uint64_t sum_ns = 0;
  recorder->read_into(durations, sum_ns);
  ASSERT_TRUE(writer.family("weft_wait_seconds", Type::histogram, "Waiting."));
  ASSERT_TRUE(writer.histogram(std::array{Label{"core", "1"}}, durations, sum_ns));
  ASSERT_TRUE(writer.histogram({}, LatencyHistogram(), 0));
  const Scrape scrape = ScrapeReader::read(writer.text());
  EXPECT_EQ(scrape.mistake, "");
  EXPECT_EQ(scrape.samples.at("weft_wait_seconds_bucket{core=\"1\",le=\"1.023e-06\"}"), 3);
  EXPECT_EQ(scrape.samples.at("weft_wait_seconds_bucket{core=\"1\",le=\"2.047e-06\"}"), 5);
  EXPECT_EQ(scrape.samples.at("weft_wait_seconds_bucket{core=\"1\",le=\"4.095e-06\"}"), 6);
  EXPECT_EQ(scrape.samples.at("weft_wait_seconds_bucket{core=\"1\",le=\"0.001048575\"}"), 7);
  EXPECT_EQ(scrape.samples.at("weft_wait_seconds_bucket{core=\"1\",le=\"17.179869183\"}"), 7);
  EXPECT_EQ(scrape.samples.at("weft_wait_seconds_bucket{core=\"1\",le=\"+Inf\"}"), 8);
  EXPECT_EQ(scrape.samples.at("weft_wait_seconds_count{core=\"1\"}"), 8);
  EXPECT_DOUBLE_EQ(scrape.samples.at("weft_wait_seconds_sum{core=\"1\"}"), 3600.001006142);
  EXPECT_EQ(scrape.samples.at("weft_wait_seconds_count"), 0);
}

// ScrapeReader finds each mistake that these tests rely on.
TEST(Prometheus, TheTestsReaderRefusesWhatIsNotTheFormat) {
  for (const char* text :
       {"a 1", "a 1\n", "# TYPE a gauge\na 1\n", "# HELP a \n# TYPE a gauge\na\n", "# HELP a \n# TYPE a gauge\na x\n",
        "# HELP a \n# TYPE a gauge\na{b=\"\\x\"} 1\n", "# HELP a \n# TYPE a gauge\na{b=1} 1\n",
        "# HELP a \n# TYPE a gauge\na{} 1\n", "# HELP a \n# TYPE a gauge\na 1\na 2\n",
        "# HELP a \n# TYPE a gauge\nb 1\n", "# HELP a \n# HELP a \n# TYPE a gauge\n",
        "# HELP a \n# TYPE a histogram\na_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",
        "# HELP a \n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n",
        "# HELP a \n# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 2\n",
        "# HELP a \n# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_count 1\n"}) {
    EXPECT_NE(ScrapeReader::read(text).mistake, "") << text;
  }
}

TEST(PerCore, CountersOfCoresAddUpWhileTheyCount) {
  PerCore<DispatchCounts> counts(3);
  std::vector<std::thread> threads;
  for (unsigned core = 0; core < counts.size(); ++core) {
    threads.emplace_back([&counts, core] {
      for (int i = 0; i < 10'000; ++i) {
        counts.at(core).handled.add();
      }
    });
  }
  std::uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t now = counts.total(&DispatchCounts::handled);
    EXPECT_LE(last, now);
    last = now;
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(counts.total(&DispatchCounts::handled), 30'000u);
  EXPECT_EQ(counts.total(&DispatchCounts::failed), 0u);
}

TEST(LatencyRecorder, HistogramsOfCoresAddUpToOne) {
  PerCore<LatencyRecorder> recorders(2);
  for (int i = 1; i <= 1000; ++i) {
    recorders.at(static_cast<unsigned>(i % 2)).add(std::chrono::microseconds(i));
  }
  LatencyHistogram all;
  std::uint64_t sum_ns = 0;
  for (unsigned core = 0; core < recorders.size(); ++core) {
    recorders.at(core).read_into(all, sum_ns);
  }
  EXPECT_EQ(all.total(), 1000u);
  EXPECT_EQ(sum_ns, 500'500'000u);
  EXPECT_EQ(all.max(), 1'000'000u);
  EXPECT_NEAR(all.quantile(0.5), 500e3, 500e3 / 32);
  EXPECT_NEAR(all.quantile(0.99), 990e3, 990e3 / 32);
}

}  // namespace
}  // namespace weft::serve
