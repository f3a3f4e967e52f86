// SPDX-License-Identifier: MIT
#include "weft/msg/async_socket.h"

#include <utility>

#include "weft/msg/socket/socket_core.h"
#include "weft/rt/core/core.h"
#include "weft/rt/loop/turn_job.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_time.h"

namespace weft {

namespace {
constexpr Error kSocketMoved(Errc::closed, "the socket was moved from");
}

// State: shared by the handle and the calls under way.
class AsyncSocket::State final : private rt::Watcher, private rt::TurnJob {
 public:
  State(rt::Loop& loop, Socket own) noexcept
      : rt::TurnJob([](rt::TurnJob& task) noexcept { static_cast<State&>(task).socket.core()->flush_batches(); }),
        socket(std::move(own)),
        loop_(loop) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { close(); }

  [[nodiscard]] Result<void> watch() {
    if (socket.core() == nullptr) {
      return kSocketMoved;
    }
    const int fd = WEFT_TRY(socket.core()->descriptor());
    watch_ = WEFT_TRY(loop_.watch(fd, sys::Interest::readable, false, this));
    return {};
  }
  void close() {
    unhook();
    loop_.unwatch(std::exchange(watch_, 0));
    socket.close();
    input.pulse();
    change.pulse();
  }
  // Flushes, and wakes the receivers if the socket has input. flush_batches() does I/O, so input may arrive meanwhile.
  // For input that comes later, the socket's descriptor becomes readable.
  void look() {
    socket.core()->flush_batches();
    if (socket.core()->readiness({true, true}).input) {
      input.pulse();
    }
  }
  // On a core, the message is flushed with all others of this turn. Elsewhere the I/O thread flushes it, unless a call
  // flushes before.
  [[nodiscard]] Result<void> try_send(Message&& message, More more) {
    Result<void> sent = socket.try_send(std::move(message), more);
    if (!sent && sent.error() == Errc::would_block) {
      look();
      sent = socket.try_send(std::move(message), more);  // NOLINT(bugprone-use-after-move): a refused message stays
    }
    if (rt::Core* const core = rt::Core::current(); sent && core != nullptr) {
      core->at_turn_end(*this);
    }
    return sent;
  }
  // Whether the coroutine must yield to the others of the loop.
  [[nodiscard]] bool burst_is_over() noexcept {
    if (++burst_ <= kBurst) {
      return false;
    }
    burst_ = 0;
    return true;
  }

  // ok, or the error of a call in another core's thread: the events here are of one thread.
  [[nodiscard]] Error used_elsewhere() const noexcept {
    return rt::Core::current() == core_ ? Error() : rt::used_elsewhere("socket", core_);
  }

  Socket socket;
  rt::AsyncEvent input;   // there may be a message
  rt::AsyncEvent change;  // there may be room, or a subscriber

 private:
  void handle_event(const sys::PollEvent& /*event*/) override {
    burst_ = 0;
    look();
    change.pulse();
    if (socket.core()->closed() || socket.core()->terminated()) {
      loop_.unwatch(std::exchange(watch_, 0));  // the descriptor would stay readable for ever
    }
  }

