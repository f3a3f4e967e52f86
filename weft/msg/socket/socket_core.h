// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/connection/connection.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/message/options.h"
#include "weft/msg/message/statistics.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/msg/socket/monitor_feed.h"
#include "weft/net/endpoint.h"
#include "weft/net/listener.h"
#include "weft/sync/mutex.h"
#include "weft/sync/parker.h"
#include "weft/sync/spin.h"
#include "weft/sync/wake_list.h"
#include "weft/sys/epoll_set.h"
#include "weft/sys/event_fd.h"

namespace weft::msg {

class Acceptor;
class ContextCore;

// What poll asks and answers.
struct Readiness {
  bool input = false;
  bool output = false;
};

// SocketCore: a socket: a pattern, its pipes, and the waiting.
// Owner: the Socket handle; after close() its connections, until they have lingered.
// Affinity: any thread. Locks, in order: receive, send, table, options. Nobody waits for anything while holding one.
// Cost: a send or receive is one uncontended lock, one virtual call and what the pipe does.
// Invariants:
//   (1) A waiting thread holds no lock and has flushed what this socket batched.
//   (2) Each pipe is known to the pattern from attach to detach, and to this table until it is drained.
class SocketCore final : public std::enable_shared_from_this<SocketCore> {
 public:
  SocketCore(ContextCore& context, const PatternRow& row);
  ~SocketCore();

  // --- the application's calls (socket_core.cc) ---
  // `deadline`: kNoWait, kNever or a time.
  static constexpr Instant kNoWait = Instant::min();
  [[nodiscard]] Result<void> send(Outbound& part, Instant deadline);
  [[nodiscard]] Result<void> receive(Inbound& part, Instant deadline);
  // The common case of the two above, in few steps and without a clock. False: nothing changed, call those.
  [[nodiscard]] bool send_now(Outbound& part) {
    if (traits_.one_lock) [[unlikely]] {
      return false;
    }
    const std::lock_guard lock(send_mutex_);
    return !refuses() && pattern_->send(part);
  }
  [[nodiscard]] bool receive_now(Inbound& part) {
    const std::lock_guard lock(receive_mutex_);
    // What else a receiver has to do: look at the signals, forget pipes, wake others.
    const bool other_duties =
        signals_.load(std::memory_order_relaxed) != nullptr || !ended_.empty() || others_wait(false);
    return !refuses() && !other_duties && pattern_->receive(part);
  }
  [[nodiscard]] Instant send_deadline() const noexcept;
  [[nodiscard]] Instant receive_deadline() const noexcept;
  [[nodiscard]] Duration send_timeout() const noexcept;  // negative: none
  [[nodiscard]] Duration receive_timeout() const noexcept;
  [[nodiscard]] Result<void> set_options(const std::function<Result<void>(Options&)>& change);
  [[nodiscard]] Options options_copy() const;
  [[nodiscard]] Result<void> subscribe(Bytes topic, bool on);
  [[nodiscard]] Result<void> join(Bytes group, bool on);
  [[nodiscard]] Result<bool> peer_writable(Bytes routing_id);
  [[nodiscard]] Result<std::size_t> subscribers();
  void close();  // idempotent
  [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_relaxed); }
  void terminate();  // every call fails with `terminated` from now on
  [[nodiscard]] bool terminated() const noexcept { return terminated_.load(std::memory_order_acquire); }

  // --- endpoints (socket_endpoints.cc) ---
  [[nodiscard]] Result<std::string> bind(std::string_view endpoint);
  [[nodiscard]] Result<void> connect(std::string_view endpoint);
  [[nodiscard]] Result<std::uint32_t> connect_peer(std::string_view endpoint);
  [[nodiscard]] Result<void> unbind(std::string_view endpoint);
  [[nodiscard]] Result<void> disconnect(std::string_view endpoint);

  // --- events as messages (socket_monitor.cc) ---
  // Replaces the feed there is. Also malformed_endpoint; unknown_transport for anything but inproc.
  [[nodiscard]] Result<void> start_feed(std::string_view endpoint, SocketType type, MonitorFeed::Encode encode);
  [[nodiscard]] Result<void> stop_feed();
  // An event pipe_statistics for each peer. would_block: there is none.
  [[nodiscard]] Result<void> report_pipes();
  // Called, with no lock held, whenever another inproc socket has connected here. Set before bind.
  void on_inproc_peer(std::function<void()> callback) { on_inproc_peer_ = std::move(callback); }

