// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "weft/base/filter.h"
#include "weft/base/result.h"
#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/frozen_options.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/message/options.h"
#include "weft/msg/message/set_up.h"
#include "weft/msg/message/statistics.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/msg/socket/accept_bounds.h"
#include "weft/msg/socket/current_options.h"
#include "weft/msg/socket/ended_pipes.h"
#include "weft/msg/socket/endpoints.h"
#include "weft/msg/socket/input_set.h"
#include "weft/msg/socket/lobby.h"
#include "weft/msg/socket/monitor_feed.h"
#include "weft/msg/socket/send_bounds.h"
#include "weft/msg/socket/thread_batches.h"
#include "weft/net/listener.h"
#include "weft/net/stream/endpoint.h"
#include "weft/sync/lock.h"
#include "weft/sync/mutex.h"
#include "weft/sync/parker.h"
#include "weft/sync/spin.h"
#include "weft/sync/wake_list.h"
#include "weft/sys/epoll_set.h"
#include "weft/sys/event_fd.h"

namespace weft::msg {

class ContextCore;
class SocketCore;

// InprocBinder: a socket that is bound to a name, and its options at that time.
struct InprocBinder {
  std::shared_ptr<SocketCore> core;
  FrozenOptions options;
};

inline constexpr Error kNoParts(Errc::invalid_argument, "a message has at least one part");

// Readiness: the directions that a poll waits for, or finds ready.
struct Readiness {
  bool input = false;
  bool output = false;
};

// Timeout: the longest wait of a call. A call reads the clock only when it is about to wait.
class Timeout {
 public:
  // The call fails with would_block instead of waiting.
  [[nodiscard]] static constexpr Timeout none() noexcept { return {kNoWait, Instant::min()}; }
  [[nodiscard]] static constexpr Timeout option() noexcept { return of_flags(0); }  // by the socket's option
  [[nodiscard]] static constexpr Timeout until(Instant deadline) noexcept {
    return deadline == Instant::min() ? none() : Timeout(0, deadline);
  }
  // For the C interface: none() if bit 0 is set, otherwise option(). This stores the flags without a branch: a receive
  // that finds a message never tests the bit.
  [[nodiscard]] static constexpr Timeout of_flags(int flags) noexcept { return {flags, Instant::min()}; }

  [[nodiscard]] constexpr bool may_wait() const noexcept { return (flags_ & kNoWait) == 0; }
  // Requires may_wait(). `option`: the value of the socket's option, negative for ever.
  [[nodiscard]] Instant deadline(Duration option) const noexcept;

  static constexpr int kNoWait = 1;

 private:
  constexpr Timeout(int flags, Instant deadline) noexcept : flags_(flags), deadline_(deadline) {}

  int flags_;
  Instant deadline_;  // Instant::min(): by the option
};

// SocketCore: a socket: a pattern, its pipes, and the threads that wait. Endpoints, InputSet and EndedPipes hold the
// pipes: all of them, those that may have input, and those whose other end has gone.
// Owner: the Socket handle; after close() its connections, until they have lingered.
// Affinity: any thread. Locks, in order: feed, receive, send, table, options.
// Cost: a send or receive is one uncontended lock, one virtual call and the pipe's work.
// Invariants:
//   1. A waiting thread holds no lock, and has flushed this socket's batches and those that it began on others.
//   2. The pattern has each pipe from attach to detach; the table keeps the pipe until it is drained.
class SocketCore final : public ConnectionOwner, public std::enable_shared_from_this<SocketCore> {
 public:
  SocketCore(ContextCore& context, const PatternRow& row);
  ~SocketCore();

