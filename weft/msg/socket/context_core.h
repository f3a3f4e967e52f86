// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/connection/frozen_options.h"
#include "weft/msg/connection/io_service.h"
#include "weft/msg/message/context_options.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sync/lock.h"
#include "weft/sync/parker.h"
#include "weft/sync/spin.h"
#include "weft/sys/fork.h"

namespace weft::msg {

class ZapClient;

// ContextCore: the common part of all sockets: the I/O thread, the inproc names, the open sockets and the count of
// connections.
// Owner: the Context handle and every socket. Affinity: any thread.
// Invariants:
//   1. The I/O thread starts with the first bind or connect that needs it.
//   2. wait_until_quiet() ends the I/O thread, after the last socket and the last connection.
//   3. An inproc name belongs to at most one socket.
class ContextCore final : public std::enable_shared_from_this<ContextCore> {
 public:
  explicit ContextCore(const ContextOptions& options) noexcept
      : wait_mode_(options.wait_mode), sockets_max_(options.sockets_max), io_thread_(options.io_thread) {}
  ~ContextCore();

  [[nodiscard]] Result<std::shared_ptr<SocketCore>> make_socket(SocketType type);
  // A socket of the library itself, for example the DEALER of the ZAP questions. The limit does not count it, and
  // wait_until_quiet() does not wait for it.
  [[nodiscard]] std::shared_ptr<SocketCore> make_own_socket(SocketType type);
  void shut_down();  // every blocked and later call fails with `terminated`; sockets must still be closed
  // Waits until every socket is closed and every connection has lingered; then ends the I/O thread. Fails with
  // interrupted after a signal; the caller may call again.
  [[nodiscard]] Result<void> wait_until_quiet();
  void set_sockets_max(std::size_t count);
  void set_io_thread(const ThreadOptions& options);  // no effect once the I/O thread runs
  void close();  // closes all open sockets and waits until every connection has lingered; idempotent

  // Starts the I/O thread if it does not run. Counts one connection, so that the thread stays until connection_ended().
  [[nodiscard]] Result<void> start_io();
  [[nodiscard]] IoService& io() noexcept { return *io_; }
  // True in a forked child. The child has no I/O thread, so that closing must neither wait nor lock.
  [[nodiscard]] bool inherited() const noexcept { return birth_.elsewhere(); }
  [[nodiscard]] sync::WaitMode wait_mode() const noexcept { return wait_mode_; }

  // Counts one connection more. Requires an open socket or a counted connection: both keep the I/O thread.
  void connection_started() noexcept;
  void connection_ended() noexcept;
  // Writes one line to standard error: the reason why the context does not end.
  void connection_lingers(const std::string& endpoint, bool connected, Instant until) noexcept;
  void forget(SocketCore& core) noexcept;

  // I/O thread: the client of the authenticator, while a question is under way (zap.cc).
  [[nodiscard]] std::weak_ptr<ZapClient>& zap_client() noexcept { return zap_client_; }

  // inproc.cc
  [[nodiscard]] Result<void> bind_inproc(const std::string& name, SocketCore& core, const FrozenOptions& options);
  [[nodiscard]] Result<void> unbind_inproc(const std::string& endpoint, SocketCore& core);
  void unbind_all_inproc(SocketCore& core) noexcept;
  [[nodiscard]] bool binds_inproc(const SocketCore& core) noexcept;
  // Returns the socket that is bound to `name`. If there is none, returns null, and `link` waits for one.
  [[nodiscard]] InprocBinder find_inproc(const std::string& name, const std::shared_ptr<InprocLink>& link);
  [[nodiscard]] std::shared_ptr<SocketCore> inproc_binder(const std::string& name);  // null if there is none
  // The connector is closed. Until `deadline` another socket may still bind and take the connector's messages.
  void expire_pending(InprocLink& link, Instant deadline) noexcept;

 private:
  [[nodiscard]] Result<std::shared_ptr<SocketCore>> open_socket(SocketType type);
  [[nodiscard]] std::shared_ptr<SocketCore> next_open(SocketCore* after);
  // Links that wait for a socket to bind their name. With the inproc lock.
  using Pending = std::multimap<std::string, std::shared_ptr<InprocLink>>;
  using PendingPlaces = std::map<const InprocLink*, Pending::iterator>;
  using Expiring = std::set<std::pair<Instant, const InprocLink*>>;
  struct PendingNodes {  // of one link, outside the tables
    Pending::node_type link;
    PendingPlaces::node_type place;
    Expiring::node_type expiry;
  };
  void add_pending(const std::string& name, const std::shared_ptr<InprocLink>& link)
      WEFT_REQUIRES(inproc_mutex_);  // throws std::bad_alloc
  PendingNodes extract_pending(Pending::iterator place) noexcept WEFT_REQUIRES(inproc_mutex_);
  void insert_pending(PendingNodes nodes) noexcept WEFT_REQUIRES(inproc_mutex_);
  void drop_expired() noexcept WEFT_REQUIRES(inproc_mutex_);

  const sys::Birth birth_;
  const sync::WaitMode wait_mode_;
  sync::StdMutex mutex_;
  std::size_t sockets_max_ WEFT_GUARDED_BY(mutex_);
  ThreadOptions io_thread_ WEFT_GUARDED_BY(mutex_);
  sync::Parker quiet_;             // the thread that counts down wakes it, under mutex_
  std::unique_ptr<IoService> io_;  // set once, under mutex_
  std::set<SocketCore*> open_ WEFT_GUARDED_BY(mutex_);
  std::size_t connections_ WEFT_GUARDED_BY(mutex_) = 0;
  bool shut_down_ WEFT_GUARDED_BY(mutex_) = false;
  std::atomic<Instant> ends_since_{kNever};  // the first wait_until_quiet()
  bool said_why_ = false;                    // I/O thread
  std::weak_ptr<ZapClient> zap_client_;      // I/O thread
  sync::StdMutex inproc_mutex_;
  struct InprocName {
    SocketCore* core;
    FrozenOptions options;  // of the bind
  };
  std::map<std::string, InprocName> inproc_ WEFT_GUARDED_BY(inproc_mutex_);
  Pending pending_ WEFT_GUARDED_BY(inproc_mutex_);
  PendingPlaces pending_places_ WEFT_GUARDED_BY(inproc_mutex_);
  Expiring expiring_ WEFT_GUARDED_BY(inproc_mutex_);  // the pending links
};

// CountedConnection: one connection of a context (ContextCore::start_io()), until keep().
// Owner: a call, on its stack.
class CountedConnection {
 public:
  explicit CountedConnection(ContextCore& context) noexcept : context_(&context) {}
  CountedConnection(const CountedConnection&) = delete;
  CountedConnection& operator=(const CountedConnection&) = delete;
  ~CountedConnection() {
    if (context_ != nullptr) {
      context_->connection_ended();
    }
  }
  void keep() noexcept { context_ = nullptr; }

 private:
  ContextCore* context_;
};

}  // namespace weft::msg
