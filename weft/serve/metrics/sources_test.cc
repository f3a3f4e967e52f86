// SPDX-License-Identifier: MIT
#include "weft/serve/metrics/sources.h"

#include <chrono>
#include <string>

#include "weft/serve/metrics/test_prometheus.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

constexpr CounterRow kRows[] = {
    {"eaten", "fruit_total", CounterKind::counter, "fate", "eaten", "pieces", "Fruit by fate: eaten.", "nowhere"},
    {"rotten", "fruit_total", CounterKind::counter, "fate", "rotten", "pieces", "Fruit by fate: rotten.", "nowhere"},
    {"trees", "trees", CounterKind::gauge, "", "", "trees", "Trees that stand.", "nowhere"},
};
constexpr CounterTable kOrchard = {"orchard", "An orchard.", kRows};

struct Orchard {
  std::uint64_t eaten = 0, rotten = 0, trees = 0;

  [[nodiscard]] CounterSource counter_source() const {
    return [this](std::string_view name, CounterReadings& into) {
      into.push_back({&kOrchard, {{"orchard", std::string(name)}}, {eaten, rotten, trees}});
    };
  }
};

test::Scrape scrape(const MetricSources& sources) {
  PrometheusWriter writer;
  sources.write(writer);
  return test::ScrapeReader::read(writer.text());
}

TEST(MetricSources, EachThingHasASampleOfEachRow) {
  Orchard north{1, 2, 3};
  const Orchard south{4, 5, 6};
  MetricSources sources;
  sources.add("north", north);
  sources.add("south", south);
  const test::Scrape page = scrape(sources);
  EXPECT_EQ(page.mistake, "");
  EXPECT_EQ(page.samples.size(), 6u);
  EXPECT_EQ(page.samples.at("weft_orchard_fruit_total{fate=\"rotten\",orchard=\"north\"}"), 2);
  EXPECT_EQ(page.samples.at("weft_orchard_trees{orchard=\"south\"}"), 6);
  EXPECT_EQ(page.types.at("weft_orchard_fruit_total"), "counter");
  EXPECT_EQ(page.types.at("weft_orchard_trees"), "gauge");
  EXPECT_EQ(page.helps.at("weft_orchard_fruit_total"), "Fruit by fate.");
  north.eaten = 100;
  EXPECT_EQ(scrape(sources).samples.at("weft_orchard_fruit_total{fate=\"eaten\",orchard=\"north\"}"), 100);
}

TEST(MetricSources, ThingsOfOneNameAreSummed) {
  const Orchard first{1, 0, 10};
  const Orchard second{2, 0, 20};
  MetricSources sources;
  sources.add("all", first);
  sources.add("all", second);
  const test::Scrape page = scrape(sources);
  EXPECT_EQ(page.mistake, "");
  EXPECT_EQ(page.samples.size(), 3u);
  EXPECT_EQ(page.samples.at("weft_orchard_fruit_total{fate=\"eaten\",orchard=\"all\"}"), 3);
  EXPECT_EQ(page.samples.at("weft_orchard_trees{orchard=\"all\"}"), 30);
}

TEST(MetricSources, WhatIsRemovedIsNotReadAnyMore) {
  MetricSources sources;
  {
    const Orchard gone{1, 1, 1};
    const Orchard too{1, 1, 1};
    sources.add("gone", gone);
    sources.add("gone", too);
    EXPECT_EQ(sources.remove("other"), 0u);
    EXPECT_EQ(sources.remove("gone"), 2u);
  }
  sources.add("empty", CounterSource());
  EXPECT_EQ(scrape(sources).samples.size(), 0u);
}

constexpr sync::DurationRow kGrowing = {"orchard", "growing_seconds", "orchard, tree", "How long trees grow.",
                                        "nowhere"};

struct TimedOrchard : Orchard {
  sync::DurationCounts apple, pear;

  [[nodiscard]] sync::DurationSource duration_source() const {
    return [this](std::string_view name, sync::DurationReadings& into) {
      into.push_back({&kGrowing, {{"orchard", std::string(name)}, {"tree", "pear"}}, pear.values()});
      into.push_back({&kGrowing, {{"orchard", std::string(name)}, {"tree", "apple"}}, apple.values()});
    };
  }
};

TEST(MetricSources, HistogramsWithTheSameLabelsBecomeOne) {
  TimedOrchard first;
  TimedOrchard second;
  TimedOrchard other;
  first.apple.add(std::chrono::microseconds(3));
  second.apple.add(std::chrono::seconds(1));
  second.pear.add(std::chrono::hours(1));
  MetricSources sources;
  sources.add("all", first);
  sources.add("other", other);
  sources.add("all", second);
  const test::Scrape page = scrape(sources);
  EXPECT_EQ(page.mistake, "");
  EXPECT_EQ(page.types.at("weft_orchard_growing_seconds"), "histogram");
  EXPECT_EQ(page.helps.at("weft_orchard_growing_seconds"), "How long trees grow.");
  const auto count = [&page](const std::string& labels) {
    return page.samples.at("weft_orchard_growing_seconds_count{" + labels + "}");
  };
  EXPECT_EQ(count("orchard=\"all\",tree=\"apple\""), 2);
  EXPECT_EQ(count("orchard=\"all\",tree=\"pear\""), 1);
  EXPECT_EQ(count("orchard=\"other\",tree=\"pear\""), 0);
  EXPECT_EQ(page.samples.at("weft_orchard_growing_seconds_bucket{orchard=\"all\",tree=\"apple\",le=\"4.095e-06\"}"), 1);
  EXPECT_DOUBLE_EQ(page.samples.at("weft_orchard_growing_seconds_sum{orchard=\"all\",tree=\"apple\"}"), 1.000003);
  ASSERT_EQ(sources.durations().size(), 4u);
  EXPECT_EQ(sources.durations()[0].values.max_ns, 1'000'000'000u);
  EXPECT_EQ(sources.remove("all"), 2u);
  EXPECT_EQ(sources.durations().size(), 2u);
}

TEST(MetricSources, ANameMaySayAnything) {
  const Orchard orchard{1, 2, 3};
  MetricSources sources;
  sources.add("a \"quoted\"\n} 5\nweft_forged 1\\", orchard);
  sources.add(std::string("\xFF", 1), orchard);
  const test::Scrape page = scrape(sources);
  EXPECT_EQ(page.mistake, "");
  EXPECT_EQ(page.samples.size(), 6u);
  EXPECT_EQ(page.samples.count("weft_forged"), 0u);
}

}  // namespace
}  // namespace weft::serve
