// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/msg/connection/connection.h"
#include "weft/msg/pattern/inproc_link.h"
#include "weft/msg/pattern/pipe.h"
#include "weft/msg/socket/accept_bounds.h"
#include "weft/msg/socket/lobby.h"

namespace weft::net {
class Acceptor;
class TlsServer;
}  // namespace weft::net

namespace weft::msg {

// Endpoints: the names that a socket is bound and connected to, and the socket's pipes by the connection or the link
// under each of them. The names of inproc binds are in the context.
// Owner: a socket. Affinity: its table lock. Cost: a look-up by name or by address.
// Invariants:
//   1. A call that may throw std::bad_alloc then has changed nothing. The entry of a name is made outside: to move it
//      into the table needs no memory.
//   2. The name of a connection that gave up stays, without the connection, until disconnect() takes it.
//   3. A pipe has a name while disconnect() can find it by one.
class Endpoints {
 public:
  struct Bound {
    std::shared_ptr<net::Acceptor> acceptor;  // null: not bound
    std::shared_ptr<Lobby> lobby;
  };
  using BoundNames = std::map<std::string, Bound>;
  // Null: the connection gave up. Also of datagrams that are bound.
  using ConnectedNames = std::multimap<std::string, std::shared_ptr<Connection>>;
  struct ConnectedPipe {
    ConnectedPipe(ConnectionOwner& owner, std::shared_ptr<Connection> own) noexcept
        : connection(std::move(own)), pipe(owner, *connection) {}
    const std::shared_ptr<Connection> connection;
    Pipe pipe;
    AcceptBounds::Place place;
    std::optional<ConnectedNames::iterator> name;  // none: accepted, or disconnected
  };
  using ConnectedPipes = std::unordered_map<Connection*, ConnectedPipe>;
  using LinkNames = std::multimap<std::string, std::shared_ptr<InprocLink>>;
  struct InprocPipe {
    std::unique_ptr<Pipe> pipe;
    std::optional<LinkNames::iterator> name;  // none: this end is bound, or disconnected
  };
  using InprocPipes = std::unordered_map<const Pipe*, InprocPipe>;
  struct Disconnected {
    std::vector<std::shared_ptr<Connection>> connections;
    std::vector<std::shared_ptr<InprocLink>> links;
  };

  // `inproc_count`: the number of inproc pipes. Written here; other threads read it as a hint, without the lock.
  explicit Endpoints(std::atomic<std::size_t>& inproc_count) noexcept : inproc_count_(inproc_count) {}
  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;

  // Nothing is bound here, and there is no pipe.
  [[nodiscard]] bool empty() const noexcept { return bound_.empty() && connections_.empty() && inproc_pipes_.empty(); }
  [[nodiscard]] std::size_t pipe_count() const noexcept { return connections_.size() + inproc_pipes_.size(); }
  // Is bound or connected there. Over inproc each connect makes a link.
  [[nodiscard]] bool knows(const std::string& name) const noexcept;
  [[nodiscard]] bool is_connected() const noexcept;  // to any name, except those of links and of lost connections

  // --- bound ---
  void add_bound(BoundNames& entry) noexcept { bound_.merge(entry); }
  [[nodiscard]] Bound take_bound(const std::string& name) noexcept;
  [[nodiscard]] BoundNames take_all_bound() noexcept { return std::exchange(bound_, {}); }
  // Until its endpoint is unbound. Throws std::bad_alloc, like the next.
  void add_tls_server(const std::shared_ptr<net::TlsServer>& server);
  [[nodiscard]] std::vector<std::shared_ptr<net::TlsServer>> tls_servers() const;

  // --- connections ---
  // Throws std::bad_alloc.
  [[nodiscard]] ConnectedPipe& add(ConnectionOwner& owner, const std::shared_ptr<Connection>& connection) {
    return connections_.try_emplace(connection.get(), owner, connection).first->second;
  }
  void erase(Connection* connection) noexcept { connections_.erase(connection); }  // one that is not there: no effect
  [[nodiscard]] ConnectedPipe& at(Connection* connection) noexcept { return connections_.find(connection)->second; }
  [[nodiscard]] ConnectedPipes& connections() noexcept { return connections_; }
  void add_name(ConnectedPipe& connected, ConnectedNames& entry) noexcept;  // `entry` has one element
  void forget_name(ConnectedPipe& connected) noexcept;                      // disconnect() finds it no more
  void give_up(ConnectedPipe& connected) noexcept;                          // only the name stays

  // --- inproc ---
  // Takes the pipe. `name`: for disconnect(); empty: none. Throws std::bad_alloc; then `pipe` stays with the caller.
  [[nodiscard]] Pipe& add_inproc(std::unique_ptr<Pipe>& pipe, const std::string& name);
  void erase_inproc(const Pipe& pipe) noexcept;                          // the name stays
  [[nodiscard]] std::unique_ptr<Pipe> take_inproc(Pipe* pipe) noexcept;  // and its name; null: there is no such pipe
  [[nodiscard]] InprocPipes& inproc_pipes() noexcept { return inproc_pipes_; }

  // --- both ---
  // Takes each connection and link of the name, and the name. The pipes stay. Returns false if there is none. Throws
  // std::bad_alloc.
  [[nodiscard]] bool disconnect(const std::string& name, Disconnected& into);
  // The socket was closed: drops the names, and takes the inproc pipes. Only connections can still emit events.
  [[nodiscard]] InprocPipes close() noexcept;
  [[nodiscard]] bool is_quiet() const noexcept { return closed_ && connections_.empty(); }

 private:
  ConnectedPipes connections_;
  ConnectedNames names_;
  BoundNames bound_;
  std::vector<std::weak_ptr<net::TlsServer>> tls_servers_;  // of the endpoints in bound_
  LinkNames link_names_;
  InprocPipes inproc_pipes_;
  std::atomic<std::size_t>& inproc_count_;
  bool closed_ = false;
};

}  // namespace weft::msg
