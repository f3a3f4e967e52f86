// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task.h"
#include "weft/serve/admission/byte_budget.h"
#include "weft/serve/client/owned_bytes.h"
#include "weft/serve/rpc/credit.h"
#include "weft/serve/rpc/rpc_codec.h"

namespace weft::serve::rpc {

// StreamPort: the connection of a stream. `object` and `budget` outlive the stream.
struct StreamPort {
  void* object = nullptr;
  Result<void> (*send)(void* object, const Header& header, Bytes body) = nullptr;
  // The event after which the connection may take a message; null: it takes one now.
  rt::AsyncEvent* (*full)(void* object) = nullptr;
  ByteBudget::Share* budget = nullptr;
};

// StreamEnd: one end of a call with messages besides its request and its answer: those that came and wait, and the
// credit of those that leave.
// Owner: an Incoming, or the client's stream. Affinity: the connection's core.
// Cost: a message that waits is a pooled block, and counts as memory of the server or of the client's host.
// Invariants:
//   1. At most kWindow bytes and one message wait (credit.h).
//   2. Messages arrive in the order of sending, and each once. The end comes after them.
//   3. A peer that sends without credit or after its end, or that grants nothing or more than kCreditMax, breaks the
//      protocol: handle_x() returns the error, and the owner ends the connection.
class StreamEnd {
 public:
  StreamEnd(const StreamPort& port, bool receives, bool sends) noexcept
      : port_(port), receives_(receives), sends_(sends) {}
  StreamEnd(const StreamEnd&) = delete;
  StreamEnd& operator=(const StreamEnd&) = delete;
  ~StreamEnd();

  void begin(std::uint64_t id) noexcept;  // the id of the call: from now on messages leave

  // --- from the connection. Errors: protocol_error; resource_exhausted (the call must end) ---
  [[nodiscard]] Result<void> handle_data(Bytes body);
  [[nodiscard]] Result<void> handle_end() noexcept;
  [[nodiscard]] Result<void> handle_credit(std::uint32_t granted) noexcept;
  // The call has ended: next() returns the messages that wait, then `why`; if that is ok, the end of the stream.
  void finish(const Error& why) noexcept;

  // --- for the program. `keep`: keeps this alive while the task runs; null: the caller does ---
  using Next = Result<std::optional<OwnedBytes>>;
  // Whether there is a message, the end, or the error of the call; then take_next() returns it. nullopt: the end.
  [[nodiscard]] bool has_next() const noexcept { return !waiting_.empty() || came_to_end_ || over_.has_value(); }
  [[nodiscard]] Next take_next();
  // Waits for the next message. Errors: that of the call; kCancelled.
  [[nodiscard]] static rt::Task<Next> next(std::shared_ptr<void> keep, StreamEnd* self);
  // Sends, if there is credit and the connection takes a message; nullopt: not now. Errors: that of the call; closed
  // (the stream was ended); those of the connection.
  [[nodiscard]] std::optional<Result<void>> try_send(Bytes body);
  // Waits for that, then sends. Errors: also kCancelled.
  [[nodiscard]] static rt::Task<Result<void>> send(std::shared_ptr<void> keep, StreamEnd* self, OwnedBytes body);
  // Ends the direction to the peer. Errors: those of the connection. Idempotent.
  [[nodiscard]] Result<void> end_sending();

 private:
  [[nodiscard]] bool has_credit() const noexcept { return id_ != 0 && credit_.may_send(); }
  [[nodiscard]] Header header_of(FrameType type) const noexcept {
    Header header;
    header.type = type;
    header.id = id_;
    return header;
  }

  const StreamPort port_;
  const bool receives_;
  const bool sends_;
  std::uint64_t id_ = 0;  // 0: the request was not sent yet
  std::deque<OwnedBytes> waiting_;
  Window window_;
  Credit credit_;
  bool came_to_end_ = false;    // the peer sends no more
  bool ended_sending_ = false;  // this end sends no more
  std::optional<Error> over_;   // the call has ended
  rt::AsyncEvent readable_;
  rt::AsyncEvent writable_;
};

}  // namespace weft::serve::rpc
