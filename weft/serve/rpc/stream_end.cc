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

rt::Task<Result<std::optional<OwnedBytes>>> StreamEnd::next([[maybe_unused]] std::shared_ptr<void> keep,
                                                            StreamEnd* self) {
  using Next = Result<std::optional<OwnedBytes>>;
  while (self->waiting_.empty()) {
    if (self->came_to_end_ || (self->over_ && *self->over_ == Errc::ok)) {
      co_return Next(std::nullopt);
    }
    if (self->over_) {
      co_return *self->over_;
    }
    const auto waited = co_await self->readable_.wait();
    if (!waited) {
      co_return waited.error();
    }
  }
  OwnedBytes message = std::move(self->waiting_.front());
  self->waiting_.pop_front();
  const std::size_t size = message.bytes().size();
  self->port_.budget->give_back(size, MemoryOwner::handlers);
  const std::uint32_t granted = self->window_.consume(size);
  if (granted != 0 && !self->came_to_end_ && !self->over_) {
    Header header = self->header_of(FrameType::credit);
    header.number = granted;
    // A connection that does not take the frame ends soon: its write budget is spent by frames of this size.
    const auto sent = self->port_.send(self->port_.object, header, Bytes());
    if (!sent) {
      co_return sent.error();
    }
  }
  co_return Next(std::move(message));
}

rt::Task<Result<void>> StreamEnd::send([[maybe_unused]] std::shared_ptr<void> keep, StreamEnd* self, OwnedBytes body) {
  for (;;) {
    if (self->over_) {
      co_return *self->over_ == Errc::ok ? kStreamEnded : *self->over_;
    }
    if (self->ended_sending_ || !self->sends_) {
      co_return kStreamEnded;
    }
    rt::AsyncEvent* event = &self->writable_;
    if (self->id_ != 0 && self->credit_.may_send()) {
      event = self->port_.full(self->port_.object);
      if (event == nullptr) {
        break;
      }
    }
    const auto waited = co_await event->wait();
    if (!waited) {
      co_return waited;
    }
  }
  auto sent = self->port_.send(self->port_.object, self->header_of(FrameType::data), body.bytes());
  if (sent) {
    self->credit_.spend(body.bytes().size());
  }
  co_return sent;
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
