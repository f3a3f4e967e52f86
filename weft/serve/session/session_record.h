// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/admit/admission.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/serve/metrics/counters.h"
#include "weft/serve/session/log.h"
#include "weft/serve/session/session_id.h"
#include "weft/serve/session/session_state.h"

namespace weft::serve {

struct ServiceSlot;

// SessionRecord: the facts of an ended session for on_close(), the counters and the log.
// Owner: a session. Affinity: one core.
struct SessionRecord {
  SessionCounts counts;
  std::unique_ptr<const std::string> peer;  // null: no log needs it. A closed socket no longer has the address
  Error why;
  const ServiceSlot* successor = nullptr;  // null: none; otherwise its session follows on the stream, see switch_to()
  std::uint32_t undelivered = 0;           // frames that were queued and not written
  CloseReason reason = CloseReason::service;

  void set_cause(CloseReason of, const Error& error) noexcept {
    reason = of;
    why = error;
  }
};

// SessionGlance: a session at one moment, for a page of its operator.
struct SessionGlance {
  SessionId id;
  SessionCounts counts;       // up to the last read and write
  Duration age{};             // since accept
  Duration silent{};          // since the last byte of the peer
  std::size_t queued = 0;     // bytes that wait to be written
  std::size_t received = 0;   // bytes of a half-received frame, or after the frame of a running handler
  std::uint32_t replies = 0;  // that it owes
  std::uint32_t coroutines = 0;
  std::string_view state;    // "open"
  std::string_view service;  // the name of its type; static storage
  bool reads = false;        // nothing pauses it
  bool blocked = false;      // the kernel takes no more bytes for the peer
  bool layered = false;      // TLS, or another layer
};

// SessionRest: the data that a session leaves to the next one of its connection, see Session::switch_to() and
// move_to().
struct SessionRest {
  std::unique_ptr<net::ByteStream> stream;
  SessionId id;
  net::Admission::Lease lease;
  SessionRecord record;
  Instant accepted{};
  std::vector<std::uint8_t> unread;    // bytes after the last frame
  std::shared_ptr<const void> codec;   // of a session that moves
  std::unique_ptr<ServiceData> state;  // the same, if it has one
  bool whole = true;                   // false: there was no memory for these
};

// SessionMove: the way of one session to another core, see Session::move_to(). It begins with a question: whether the
// other core takes the session. Until that is answered the move belongs to itself; Shard::answer() then gives it to the
// session, or refuses it. One call of carry() or cancel() ends it.
// Affinity: the session's core.
class SessionMove {
 public:
  virtual void carry(SessionRest rest) noexcept = 0;  // the session has ended here, and continues there
  virtual void cancel() noexcept = 0;                 // the other core expects the session no more

 protected:
  ~SessionMove() = default;
};

// SessionMover: makes moves between the shards of a server.
class SessionMover {
 public:
  static constexpr std::size_t kNoPort = ~std::size_t{0};

  // `port`: the listener of the session. Errors: invalid_argument (there is no such core); resource_exhausted.
  [[nodiscard]] virtual Result<SessionMove*> begin_move(SessionId session, std::size_t port,
                                                        unsigned core) noexcept = 0;

 protected:
  ~SessionMover() = default;
};

}  // namespace weft::serve
