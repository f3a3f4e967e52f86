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
    for (std::size_t i = 0; i < pipes_.size(); ++i) {
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
  if (pinned_ != nullptr && !pinned_->send_parts(staged_, false, part.waits)) {
    take_cell_back(staged_, part);
    return refuse(first);
  }
  in_message_ = false;
  last_ = pinned_;
  if (pinned_ == nullptr) {
    ++dropped_;
    forget_staged();
    return {};
  }
  staged_.clear();
  if (!pipes_.empty() && pipes_[current_] == pinned_) {
    advance();
  }
  pinned_ = nullptr;
  return {};
}

}  // namespace weft::msg
