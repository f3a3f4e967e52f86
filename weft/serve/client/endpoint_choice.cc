// SPDX-License-Identifier: MIT
#include "weft/serve/client/endpoint_choice.h"

#include <algorithm>
#include <cmath>

namespace weft::serve {

namespace {
// The latency of an endpoint that has requests in flight and has answered none: another one is better.
constexpr double kUnknownNs = 1e9;
}  // namespace

double EndpointChoice::latency_ns(const Endpoint& endpoint, Instant now) const noexcept {
  const auto passed = static_cast<double>(std::max(now - endpoint.since, Duration::zero()).count());
  const auto decay = static_cast<double>(std::max<Duration::rep>(options_.decay.count(), 1));
  return endpoint.latency_ns * std::exp(-passed / decay);
}

double EndpointChoice::load(std::size_t index, Instant now) const noexcept {
  const Endpoint& endpoint = endpoints_[index];
  const double in_flight = endpoint.in_flight;
  return endpoint.latency_ns == 0 ? in_flight * kUnknownNs : latency_ns(endpoint, now) * (in_flight + 1);
}

void EndpointChoice::finish(std::size_t index, Duration took, Outcome outcome, Instant now) noexcept {
  Endpoint& endpoint = endpoints_[index];
  --endpoint.in_flight;
  if (outcome == Outcome::nothing) {
    return;
  }
  const auto took_ns = static_cast<double>(std::max<Duration::rep>(took.count(), 1));
  if (took_ns > endpoint.latency_ns) {
    endpoint.latency_ns = took_ns;
  } else {
    const double before = latency_ns(endpoint, now);
    const double weight = before / endpoint.latency_ns;
    endpoint.latency_ns = before + took_ns * (1 - weight);
  }
  endpoint.since = now;
  if (outcome == Outcome::success) {
    endpoint.failures = 0;
    endpoint.ejected = 0;
    endpoint.ejected_until = Instant::min();
  } else {
    note_failure(endpoint, now);
  }
}

// After its time an endpoint gets requests again, and its first failure ejects it again.
void EndpointChoice::note_failure(Endpoint& endpoint, Instant now) noexcept {
  if (options_.failures_in_row == 0 || now < endpoint.ejected_until) {
    return;
  }
  endpoint.failures = std::min(endpoint.failures + 1, options_.failures_in_row);
  const auto out = static_cast<std::size_t>(std::count_if(
      endpoints_.begin(), endpoints_.end(), [now](const Endpoint& each) { return now < each.ejected_until; }));
  if (endpoint.failures < options_.failures_in_row || (out + 1) * 100 > endpoints_.size() * options_.eject_percent) {
    return;
  }
  const Duration longest = std::max(options_.eject_first, options_.eject_max);
  Duration wait = options_.eject_first;
  for (std::uint32_t i = 0; i < endpoint.ejected && wait < longest; ++i) {
    wait = wait > longest / 2 ? longest : wait * 2;
  }
  endpoint.ejected_until = deadline_after(now, wait);
  endpoint.ejected = std::min(endpoint.ejected + 1, std::uint32_t{64});
  ++ejections_;
}

}  // namespace weft::serve
