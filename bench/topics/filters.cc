// SPDX-License-Identifier: MIT
// filters: random topics in an index of many filters, and hostile sets of globs. bench_micro has the same rows.
#include <unistd.h>

#include <functional>
#include <optional>
#include <vector>

#include "bench/commands.h"
#include "bench/micro/filter_sets.h"
#include "bench/topics/runs.h"
#include "bench/usage.h"
#include "weft/msg/interest/filter_index.h"
#include "weft/msg/interest/prefix_table.h"

namespace bench {
namespace {

using weft::msg::FilterIndex;

// A set of filters, and a way to match a topic with it, which returns how many peers want it.
struct FilterSet {
  std::vector<std::string> topics;
  std::function<std::uint64_t(const std::string& topic)> match;
  std::uint64_t filters = 0;
  std::uint64_t bytes = 0;  // of memory that the filters took
  bool matches = true;      // some of the topics
};

class Index {
 public:
  void add(const weft::FilterView& filter) { must(index_.add(peer_, filter), "add"); }
  std::uint64_t match(const std::string& topic) {
    std::uint64_t found = 0;
    index_.match(topic, ++mark_, [&](FilterIndex::Peer& there, bool matched) {
      there.mark = mark_;
      found += matched ? 1 : 0;
    });
    return found;
  }

 private:
  FilterIndex index_;
  FilterIndex::Peer peer_;
  std::uint64_t mark_ = 0;
};

using MakeFilter = weft::Filter (*)(std::string_view name);
using MakeText = std::string (*)(std::size_t number);

FilterSet random_set(std::size_t count, MakeFilter make_filter) {
  const std::vector<std::string> names = random_names(count, 1);
  FilterSet set;
  set.topics = random_topics(names);
  set.filters = count;
  auto index = std::make_shared<Index>();
  const std::uint64_t before = private_memory();
  for (const std::string& name : names) {
    index->add(make_filter(name));
  }
  set.bytes = private_memory() - before;
  set.match = [index](const std::string& topic) { return index->match(topic); };
  return set;
}

// The table that sockets have for prefixes, with each name as a prefix.
FilterSet prefix_set(std::size_t count) {
  const std::vector<std::string> names = random_names(count, 1);
  FilterSet set;
  set.topics = random_topics(names);
  set.filters = count;
  auto table = std::make_shared<weft::msg::PrefixTable<std::uint64_t>>();
  const std::uint64_t before = private_memory();
  for (const std::string& name : names) {
    bool is_new = false;
    *table->insert(weft::as_bytes(name), is_new) = 1;
  }
  set.bytes = private_memory() - before;
  set.match = [table](const std::string& topic) {
    std::uint64_t found = 0;
    table->match(weft::as_bytes(topic), [&](std::uint64_t& value) {
      found += value;
      return true;
    });
    return found;
  };
  return set;
}

FilterSet hostile_set(MakeText text) {
  constexpr std::size_t kFilters = 100'000;
  FilterSet set;
  set.topics.emplace_back(weft::kTopicBytesMax, 'a');
  set.filters = kFilters;
  set.matches = false;
  auto index = std::make_shared<Index>();
  const std::uint64_t before = private_memory();
  for (std::size_t i = 0; i < kFilters; ++i) {
    index->add(must(weft::Filter::glob(text(i)), "glob"));
  }
  set.bytes = private_memory() - before;
  set.match = [index](const std::string& topic) { return index->match(topic); };
  return set;
}

std::optional<FilterSet> make_set(const std::string& cell, const std::string& engine) {
  if (engine == "prefix_table") {
    return cell == "filters/exact/1000000" || cell == "filters/tokens/1000000" ? std::optional(prefix_set(1'000'000))
                                                                               : std::nullopt;
  }
  if (engine != "topics") {
    return std::nullopt;
  }
  return cell == "filters/exact/1000000"     ? std::optional(random_set(1'000'000, exact_filter))
         : cell == "filters/tokens/1000000"  ? std::optional(random_set(1'000'000, tokens_filter))
         : cell == "filters/globs/100000"    ? std::optional(random_set(100'000, glob_filter))
         : cell == "filters/hostile/run"     ? std::optional(hostile_set(hostile_run))
         : cell == "filters/hostile/classes" ? std::optional(hostile_set(hostile_classes))
         : cell == "filters/hostile/heads"   ? std::optional(hostile_set(hostile_heads))
                                             : std::nullopt;
}

}  // namespace

void run_filters(const std::string& cell, const std::string& engine) {
  alarm(kPatienceS);
  const std::optional<FilterSet> set = make_set(cell, engine);
  if (!set) {
    fail("no cell '" + cell + "' of engine '" + engine + "'");
  }
  std::size_t next = 0;
  serve_runs(
      engine == "topics" ? "weft::msg::FilterIndex" : "weft::msg::PrefixTable",
      [&](std::uint64_t count, bool /*verify*/) {
        std::uint64_t found = 0;
        const std::uint64_t start = thread_ns();
        for (std::uint64_t i = 0; i < count; ++i) {
          found += set->match(set->topics[next++ % set->topics.size()]);
        }
        const RunResult result{count, 1, static_cast<double>(thread_ns() - start) / 1e9};
        if ((found == 0) == set->matches && count > 100) {
          fail("topics matched other filters than they should");
        }
        return result;
      },
      nullptr,
      [&](Json& record) {
        record["filter_bytes"] = static_cast<double>(set->bytes) / static_cast<double>(set->filters);
      });
}

}  // namespace bench
