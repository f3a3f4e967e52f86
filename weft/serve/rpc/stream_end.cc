// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/stream_end.h"

#include <utility>

namespace weft::serve::rpc {

namespace {
constexpr Error kNoMessages(Errc::protocol_error, "a message of a call that takes none");
constexpr Error kAfterTheEnd(Errc::protocol_error, "a message after the end of its stream");
constexpr Error kNoCredit(Errc::protocol_error, "a message without credit");
constexpr Error kWrongCredit(Errc::protocol_error, "a credit of nothing, or of too much");
constexpr Error kNoMemoryForMessage(Errc::resource_exhausted, "no memory for the message of a stream");
constexpr Error kStreamEnded(Errc::closed, "the stream was ended");
}  // namespace

StreamEnd::~StreamEnd() {
  for (const OwnedBytes& message : waiting_) {
    port_.budget->give_back(message.bytes().size(), MemoryOwner::handlers);
  }
}

void StreamEnd::begin(std::uint64_t id) noexcept {
  id_ = id;
  writable_.pulse();
}

Result<void> StreamEnd::handle_data(Bytes body) {
  if (!receives_) {
    return kNoMessages;
  }
  if (came_to_end_) {
    return kAfterTheEnd;
  }
  if (!window_.take(body.size())) {
    return kNoCredit;
  }
  OwnedBytes message;
  if (!port_.budget->take(body.size(), MemoryOwner::handlers)) {
    return kNoMemoryForMessage;
  }
  if (!message.assign(body)) {
    port_.budget->give_back(body.size(), MemoryOwner::handlers);
    return kNoMemoryForMessage;
  }
  waiting_.push_back(std::move(message));
  readable_.pulse();
  return {};
}

Result<void> StreamEnd::handle_end() noexcept {
  if (!receives_) {
    return kNoMessages;
  }
  if (came_to_end_) {
    return kAfterTheEnd;
  }
  came_to_end_ = true;
  readable_.pulse();
  return {};
}

Result<void> StreamEnd::handle_credit(std::uint32_t granted) noexcept {
  if (!sends_ || !credit_.add(granted)) {
    return kWrongCredit;
  }
  writable_.pulse();
  return {};
}

void StreamEnd::finish(const Error& why) noexcept {
  if (!over_) {
    over_ = why;
    readable_.pulse();
    writable_.pulse();
  }
}

StreamEnd::Next StreamEnd::take_next() {
  if (waiting_.empty()) {
    return came_to_end_ || *over_ == Errc::ok ? Next(std::nullopt) : Next(*over_);
  }
  OwnedBytes message = std::move(waiting_.front());
  waiting_.pop_front();
  const std::size_t size = message.bytes().size();
  port_.budget->give_back(size, MemoryOwner::handlers);
  const std::uint32_t granted = window_.consume(size);
  if (granted != 0 && !came_to_end_ && !over_) {
    Header header = header_of(FrameType::credit);
    header.number = granted;
    // A connection that does not take the frame ends soon: its write budget is spent by frames of this size.
    WEFT_TRY(port_.send(port_.object, header, Bytes()));
  }
  return Next(std::move(message));
}

rt::Task<StreamEnd::Next> StreamEnd::next([[maybe_unused]] std::shared_ptr<void> keep, StreamEnd* self) {
  while (!self->has_next()) {
    const auto waited = co_await self->readable_.wait();
    if (!waited) {
      co_return waited.error();
    }
  }
  co_return self->take_next();
}

std::optional<Result<void>> StreamEnd::try_send(Bytes body) {
  if (over_) {
    return *over_ == Errc::ok ? kStreamEnded : *over_;
  }
  if (ended_sending_ || !sends_) {
    return kStreamEnded;
  }
  if (!has_credit() || port_.full(port_.object) != nullptr) {
    return std::nullopt;
  }
  Result<void> sent = port_.send(port_.object, header_of(FrameType::data), body);
  if (sent) {
    credit_.spend(body.size());
  }
  return sent;
}

rt::Task<Result<void>> StreamEnd::send([[maybe_unused]] std::shared_ptr<void> keep, StreamEnd* self, OwnedBytes body) {
  for (;;) {
    if (const auto sent = self->try_send(body.bytes())) {
      co_return *sent;
    }
    rt::AsyncEvent* const full = self->has_credit() ? self->port_.full(self->port_.object) : nullptr;
    rt::AsyncEvent& event = full != nullptr ? *full : self->writable_;
    const auto waited = co_await event.wait();
    if (!waited) {
      co_return waited;
    }
  }
}

Result<void> StreamEnd::end_sending() {
  if (ended_sending_ || over_ || !sends_) {
    return {};
  }
  ended_sending_ = true;
  writable_.pulse();
  return id_ == 0 ? Result<void>() : port_.send(port_.object, header_of(FrameType::end), Bytes());
}

}  // namespace weft::serve::rpc
