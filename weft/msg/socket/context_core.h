// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/connection/io_service.h"
#include "weft/msg/message/context_options.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sync/parker.h"
#include "weft/sync/spin.h"
#include "weft/sys/fork.h"

namespace weft::msg {

// ContextCore: what sockets share: the I/O thread, the inproc names, and the count of who still lives.
// Owner: the Context handle and every socket. Affinity: any thread.
// Invariants:
//   (1) The I/O thread starts with the first bind or connect that needs it and ends after the last connection.
//   (2) An inproc name belongs to at most one socket.
class ContextCore final : public std::enable_shared_from_this<ContextCore> {
 public:
  explicit ContextCore(const ContextOptions& options) noexcept : options_(options) {}
  ~ContextCore();

  [[nodiscard]] Result<std::shared_ptr<SocketCore>> make_socket(SocketType type);
  // A socket of the library itself: the limit does not count it and nothing waits for it. DEALER, for example.
  [[nodiscard]] std::shared_ptr<SocketCore> make_own_socket(SocketType type);
  void shut_down();  // every blocked and later call fails with `terminated`; sockets must still be closed
  // Until every socket is closed and every connection has lingered; then ends the I/O thread. interrupted: by a signal,
  // and it can be called again.
  [[nodiscard]] Result<void> wait_until_quiet();
  void set_sockets_max(std::size_t count);
  void set_io_thread(const ThreadOptions& options);  // counts until the I/O thread starts
  void close();  // closes what is open and waits until every connection has lingered; idempotent

  // Starts the I/O thread if need be and counts as a connection, so that the thread stays until connection_ended().
  [[nodiscard]] Result<void> start_io();
  [[nodiscard]] IoService& io() noexcept { return *io_; }
  // In a forked child: nothing here works any more, and closing must neither wait nor lock.
  [[nodiscard]] bool inherited() const noexcept { return born_in_ != sys::fork_generation(); }
  [[nodiscard]] sync::WaitMode wait_mode() const noexcept { return options_.wait_mode; }

  // Counts one more: called while a connection or an open socket is there already.
  void connection_started() noexcept;
  void connection_ended() noexcept;
  void forget(SocketCore& core) noexcept;

  // inproc.cc
  [[nodiscard]] Result<void> bind_inproc(const std::string& name, SocketCore& core);
  [[nodiscard]] Result<void> unbind_inproc(const std::string& endpoint, SocketCore& core);
  void unbind_all_inproc(SocketCore& core) noexcept;
  // The socket bound there; or null, and `link` waits for one.
  [[nodiscard]] std::shared_ptr<SocketCore> find_inproc(const std::string& name,
                                                        const std::shared_ptr<InprocLink>& link);
  [[nodiscard]] bool is_inproc_bound(const std::string& name);
  // The connector is closed. Until `deadline` somebody may still bind and take what it sent.
  void expire_pending(InprocLink& link, Instant deadline) noexcept;

 private:
  void drop_expired() noexcept;  // inproc lock

  const std::uint32_t born_in_ = sys::fork_generation();
  ContextOptions options_;  // sockets_max, io_thread: guarded by mutex_
  std::mutex mutex_;
  sync::Parker quiet_;             // whoever counts down wakes, under mutex_
  std::unique_ptr<IoService> io_;  // set once, under mutex_
  std::set<SocketCore*> open_;     // guarded by mutex_
  std::size_t connections_ = 0;    // guarded by mutex_
  bool shut_down_ = false;         // guarded by mutex_
  std::mutex inproc_mutex_;
  std::map<std::string, SocketCore*> inproc_;                        // guarded by inproc_mutex_
  std::multimap<std::string, std::shared_ptr<InprocLink>> pending_;  // guarded by inproc_mutex_
};

}  // namespace weft::msg
