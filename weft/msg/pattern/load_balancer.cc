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

// False when memory ran out: `part` is unchanged.
bool LoadBalancer::stage(Outbound& part, std::span<const Cell> prefix) noexcept {
  for (const Cell& cell : prefix) {
    if (!make_room(staged_)) {
      return false;
    }
    staged_.push_back(cell);
  }
  return append_cell(staged_, part);
}

Result<void> LoadBalancer::refuse(bool first) noexcept {
  if (first) {
    forget_staged();
    pinned_ = nullptr;
  }
  return kNoMemoryToSend;
}

Result<void> LoadBalancer::send(Outbound& part, std::span<const Cell> prefix) {
  if (!in_message_ && !part.more && prefix.empty()) [[likely]] {
    bool lacks_memory = false;
    for (std::size_t i = 0; i < list_.pipes().size(); ++i) {
      const Offered offered = try_next(part);
      if (offered) {
        return {};
      }
      lacks_memory |= offered.lacks_memory();
    }
    return lacks_memory ? Result<void>(kNoMemoryToSend) : Errc::would_block;
  }
  const bool first = !in_message_;
  if (first) {
    pinned_ = next_writable();
    if (pinned_ == nullptr) {
      return Errc::would_block;
    }
  }
  if (!stage(part, first ? prefix : std::span<const Cell>())) {
    return refuse(first);
  }
  if (part.more) {
    in_message_ = true;
    return {};
  }
  if (pinned_ != nullptr && !pinned_->send_parts(staged_, false, &part)) {
    take_cell_back(staged_, part);
    return refuse(first);
  }
  in_message_ = false;
  last_ = pinned_;
  if (pinned_ == nullptr) {
    ++drops_.dropped_no_peer;
    forget_staged();
    return {};
  }
  staged_.clear();
  if (!list_.pipes().empty() && list_.pipes()[current_] == pinned_) {
    advance();
  }
  pinned_ = nullptr;
  return {};
}

}  // namespace weft::msg
