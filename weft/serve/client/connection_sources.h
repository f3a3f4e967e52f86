// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/sync/lock.h"

namespace weft::serve {

// ConnectionSources: the counters of connections that come and go. A connection that went leaves its totals, so that no
// counter falls.
// Owner: the object with the connections, and each page of metrics. Affinity: any thread. Cost: a change copies the
// list.
class ConnectionSources {
 public:
  // `connection`: only compared. May throw std::bad_alloc.
  void add(const void* connection, CounterSource source);
  // Before its end. Without memory the totals are lost.
  void remove(const void* connection) noexcept;
  void read(std::string_view name, CounterReadings& into) const;

 private:
  struct Sources {
    std::vector<std::pair<const void*, CounterSource>> connected;
    CounterReadings ended;
  };

  [[nodiscard]] std::shared_ptr<const Sources> sources() const;
  static void add_totals(const CounterSource& source, CounterReadings& ended);

  mutable sync::StdMutex mutex_;
  std::shared_ptr<const Sources> sources_ WEFT_GUARDED_BY(mutex_) = std::make_shared<const Sources>();
};

}  // namespace weft::serve
