// SPDX-License-Identifier: MIT
#include "weft/serve/metrics/handler_times.h"

namespace weft::serve {

namespace {
constexpr const char* kOther = "other";
}  // namespace

sync::DurationCounts& HandlerTimes::series(Labels labels) {
  const sync::LockGuard lock(mutex_);
  if (series_.size() <= kSeriesMax) {
    if (series_.size() == kSeriesMax) {
      for (CounterLabel& label : labels) {
        label.value = kOther;
      }
    }
    series_.emplace_back(std::move(labels));
  }
  return series_.back().counts;
}

void HandlerTimes::read_into(const sync::DurationRow& row, const CounterLabel& of, sync::DurationReadings& into) const {
  const sync::LockGuard lock(mutex_);
  for (const Series& series : series_) {
    sync::DurationValues values = series.counts.values();
    if (values.total() == 0) {
      continue;
    }
    Labels labels = {of};
    labels.insert(labels.end(), series.labels.begin(), series.labels.end());
    into.push_back({&row, std::move(labels), values});
  }
}

}  // namespace weft::serve
