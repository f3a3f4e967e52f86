// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/message/message.h"
#include "weft/msg/socket.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/task.h"

namespace weft {

// AsyncSocket: a socket that coroutines of a loop use: `const auto m = co_await socket.recv();`.
// The loop's thread does the I/O itself, when the socket's descriptor becomes readable. The loop may be that of an
// rt::Core, beside its sessions: then the core flushes sent messages at the end of the turn at the latest.
// Owner: a move-only handle; destruction closes.
// Affinity: the loop's thread. Other code uses the Socket for options and endpoints only. Any number of coroutines may
// wait, also for the same event.
// Cost: a call costs a coroutine's frame and the call of Socket; a wait costs a turn of the loop. A coroutine yields to
// the others of the loop after kBurst calls in a row.
// Time: the options send_timeout and receive_timeout hold for each part, with their values when the call begins. For
// one call alone: `with_timeout(socket.recv(), 1s)`.
// Errors: invalid_state (the socket was made on another core than the caller's); those of Socket, with timed_out;
// kCancelled; closed, also if close() runs while coroutines wait. Invariants:
// 1. A coroutine that is cancelled, or loses a when_any, has not taken a message. A message that it could not send is
//    destroyed with the call.
// 2. close() wakes every coroutine that waits.
class AsyncSocket {
 public:
  static constexpr unsigned kBurst = 64;

  // Call make() on the loop's thread. Errors: resource_exhausted; closed or terminated, like the socket. On an error
  // make() closes the socket.
  static Result<AsyncSocket> make(rt::Loop& loop, Socket socket);
  AsyncSocket(AsyncSocket&&) noexcept = default;
  AsyncSocket& operator=(AsyncSocket&& other) noexcept;
  ~AsyncSocket();

  [[nodiscard]] Socket& socket() noexcept;  // for bind, connect, options
  void close();                             // idempotent; does not wait

  [[nodiscard]] rt::Task<Result<Message>> recv();                   // one part
  [[nodiscard]] rt::Task<Result<std::vector<Message>>> recv_all();  // one whole message
  [[nodiscard]] rt::Task<Result<void>> send(Message message, More more = More::no);
  // The same with a copy of the bytes, made before the call returns. Errors: also resource_exhausted.
  [[nodiscard]] rt::Task<Result<void>> send(Bytes bytes, More more = More::no);
  [[nodiscard]] rt::Task<Result<void>> send(std::string_view text, More more = More::no) {
    return send(as_bytes(text), more);
  }
  [[nodiscard]] rt::Task<Result<void>> send_all(std::vector<Message> parts);
  // Never waits, so callbacks may call it, too. If it fails with would_block, the caller keeps the message.
  Result<void> try_send(Message&& message, More more = More::no);
  // PUB, XPUB, RADIO: waits until at least `count` peers have a subscription. Errors: not_supported.
  [[nodiscard]] rt::Task<Result<void>> wait_subscribers(std::size_t count);

 private:
  class State;
  explicit AsyncSocket(std::shared_ptr<State> state) noexcept;
  [[nodiscard]] static rt::Task<Result<void>> refused(Error error);
  [[nodiscard]] static rt::Task<Result<Message>> recv_part(std::shared_ptr<State> state);
  [[nodiscard]] static rt::Task<Result<Message>> recv_within(std::shared_ptr<State> state, Duration timeout);
  [[nodiscard]] static rt::Task<Result<void>> send_part(std::shared_ptr<State> state, Message message, More more);
  [[nodiscard]] static rt::Task<Result<void>> send_within(std::shared_ptr<State> state, Message message, More more,
                                                          Duration timeout);
  [[nodiscard]] static rt::Task<Result<Message>> recv_from(std::shared_ptr<State> state);
  [[nodiscard]] static rt::Task<Result<std::vector<Message>>> recv_all_from(std::shared_ptr<State> state);
  [[nodiscard]] static rt::Task<Result<void>> send_to(std::shared_ptr<State> state, Message message, More more);
  [[nodiscard]] static rt::Task<Result<void>> send_all_to(std::shared_ptr<State> state, std::vector<Message> parts);
  [[nodiscard]] static rt::Task<Result<void>> await_subscribers(std::shared_ptr<State> state, std::size_t count);

  std::shared_ptr<State> state_;  // shared with the calls that are under way; null if moved from
};

}  // namespace weft