  // --- the application's calls (socket_core.cc) ---
  // The only entries for messages: the C interface and the C++ interface call them. The common case is inline, because
  // a call into the library costs as much as the case itself. send_or_wait() and recv_or_wait() do the rest.
  [[nodiscard]] Result<void> send(Outbound& part, Timeout timeout) {
    part.waits = timeout.may_wait();
    try {
      if (send_common(part)) [[likely]] {
        return {};
      }
      return send_or_wait(part, timeout);
    } catch (const std::bad_alloc&) {
      return kNoMemoryToSend;
    }
  }
  [[nodiscard]] Result<void> recv(Inbound& part, Timeout timeout) {
    try {
      if (recv_common(part)) [[likely]] {
        return {};
      }
      return recv_or_wait(part, timeout);
    } catch (const std::bad_alloc&) {
      return kNoMemoryToReceive;
    }
  }
  [[nodiscard]] Duration send_timeout() const noexcept;  // negative: for ever
  [[nodiscard]] Duration receive_timeout() const noexcept { return options_.receive_timeout(); }
  [[nodiscard]] Options options_copy() const { return options_.copy(); }
  [[nodiscard]] Result<bool> peer_writable(Bytes routing_id);
  [[nodiscard]] Result<std::size_t> subscribers();
  [[nodiscard]] Result<std::size_t> topics();
  void close() noexcept;  // idempotent
  [[nodiscard]] bool closed() const noexcept { return ends_.closed.load(std::memory_order_relaxed); }
  void terminate() noexcept;  // every call fails with `terminated` from now on
  [[nodiscard]] bool terminated() const noexcept { return ends_.terminated.load(std::memory_order_acquire); }

  // --- calls that set something up ---
  // They throw std::bad_alloc, with nothing changed, and are cancellation points. Handles call them through set_up(),
  // below the class.
  [[nodiscard]] Result<void> set_options(const std::function<Result<void>(Options&)>& change);
  [[nodiscard]] Result<void> reload_certificates();  // socket_tls.cc
  [[nodiscard]] Result<void> subscribe(const FilterView& topic, bool on);
  [[nodiscard]] Result<void> join(Bytes group, bool on);
  // socket_endpoints.cc
  [[nodiscard]] Result<std::string> bind(std::string_view endpoint);
  [[nodiscard]] Result<void> connect(std::string_view endpoint);
  [[nodiscard]] Result<std::uint32_t> connect_peer(std::string_view endpoint);
  [[nodiscard]] Result<void> unbind(std::string_view endpoint);
  [[nodiscard]] Result<void> disconnect(std::string_view endpoint);
  [[nodiscard]] Result<void> disconnect_peer(std::uint32_t routing_id);  // socket_connections.cc
  // Events as messages (socket_monitor.cc).
  // Ends an earlier feed first. Errors: malformed_endpoint, unknown_transport (not inproc), and MonitorFeed::open()'s.
  [[nodiscard]] Result<void> start_feed(std::string_view endpoint, SocketType type, MonitorFeed::Encode encode);
  [[nodiscard]] Result<void> stop_feed();

  // Emits an event pipe_statistics for each peer, in the order of attaching. Errors: would_block (there is no peer);
  // resource_exhausted.
  [[nodiscard]] Result<void> report_pipes();
  // `callback` runs, with no lock held, after each inproc connection to this socket. Set it before bind.
  void on_inproc_peer(std::function<void()> callback) { on_inproc_peer_ = std::move(callback); }

  // --- polling (socket_poll.cc) ---
  // `deadline`: the caller is between announce() and forget(), and waits until then; Instant::min(): it does not wait.
  [[nodiscard]] Readiness readiness(Readiness wanted, Instant deadline = Instant::min());
  // From here to forget(), news rings the sleeper's event. Returns the descriptor to wait for besides the event, or -1.
  // The caller checks readiness() again before it sleeps, and drains the event before the next announce().
  [[nodiscard]] Result<int> announce(Readiness wanted, sync::WakeList::Sleeper& sleeper);
  void forget(Readiness wanted, sync::WakeList::Sleeper& sleeper) noexcept;
  void flush_batches() noexcept;  // of this socket's connections; each wait calls it first
  // A descriptor for event loops, valid while the socket is open. It is readable once readiness() may have changed.
  // The next readiness() for input, or a receive that finds nothing, clears it.
  [[nodiscard]] Result<int> descriptor();

