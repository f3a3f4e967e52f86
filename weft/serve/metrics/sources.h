// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/serve/metrics/prometheus.h"

namespace weft::serve {

// What has counters for a page: sockets, clients, pools of clients, servers, runtimes, executors, event buses.
template <typename T>
concept Countable = requires(T& thing) {
  { thing.counter_source() } -> std::convertible_to<CounterSource>;
};

// MetricSources: the things whose counters a page of metrics shows, by name.
// Owner: whoever answers for the page. Affinity: any thread. Cost: a page locks a mutex and reads each thing once; a
// socket is read under its send lock, everything else without one. Invariants:
//   (1) A metric stands on the page once, with a sample for each thing; samples with the same labels are one, the sum.
//   (2) After remove() has returned nothing of that name is read any more.
class MetricSources {
 public:
  MetricSources() = default;
  MetricSources(const MetricSources&) = delete;
  MetricSources& operator=(const MetricSources&) = delete;

  // `name` becomes a label: sources.add("orders", socket) shows weft_socket_peers{socket="orders",type="DEALER"}.
  // Things of one kind and name are summed. A socket, a client, a pool or host of clients, or an event bus leaves the
  // page when it ends. A server, a runtime, an executor or a dispatcher outlives this, or is removed first.
  template <Countable Thing>
  void add(std::string name, Thing& thing) {
    add(std::move(name), CounterSource(thing.counter_source()));
  }
  void add(std::string name, CounterSource source);  // an empty one adds nothing
  std::size_t remove(std::string_view name);         // how many there were; waits for whoever reads them

  void write(PrometheusWriter& writer) const;

 private:
  struct Named {
    std::string name;
    CounterSource source;
  };

  mutable std::mutex mutex_;
  std::vector<Named> sources_;  // guarded by mutex_
};

}  // namespace weft::serve
