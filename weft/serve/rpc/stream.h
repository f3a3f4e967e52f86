// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/rt/task/task.h"
#include "weft/serve/rpc/body.h"
#include "weft/serve/rpc/stream_end.h"

namespace weft::serve::rpc {

// NextMessage: `co_await reader.next()`. A message that is there costs no coroutine.
// Owner: a value; it may be moved before the await. The stream outlives the await, or is kept by it.
template <typename T>
class [[nodiscard]] NextMessage {
  static_assert(!std::is_same_v<T, Bytes>, "weft: the message of a stream owns its bytes: serve::OwnedBytes");

 public:
  NextMessage(StreamEnd& end, std::shared_ptr<void> keep) noexcept : end_(&end), keep_(std::move(keep)) {}

  [[nodiscard]] bool await_ready() const noexcept { return end_->has_next(); }
  template <rt::detail::TaskPromise Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) {
    waits_ = StreamEnd::next(keep_, end_);
    waits_.handle().promise().start_in(parent.promise().scope(), parent);
    return rt::detail::transfer(waits_.handle());
  }
  [[nodiscard]] Result<std::optional<T>> await_resume() {
    StreamEnd::Next message = waits_ ? waits_.handle().promise().take() : end_->take_next();
    if constexpr (std::is_same_v<T, OwnedBytes>) {
      return message;
    } else {
      if (!message) {
        return message.error();
      }
      if (!message->has_value()) {
        return Result<std::optional<T>>(std::nullopt);
      }
      return std::optional<T>(WEFT_TRY(Body<T>::decode((*message)->bytes())));
    }
  }

 private:
  StreamEnd* end_;
  std::shared_ptr<void> keep_;
  rt::Task<StreamEnd::Next> waits_;  // none: there was no need to wait
};

// SentMessage: `co_await writer.send(item)`. A message that left at once costs no coroutine and no copy.
// Owner: a value; it may be moved before the await.
class [[nodiscard]] SentMessage {
 public:
  explicit SentMessage(const Result<void>& result) noexcept : result_(result) {}
  explicit SentMessage(rt::Task<Result<void>> waits) noexcept : waits_(std::move(waits)) {}

  [[nodiscard]] bool await_ready() const noexcept { return !waits_; }
  template <rt::detail::TaskPromise Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) noexcept {
    waits_.handle().promise().start_in(parent.promise().scope(), parent);
    return rt::detail::transfer(waits_.handle());
  }
  [[nodiscard]] Result<void> await_resume() { return waits_ ? waits_.handle().promise().take() : result_; }

 private:
  Result<void> result_;
  rt::Task<Result<void>> waits_;  // none: the result is known
};

// Encodes the message and sends it, now or when there is room. `keep`: see StreamEnd; null, or a shared_ptr.
template <typename T, typename Keep>
[[nodiscard]] SentMessage send_message(StreamEnd& end, const T& item, const Keep& keep) {
  Scratch scratch;
  const Result<Bytes> body = Body<T>::encode(item, scratch);
  if (!body) {
    return SentMessage(body.error());
  }
  if (const auto sent = end.try_send(*body)) {
    return SentMessage(*sent);
  }
  OwnedBytes copy;
  if (!copy.assign(*body)) {
    return SentMessage(Error(Errc::resource_exhausted, "no memory for the message of a stream"));
  }
  return SentMessage(StreamEnd::send(keep, &end, std::move(copy)));
}

// Reader: the messages of the peer, for the handler of a stream: `co_await reader.next()`.
// Owner: the server. It lives until the handler has ended. Affinity: the session's core; one next() at a time.
template <typename T>
class Reader {
 public:
  explicit Reader(StreamEnd& end) noexcept : end_(&end) {}

  // The next message; nullopt: the peer sends no more. Errors: that of the call; kCancelled; those of Body::decode().
  [[nodiscard]] NextMessage<T> next() { return NextMessage<T>(*end_, nullptr); }

 private:
  StreamEnd* end_;
};

// Writer: messages to the peer, for the handler of a stream: `co_await writer.send(item)` waits until the peer takes
// more, and the connection does.
// Owner, affinity: those of Reader; one send() at a time.
template <typename T>
class Writer {
 public:
  explicit Writer(StreamEnd& end) noexcept : end_(&end) {}

  // Encodes the message, and sends it if there is room; otherwise the await waits for that. Errors: that of the call;
  // kCancelled; closed (the stream was ended); those of Body::encode(); message_too_large; resource_exhausted.
  [[nodiscard]] SentMessage send(const T& item) { return send_message<T>(*end_, item, nullptr); }

 private:
  StreamEnd* end_;
};

}  // namespace weft::serve::rpc
