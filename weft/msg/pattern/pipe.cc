// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/pipe.h"

#include <new>
#include <utility>

#include "weft/msg/connection/connection.h"

namespace weft::msg {

Pipe::Pipe(ConnectionOwner& owner, Connection& connection) noexcept
    : owner_(owner),
      connection_(&connection),
      tx_(connection.send_side().channel()),
      rx_(connection.receive_side().channel()) {
  connection.attach(*this);
}

Pipe::Pipe(ConnectionOwner& owner, std::shared_ptr<InprocLink> link, int end) noexcept
    : owner_(owner), link_(std::move(link)), link_end_(end), tx_(link_->channel[end]), rx_(link_->channel[1 - end]) {}

FrozenOptions Pipe::options() const noexcept {
  return connection_ != nullptr ? connection_->options() : link_->frozen(link_end_);
}

// Null when the other end is unbound or closed: then there is no thread to wake.
[[gnu::always_inline]] inline ConnectionOwner* Pipe::other_owner() const noexcept {
  // Acquire pairs with the release of SocketCore::join_inproc().
  return link_->owner[1 - link_end_].load(std::memory_order_acquire);
}

void Pipe::wake_inproc_reader() noexcept {
  if (ConnectionOwner* peer = other_owner(); peer != nullptr) {
    peer->share().input_parker.wake_as_asked();
  }
}

Offered Pipe::try_send(Outbound& part, bool wide) noexcept {
  return connection_ != nullptr ? connection_->send_side().try_send(part, wide) : try_send_inproc(part);
}

Offered Pipe::try_send_inproc(Outbound& part) noexcept {
  if (!tx_.has_credit()) {
    return Offered::full;
  }
  if (!tx_.push(part)) {
    return Offered::no_memory;
  }
  wake_inproc_reader();
  return Offered::taken;
}

bool Pipe::send_parts(std::span<Cell> parts, bool wide, Outbound* call) noexcept {
  if (connection_ != nullptr) {
    return connection_->send_side().send_parts(parts, wide, call);
  }
  if (!tx_.push(parts)) {
    return false;
  }
  wake_inproc_reader();
  return true;
}

void Pipe::send_subscription(bool subscribe, const FilterView& topic) {
  if (connection_ != nullptr) {
    if (!connection_->send_side().queue_subscription(subscribe, topic, !notes.ready)) {
      throw std::bad_alloc();
    }
  } else if (ConnectionOwner* peer = other_owner(); peer != nullptr) {
    peer->handle_inproc_subscription(*link_, 1 - link_end_, subscribe, topic);
  }
}

bool Pipe::connects() const noexcept { return connection_ != nullptr && connection_->connecting(); }

void Pipe::end() noexcept {
  ending_.store(true, std::memory_order_relaxed);
  connection_->link().request_close_when_sent();
}

bool Pipe::peek_beyond_run(FrameView& view) noexcept {
  if (rx_.conflates()) [[unlikely]] {
    if (connection_ != nullptr) {
      connection_->receive_side().collect();
    }
    rx_.refresh();
  }
  Cell* cell = rx_.front();
  if (cell == nullptr) {
    if (connection_ == nullptr || rx_.conflates()) {
      return false;
    }
    const ReceiveSide::Peek result = connection_->receive_side().peek(view, run_);
    if (result == ReceiveSide::Peek::run) {
      return peek(view);
    }
    if (result == ReceiveSide::Peek::stream) {
      view.origin = notes.origin;
      peeked_ = Peeked::stream;
      return true;
    }
    if (result == ReceiveSide::Peek::nothing || result == ReceiveSide::Peek::spent) {
      peeked_ = result == ReceiveSide::Peek::spent ? Peeked::spent : Peeked::nothing;
      return false;
    }
    cell = rx_.front();
  }
  view = {cell->bytes(), cell->more, nullptr, cell, notes.origin};
  peeked_ = Peeked::cell;
  peeked_more_ = cell->more;
  peeked_bytes_ = Channel::footprint(*cell);
  return true;
}

void Pipe::pop_beyond_run() noexcept {
  if (peeked_ == Peeked::stream) {
    connection_->receive_side().pop();
  } else {
    rx_.front()->release();  // a no-op when the buffer was taken over
    if (rx_.pop(!peeked_more_, peeked_bytes_)) {
      credit_reported();
    }
  }
  peeked_ = Peeked::nothing;
}

void Pipe::unpeek() noexcept {
  if (peeked_ == Peeked::stream) {
    connection_->receive_side().unpeek();
  }
  peeked_ = Peeked::nothing;
}

void Pipe::credit_reported() noexcept {
  if (connection_ != nullptr) {
    connection_->receive_side().handle_credit();
  } else if (ConnectionOwner* peer = other_owner(); peer != nullptr) {
    peer->share().output_parker.wake_with_fence();
  }
}

// The channels of an inproc pipe belong to the receiving end once both ends have a socket.
void Pipe::add_counts(Statistics& into) const noexcept {
  into.queued_in += queued_in();
  into.dropped_conflated += tx_.replaced() + rx_.outdated();
  if (connection_ != nullptr) {
    into.sent += connection_->send_side().sent_count();
    into.queued_out += queued_out();
    into.arrived += connection_->receive_side().arrived_count();
    into.dropped_conflated += rx_.replaced();
    return;
  }
  (link_->joined.load() ? into.sent : into.queued_out) += tx_.written() - tx_.replaced();
  into.arrived += rx_.written() - rx_.replaced();
}

std::uint64_t Pipe::queued_out() const noexcept {
  return connection_ != nullptr ? connection_->send_side().queued_count() : tx_.queued();
}

bool Pipe::drained() noexcept { return notes.ended && run_.empty() && rx_.empty(); }

}  // namespace weft::msg
