// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "weft/net/backoff.h"
#include "weft/net/dialer.h"

namespace weft::msg {

// Connector: the means by which a connecting connection reaches its endpoint. It tries an endpoint that keeps failing
// at most ten times a second in the end, however short the intervals of the options are.
// Owner: the connection. Affinity: the I/O thread.
class Connector {
 public:
  static constexpr Duration kQuickFirst = std::chrono::milliseconds(1);
  static constexpr Duration kQuickMax = std::chrono::milliseconds(200);
  static constexpr unsigned kQuickTries = 30;  // at the intervals of the options

  Connector(const net::Endpoint& endpoint, const sys::SocketOptions& stream, Duration interval, Duration interval_max,
            std::uint64_t seed)
      : dialer(endpoint, stream),
        backoff(std::max(interval, kQuickFirst), interval_max, seed),
        patience_(kQuickFirst, kQuickMax, seed) {}

  [[nodiscard]] Duration wait_after_failure() noexcept {
    const Duration usual = backoff.next();
    failures_ += failures_ <= kQuickTries ? 1 : 0;
    return failures_ <= kQuickTries ? usual : std::max(usual, patience_.next());
  }
  void handle_success() noexcept {
    backoff.reset();
    patience_.reset();
    failures_ = 0;
  }

  net::Dialer dialer;
  net::Backoff backoff;

 private:
  net::Backoff patience_;
  unsigned failures_ = 0;  // in a row, up to one more than kQuickTries
};

}  // namespace weft::msg
