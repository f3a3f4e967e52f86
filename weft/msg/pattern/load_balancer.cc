// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/load_balancer.h"

#include <algorithm>

namespace weft::msg {

void LoadBalancer::forget_staged() noexcept {
  for (Cell& cell : staged_) {
    cell.release();
  }
  staged_.clear();
}

void LoadBalancer::attach(Pipe& pipe) {
  if (std::find(pipes_.begin(), pipes_.end(), &pipe) == pipes_.end()) {
    pipes_.push_back(&pipe);
  }
}

void LoadBalancer::detach(Pipe& pipe) noexcept {
  const auto found = std::find(pipes_.begin(), pipes_.end(), &pipe);
  if (found == pipes_.end()) {
    return;
  }
  const auto index = static_cast<std::size_t>(found - pipes_.begin());
  pipes_.erase(found);
  if (index < current_) {
    --current_;
  }
  if (current_ >= pipes_.size()) {
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
  for (std::size_t i = 0; i < pipes_.size(); ++i) {
    if (pipes_[current_]->writable()) {
      return pipes_[current_];
    }
    advance();
  }
  return nullptr;
}

bool LoadBalancer::writable() noexcept { return in_message_ || next_writable() != nullptr; }

Result<void> LoadBalancer::send(Outbound& part, std::span<const Cell> prefix) {
  if (!in_message_ && !part.more && prefix.empty()) [[likely]] {
    for (std::size_t i = 0; i < pipes_.size(); ++i) {
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
    ++drops_.dropped_no_peer;
    forget_staged();
    return {};
  }
  pinned_->send_parts(staged_, false, part.waits);
  staged_.clear();
  if (!pipes_.empty() && pipes_[current_] == pinned_) {
    advance();
  }
  pinned_ = nullptr;
  return {};
}

}  // namespace weft::msg