  // --- for connections, see ConnectionOwner ---
  [[nodiscard]] bool conflates(const Options& options) const noexcept override;
  [[nodiscard]] bool raw() const noexcept override;
  [[nodiscard]] std::string last_message(const Options& options, bool outgoing) const override;
  [[nodiscard]] Monitor& monitor() noexcept override { return monitor_; }
  [[nodiscard]] Result<std::unique_ptr<ZapRequest>> ask_authenticator(rt::Loop& loop, const ZapQuestion& question,
                                                                      ZapRequest::Done done) override;
  [[nodiscard]] bool connection_ready(Connection& connection, Bytes identity) override;
  void connection_lost(Connection& connection) override;
  void forget_descriptor(Connection& connection) noexcept override;
  void batch_begun() noexcept override { list_at_this_thread(weak_from_this()); }
  void connection_finished(Connection& connection) override;
  void connection_lingers(const std::string& endpoint, bool connected, Instant until) noexcept override;
  [[nodiscard]] Result<void> handle_subscription(Connection& connection, bool subscribe,
                                                 const FilterView& topic) override;
  [[nodiscard]] bool takes_group(Bytes group) noexcept override { return pattern_->takes_group(group); }
  void handle_inproc_subscription(const InprocLink& link, int end, bool subscribe, const FilterView& topic) override;
  // Listening: one bound endpoint, for its acceptor.
  struct Listening {
    std::string endpoint;
    FrozenOptions options;
    std::shared_ptr<net::Admission> gate;           // as in AcceptBounds
    std::shared_ptr<const net::Layering> layering;  // null: the transport's streams are sockets
  };
  // I/O thread, like the next. Closes the stream instead if a bound is reached. Throws std::bad_alloc.
  void add_accepted(std::unique_ptr<net::ByteStream> stream, const Listening& listening, Lobby& lobby);
  void add_connection(Lobby::Pending pending, const Listening& listening);  // throws std::bad_alloc

  // --- inproc (inproc.cc) ---
  [[nodiscard]] static bool join_inproc(const std::shared_ptr<InprocLink>& link, const InprocBinder& bound);
  // `end`: this socket's end of the link.
  void inproc_ready(const InprocLink& link, int end, Bytes identity);
  void inproc_peer_closed(const InprocLink& link, int end) noexcept;
  [[nodiscard]] SocketType type() const noexcept { return traits_.type; }
  [[nodiscard]] zmtp::WireType wire_type() const noexcept { return traits_.wire; }
  [[nodiscard]] bool single_part() const noexcept { return traits_.single_part; }
  [[nodiscard]] sync::WaitMode wait_mode() const noexcept { return share_.wait_mode; }
  [[nodiscard]] Statistics statistics();  // socket_statistics.cc

