// SPDX-License-Identifier: MIT
#include "weft/serve/metrics/sources.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace weft::serve {

namespace {

// The things of one table, by their labels.
using Things = std::map<std::vector<CounterLabel>, std::vector<std::uint64_t>>;
struct TableOnPage {
  const CounterTable* table;
  Things things;
};

std::vector<TableOnPage> by_table(CounterReadings&& readings) {
  std::vector<TableOnPage> tables;
  for (CounterReading& reading : readings) {
    auto found = std::find_if(tables.begin(), tables.end(),
                              [&reading](const TableOnPage& each) { return each.table == reading.table; });
    if (found == tables.end()) {
      found = tables.insert(found, {reading.table, {}});
    }
    const auto [thing, added] = found->things.try_emplace(std::move(reading.labels), reading.values);
    for (std::size_t row = 0; !added && row < thing->second.size(); ++row) {
      thing->second[row] += reading.values[row];
    }
  }
  return tables;
}

// The rows of one metric: a family. The writer refuses what would make the page malformed; the rest is there.
void write_metric(PrometheusWriter& writer, const TableOnPage& on_page, std::size_t first, std::size_t end) {
  const auto rows = on_page.table->rows;
  const std::string name = "weft_" + std::string(on_page.table->thing) + "_" + std::string(rows[first].metric);
  const bool counts = rows[first].kind == CounterKind::counter;
  const std::string help = std::string(rows[first].shared_help()) + (rows[first].label.empty() ? "" : ".");
  (void)writer.family(name, counts ? PrometheusWriter::Type::counter : PrometheusWriter::Type::gauge, help);
  std::vector<Label> labels;
  for (const auto& [thing, values] : on_page.things) {
    for (std::size_t row = first; row < end; ++row) {
      labels.clear();
      for (const CounterLabel& label : thing) {
        labels.push_back({label.name, label.value});
      }
      if (!rows[row].label.empty()) {
        labels.push_back({rows[row].label, rows[row].label_value});
      }
      (void)writer.sample(labels, values[row]);
    }
  }
}

}  // namespace

void MetricSources::add(std::string name, CounterSource source) {
  if (source) {
    const std::lock_guard lock(mutex_);
    sources_.push_back({std::move(name), std::move(source)});
  }
}

std::size_t MetricSources::remove(std::string_view name) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(sources_, [name](const Named& named) { return named.name == name; });
}

void MetricSources::write(PrometheusWriter& writer) const {
  CounterReadings readings;
  {
    const std::lock_guard lock(mutex_);
    for (const Named& named : sources_) {
      named.source(named.name, readings);
    }
  }
  for (const TableOnPage& on_page : by_table(std::move(readings))) {
    const auto rows = on_page.table->rows;
    for (std::size_t first = 0; first < rows.size();) {
      std::size_t end = first + 1;
      while (end < rows.size() && rows[end].metric == rows[first].metric) {
        ++end;
      }
      write_metric(writer, on_page, first, end);
      first = end;
    }
  }
}

}  // namespace weft::serve
