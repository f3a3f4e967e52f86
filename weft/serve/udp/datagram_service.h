// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

#include "weft/base/bytes.h"
#include "weft/base/list.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/admit/admission.h"
#include "weft/net/admit/token_bucket.h"
#include "weft/sys/address.h"

namespace weft::serve {

class DatagramShard;

enum class DatagramEnd : std::uint8_t { peer_closed, replaced, idle, by_service, service_failed, server_stopped };

// DatagramSession: a peer that has proven its address. Datagrams may be lost, doubled and reordered.
// Owner: its shard. A service may keep a pointer until on_close().
// Affinity: the core of its service. Cost: two allocations.
class DatagramSession : public ListHook {
 public:
  DatagramSession(DatagramShard& shard, const sys::SocketAddress& address, std::uint64_t cookie, std::uint64_t id,
                  net::Admission::Lease lease) noexcept
      : shard_(shard), address_(address), cookie_(cookie), id_(id), lease_(std::move(lease)) {}

  // Sends with the other datagrams of this turn. A datagram for which the kernel has no room is dropped and counted.
  // Errors: message_too_large (more than datagram_max with the header); closed.
  Result<void> send(Bytes payload);
  void close();  // the peer gets `close`, the service on_close(); nothing happens if the session is closed

  [[nodiscard]] const sys::SocketAddress& address() const noexcept { return address_; }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }  // of no other session of this core
  [[nodiscard]] bool is_open() const noexcept { return open_; }

 private:
  friend class DatagramShard;

  DatagramShard& shard_;
  const sys::SocketAddress address_;
  const std::uint64_t cookie_;
  const std::uint64_t id_;
  net::Admission::Lease lease_;
  Instant heard_{};
  net::TokenBucket rate_;
  bool open_ = true;
};

// DatagramCalls: a service of one core. A service is a type with on_datagram(DatagramSession&, Bytes), and with
// on_open(DatagramSession&) and on_close(DatagramSession&, DatagramEnd) if it likes. The bytes are valid during the
// call. A service that throws ends the session.
struct DatagramCalls {
  std::shared_ptr<void> service;
  void (*opened)(void* service, DatagramSession& session) = nullptr;
  void (*datagram)(void* service, DatagramSession& session, Bytes payload) = nullptr;
  void (*closed)(void* service, DatagramSession& session, DatagramEnd why) = nullptr;

  template <typename Service>
  static DatagramCalls of(Service service) {
    DatagramCalls calls;
    calls.service = std::make_shared<Service>(std::move(service));
    calls.opened = [](void* at, DatagramSession& session) {
      if constexpr (requires(Service& it) { it.on_open(session); }) {
        static_cast<Service*>(at)->on_open(session);
      }
    };
    calls.datagram = [](void* at, DatagramSession& session, Bytes payload) {
      static_cast<Service*>(at)->on_datagram(session, payload);
    };
    calls.closed = [](void* at, DatagramSession& session, DatagramEnd why) {
      if constexpr (requires(Service& it) { it.on_close(session, why); }) {
        static_cast<Service*>(at)->on_close(session, why);
      }
    };
    return calls;
  }
};

}  // namespace weft::serve
