// SPDX-License-Identifier: MIT
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/micro/filter_sets.h"
#include "bench/micro/micro.h"
#include "weft/base/filter.h"
#include "weft/msg/interest/filter_index.h"
#include "weft/msg/interest/prefix_table.h"

namespace weft::msg {
namespace {

// The contender: each name as a prefix in the radix tree, matched with random topics.
void match_prefixes(benchmark::State& state, std::size_t count) {
  const std::vector<std::string> names = bench::random_names(count, 1);
  PrefixTable<std::uint64_t> table;
  for (const std::string& name : names) {
    bool is_new = false;
    *table.insert(as_bytes(name), is_new) = 1;
  }
  const std::vector<std::string> topics = bench::random_topics(names);
  std::uint64_t found = 0;
  const bench::CountedPart counted;
  std::size_t i = 0;
  for (auto _ : state) {
    table.match(as_bytes(topics[i++ % topics.size()]), [&](std::uint64_t& value) {
      found += value;
      return true;
    });
  }
  benchmark::DoNotOptimize(found);
}

using MakeFilter = std::function<Filter(std::string_view name)>;

void match_filters(benchmark::State& state, std::size_t count, const MakeFilter& make_filter) {
  const std::vector<std::string> names = bench::random_names(count, 1);
  FilterIndex index;
  FilterIndex::Peer peer;
  for (const std::string& name : names) {
    (void)index.add(peer, make_filter(name));
  }
  const std::vector<std::string> topics = bench::random_topics(names);
  std::uint64_t mark = 0;
  std::uint64_t found = 0;
  const bench::CountedPart counted;
  std::size_t i = 0;
  for (auto _ : state) {
    index.match(topics[i++ % topics.size()], ++mark, [&](FilterIndex::Peer& there, bool) {
      there.mark = mark;
      ++found;
    });
  }
  benchmark::DoNotOptimize(found);
}

// Globs of one peer that take many steps each and never match; `head` is at most 255 bytes.
void match_hostile(benchmark::State& state, const std::function<std::string(std::size_t)>& text) {
  FilterIndex index;
  FilterIndex::Peer peer;
  for (std::size_t i = 0; i < 100'000; ++i) {
    (void)index.add(peer, *Filter::glob(text(i)));
  }
  const std::string topic(kTopicBytesMax, 'a');
  std::uint64_t mark = 0;
  for (auto _ : state) {
    index.match(topic, ++mark, [&](FilterIndex::Peer& there, bool) { there.mark = mark; });
  }
}

const auto kExact =
    bench::row("FilterIndex_Match/exact/1000000")
        .run("weft", [](benchmark::State& state) { match_filters(state, 1'000'000, bench::exact_filter); })
        .run("prefix_table", [](benchmark::State& state) { match_prefixes(state, 1'000'000); });
const auto kTokens =
    bench::row("FilterIndex_Match/tokens/1000000")
        .run("weft", [](benchmark::State& state) { match_filters(state, 1'000'000, bench::tokens_filter); })
        .run("prefix_table", [](benchmark::State& state) { match_prefixes(state, 1'000'000); });
const auto kGlobs = bench::row("FilterIndex_Match/globs/100000").run("weft", [](benchmark::State& state) {
  match_filters(state, 100'000, bench::glob_filter);
});
const auto kHostileRun = bench::row("FilterIndex_Match/hostile/long_run").run("weft", [](benchmark::State& state) {
  match_hostile(state, bench::hostile_run);
});
const auto kHostileClasses = bench::row("FilterIndex_Match/hostile/classes").run("weft", [](benchmark::State& state) {
  match_hostile(state, bench::hostile_classes);
});
const auto kHostileHeads = bench::row("FilterIndex_Match/hostile/heads").run("weft", [](benchmark::State& state) {
  match_hostile(state, bench::hostile_heads);
});

}  // namespace
}  // namespace weft::msg
