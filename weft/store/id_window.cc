// SPDX-License-Identifier: MIT
#include "weft/store/id_window.h"

namespace weft::store {

std::optional<std::uint64_t> IdWindow::find(std::string_view id) const {
  const auto found = ids_.find(id);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

void IdWindow::add(std::string_view id, std::uint64_t sequence, WallTime time) {
  if (id.empty() || ids_.contains(id)) {
    return;
  }
  order_.push_back({time, sequence, std::string(id)});
  ids_.emplace(order_.back().id, sequence);
  bytes_ += id.size();
  while (order_.size() > ids_max_ || bytes_ > bytes_max_) {
    drop_oldest();
    ++overflowed_;
  }
}

void IdWindow::forget_from(std::uint64_t sequence) {
  while (!order_.empty() && order_.back().sequence >= sequence) {
    bytes_ -= order_.back().id.size();
    ids_.erase(order_.back().id);
    order_.pop_back();
  }
}

void IdWindow::forget_before(WallTime time) {
  while (!order_.empty() && order_.front().time < time) {
    drop_oldest();
  }
}

void IdWindow::clear() noexcept {
  ids_.clear();
  order_.clear();
  bytes_ = 0;
}

void IdWindow::drop_oldest() {
  bytes_ -= order_.front().id.size();
  ids_.erase(order_.front().id);
  order_.pop_front();
}

}  // namespace weft::store
