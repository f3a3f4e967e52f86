// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/load_balancer.h"

namespace weft::msg {

void LoadBalancer::forget_staged() noexcept {
  for (Cell& cell : staged_) {
    cell.release();
  }
  staged_.clear();
}

void LoadBalancer::attach(Pipe& pipe) { list_.add(pipe); }

void LoadBalancer::detach(Pipe& pipe) noexcept {
  if (!list_.contains(pipe)) {
    return;
  }
  // No other pipe misses its turn: the pipe that had the last turn moves into a place before the present turn, and the
  // pipe at the end into the present turn.
  if (pipe.notes.balance_index < current_) {
    list_.swap(pipe.notes.balance_index, --current_);
  }
  list_.remove(pipe);
  if (current_ >= list_.pipes().size()) {
    current_ = 0;
  }
  if (pinned_ == &pipe) {
    pinned_ = nullptr;
  }
  if (last_ == &pipe) {
    last_ = nullptr;
  }
}

Pipe* LoadBalancer::next_writable() noexcept {
  const std::vector<Pipe*>& pipes = list_.pipes();
  for (std::size_t i = 0; i < pipes.size(); ++i) {
    if (pipes[current_]->writable()) {
      return pipes[current_];
    }
    advance();
  }
  return nullptr;
}

bool LoadBalancer::writable() noexcept { return in_message_ || next_writable() != nullptr; }

Result<void> LoadBalancer::send(Outbound& part, std::span<const Cell> prefix) {
  if (!in_message_ && !part.more && prefix.empty()) [[likely]] {
    for (std::size_t i = 0; i < list_.pipes().size(); ++i) {
      if (try_next(part)) {
        return {};
      }
    }
    return Errc::would_block;
  }
  if (!in_message_) {
    Pipe* pipe = next_writable();
    if (pipe == nullptr) {
      return Errc::would_block;
    }
    pinned_ = pipe;
    staged_.assign(prefix.begin(), prefix.end());
  }
  Cell cell;
  if (!make_cell(cell, part)) {
    if (!in_message_) {
      forget_staged();
    }
    return Error(Errc::resource_exhausted, "no memory for a message part");
  }
  in_message_ = part.more;
  staged_.push_back(cell);
  if (part.more) {
    return {};
  }
  last_ = pinned_;
  if (pinned_ == nullptr) {
    ++dropped_;
    forget_staged();
    return {};
  }
  pinned_->send_parts(staged_, false, part.waits);
  staged_.clear();
  if (!list_.pipes().empty() && list_.pipes()[current_] == pinned_) {
    advance();
  }
  pinned_ = nullptr;
  return {};
}

}  // namespace weft::msg
