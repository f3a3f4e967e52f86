// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "weft/base/counter_table.h"
#include "weft/serve/admission/byte_budget.h"
#include "weft/sync/atomic.h"
#include "weft/sync/counter.h"
#include "weft/sync/counter_block.h"

namespace weft::serve {

// clang-format off
// The reasons why sessions end: ROW(enumerator, name, meaning).
#define WEFT_CLOSE_REASONS(ROW)                                                                                      \
  ROW(peer_closed, "peer closed", "the peer ended the stream, between two frames")                                   \
  ROW(peer_failed, "peer failed", "the stream was reset, or ended inside a frame")                                   \
  ROW(refused_frame, "refused frame", "the codec refuses the peer's bytes, for their version, size or syntax")       \
  ROW(refused_tls, "refused tls", "the peer's TLS failed, or the peer refused the server's")                         \
  ROW(handshake_timeout, "handshake timeout", "no whole frame came in time after the connection was accepted")       \
  ROW(frame_timeout, "frame timeout", "a frame that began was not whole in time")                                    \
  ROW(reply_timeout, "reply timeout", "a reply was owed for too long, and nothing came or could be sent")            \
  ROW(idle_timeout, "idle timeout", "nothing came, and the peer acknowledged nothing")                               \
  ROW(silence_timeout, "silence timeout", "no byte came from the peer, whatever it acknowledged")                    \
  ROW(slow_consumer, "slow consumer", "the peer does not read its frames, and the policy is to disconnect")          \
  ROW(close_timeout, "close timeout", "the frames queued at close() could not be delivered in time")                 \
  ROW(out_of_memory, "out of memory", "the byte budget or the memory is spent")                                      \
  ROW(service, "service", "the service closed or aborted the session")                                               \
  ROW(service_failed, "service failed", "the service threw")                                                         \
  ROW(server_stopped, "server stopped", "the server drained, or aborted the session at the deadline of stop()")

// The ends of connections that never became sessions: ROW(enumerator, name, meaning).
#define WEFT_REJECTIONS(ROW)                                                                      \
  ROW(full, "full", "there were as many sessions as there may be")                                \
  ROW(admission, "admission", "the listener's Admission refused, which counts the reason")        \
  ROW(no_memory, "no memory", "there was no slot, no watch or no state of TLS to be had")         \
  ROW(lane_full, "lane full", "the session's core takes no more jobs at the moment")              \
  ROW(proxy_header, "proxy header", "the PROXY header was missing, wrong, late or not permitted") \
  ROW(failed, "failed", "the connection ended before it was accepted, or could not be set up")

// The bytes of the budgets memory_max and core_memory_max by their use: ROW(enumerator, meaning). As MemoryOwner.
#define WEFT_MEMORY_OWNERS(ROW)                                                                                    \
  ROW(bodies, "heads and bodies of HTTP, and messages of WebSockets, that wait for their rest or for their reader") \
  ROW(queues, "frames that wait to be written")                                                                    \
  ROW(shared, "frames of several sessions that wait to be written, once for each frame")                           \
  ROW(received, "half-received frames")                                                                            \
  ROW(handlers, "frames that running coroutines keep")                                                             \
  ROW(handshakes, "handshakes of TLS")

// The counters of the sessions of one core, since the server was made.
#define WEFT_SESSION_COUNTERS(ROW)                                                                                   \
  ROW(opened, counter, "sessions_opened_total", "", "", "sessions",                                                  \
      "Sessions that began.", "serve/session/session.cc")                                                            \
  ROW(accept_pauses, counter, "accept_pauses_total", "", "", "pauses",                                               \
      "How often accepting paused for lack of descriptors or memory.", "serve/server/server_run_listen.cc")          \
  ROW(rate_pauses, counter, "rate_pauses_total", "", "", "pauses",                                                   \
      "How often a session was not read for a while because it sent too many frames.", "serve/session/session.cc")   \
  ROW(handler_pauses, counter, "handler_pauses_total", "", "", "pauses",                                             \
      "How often a session was not read for a while because it ran as many handlers as it may.",                     \
      "serve/session/session_spawn.cc")                                                                              \
  ROW(tasks_refused, counter, "tasks_refused_total", "", "", "coroutines",                                           \
      "Coroutines that were one too many for their session.", "serve/session/session_spawn.cc")                      \
  ROW(room_waits, counter, "room_waits_total", "", "", "waits",                                                      \
      "How often a coroutine waited for room in the queue of a session.", "serve/session/write_room.cc")             \
  ROW(waits_refused, counter, "room_waits_refused_total", "", "", "waits",                                           \
      "Waits for room that were one too many for their session.", "serve/session/write_room.cc")                     \
  ROW(frames_in, counter, "frames_total", "direction", "in", "frames",                                               \
      "Whole frames: received.", "serve/session/session_read.cc")                                                    \
  ROW(frames_out, counter, "frames_total", "direction", "out", "frames",                                             \
      "Whole frames: taken for sending.", "serve/session/session_write.cc")                                          \
  ROW(bytes_in, counter, "bytes_total", "direction", "in", "bytes",                                                  \
      "Bytes of sessions: read.", "serve/session/session_read.cc")                                                   \
  ROW(bytes_out, counter, "bytes_total", "direction", "out", "bytes",                                                \
      "Bytes of sessions: written.", "serve/session/session_write.cc")                                               \
  ROW(reads, counter, "system_calls_total", "direction", "in", "system calls",                                       \
      "System calls that moved bytes: reads.", "serve/session/session_read.cc")                                      \
  ROW(writes, counter, "system_calls_total", "direction", "out", "system calls",                                     \
      "System calls that moved bytes: writes.", "serve/session/session_write.cc")                                    \
  ROW(dropped_newest, counter, "frames_dropped_total", "reason", "newest", "frames",                                 \
      "Frames that were not delivered: not taken, by the policy drop_newest, or of state by conflate_state.",        \
      "serve/session/session_write.cc")                                                                              \
  ROW(dropped_oldest, counter, "frames_dropped_total", "reason", "oldest", "frames",                                 \
      "Frames that were not delivered: taken back, by the policy drop_oldest.", "serve/session/session_write.cc")    \
  ROW(conflated, counter, "frames_dropped_total", "reason", "conflated", "frames",                                   \
      "Frames that were not delivered: replaced by a newer one, by its key, or by the policy conflate or "           \
      "conflate_state.",                                                                                             \
      "serve/session/session_write.cc")                                                                              \
  ROW(refused_memory, counter, "frames_dropped_total", "reason", "no memory", "frames",                              \
      "Frames that were not delivered: not taken, because the byte budget or the memory was spent.",                 \
      "serve/session/session_write.cc")                                                                              \
  ROW(refused_closed, counter, "frames_dropped_total", "reason", "closed", "frames",                                 \
      "Frames that were not delivered: not taken, because their session was closed, or had ended its stream.",       \
      "serve/session/session_write.cc")                                                                              \
  ROW(undelivered, counter, "frames_dropped_total", "reason", "undelivered", "frames",                               \
      "Frames that were not delivered: queued when their session ended.", "serve/session/shard.cc")                  \
  ROW(unanswered, counter, "replies_unsent_total", "", "", "replies",                                                \
      "Replies that were owed when their session was closed, by anything but its service.",                          \
      "serve/session/session.cc")                                                                                    \
  ROW(stale_ids, counter, "stale_ids_total", "", "", "messages",                                                     \
      "Messages for sessions that had ended.", "serve/session/shard.h")                                              \
  ROW(moves, counter, "moves_total", "", "", "sessions",                                                             \
      "Sessions that left the core for another one, by `move_to`.", "serve/session/shard.cc")                        \
  ROW(moves_refused, counter, "moves_refused_total", "", "", "sessions",                                             \
      "Sessions that `move_to` did not move: one of the cores drained, or the session ended first.",                 \
      "serve/session/session_switch.cc")
// clang-format on

#define WEFT_ENUMERATOR(enumerator, ...) enumerator,
#define WEFT_NAME(enumerator, name, meaning) name,

// CloseReason: the reason why a session ended. Each reason has its own count.
enum class CloseReason : std::uint8_t { WEFT_CLOSE_REASONS(WEFT_ENUMERATOR) };
inline constexpr std::string_view kCloseReasonNames[] = {WEFT_CLOSE_REASONS(WEFT_NAME)};
inline constexpr std::size_t kCloseReasons = std::size(kCloseReasonNames);
[[nodiscard]] std::string_view describe(CloseReason reason) noexcept;  // "peer closed"

enum class Rejection : std::uint8_t { WEFT_REJECTIONS(WEFT_ENUMERATOR) };
inline constexpr std::string_view kRejectionNames[] = {WEFT_REJECTIONS(WEFT_NAME)};
inline constexpr std::size_t kRejections = std::size(kRejectionNames);
[[nodiscard]] std::string_view describe(Rejection rejection) noexcept;

#undef WEFT_NAME
#undef WEFT_ENUMERATOR

// SessionNumbers: the lists as members. Number is a sync::Counter or a plain number.
template <typename Number>
struct SessionNumbers {
  WEFT_SESSION_COUNTERS(WEFT_COUNTER_MEMBER)
  std::array<Number, kMemoryOwners> memory{};  // gauges
  std::array<Number, kCloseReasons> closed{};
  std::array<Number, kRejections> rejected{};

