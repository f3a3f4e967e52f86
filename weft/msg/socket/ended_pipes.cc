// SPDX-License-Identifier: MIT
#include "weft/msg/socket/ended_pipes.h"

#include <utility>

namespace weft::msg {

void EndedPipes::add(Pipe& pipe) noexcept {
  next_ = pipe.notes.ended_index = ended_.size();
  ended_.push_back(&pipe);
  count_unread(pipe);
}

void EndedPipes::remove(Pipe& pipe) noexcept {
  set_unread(pipe, 0);
  const std::size_t place = pipe.notes.ended_index;
  ended_[place] = ended_.back();
  ended_[place]->notes.ended_index = place;
  ended_.pop_back();
}

// The messages of an inproc pipe are the sender's memory.
void EndedPipes::count_unread(Pipe& pipe) noexcept {
  if (pipe.connection() != nullptr) {
    set_unread(pipe, kUnreadEndedEach + pipe.unread_bytes());
  }
}

void EndedPipes::set_unread(Pipe& pipe, std::uint64_t bytes) noexcept {
  const std::uint64_t before = std::exchange(pipe.notes.unread, bytes);
  unread_.store(unread_.load(std::memory_order_relaxed) + bytes - before, std::memory_order_relaxed);
}

void EndedPipes::remember(const Pipe& pipe) noexcept {
  Statistics last;
  pipe.add_counts(last);
  gone_.sent += last.sent;
  gone_.arrived += last.arrived;
  gone_.dropped_conflated += last.dropped_conflated;
  gone_.dropped_lost += last.queued_in;
  if (pipe.connection() == nullptr && last.queued_out != 0) {
    pipe.link()->leave_behind(last.queued_out);
  }
}

}  // namespace weft::msg
