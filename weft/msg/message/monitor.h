// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <new>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"

namespace weft {

enum class EventKind : std::uint8_t {
  listening,
  bind_failed,
  accepted,
  accept_failed,
  connected,        // the stream is connected; the handshake begins
  connect_delayed,  // under way
  connect_failed,   // with the reason
  connect_retried,  // after `delay`
  handshake_succeeded,
  handshake_failed,  // with the reason
  disconnected,      // with the reason
  closed,            // a listener
  pipe_statistics,   // of one peer, after a call of report_pipes()
  bound_exceeded,    // with the reason: a subscription or a message of a peer was dropped, and the peer stays
  stopped,           // the last event that a sink gets
};
inline constexpr std::size_t kEventKinds = static_cast<std::size_t>(EventKind::stopped) + 1;
[[nodiscard]] std::string_view event_name(EventKind kind) noexcept;

struct MonitorEvent {
  EventKind kind;
  std::string endpoint;
  Error reason{};
  Duration delay{0};
  int fd = -1;                   // of the connection or the listener; -1: none, or closed already
  std::uint32_t detail = 0;      // handshake_failed, disconnected: zmtp::Fault::detail
  std::string other{};           // address of the connection's other end; empty: none
  std::string address{};         // connecting to a host's name: the address of the host; empty: `endpoint` has it
  bool outgoing = false;         // `endpoint` is the far end, `other` the near one; otherwise the reverse
  std::uint64_t queued_out = 0;  // pipe_statistics: messages that wait to go out
  std::uint64_t queued_in = 0;   // pipe_statistics: messages that wait to be received
  std::uint32_t peer = 0;        // disconnected, bound_exceeded: Message::origin().peer of its messages; 0: none
};

// Monitor: the events of a socket's connections, in order.
// Owner: the socket. Affinity: any thread.
// Cost: each event costs one count; while the socket is watched, also a lock and a copy. No event is on the path of a
// message.
// Invariants:
// 1. At most kEventsMax events wait. Beyond that the monitor drops and counts new events.
// 2. Lock order: emitters may hold any lock of their socket; a sink runs under the monitor's own lock.
class Monitor {
 public:
  static constexpr std::size_t kEventsMax = 4096;

  // The monitor calls the sink with each event, one at a time, on the thread of the event. A sink never waits and never
  // calls the socket that it watches. It returns false if it had no room for the event.
  using Sink = std::function<bool(const MonitorEvent&)>;
  void set_sink(
      // the old sink gets `stopped`; this call returns after its destruction; an empty sink only removes it
      Sink sink) noexcept;

  void enable() noexcept { enabled_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool watched() const noexcept {
    return enabled_.load(std::memory_order_relaxed) || has_sink_.load(std::memory_order_relaxed);
  }
  // If there is no memory for an event, the monitor drops and counts it, like an event beyond its bound.
  void emit(MonitorEvent event) noexcept;
  void emit(EventKind kind, std::string_view endpoint, const Error& reason = {}, int fd = -1) noexcept;
  // Emits the event that `make` returns. `make` may throw std::bad_alloc.
  template <typename Make>
  void emit_made(EventKind kind, Make make) noexcept {
    try {
      emit(make());
    } catch (const std::bad_alloc&) {
      count_lost(kind);
    }
  }
  // Counts an event that the caller reported before. For an event that a peer could repeat without end.
  void count_again(EventKind kind) noexcept {
    counts_[static_cast<std::size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
  }
  // Returns timed_out, for a wait of the socket. The text has the last reason why a connection is missing: an attempt
  // to connect or a handshake that failed, with no success of its endpoint since.
  [[nodiscard]] Error timed_out() noexcept;
  void end(Errc reason);  // wakes all receivers: receive() returns `reason` after the last event

  // Returns the oldest event. A negative timeout waits for ever. Errors: timed_out; closed or terminated.
  [[nodiscard]] Result<MonitorEvent> receive(Duration timeout);
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  // Returns the number of events of this kind, watched or not.
  [[nodiscard]] std::uint64_t count(EventKind kind) const noexcept {
    return counts_[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
  }

 private:
  void count_lost(EventKind kind) noexcept;
  void note_trouble(const MonitorEvent& event) noexcept;

  std::atomic<bool> enabled_{false};
  std::atomic<std::uint64_t> dropped_{0};
  std::array<std::atomic<std::uint64_t>, kEventKinds> counts_{};
  std::atomic<bool> has_sink_{false};
  sync::StdMutex sink_mutex_;
  Sink sink_ WEFT_GUARDED_BY(sink_mutex_);
  sync::StdMutex mutex_;
  sync::Condition arrived_;
  std::deque<MonitorEvent> events_ WEFT_GUARDED_BY(mutex_);
  Errc ended_ WEFT_GUARDED_BY(mutex_) = Errc::ok;
  std::atomic<bool> troubled_{false};  // a hint: there is a trouble
  std::string troubled_endpoint_ WEFT_GUARDED_BY(mutex_);
  Error trouble_ WEFT_GUARDED_BY(mutex_);
  Error timed_out_ WEFT_GUARDED_BY(mutex_);  // made from these two; ok: not yet
};

}  // namespace weft