  rt::Loop& loop_;
  const rt::Core* const core_ = rt::Core::current();  // null: the loop is not a core's
  rt::Loop::WatchId watch_ = 0;
  unsigned burst_ = 0;
};

AsyncSocket::AsyncSocket(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

Result<AsyncSocket> AsyncSocket::make(rt::Loop& loop, Socket socket) {
  auto state = std::make_shared<State>(loop, std::move(socket));
  WEFT_TRY(state->watch());
  return AsyncSocket(std::move(state));
}

AsyncSocket& AsyncSocket::operator=(AsyncSocket&& other) noexcept {
  if (this != &other) {
    close();
    state_ = std::move(other.state_);
  }
  return *this;
}
AsyncSocket::~AsyncSocket() { close(); }

Socket& AsyncSocket::socket() noexcept {
  static Socket none;  // closed
  return state_ == nullptr ? none : state_->socket;
}
void AsyncSocket::close() {
  if (state_ != nullptr) {
    state_->close();
  }
}

rt::Task<Result<Message>> AsyncSocket::recv() { return recv_part(state_); }
rt::Task<Result<std::vector<Message>>> AsyncSocket::recv_all() { return recv_all_from(state_); }
rt::Task<Result<void>> AsyncSocket::send(Message message, More more) {
  return send_part(state_, std::move(message), more);
}
rt::Task<Result<void>> AsyncSocket::send(Bytes bytes, More more) {
  auto message = Message::copy_of(bytes);
  return message ? send(std::move(*message), more) : refused(message.error());
}
Result<void> AsyncSocket::try_send(Message&& message, More more) {
  if (state_ == nullptr) {
    return kSocketMoved;
  }
  if (const Error wrong = state_->used_elsewhere(); wrong != Errc::ok) [[unlikely]] {
    return wrong;
  }
  return state_->try_send(std::move(message), more);
}
rt::Task<Result<void>> AsyncSocket::send_all(std::vector<Message> parts) {
  return send_all_to(state_, std::move(parts));
}
rt::Task<Result<void>> AsyncSocket::wait_subscribers(std::size_t count) { return await_subscribers(state_, count); }

rt::Task<Result<void>> AsyncSocket::refused(Error error) { co_return error; }

// Without a time-out, which is the default, a call costs one coroutine.
rt::Task<Result<Message>> AsyncSocket::recv_part(std::shared_ptr<State> state) {
  if (state != nullptr) {
    const Duration timeout = state->socket.core()->receive_timeout();
    if (timeout >= Duration::zero()) {
      return recv_within(std::move(state), timeout);
    }
  }
  return recv_from(std::move(state));
}

// Takes a message that is there, whatever the time-out is. The time-out counts from the first would_block on.
rt::Task<Result<Message>> AsyncSocket::recv_within(std::shared_ptr<State> state, Duration timeout) {
  if (const Error wrong = state->used_elsewhere(); wrong != Errc::ok) [[unlikely]] {
    co_return wrong;
  }
  if (state->burst_is_over()) {
    (void)co_await rt::yield();
  }
  if (const bool cancelled = co_await rt::is_cancelled(); cancelled) {
    co_return rt::kCancelled;
  }
  Result<Message> message = state->socket.try_recv();
  if (message || message.error() != Errc::would_block) {
    co_return message;
  }
  co_return co_await rt::with_timeout(recv_from(std::move(state)), timeout);
}

rt::Task<Result<void>> AsyncSocket::send_part(std::shared_ptr<State> state, Message message, More more) {
  if (state != nullptr) {
    const Duration timeout = state->socket.core()->send_timeout();
    if (timeout >= Duration::zero()) {
      return send_within(std::move(state), std::move(message), more, timeout);
    }
  }
  return send_to(std::move(state), std::move(message), more);
}

rt::Task<Result<void>> AsyncSocket::send_within(std::shared_ptr<State> state, Message message, More more,
                                                Duration timeout) {
  if (const Error wrong = state->used_elsewhere(); wrong != Errc::ok) [[unlikely]] {
    co_return wrong;
  }
  if (state->burst_is_over()) {
    (void)co_await rt::yield();
  }
  if (const bool cancelled = co_await rt::is_cancelled(); cancelled) {
    co_return rt::kCancelled;
  }
  const Result<void> sent = state->try_send(std::move(message), more);
  if (sent || sent.error() != Errc::would_block) {
    co_return sent;
  }
  // The refused message is still here. NOLINTNEXTLINE(bugprone-use-after-move)
  co_return co_await rt::with_timeout(send_to(std::move(state), std::move(message), more), timeout);
}

rt::Task<Result<Message>> AsyncSocket::recv_from(std::shared_ptr<State> state) {
  if (state == nullptr) {
    co_return kSocketMoved;
  }
  if (const Error wrong = state->used_elsewhere(); wrong != Errc::ok) [[unlikely]] {
    co_return wrong;
  }
  for (;;) {
    if (state->burst_is_over()) {
      (void)co_await rt::yield();
    }
    if (const bool cancelled = co_await rt::is_cancelled(); cancelled) {
      co_return rt::kCancelled;
    }
    Result<Message> message = state->socket.try_recv();  // later input makes the descriptor readable
    if (message || message.error() != Errc::would_block) {
      co_return message;
    }
    msg::flush_this_threads_batches();  // before the wait, so that no sent message stays behind in a batch
    state->socket.core()
        ->flush_batches();  // also messages that another thread sent before the socket came to this loop
    const Result<void> waited = co_await state->input.wait();
    if (!waited) {
      co_return waited.error();
    }
  }
}

rt::Task<Result<std::vector<Message>>> AsyncSocket::recv_all_from(std::shared_ptr<State> state) {
  std::vector<Message> parts;
  Result<Message> first = co_await recv_part(state);
  if (!first) {
    co_return first.error();
  }
  parts.push_back(*std::move(first));
  while (parts.back().more()) {
    Result<Message> next = state->socket.try_recv();  // only whole messages are delivered, so the next part is there
    if (!next) {
      co_return next.error();
    }
    parts.push_back(*std::move(next));
  }
  co_return parts;
}

rt::Task<Result<void>> AsyncSocket::send_to(std::shared_ptr<State> state, Message message, More more) {
  if (state == nullptr) {
    co_return kSocketMoved;
  }
  if (const Error wrong = state->used_elsewhere(); wrong != Errc::ok) [[unlikely]] {
    co_return wrong;
  }
  for (;;) {
    if (state->burst_is_over()) {
      (void)co_await rt::yield();
    }
    if (const bool cancelled = co_await rt::is_cancelled(); cancelled) {
      co_return rt::kCancelled;
    }
    // The refused message is still here. NOLINTNEXTLINE(bugprone-use-after-move)
    const Result<void> sent = state->try_send(std::move(message), more);
    if (sent || sent.error() != Errc::would_block) {
      co_return sent;
    }
    const Result<void> waited = co_await state->change.wait();
    if (!waited) {
      co_return waited;
    }
  }
}

rt::Task<Result<void>> AsyncSocket::send_all_to(std::shared_ptr<State> state, std::vector<Message> parts) {
  if (parts.empty()) {
    co_return msg::kNoParts;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const More more = i + 1 < parts.size() ? More::yes : More::no;
    const Result<void> sent = co_await send_part(state, std::move(parts[i]), more);
    if (!sent) {
      co_return sent;
    }
  }
  co_return Result<void>();
}

rt::Task<Result<void>> AsyncSocket::await_subscribers(std::shared_ptr<State> state, std::size_t count) {
  if (state == nullptr || state->socket.core() == nullptr) {
    co_return kSocketMoved;
  }
  if (const Error wrong = state->used_elsewhere(); wrong != Errc::ok) [[unlikely]] {
    co_return wrong;
  }
  for (bool looked = false;;) {
    const Result<std::size_t> there = state->socket.core()->subscribers();
    if (!there) {
      co_return there.error();
    }
    if (*there >= count) {
      co_return Result<void>();
    }
    if (!std::exchange(looked, true)) {
      state->look();
      continue;
    }
    looked = false;
    const Result<void> waited = co_await state->change.wait();
    if (!waited) {
      co_return waited;
    }
  }
}

}  // namespace weft
