// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <utility>

#include "weft/base/error.h"
#include "weft/mem/pool.h"
#include "weft/net/admit/read_turns.h"
#include "weft/serve/metrics/counters.h"

namespace weft::serve {

class Session;

// The life of a session. A session only moves down this list, and may skip states.
enum class SessionState : std::uint8_t {
  open,      // the session takes frames from its peer and from send()
  draining,  // as open, until the session owes no reply to the received frames. From drain()
  drained,   // the session handles no more frames, takes those of send(), and closes at the shard's call
  closing,   // the session writes all that is queued, and discards all that arrives. From close()
  ended,     // the shard calls on_close() at the end of the turn, or after the last coroutine. From end()
};

[[nodiscard]] constexpr std::string_view describe(SessionState state) noexcept {
  constexpr std::string_view kNames[] = {"open", "draining", "drained", "closing", "ended"};
  return kNames[static_cast<std::size_t>(state)];
}

// The end of the peer's stream, as far as the session has seen it. It only moves down this list, and may skip states.
enum class PeerEnd : std::uint8_t {
  none,
  announced,  // an event reported the end: the next reads will return it
  broken,     // the connection failed: the session ends when it has read the earlier bytes, or when it does not read
  read,       // a read returned it, or the session discards no more bytes
  handled,    // the service handled the frames before the end
};

// The end of the stream to the peer. It only moves down this list, and may skip states.
enum class WriteEnd : std::uint8_t {
  none,
  due,   // end_writing() was called: the end follows all that is queued
  done,  // the stream was shut down for writing
};

// The last body of a connection, if the end of the stream to the peer is its end.
enum class LastBody : std::uint8_t {
  none,
  open,   // bytes lack: the connection may not end in order
  whole,  // the last byte is queued: the connection may end in order when it is written
};

// The state of a session's reading. The session reads while it is open, nothing pauses it, and its queue is short.
struct ReadState {
  explicit ReadState(Session& session) noexcept : place(session) {}

  net::ReadTurns<Session>::Place place;  // in the shard's line
  std::uint32_t discarded = 0;           // bytes that came after close()
  PeerEnd peer_end = PeerEnd::none;
  bool readable = false;        // unread bytes may be there, and the kernel will report no event for them
  bool throttled = false;       // decoding stopped because too many bytes are queued
  bool resume_due = false;      // reading continues at the end of the turn
  bool in_body = false;         // the half-received frame has its head, and the time of its body runs
  bool in_handshake = false;    // the stream is not established; Session::kHandshakeBytes are charged
  bool left = false;            // the service got the end while it owed replies: no more frames
  bool handlers_pause = false;  // reading is paused because handlers_max handlers run
  bool reply_pause = false;     // reading is paused because a reply is owed that no later one may overtake
  bool keeps_reply = false;     // as PeerLeft::answer, whatever the limits say
  bool refused = false;         // a frame was refused: the session reads no more, and closes after its replies
  bool holds_refusal = false;   // and after hold_refusal(false)

  void note_end(PeerEnd seen) noexcept {
    if (peer_end < seen) {
      peer_end = seen;
    }
  }
};

// The state of a session's writing.
struct WriteState {
  bool flush_due = false;  // the read event at hand, or the end of the turn, will flush
  WriteEnd end = WriteEnd::none;
  LastBody last_body = LastBody::none;
  bool blocked = false;  // the kernel took fewer bytes than it was given
  bool unsent = false;   // the stream itself still holds bytes that it took
  bool watches_writable = false;
  bool full = false;               // the queue had no room, and half of it is not written yet
  bool writable_due = false;       // the service gets on_writable() at the end of the turn
  bool pass = false;               // the next frame is taken without the policy, in this turn
  bool holds_drain = false;        // the shard waits for the replies that the session owes
  bool move_granted = false;       // another core expects the session when all is written
  std::uint32_t acknowledged = 0;  // bytes that the peer's system had acknowledged when a timer asked; the low bits
};

// ServiceData: the object that a service keeps with a session: a pointer of the service's own, or a T that the session
// owns, in a pooled block.
// Owner: the session. Affinity: its core. Cost: get() is two comparisons.
class ServiceData {
 public:
  ServiceData() = default;
  ServiceData(const ServiceData&) = delete;
  ServiceData& operator=(const ServiceData&) = delete;
  ~ServiceData() { reset(); }

  void set(void* pointer) noexcept {
    reset();
    at_ = pointer;
  }
  [[nodiscard]] void* pointer() const noexcept { return at_; }
  // Returns null if there is no memory. An exception of the constructor passes through; the earlier object is then
  // gone.
  template <typename T, typename... Arguments>
  [[nodiscard]] T* make(Arguments&&... arguments) {
    static_assert(alignof(T) <= alignof(std::max_align_t));
    reset();
    void* const block = mem::pool_allocate(sizeof(T));
    if (block == nullptr) {
      return nullptr;
    }
    try {
      at_ = ::new (block) T(std::forward<Arguments>(arguments)...);
    } catch (...) {
      mem::pool_deallocate(block);
      throw;
    }
    end_ = &end<T>;
    return static_cast<T*>(at_);
  }
  // Takes the object that the other one owns, if any. Its own pointer of the service stays with the other one.
  void take_owned(ServiceData& other) noexcept {
    if (other.end_ != nullptr) {
      reset();
      at_ = std::exchange(other.at_, nullptr);
      end_ = std::exchange(other.end_, nullptr);
    }
  }
  // Null if there is no object, or one of another type.
  template <typename T>
  [[nodiscard]] T* get() const noexcept {
    return end_ == &end<T> ? static_cast<T*>(at_) : nullptr;
  }

 private:
  template <typename T>
  static void end(void* object) noexcept {
    static_cast<T*>(object)->~T();
    mem::pool_deallocate(object);
  }
  void reset() noexcept {
    void* const object = std::exchange(at_, nullptr);
    if (auto* const end_object = std::exchange(end_, nullptr)) {
      end_object(object);
    }
  }

  void* at_ = nullptr;
  void (*end_)(void* object) noexcept = nullptr;  // also the type of the object
};

// The reason for which a session ends: the one that counts it, and the error that on_close() gets.
struct CloseCause {
  CloseReason reason = CloseReason::service;
  Error why;
};

}  // namespace weft::serve
