// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/message/message.h"
#include "weft/msg/socket.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/task.h"

namespace weft {

// AsyncSocket: a socket that lives on a loop and is used by its coroutines: `const auto m = co_await socket.recv();`.
// The loop's thread does the I/O itself, when the socket's descriptor says that there is some. The loop may be that of
// an rt::Core, beside its sessions: then what was sent goes out at the end of the turn at the latest.
// Owner: a move-only handle; destruction closes. Affinity: the loop's thread, and nobody uses the Socket otherwise but
// for options and endpoints. Any number of coroutines may wait, for the same thing too.
// Cost: a call is a coroutine's frame and what Socket's costs; a wait is a turn of the loop. After kBurst messages that
// were there at once the others of the loop go first.
// Time: the options send_timeout and receive_timeout hold for each part, as the call finds them; for one call alone,
// `with_timeout(socket.recv(), 1s)`.
// Errors: those of Socket, with timed_out; kCancelled; closed, also when close() is called while they wait.
// Invariants: 1. who is cancelled, or loses a when_any, has taken no message; one that was not sent is destroyed with
// the call. 2. close() leaves nobody waiting.
class AsyncSocket {
 public:
  static constexpr unsigned kBurst = 64;

  // On the loop's thread. resource_exhausted; closed, terminated: the socket is. On an error the socket is closed.
  static Result<AsyncSocket> make(rt::Loop& loop, Socket socket);
  AsyncSocket(AsyncSocket&&) noexcept = default;
  AsyncSocket& operator=(AsyncSocket&& other) noexcept;
  ~AsyncSocket();

  [[nodiscard]] Socket& socket() noexcept;  // for bind, connect, options
  void close();                             // idempotent; does not wait

  [[nodiscard]] rt::Task<Result<Message>> recv();                   // one part
  [[nodiscard]] rt::Task<Result<std::vector<Message>>> recv_all();  // one whole message
  [[nodiscard]] rt::Task<Result<void>> send(Message message, More more = More::no);
  [[nodiscard]] rt::Task<Result<void>> send_all(std::vector<Message> parts);
  // Without waiting, in callbacks too: would_block, and the message is still the caller's.
  Result<void> try_send(Message&& message, More more = More::no);
  // PUB, XPUB, RADIO: until at least so many peers have subscribed to something. not_supported.
  [[nodiscard]] rt::Task<Result<void>> wait_subscribers(std::size_t count);

 private:
  class State;
  explicit AsyncSocket(std::shared_ptr<State> state) noexcept;
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

  std::shared_ptr<State> state_;  // also of the calls that are under way; null: moved from
};

}  // namespace weft
