// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/base/random.h"
#include "weft/base/time.h"
#include "weft/serve/client/breaker.h"

namespace weft::serve {

struct ChoiceOptions {
  // A latency loses its weight with time: after `decay`, all but 1/e of it.
  Duration decay = std::chrono::seconds(10);
  std::uint32_t failures_in_row = 5;  // this many failures of an endpoint in a row eject it; 0: never
  // The first ejection lasts so long; each one that follows without a success between them lasts twice as long, ...
  Duration eject_first = std::chrono::seconds(1);
  Duration eject_max = std::chrono::minutes(1);  // ... up to this
  std::uint32_t eject_percent = 50;              // of the endpoints: at most so many are ejected at a time
};

// EndpointChoice: which of several equal endpoints gets the next request. Of two random candidates it takes the one
// with the lower load: the peak of its recent latencies, times its requests in flight and this one. A latency above the
// average replaces the average at once, and a lower one moves it slowly, so that an endpoint that becomes slow loses
// its requests within one latency (the "peak EWMA" of Twitter's Finagle). An endpoint that fails again and again is
// ejected for a while.
// Owner: the caller, which passes the time. Affinity: one thread. Cost: no allocation after the constructor; choose()
// compares two endpoints, and counts all of them.
// Invariants:
//   1. At most eject_percent of the endpoints are ejected, so with less than 100 % one is not.
//   2. An ejected endpoint is chosen only if no other one is ready.
class EndpointChoice {
 public:
  using Outcome = CircuitBreaker::Outcome;

  EndpointChoice(std::size_t endpoints, const ChoiceOptions& options, std::uint64_t seed)
      : options_(options), random_(seed), endpoints_(endpoints) {}

  // `ready(index)`: whether the endpoint can take a request now. `except`: not that one.
  // Returns null if none is ready.
  template <typename Ready>
  [[nodiscard]] std::optional<std::size_t> choose(Instant now, const Ready& ready,
                                                  std::optional<std::size_t> except = std::nullopt) {
    for (const bool ejected : {false, true}) {
      const auto fits = [&](std::size_t index) {
        return index != except && is_ejected(index, now) == ejected && ready(index);
      };
      std::size_t count = 0;
      for (std::size_t i = 0; i < endpoints_.size(); ++i) {
        count += fits(i) ? 1 : 0;
      }
      if (count != 0) {
        const auto nth = [&](std::size_t n) {
          std::size_t index = 0;
          while (!fits(index) || n-- != 0) {
            ++index;
          }
          return index;
        };
        const std::size_t first = random_.below(count);
        if (count == 1) {
          return nth(first);
        }
        const std::size_t second = random_.below(count - 1);
        return lighter(nth(first), nth(second < first ? second : second + 1), now);
      }
    }
    return std::nullopt;
  }

  void add() { endpoints_.emplace_back(); }  // with the next index
  void forget(std::size_t index) noexcept {
    endpoints_[index] = {};
  }  // another one has the index; no request is in flight

  // Around each request. A failure counts towards an ejection; with `nothing` the latency does not count either.
  void begin(std::size_t index) noexcept { ++endpoints_[index].in_flight; }
  void finish(std::size_t index, Duration took, Outcome outcome, Instant now) noexcept;

  [[nodiscard]] bool is_ejected(std::size_t index, Instant now) const noexcept {
    return now < endpoints_[index].ejected_until;
  }
  [[nodiscard]] std::size_t in_flight(std::size_t index) const noexcept { return endpoints_[index].in_flight; }
  [[nodiscard]] double load(std::size_t index, Instant now) const noexcept;  // without a unit: lower is better
  [[nodiscard]] std::uint64_t ejections() const noexcept { return ejections_; }

 private:
  struct Endpoint {
    double latency_ns = 0;  // at `since`; 0: none is known
    Instant since{};
    std::uint32_t in_flight = 0;
    std::uint32_t failures = 0;  // in a row
    std::uint32_t ejected = 0;   // times, without a success since
    Instant ejected_until = Instant::min();
  };

  [[nodiscard]] double latency_ns(const Endpoint& endpoint, Instant now) const noexcept;
  [[nodiscard]] std::size_t lighter(std::size_t a, std::size_t b, Instant now) const noexcept {
    return load(b, now) < load(a, now) ? b : a;
  }
  void note_failure(Endpoint& endpoint, Instant now) noexcept;

  ChoiceOptions options_;
  Random random_;
  std::vector<Endpoint> endpoints_;
  std::uint64_t ejections_ = 0;
};

}  // namespace weft::serve
