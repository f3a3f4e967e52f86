// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/serve/metrics/prometheus.h"
#include "weft/sync/duration_counts.h"
#include "weft/sync/lock.h"
#include "weft/trace/slow_spans.h"

namespace weft::serve {

// Countable: an object with counters for a page: a socket, a client, a pool or host of clients, a server, a runtime, an
// executor, a dispatcher, an event bus.
template <typename T>
concept Countable = requires(T& thing) {
  { thing.counter_source() } -> std::convertible_to<CounterSource>;
};

// Timed: a Countable with histograms of durations: a runtime, a site, a dispatcher.
template <typename T>
concept Timed = requires(T& thing) {
  { thing.duration_source() } -> std::convertible_to<sync::DurationSource>;
};

// Traced: a Countable with the slowest operations of a program: a tracer.
template <typename T>
concept Traced = requires(T& thing) {
  { thing.slow_span_source() } -> std::convertible_to<trace::SlowSpanSource>;
};

// MetricSources: the objects whose counters a page of metrics shows, by name.
// Owner: the server of the page, see admin.h. Affinity: any thread.
// Cost: a page locks a mutex and reads each object once: a socket under its send lock, every other object without a
// lock.
// Invariants:
//   1. A metric is on the page once, with a sample for each object. Samples with the same labels become their sum, and
//      so do histograms.
//   2. After remove() has returned, no page reads an object of that name.
class MetricSources {
 public:
  MetricSources() = default;
  MetricSources(const MetricSources&) = delete;
  MetricSources& operator=(const MetricSources&) = delete;

  // `name` becomes a label: sources.add("orders", socket) shows weft_socket_peers{socket="orders",type="DEALER"}.
  // Objects of one kind and name are summed. A socket, a client, a pool or host of clients, or an event bus leaves the
  // page when it ends. A server, a runtime, an executor or a dispatcher outlives this object, or is removed first.
  template <Countable Thing>
  void add(std::string name, Thing& thing) {
    sync::DurationSource durations;
    if constexpr (Timed<Thing>) {
      durations = thing.duration_source();
    }
    trace::SlowSpanSource slow;
    if constexpr (Traced<Thing>) {
      slow = thing.slow_span_source();
    }
    add(std::move(name), CounterSource(thing.counter_source()), std::move(durations), std::move(slow));
  }
  // An empty source adds nothing.
  void add(std::string name, CounterSource source, sync::DurationSource durations = {},
           trace::SlowSpanSource slow = {});
  std::size_t remove(std::string_view name);  // returns the number of removed objects; waits for a page in progress

  void write(PrometheusWriter& writer) const;
  // The histograms of all objects; those with the same labels become one. Sorted by row and labels.
  [[nodiscard]] sync::DurationReadings durations() const;

  // The slowest operations of all tracers, the slowest first, with the name of the tracer.
  struct NamedSpan {
    std::string tracer;
    trace::SlowSpan span;
  };
  [[nodiscard]] std::vector<NamedSpan> slow_spans() const;

 private:
  struct Named {
    std::string name;
    CounterSource source;
    sync::DurationSource durations;
    trace::SlowSpanSource slow;
  };

  mutable sync::StdMutex mutex_;
  std::vector<Named> sources_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::serve