 private:
  // The end of the linger of a socket or connection that is closed now; kNoLinger: without a linger.
  [[nodiscard]] Instant linger_end() const noexcept;
  void make_room_for_end() WEFT_REQUIRES(receive_mutex_, table_mutex_);  // before a pipe begins: for end_pipe()
  void attach(Pipe& pipe) WEFT_REQUIRES(receive_mutex_, send_mutex_);    // throws std::bad_alloc, with nothing changed
  void detach(Pipe& pipe) noexcept WEFT_REQUIRES(receive_mutex_, send_mutex_);          // the pattern forgets the pipe
  void give_name_back(Pipe& pipe) noexcept WEFT_REQUIRES(receive_mutex_, send_mutex_);  // undoes name_peer()
  // One attempt that reads no signals and no descriptors, and forgets no drained pipe. Returns false if nothing
  // changed.
  [[nodiscard]] bool send_common(Outbound& part) {
    if (traits_.one_lock) [[unlikely]] {
      return false;
    }
    const sync::LockGuard lock(send_mutex_);
    return !refuses() && send_bounds_.permit(part) && send_bounded(part);
  }
  // `part` is permitted.
  [[nodiscard]] Result<void> send_bounded(Outbound& part) WEFT_REQUIRES(send_mutex_) {
    const std::size_t size = part.bytes.size();  // send() may take the bytes
    return send_bounds_.count(part.more, size, pattern_->send(part));
  }
  [[nodiscard]] bool recv_common(Inbound& part) {
    const sync::LockGuard lock(receive_mutex_);
    const bool other_duties = input_.has_signals() || !ended_.empty() || others_wait(false);
    return !refuses() && !other_duties && pattern_->receive(part);
  }
  [[nodiscard]] Result<void> send_or_wait(Outbound& part, Timeout timeout);
  [[nodiscard]] Result<void> recv_or_wait(Inbound& part, Timeout timeout);
  [[nodiscard]] Error refusal() const noexcept;
  [[nodiscard]] bool refuses() const noexcept { return closed() || ends_.terminated.load(std::memory_order_relaxed); }
  [[nodiscard]] Result<void> try_send(Outbound& part);
  // `deadline`: of the wait that the calling thread is in; Instant::min(): it does not wait.
  [[nodiscard]] Result<void> try_receive(Inbound& part, bool poll_descriptors, Instant deadline);
  [[nodiscard]] bool others_wait(bool asleep) const noexcept {
    return share_.waiting.load(std::memory_order_relaxed) > (asleep ? 1 : 0);
  }
  template <typename Attempt>
  [[nodiscard]] Result<void> wait_for_input(Instant deadline, Attempt attempt);
  template <typename Attempt>
  [[nodiscard]] Result<void> wait_for_output(Instant deadline, Attempt attempt);
  class InputWait;
  void announce_watch() noexcept WEFT_REQUIRES(receive_mutex_);
  [[nodiscard]] bool announces_heavily() noexcept WEFT_REQUIRES(receive_mutex_);
  bool poll_descriptors() noexcept WEFT_REQUIRES(receive_mutex_);
  void handle_readable(InputSource& source) noexcept;
  void collect_signals() noexcept WEFT_REQUIRES(receive_mutex_);
  [[nodiscard]] static Pipe& pipe_of(Connection& connection) noexcept;
  void end_pipe(Pipe& pipe) noexcept WEFT_REQUIRES(receive_mutex_, send_mutex_);
  void start_sweep() noexcept;
  void sweep() noexcept;  // I/O thread
  void bury_drained() noexcept WEFT_REQUIRES(receive_mutex_);
  void apply_marks();
  [[nodiscard]] Result<void> make_raw(bool raw)
      WEFT_REQUIRES(receive_mutex_, send_mutex_);  // before the first bind and connect
  [[nodiscard]] Result<void> emit_pipes();
  void end_feed() noexcept WEFT_REQUIRES(feed_.mutex);
  void end_feed_if_quiet() noexcept;
  void unbind_all() noexcept;
  [[nodiscard]] std::shared_ptr<Lobby> make_lobby(const Listening& listening);
  [[nodiscard]] Endpoints::Bound make_bound(std::unique_ptr<net::Listener> listener, const Listening& listening);
  void close_bound(const Endpoints::Bound& bound) noexcept;  // I/O thread
  [[nodiscard]] Endpoints::Bound take_bound(const std::string& name);
  void close_accepted(const std::string& endpoint) noexcept;
  void leave(const std::shared_ptr<Connection>& connection, Instant deadline) noexcept;
  [[nodiscard]] bool leave_pipe(Pipe& pipe) noexcept WEFT_REQUIRES(receive_mutex_, send_mutex_);
  void end_left(const std::shared_ptr<Connection>& connection, Instant deadline) noexcept;
  [[nodiscard]] bool take_connected(const std::string& name, Endpoints::Disconnected& into);
  [[nodiscard]] Result<std::uint32_t> adopt_inproc(const std::shared_ptr<InprocLink>& link, int end,
                                                   const std::string& connected_to);
  void close_inproc(Pipe& pipe, Instant deadline) noexcept;
  void disconnect_inproc(const InprocLink& link, int end) noexcept;
  [[nodiscard]] std::unique_ptr<Pipe> take_inproc(const InprocLink& link, int end) noexcept;
  [[nodiscard]] Result<std::unique_ptr<net::Listener>> open_listener(const net::Endpoint& endpoint,
                                                                     const Options& options);
  [[nodiscard]] Result<std::string> bind_inproc(const net::Endpoint& endpoint);
  // Returns null if the transport's streams are sockets (socket_tls.cc).
  [[nodiscard]] Result<std::shared_ptr<const net::Layering>> make_layering(const net::Endpoint& endpoint, bool accepts,
                                                                           const Options& options);
  // Return the routing id that the pattern gave the new peer; 0: none.
  [[nodiscard]] Result<std::uint32_t> connect_pipe(std::string_view endpoint);
  [[nodiscard]] Result<std::uint32_t> connect_inproc(const net::Endpoint& endpoint);
  void close_pipes(Instant deadline) noexcept;
  [[nodiscard]] Pipe* find_inproc(const InprocLink& link, int end) noexcept;
  void name_peer(Pipe& pipe) noexcept WEFT_REQUIRES(receive_mutex_, send_mutex_);
  void report_id(const Pipe& pipe) WEFT_REQUIRES(receive_mutex_, send_mutex_);
  [[nodiscard]] Result<void> refuse_raw(const net::Endpoint& endpoint) const;

