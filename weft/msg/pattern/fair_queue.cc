// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/fair_queue.h"

#include <utility>

namespace weft::msg {

void FairQueue::swap(std::size_t a, std::size_t b) noexcept {
  std::swap(pipes_[a], pipes_[b]);
  pipes_[a]->notes.queue_index = a;
  pipes_[b]->notes.queue_index = b;
}

void FairQueue::attach(Pipe& pipe) {
  const std::size_t index = pipe.notes.queue_index;
  if (index >= pipes_.size() || pipes_[index] != &pipe) {
    pipe.notes.queue_index = pipes_.size();
    pipes_.push_back(&pipe);
  }
  activate(pipe);
}

void FairQueue::activate(Pipe& pipe) noexcept {
  const std::size_t index = pipe.notes.queue_index;
  if (index < pipes_.size() && pipes_[index] == &pipe && index >= active_) {
    swap(index, active_);
    ++active_;
  }
}

bool FairQueue::detach(Pipe& pipe) noexcept {
  std::size_t index = pipe.notes.queue_index;
  if (index >= pipes_.size() || pipes_[index] != &pipe) {
    return false;
  }
  bool cut = false;
  if (index < active_) {
    if (index == current_) {
      cut = std::exchange(more_, false);
    }
    --active_;
    // The swap may move the pipe whose turn it is; current_ follows it.
    const bool current_moves = current_ == active_;
    swap(index, active_);
    if (current_moves && index != active_) {
      current_ = index;
    }
    index = active_;
  }
  swap(index, pipes_.size() - 1);
  pipes_.pop_back();
  if (current_ >= active_) {
    current_ = 0;
  }
  return cut;
}

// Begins with the pipe in turn. peek() tried that pipe before; a second try loses nothing.
Pipe* FairQueue::peek_others(FrameView& view) noexcept {
  std::size_t fruitless = 0;  // pipes in a row without input that stay in the rotation
  const Pipe* spender = nullptr;
  while (active_ > 0 && fruitless < active_) {
    Pipe* pipe = pipes_[current_];
    if (pipe->peek(view)) {
      peeked_more_ = view.more;
      return pipe;
    }
    if (more_) {
      return nullptr;  // never mix two messages; cannot happen while senders publish whole messages
    }
    const bool stopped = pipe->stopped();
    if (stopped && pipe->owner().share().turn.first_to_stop()) {
      spender = pipe;
    }
    if (pipe->connection() != nullptr && !stopped) {
      --active_;
      swap(current_, active_);
      if (current_ == active_) {
        current_ = 0;
      }
    } else {
      ++fruitless;
      current_ = current_ + 1 < active_ ? current_ + 1 : 0;
    }
  }
  if (spender != nullptr) {
    current_ = spender->notes.queue_index + 1 < active_ ? spender->notes.queue_index + 1 : 0;
  }
  return nullptr;
}

bool FairQueue::has_input() noexcept {
  FrameView view;
  if (peek(view) == nullptr) {
    return false;
  }
  unpeek();
  return true;
}

}  // namespace weft::msg