  // --- polling (socket_poll.cc) ---
  // `asleep`: between announce() and forget().
  [[nodiscard]] Readiness readiness(Readiness wanted, bool asleep = false);
  // From here to forget() news rings the sleeper's event. Gives the descriptor to wait for besides it, -1 for none.
  // Look again before sleeping, and after sleeping drain the event before the next announce().
  [[nodiscard]] Result<int> announce(Readiness wanted, sync::WakeList::Sleeper& sleeper);
  void forget(Readiness wanted, sync::WakeList::Sleeper& sleeper) noexcept;
  void flush_dirty() noexcept;  // what was batched goes out: before whoever sent it waits for something
  // A descriptor for event loops, the socket's as long as it is open: readable once readiness() may have changed, until
  // readiness() is asked.
  [[nodiscard]] Result<int> descriptor();

  // --- for connections ---
  [[nodiscard]] ContextCore& context() noexcept { return context_; }
  [[nodiscard]] zmtp::LocalEnd make_local_end() const;
  [[nodiscard]] sys::SocketOptions stream_options() const;
  [[nodiscard]] bool conflates() const;  // what is connected from now on
  [[nodiscard]] bool raw() const;        // connections are plain bytes: STREAM, and ROUTER if it was asked for
  // What is to be received as the last message of a connection that we made, or of one that was made to us; empty:
  // none.
  [[nodiscard]] std::string farewell(bool outgoing) const;
  [[nodiscard]] Monitor& monitor() noexcept { return monitor_; }
  [[nodiscard]] sync::Parker& input_parker() noexcept { return input_parker_; }
  [[nodiscard]] sync::Parker& output_parker() noexcept { return output_parker_; }
  [[nodiscard]] bool takes_subscriptions() const noexcept { return traits_.takes_subscriptions; }
  [[nodiscard]] bool receives() const noexcept { return traits_.receives; }
  [[nodiscard]] bool groups() const noexcept { return traits_.groups; }
  [[nodiscard]] bool single_part() const noexcept { return traits_.single_part; }
  [[nodiscard]] bool app_waits() const noexcept { return waiting_.load(std::memory_order_relaxed) > 0; }
  [[nodiscard]] std::uint64_t app_read_count() const noexcept { return app_reads_.load(std::memory_order_relaxed); }
  void note_app_read() noexcept { app_reads_.store(app_read_count() + 1, std::memory_order_relaxed); }
  [[nodiscard]] bool note_dirty(Connection& connection);
  void signal_input(Pipe& pipe) noexcept;
  void add_accepted(std::unique_ptr<net::Stream> stream, const std::string& endpoint);
  [[nodiscard]] bool pipe_ready(Connection& connection, Bytes identity);
  void pipe_lost(Pipe& pipe);
  void forget_descriptor(Connection& connection) noexcept;
  void connection_finished(Connection& connection);
  [[nodiscard]] bool handle_subscription(Pipe& pipe, bool subscribe, Bytes topic);  // false: too many

  // --- inproc (inproc.cc) ---
  [[nodiscard]] static bool join_inproc(const std::shared_ptr<InprocLink>& link, SocketCore& binder);
  void inproc_ready(const InprocLink& link, Bytes identity);
  void inproc_peer_closed(const InprocLink& link);
  void handle_inproc_subscription(const InprocLink& link, bool subscribe, Bytes topic);
  [[nodiscard]] SocketType type() const noexcept { return traits_.type; }
  [[nodiscard]] sync::WaitMode wait_mode() const noexcept { return wait_mode_; }
  [[nodiscard]] std::uint64_t dropped();
  [[nodiscard]] Statistics statistics();  // socket_statistics.cc