  // udp (socket_datagrams.cc).
  [[nodiscard]] Result<void> refuse_unlike_transport() const;
  [[nodiscard]] Result<void> refuse_second_datagrams() const WEFT_REQUIRES(table_mutex_);
  [[nodiscard]] Result<std::string> bind_datagrams(std::string_view text, const net::Endpoint& endpoint);
  [[nodiscard]] Result<std::uint32_t> connect_datagrams(std::string_view text, const net::Endpoint& endpoint);
  [[nodiscard]] bool unbind_datagrams(const std::string& name);  // returns false if no datagrams are bound there
  [[nodiscard]] Result<std::string> open_datagrams(std::string_view text, const net::Endpoint& endpoint, bool binds);

  const std::shared_ptr<ContextCore> context_;  // a call may be under way while another thread closes the context
  const PatternTraits& traits_;
  CurrentOptions options_;
  std::unique_ptr<Pattern> pattern_;
  std::uint64_t attached_count_ = 0;  // both locks: pipes, ever
  Monitor monitor_;
  AcceptBounds bounds_;
  struct Feed {
    sync::StdMutex mutex;
    std::shared_ptr<MonitorFeed> active WEFT_GUARDED_BY(mutex);
  };
  Feed feed_;
  std::function<void()> on_inproc_peer_;

  sync::Mutex receive_mutex_ WEFT_ACQUIRED_BEFORE(send_mutex_, table_mutex_);
  sync::Mutex send_mutex_ WEFT_ACQUIRED_BEFORE(table_mutex_);
  SendBounds send_bounds_ WEFT_GUARDED_BY(send_mutex_);
  struct Ends {
    std::atomic<bool> closed{false};
    std::atomic<bool> terminated{false};
  };
  Ends ends_;

  // Waiting.
  sync::SpinBudget input_spin_;
  sync::SpinBudget output_spin_;
  sync::WakeList wake_list_;
  InputSet input_ WEFT_GUARDED_BY(receive_mutex_){share_};
  struct Watch {
    sys::EventFd event;
    sys::EpollSet set;
    sync::WakeList::Sleeper sleeper;
  };
  std::optional<Watch> watch_ WEFT_GUARDED_BY(receive_mutex_);  // after descriptor()

  // Connections, acceptors and inproc pipes.
  sync::StdMutex table_mutex_;
  std::atomic<std::size_t> inproc_count_{0};  // for endpoints_
  Endpoints endpoints_ WEFT_GUARDED_BY(table_mutex_){inproc_count_};
  struct Sweep {
    std::shared_ptr<SocketCore> keep;  // I/O thread: the socket, while a timer is to call sweep()
    std::atomic<bool> active{false};   // from start_sweep() to the last sweep()
  };
  Sweep sweep_;
  std::atomic<std::uint64_t> unread_ended_{0};  // for ended_
  EndedPipes ended_ WEFT_GUARDED_BY(receive_mutex_){unread_ended_};
  struct Received {
    std::uint64_t parts = 0;
    std::uint64_t before = 0;  // the last announcement
  };
  Received received_ WEFT_GUARDED_BY(receive_mutex_);
};

// The boundary of the calls that set something up: set_up(core, &SocketCore::bind, endpoint). If memory runs out in
// there, the call fails with resource_exhausted.
template <typename T, typename... Params, typename... Args>
[[nodiscard]] Result<T> set_up(SocketCore& core, Result<T> (SocketCore::*call)(Params...), Args&&... args) noexcept {
  return set_up([&] { return (core.*call)(std::forward<Args>(args)...); });
}

}  // namespace weft::msg
