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
#include "weft/net/admit/admission.h"
#include "weft/net/stream/byte_stream.h"

namespace weft::msg {

// AcceptBounds: the accepted connections that a socket keeps: the options connections_max, address_connections_max and
// address_rate_max. The socket closes the others at once.
// Owner: the socket. Affinity: the I/O thread, except where a member names another one.
class AcceptBounds {
 public:
  // One kept connection, in the counts of its socket and its address. May end on any thread, before the AcceptBounds.
  struct Place {
    struct GiveBack {
      void operator()(std::atomic<std::size_t>* kept) const noexcept { kept->fetch_sub(1, std::memory_order_relaxed); }
    };
    std::unique_ptr<std::atomic<std::size_t>, GiveBack> counted;  // the socket's count of kept connections
    std::shared_ptr<net::Admission> gate;
    net::Admission::Lease lease;
  };

  // Any thread. Returns the bounds of one endpoint, for each address; null if the options have none. Errors:
  // resource_exhausted.
  [[nodiscard]] Result<std::shared_ptr<net::Admission>> make_gate(const Options& options);
  // Fails with connection_failed, and counts it, if a bound is reached.
  [[nodiscard]] Result<Place> admit(const net::ByteStream& stream, const std::shared_ptr<net::Admission>& gate,
                                    int connections_max, Instant now);
  void report(Statistics& into) const noexcept;  // any thread

 private:
  static void count(void* self, const net::RejectionReport& report);

  std::atomic<std::size_t> kept_{0};  // only admit() adds. Relaxed, because the count orders nothing
  std::atomic<std::uint64_t> refused_full_{0};
  std::atomic<std::uint64_t> refused_address_{0};
  std::atomic<std::uint64_t> refused_rate_{0};
};

}  // namespace weft::msg
