// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/backoff.h"
#include "weft/net/resolver.h"
#include "weft/net/stream/endpoint.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task.h"
#include "weft/rt/task/task_scope.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/client/connection_sources.h"
#include "weft/serve/client/endpoint_choice.h"
#include "weft/serve/rpc/balanced_client.h"
#include "weft/serve/rpc/rpc_client.h"
#include "weft/sys/address.h"

namespace weft::serve::rpc {

// EndpointSet: the connections of a BalancedClient. An endpoint with a numeric address has one. An endpoint with a host
// name has one to each address of the name, which the set looks up again and again.
// Owner: shared_ptrs of the BalancedClient's state and of the tasks of the set. Affinity: the host's core.
// Invariants:
//   1. There are at most BalancedClient::kEndpointsMax connections, also with those that end.
//   2. The connection of an address that the name lost takes no further call, and ends when its calls have ended.
//   3. While a look-up fails, the addresses of the last one remain.
class EndpointSet {
 public:
  // Notes the end of an attempt at its connection.
  class Visit {
   public:
    using Outcome = EndpointChoice::Outcome;

    Visit(EndpointSet& set, std::size_t index) noexcept;
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit();

    void note(Outcome outcome) noexcept;

   private:
    EndpointSet& set_;
    std::size_t index_;
    Instant begun_;
    Instant ended_;
    Outcome outcome_ = Outcome::nothing;
  };

  EndpointSet(std::shared_ptr<ClientHost> host, const BalancedOptions& options, std::shared_ptr<BalancedCounts> counts);

  // Once, before anything else. Errors: those of Client::open() and of net::parse_endpoint().
  [[nodiscard]] static Result<void> begin(const std::shared_ptr<EndpointSet>& self,
                                          const std::vector<std::string>& endpoints);
  // Takes no further endpoint, and closes each connection. Errors: those of Client::close(), of the first that failed.
  [[nodiscard]] static rt::Task<Result<void>> close(std::shared_ptr<EndpointSet> self, Instant deadline);
  void shut_down() noexcept;  // ends the tasks and the connections at once

  // The connection for the next call, except that one. Returns null if none is connected and has room.
  [[nodiscard]] std::optional<std::size_t> choose(std::optional<std::size_t> except);
  // Waits until choose() would find one. Errors: timed_out; closed; kCancelled.
  [[nodiscard]] static rt::Task<Result<void>> wait_ready(EndpointSet* self, Instant deadline);
  [[nodiscard]] Error why_none() const noexcept;  // not_sent

  [[nodiscard]] Client& at(std::size_t index) noexcept { return *slots_[index].client; }  // an index of choose()
  [[nodiscard]] std::size_t size() const noexcept;                                        // connections that stay
  [[nodiscard]] Client& nth(std::size_t n) noexcept;                                      // of these
  [[nodiscard]] const std::shared_ptr<ConnectionSources>& sources() const noexcept { return sources_; }
  [[nodiscard]] ClientHost& host() const noexcept { return *host_; }
  [[nodiscard]] Instant now() const noexcept { return host_->core().loop().now(); }
  [[nodiscard]] bool is_closed() const noexcept { return closed_; }

 private:
  // The index of a slot does not change while a call uses it.
  struct Slot {
    std::unique_ptr<Client> client;     // null: the slot is free
    std::optional<std::size_t> name{};  // whose address it is
    sys::SocketAddress address{};       // of the name
    bool leaving = false;               // the name has lost the address
  };
  struct Name {
    net::Endpoint endpoint;
    rt::AsyncEvent again;  // a connection was lost: its address may have moved
  };

  [[nodiscard]] static Result<void> add(const std::shared_ptr<EndpointSet>& self, const std::string& endpoint,
                                        std::optional<std::size_t> name, const sys::SocketAddress& address);
  [[nodiscard]] static Result<void> apply(const std::shared_ptr<EndpointSet>& self, std::size_t name,
                                          const net::Resolver::Addresses& addresses);
  static rt::Task<void> watch(std::shared_ptr<EndpointSet> self, std::size_t name);
  static rt::Task<Result<void>> look_up_once(std::shared_ptr<EndpointSet> self, std::size_t name);
  static rt::Task<void> retire(std::shared_ptr<EndpointSet> self, std::size_t index);
  static rt::Task<Result<void>> wait_for(rt::AsyncEvent* event) { co_return co_await event->wait(); }
  void handle_event(std::optional<std::size_t> name, const ClientEvent& event) noexcept;
  [[nodiscard]] bool is_ready(const Slot& slot) const noexcept;

  const std::shared_ptr<ClientHost> host_;
  const BalancedOptions options_;
  const std::shared_ptr<BalancedCounts> counts_;
  const std::shared_ptr<ConnectionSources> sources_ = std::make_shared<ConnectionSources>();
  EndpointChoice choice_;
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<Name>> names_;
  rt::AsyncEvent changed_;  // a connection was made or has room, or the set closed
  rt::AsyncEvent left_;     // the last attempt at a connection ended
  Error trouble_;           // the last reason why an endpoint is not connected
  bool closed_ = false;
  rt::TaskScope scope_;  // watch(), retire()
};

}  // namespace weft::serve::rpc
