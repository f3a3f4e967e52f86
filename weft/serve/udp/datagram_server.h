// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/rt/core/core_visits.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/udp/datagram_service.h"
#include "weft/serve/udp/datagram_shard.h"

namespace weft::serve {

// DatagramServer: a UDP port on every core of a runtime. The kernel deals the peers' addresses to the cores' sockets
// (SO_REUSEPORT), and a session lives on the core whose socket got its cookie.
// Owner: the program. Destroy the runtime after its server; if a core ends first, its sessions end with it.
// Affinity: open(), stop() and destruction: a foreign thread, one at a time. The others: any thread.
// Invariants:
//   1. An address that has not returned its cookie has no state, and gets no more bytes than it sent.
//   2. A session is never moved between cores. If the kernel deals an address to another core later, that core answers
//      `close`, and the client opens again.
class DatagramServer {
 public:
  // "udp://127.0.0.1:7000", "udp://[::]:0"; numeric addresses, and * for all of IPv4. Calls a copy of `make_service`
  // on each core with the rt::Core&. Errors: those of parse_endpoint(); invalid_argument (another transport, or options
  // out of range); those of the system's socket and bind; closed (the runtime has stopped); resource_exhausted; system
  // (`make_service` threw); invalid_state (called by a core).
  template <typename MakeService>
  static Result<std::unique_ptr<DatagramServer>> open(rt::Runtime& runtime, std::string_view endpoint,
                                                      UdpOptions options, MakeService make_service) {
    return open_with(runtime, endpoint, std::move(options),
                     [make_service](rt::Core& core) { return DatagramCalls::of(make_service(core)); });
  }
  DatagramServer(const DatagramServer&) = delete;
  DatagramServer& operator=(const DatagramServer&) = delete;
  ~DatagramServer();  // stop() without a deadline; on a core it does not wait

  // Each session's peer gets `close`, and its service on_close(). Idempotent. Errors: timed_out (a core has not ended
  // its sessions by the deadline, and will); invalid_state (called by a core: has no effect).
  Result<void> stop(Instant deadline);

  [[nodiscard]] const std::string& endpoint() const noexcept { return endpoint_; }  // with the port
  [[nodiscard]] DatagramCounterValues counters() const noexcept;                    // of all cores
  [[nodiscard]] CounterSource counter_source() const;                               // the server may end before it

 private:
  using MakeCalls = std::function<DatagramCalls(rt::Core& core)>;

  using Shards = std::vector<std::shared_ptr<DatagramShard>>;  // by core

  DatagramServer(rt::Runtime& runtime, std::shared_ptr<DatagramCommon> common);
  static Result<std::unique_ptr<DatagramServer>> open_with(rt::Runtime& runtime, std::string_view endpoint,
                                                           UdpOptions options, const MakeCalls& make_calls);
  Result<void> start(const sys::SocketAddress& local, const MakeCalls& make_calls);

  rt::Runtime& runtime_;
  const std::shared_ptr<const std::atomic<bool>> gone_;
  const std::shared_ptr<DatagramCommon> common_;
  const std::shared_ptr<Shards> shards_;
  const std::shared_ptr<rt::CoreVisits> stopping_;
  std::string endpoint_;
};

}  // namespace weft::serve
