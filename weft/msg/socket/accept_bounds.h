// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/message/options.h"
#include "weft/msg/message/statistics.h"
#include "weft/net/admission.h"
#include "weft/net/stream.h"

namespace weft::msg {

// AcceptBounds: which accepted connections a socket keeps: the options connections_max, address_connections_max and
// address_rate_max. The socket closes the others at once.
// Owner: the socket. Affinity: the I/O thread, unless a member says otherwise.
class AcceptBounds {
 public:
  // One kept connection, as its address counts it.
  struct Place {
    std::shared_ptr<net::Admission> gate;
    net::Admission::Lease lease;
  };

  // Any thread. The bounds of one endpoint, for each address; null: the options have none. resource_exhausted.
  [[nodiscard]] Result<std::shared_ptr<net::Admission>> make_gate(const Options& options);
  // `kept`: how many connections the socket has. connection_failed, counted: a bound is reached.
  [[nodiscard]] Result<Place> admit(const net::Stream& stream, const std::shared_ptr<net::Admission>& gate,
                                    std::size_t kept, int connections_max, Instant now);
  void report(Statistics& into) const noexcept;  // any thread

 private:
  static void count(void* self, const net::RejectionReport& report);

  std::atomic<std::uint64_t> refused_full_{0};
  std::atomic<std::uint64_t> refused_address_{0};
  std::atomic<std::uint64_t> refused_rate_{0};
};

}  // namespace weft::msg
