// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "weft/base/result.h"
#include "weft/rt/task/task.h"
#include "weft/serve/rpc/body.h"
#include "weft/serve/rpc/stream_end.h"

namespace weft::serve::rpc {

// Reader: the messages of the peer, for the handler of a stream: `co_await reader.next()`.
// Owner: the server. It lives until the handler has ended. Affinity: the session's core; one next() at a time.
template <typename T>
class Reader {
 public:
  explicit Reader(StreamEnd& end, std::shared_ptr<void> keep = nullptr) noexcept : end_(&end), keep_(std::move(keep)) {}

  // The next message; nullopt: the peer sends no more. Errors: that of the call; kCancelled; those of Body::decode().
  [[nodiscard]] rt::Task<Result<std::optional<T>>> next() { return next_of(StreamEnd::next(keep_, end_)); }

 private:
  static rt::Task<Result<std::optional<T>>> next_of(rt::Task<Result<std::optional<OwnedBytes>>> task) {
    Result<std::optional<OwnedBytes>> message = co_await std::move(task);
    if (!message) {
      co_return message.error();
    }
    if (!message->has_value()) {
      co_return Result<std::optional<T>>(std::nullopt);
    }
    Result<T> value = Body<T>::decode((*message)->bytes());
    if (!value) {
      co_return value.error();
    }
    co_return Result<std::optional<T>>(*std::move(value));
  }

  StreamEnd* end_;
  std::shared_ptr<void> keep_;
};

// Writer: messages to the peer, for the handler of a stream: `co_await writer.send(item)` waits until the peer takes
// more, and the connection does.
// Owner, affinity: those of Reader; one send() at a time.
template <typename T>
class Writer {
 public:
  explicit Writer(StreamEnd& end, std::shared_ptr<void> keep = nullptr) noexcept : end_(&end), keep_(std::move(keep)) {}

  // Encodes the message, and returns the task that sends it. Errors: that of the call; kCancelled; closed (the stream
  // was ended); those of Body::encode(); message_too_large; resource_exhausted.
  [[nodiscard]] rt::Task<Result<void>> send(const T& item) {
    Scratch scratch;
    const Result<Bytes> body = Body<T>::encode(item, scratch);
    OwnedBytes copy;
    if (!body) {
      return fail(body.error());
    }
    if (!copy.assign(*body)) {
      return fail(Error(Errc::resource_exhausted, "no memory for the message of a stream"));
    }
    return StreamEnd::send(keep_, end_, std::move(copy));
  }

 private:
  static rt::Task<Result<void>> fail(Error why) { co_return why; }

  StreamEnd* end_;
  std::shared_ptr<void> keep_;
};

}  // namespace weft::serve::rpc