 private:
  [[nodiscard]] Error refusal() const noexcept;
  [[nodiscard]] bool refuses() const noexcept {
    return closed_.load(std::memory_order_relaxed) || terminated_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] Result<void> try_send(Outbound& part);
  [[nodiscard]] Result<void> try_receive(Inbound& part, bool look_at_descriptors, bool asleep);
  [[nodiscard]] bool others_wait(bool asleep) const noexcept {
    return waiting_.load(std::memory_order_relaxed) > (asleep ? 1 : 0);
  }
  template <typename Attempt>
  [[nodiscard]] Result<void> wait_for_input(Instant deadline, Attempt attempt);
  template <typename Attempt>
  [[nodiscard]] Result<void> wait_for_output(Instant deadline, Attempt attempt);
  class InputWait;
  void announce_watch() noexcept;                                              // receive lock
  bool look_at_descriptors() noexcept;                                         // receive lock
  void take_events(std::size_t count, const sys::PollEvent* events) noexcept;  // receive lock
  void collect_signals() noexcept;                                             // receive lock
  [[nodiscard]] Result<void> ensure_descriptors() noexcept;                    // receive lock
  [[nodiscard]] Result<void> add_descriptor(Connection& connection) noexcept;  // receive lock
  void end_pipe(Pipe& pipe);                                                   // both locks
  void bury_drained();                                                         // receive lock
  void apply_marks();
  [[nodiscard]] Result<void> make_raw(bool raw);  // both locks, before anything is connected
  void end_feed();                                // feed lock
  void end_feed_if_quiet();
  void unbind_all();
  [[nodiscard]] std::shared_ptr<Acceptor> take_bound(std::string name);
  void close_accepted(const std::string& endpoint);
  void stop_sending_to(Pipe& pipe);
  struct Connections {
    std::vector<std::shared_ptr<Connection>> connections;
    std::vector<std::shared_ptr<InprocLink>> links;
  };
  [[nodiscard]] bool take_connected(const std::string& name, Connections& into);
  [[nodiscard]] Result<std::uint32_t> adopt_inproc(const std::shared_ptr<InprocLink>& link, int end,
                                                   const std::string& connected_to);
  static void close_inproc(Pipe& pipe, Instant deadline);
  void disconnect_inproc(const InprocLink& link);
  [[nodiscard]] Result<std::unique_ptr<net::Listener>> open_listener(const net::Endpoint& endpoint);
  [[nodiscard]] Result<std::string> bind_inproc(const net::Endpoint& endpoint);
  [[nodiscard]] Result<std::optional<net::Socks5Proxy>> proxy_for(const net::Endpoint& endpoint) const;
  // Give the routing id of the peer to be, if the pattern has such.
  [[nodiscard]] Result<std::uint32_t> connect_pipe(std::string_view endpoint);
  [[nodiscard]] Result<std::uint32_t> connect_inproc(const net::Endpoint& endpoint);
  void close_pipes(Instant deadline);
  [[nodiscard]] Pipe* find_inproc(const InprocLink& link) noexcept;
  void name_peer(Pipe& pipe);      // both locks
  void tell_id(const Pipe& pipe);  // both locks
  [[nodiscard]] Result<void> refuse_raw() const;

  ContextCore& context_;
  const PatternTraits& traits_;
  const std::shared_ptr<ContextCore> keep_context_;  // a call may be under way while another thread closes the context
  const sync::WaitMode wait_mode_;
  mutable std::mutex options_mutex_;
  Options options_;  // written with the receive, send and options lock, read with any of them
  std::atomic<Duration::rep> send_timeout_;
  std::atomic<Duration::rep> receive_timeout_;
  std::unique_ptr<Pattern> pattern_;
  Monitor monitor_;
  std::mutex feed_mutex_;              // before every other lock
  std::shared_ptr<MonitorFeed> feed_;  // guarded by feed_mutex_
  std::function<void()> on_inproc_peer_;

  sync::Mutex receive_mutex_;
  sync::Mutex send_mutex_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> terminated_{false};

  // Waiting.
  sync::Parker input_parker_;
  sync::Parker output_parker_;
  sync::SpinBudget input_spin_;
  sync::SpinBudget output_spin_;
  sync::WakeList wake_list_;
  std::atomic<int> waiting_{0};  // threads in wait_for_input(), or in poll for input
  std::atomic<std::uint64_t> app_reads_{0};
  std::atomic<Pipe*> signals_{nullptr};  // pipes into which the I/O thread put something

  // Receive lock: the descriptors of the connections, and an event descriptor that wakes who leads the waiting.
  std::optional<sys::EpollSet> epoll_;
  std::optional<sys::EventFd> event_;
  bool has_leader_ = false;  // a thread in wait_for_input() waits with epoll_; the others do with the parker
  struct Watch {
    sys::EventFd event;
    sys::EpollSet set;
    sync::WakeList::Sleeper sleeper;
  };
  std::optional<Watch> watch_;  // behind descriptor()
  struct DescriptorSlot {
    Connection* connection = nullptr;
    std::uint32_t generation = 1;
  };
  std::vector<DescriptorSlot> descriptor_slots_;
  std::vector<std::uint32_t> free_descriptor_slots_;
  std::size_t stream_count_ = 0;
  Connection* only_stream_ = nullptr;  // when stream_count_ is 1

  // Send lock.
  std::vector<std::shared_ptr<Connection>> dirty_;
  std::atomic<bool> has_dirty_{false};

  // Table lock: who there is.
  std::mutex table_mutex_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::multimap<std::string, std::shared_ptr<Connection>> connected_;  // null: gave up, until disconnect() is called
  std::map<std::string, std::shared_ptr<Acceptor>> bound_;
  std::map<std::string, std::string> bound_aliases_;  // the endpoint as it was asked for -> the exact one
  std::multimap<std::string, std::shared_ptr<InprocLink>> connected_inproc_;
  std::vector<std::unique_ptr<Pipe>> inproc_pipes_;
  std::atomic<std::size_t> inproc_count_{0};
  bool pipes_closed_ = false;         // no event but those of connections_ is to come
  std::vector<Pipe*> ended_;          // receive lock: drained later
  std::size_t bury_next_ = 0;         // receive lock: place in ended_ to look at next
  std::uint64_t dropped_before_ = 0;  // send lock: of pipes that are gone
};

}  // namespace weft::msg
