// SPDX-License-Identifier: MIT
#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/micro/micro.h"
#include "weft/base/filter.h"
#include "weft/base/random.h"
#include "weft/msg/interest/filter_index.h"
#include "weft/msg/interest/prefix_table.h"

namespace weft::msg {
namespace {

std::string random_name(Random& random) {
  std::string name;
  for (int token = 0; token < 3; ++token) {
    name += token == 0 ? "" : ".";
    for (std::uint64_t size = 4 + random.below(6); size != 0; --size) {
      name += static_cast<char>('a' + random.below(26));
    }
  }
  return name;
}

std::vector<std::string> random_names(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::string> names(count);
  std::generate(names.begin(), names.end(), [&] { return random_name(random); });
  return names;
}

// Half of the topics are those of the filters.
std::vector<std::string> random_topics(const std::vector<std::string>& names) {
  constexpr std::size_t kTopics = std::size_t{1} << 16;
  std::vector<std::string> topics = random_names(kTopics, 2);
  Random random(3);
  for (std::size_t i = 0; i < kTopics; i += 2) {
    topics[i] = names[random.below(names.size())];
  }
  return topics;
}

// The contender: each name as a prefix in the radix tree, matched with random topics.
void match_prefixes(benchmark::State& state, std::size_t count) {
  const std::vector<std::string> names = random_names(count, 1);
  PrefixTable<std::uint64_t> table;
  for (const std::string& name : names) {
    bool is_new = false;
    *table.insert(as_bytes(name), is_new) = 1;
  }
  const std::vector<std::string> topics = random_topics(names);
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
  const std::vector<std::string> names = random_names(count, 1);
  FilterIndex index;
  FilterIndex::Peer peer;
  for (const std::string& name : names) {
    (void)index.add(peer, make_filter(name));
  }
  const std::vector<std::string> topics = random_topics(names);
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

Filter exact(std::string_view name) { return *Filter::exact(name); }
// A third each: the last token, the one in the middle, the rest.
Filter tokens(std::string_view name) {
  const std::size_t first = name.find('.');
  const std::size_t last = name.rfind('.');
  const std::string head(name.substr(0, last + 1));
  const std::string middle = std::string(name.substr(0, first)) + ".*" + std::string(name.substr(last));
  return *Filter::parse(name.size() % 3 == 0 ? head + "*" : name.size() % 3 == 1 ? middle : head + ">");
}
Filter glob(std::string_view name) {
  return *Filter::glob(std::string(name.substr(0, name.rfind('.'))) + ".*" + name.back());
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

const auto kExact = bench::row("FilterIndex_Match/exact/1000000")
                        .run("weft", [](benchmark::State& state) { match_filters(state, 1'000'000, exact); })
                        .run("prefix_table", [](benchmark::State& state) { match_prefixes(state, 1'000'000); });
const auto kTokens = bench::row("FilterIndex_Match/tokens/1000000")
                         .run("weft", [](benchmark::State& state) { match_filters(state, 1'000'000, tokens); })
                         .run("prefix_table", [](benchmark::State& state) { match_prefixes(state, 1'000'000); });
const auto kGlobs = bench::row("FilterIndex_Match/globs/100000").run("weft", [](benchmark::State& state) {
  match_filters(state, 100'000, glob);
});
const auto kHostileRun = bench::row("FilterIndex_Match/hostile/long_run").run("weft", [](benchmark::State& state) {
  match_hostile(state, [](std::size_t i) { return "*" + std::to_string(i) + std::string(100, 'a') + "b*"; });
});
const auto kHostileClasses = bench::row("FilterIndex_Match/hostile/classes").run("weft", [](benchmark::State& state) {
  match_hostile(state, [](std::size_t i) {
    std::string text = "*";
    while (text.size() < 240) {
      text += "[a-z]";
    }
    return text + std::to_string(i) + "*";
  });
});
const auto kHostileHeads = bench::row("FilterIndex_Match/hostile/heads").run("weft", [](benchmark::State& state) {
  match_hostile(state, [](std::size_t i) { return std::string(i % 245, 'a') + "*" + std::to_string(i); });
});

}  // namespace
}  // namespace weft::msg
