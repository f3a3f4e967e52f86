// SPDX-License-Identifier: MIT
#include "weft/serve/client/connection_sources.h"

#include <algorithm>
#include <functional>
#include <new>

namespace weft::serve {

void ConnectionSources::add(const void* connection, CounterSource source) {
  auto next = std::make_shared<Sources>(*sources());
  next->connected.emplace_back(connection, std::move(source));
  const sync::LockGuard lock(mutex_);
  sources_ = std::move(next);
}

void ConnectionSources::remove(const void* connection) noexcept {
  try {
    auto next = std::make_shared<Sources>(*sources());
    const auto gone = std::find_if(next->connected.begin(), next->connected.end(),
                                   [&](const auto& source) { return source.first == connection; });
    if (gone == next->connected.end()) {
      return;
    }
    add_totals(gone->second, next->ended);
    next->connected.erase(gone);
    const sync::LockGuard lock(mutex_);
    sources_ = std::move(next);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the source adds nothing once its connection ended
  }
}

// Of the gauges nothing is left.
void ConnectionSources::add_totals(const CounterSource& source, CounterReadings& ended) {
  CounterReadings last;
  source({}, last);
  for (CounterReading& reading : last) {
    for (std::size_t row = 0; row < reading.values.size(); ++row) {
      if (reading.table->rows[row].kind == CounterKind::gauge) {
        reading.values[row] = 0;
      }
    }
    const auto same =
        std::find_if(ended.begin(), ended.end(), [&](const CounterReading& one) { return one.table == reading.table; });
    if (same == ended.end()) {
      ended.push_back(std::move(reading));
      continue;
    }
    std::transform(reading.values.begin(), reading.values.end(), same->values.begin(), same->values.begin(),
                   std::plus<>());
  }
}

void ConnectionSources::read(std::string_view name, CounterReadings& into) const {
  const std::shared_ptr<const Sources> sources = this->sources();
  for (const auto& [connection, source] : sources->connected) {
    source(name, into);
  }
  for (CounterReading reading : sources->ended) {
    for (CounterLabel& label : reading.labels) {
      label.value = name;
    }
    into.push_back(std::move(reading));
  }
}

std::shared_ptr<const ConnectionSources::Sources> ConnectionSources::sources() const {
  const sync::LockGuard lock(mutex_);
  return sources_;
}

}  // namespace weft::serve