  template <typename Visitor, typename... Blocks>
  static constexpr void visit(Visitor&& visitor, Blocks&... blocks) {
    WEFT_SESSION_COUNTERS(WEFT_COUNTER_VISIT)
    for (std::size_t i = 0; i < kMemoryOwners; ++i) {
      visitor(blocks.memory[i]...);
    }
    for (std::size_t i = 0; i < kCloseReasons; ++i) {
      visitor(blocks.closed[i]...);
    }
    for (std::size_t i = 0; i < kRejections; ++i) {
      visitor(blocks.rejected[i]...);
    }
  }
};

// CoreCounters: the counters of one core, since the server was made. That core writes them, in cache lines of its own.
struct alignas(sync::kLineSize) CoreCounters : SessionNumbers<sync::Counter> {};

// CounterValues: the sum of all cores, or one core's numbers at one moment.
struct CounterValues : SessionNumbers<std::uint64_t> {
  [[nodiscard]] std::uint64_t closed_for(CloseReason reason) const noexcept {
    return closed[static_cast<std::size_t>(reason)];
  }
  [[nodiscard]] std::uint64_t rejected_for(Rejection why) const noexcept {
    return rejected[static_cast<std::size_t>(why)];
  }
  [[nodiscard]] std::uint64_t memory_of(MemoryOwner owner) const noexcept {  // bytes now
    return memory[static_cast<std::size_t>(owner)];
  }
  [[nodiscard]] std::uint64_t closed_total() const noexcept;
  void add(const CoreCounters& counters) noexcept { sync::add_counters(*this, counters); }
};

// ServerReading: the numbers of a server on a page, or of the clients of one core.
struct ServerReading {
  std::uint64_t sessions = 0;  // now
  CounterValues counted;

  template <typename Visitor, typename... Blocks>
  static constexpr void visit(Visitor&& visitor, Blocks&... blocks) {
    visitor(blocks.sessions...);
    CounterValues::visit(visitor, blocks.counted...);
  }
};
extern const CounterTable kServerTable;
extern const CounterTable kClientHostTable;  // the same rows
extern const CounterTable kListenerTable;    // one row, always 1: its labels are the facts

}  // namespace weft::serve
