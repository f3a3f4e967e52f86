// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/topic/mesh/peers.h"
#include "weft/topic/wire/control.h"

namespace weft::topic {

// Requests: the services of this handle, and the choice of the handles that get a request. The caller has the queues of
// the services and of the replies; it names both by a number.
// Owner: a MeshState. Affinity: its caller's. Cost: a step for each service of a known handle.
// Invariants:
//   1. A request goes to one member of each group.
//   2. At most Roster::kServicesMax services, and kRequestsMax requests under way.
//   3. A request has ended when it was begun with members, and each of them is gone: take_ended() returns it once.
class Requests {
 public:
  static constexpr std::size_t kRequestsMax = 65'536;

  // Member: a handle that gets a request, and its group.
  struct Member {
    std::string group;
    std::uint64_t instance = 0;
  };

  explicit Requests(std::uint64_t own_instance) noexcept : own_instance_(own_instance) {}

  // --- requests of this handle ---
  // One member of each group that serves the topic, in turn; empty: no known handle serves it. Fails with
  // resource_exhausted: kRequestsMax. Throws std::bad_alloc.
  [[nodiscard]] Result<std::vector<Member>> choose(std::string_view topic, const Peers& peers);
  void begin(std::uint64_t id, const std::vector<Member>& members);  // throws std::bad_alloc
  void end(std::uint64_t id) noexcept;
  [[nodiscard]] bool served(std::string_view topic, const Peers& peers) const noexcept;  // a known handle serves it
  void forget(std::uint64_t instance) noexcept;                                          // a member is gone
  // Calls `visit` with the number of each request whose members are all gone, once.
  template <typename Visit>
  void take_ended(Visit visit) {
    if (ended_ == 0) {
      return;
    }
    ended_ = 0;
    for (auto& [id, pending] : pending_) {
      if (pending.ended && !pending.taken) {
        pending.taken = true;
        visit(id);
      }
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return pending_.size(); }

  // --- services of this handle ---
  // Fails with resource_exhausted at kServicesMax. Throws std::bad_alloc.
  [[nodiscard]] Result<void> serve(std::uint64_t id, std::string topic, std::string group);
  bool stop_serving(std::uint64_t id) noexcept;  // returns false if there is no such service
  // The service that takes the next request: each of the topic and the group in turn. 0: none. Throws std::bad_alloc.
  [[nodiscard]] std::uint64_t next_service(std::string_view topic, std::string_view group);
  void append_services(std::vector<Roster::Service>& to) const;

 private:
  struct Service {
    std::string topic;
    std::string group;
    std::uint64_t id = 0;
  };
  struct Pending {
    std::vector<std::uint64_t> members;
    bool ended = false;
    bool taken = false;
  };

  const std::uint64_t own_instance_;
  std::vector<Service> services_;
  std::map<std::uint64_t, Pending> pending_;
  std::size_t ended_ = 0;         // requests that ended since take_ended()
  std::size_t next_service_ = 0;  // of those here, for the next incoming request
  std::size_t next_member_ = 0;   // of each group, for the next outgoing request
};

}  // namespace weft::topic
