// SPDX-License-Identifier: MIT
#include "weft/serve/metrics/sources.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

namespace weft::serve {

namespace {

// The values of the things of one table, by their labels.
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

// Writes the rows of one metric: a family. The writer refuses each sample that would make the page malformed, and
// writes the others.
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

// Each family in one piece: the readings are sorted by row.
void write_durations(PrometheusWriter& writer, const sync::DurationReadings& readings) {
  const sync::DurationRow* family = nullptr;
  std::vector<Label> labels;
  for (const sync::DurationReading& reading : readings) {
    if (reading.row != family) {
      family = reading.row;
      const std::string name = "weft_" + std::string(family->thing) + "_" + std::string(family->metric);
      (void)writer.family(name, PrometheusWriter::Type::histogram, family->help);
    }
    labels.clear();
    for (const CounterLabel& label : reading.labels) {
      labels.push_back({label.name, label.value});
    }
    (void)writer.histogram(labels, reading.values);
  }
}

}  // namespace

void MetricSources::add(std::string name, CounterSource source, sync::DurationSource durations,
                        trace::SlowSpanSource slow) {
  if (source || durations || slow) {
    const sync::LockGuard lock(mutex_);
    sources_.push_back({std::move(name), std::move(source), std::move(durations), std::move(slow)});
  }
}

std::size_t MetricSources::remove(std::string_view name) {
  const sync::LockGuard lock(mutex_);
  return std::erase_if(sources_, [name](const Named& named) { return named.name == name; });
}

void MetricSources::write(PrometheusWriter& writer) const {
  CounterReadings readings;
  {
    const sync::LockGuard lock(mutex_);
    for (const Named& named : sources_) {
      if (named.source) {
        named.source(named.name, readings);
      }
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
  write_durations(writer, durations());
}

sync::DurationReadings MetricSources::durations() const {
  sync::DurationReadings readings;
  {
    const sync::LockGuard lock(mutex_);
    for (const Named& named : sources_) {
      if (named.durations) {
        named.durations(named.name, readings);
      }
    }
  }
  const auto place = [](const sync::DurationReading& of) { return std::tie(of.row->thing, of.row->metric, of.labels); };
  std::stable_sort(readings.begin(), readings.end(),
                   [place](const auto& a, const auto& b) { return place(a) < place(b); });
  sync::DurationReadings sums;
  for (sync::DurationReading& reading : readings) {
    if (!sums.empty() && place(sums.back()) == place(reading)) {
      sums.back().values.add(reading.values);
    } else {
      sums.push_back(std::move(reading));
    }
  }
  return sums;
}

std::vector<MetricSources::NamedSpan> MetricSources::slow_spans() const {
  std::vector<NamedSpan> spans;
  {
    const sync::LockGuard lock(mutex_);
    std::vector<trace::SlowSpan> of_one;
    for (const Named& named : sources_) {
      of_one.clear();
      if (named.slow) {
        named.slow(of_one);
      }
      for (trace::SlowSpan& span : of_one) {
        spans.push_back({named.name, std::move(span)});
      }
    }
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const NamedSpan& a, const NamedSpan& b) { return a.span.duration > b.span.duration; });
  return spans;
}

}  // namespace weft::serve
