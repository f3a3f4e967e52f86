// SPDX-License-Identifier: MIT
#include "weft/store/id_window.h"

#include <algorithm>
#include <functional>

namespace weft::store {
namespace {

std::uint64_t hash_of(std::string_view id) noexcept { return std::hash<std::string_view>()(id); }

}  // namespace

std::optional<std::size_t> IdWindow::place_of(std::string_view id, std::uint64_t hash) const {
  if (places_.empty()) {
    return std::nullopt;
  }
  const std::size_t mask = places_.size() - 1;
  for (std::size_t i = hash & mask; places_[i].number != 0; i = (i + 1) & mask) {
    if (places_[i].hash == static_cast<std::uint32_t>(hash)) {
      const std::size_t place = (places_[i].number - static_cast<std::uint32_t>(first_)) & ~kTaken;
      if (order_[place].id == id) {
        return place;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> IdWindow::find(std::string_view id, WallTime since) const {
  const auto place = place_of(id, hash_of(id));
  return place && order_[*place].time >= since ? std::optional(order_[*place].sequence) : std::nullopt;
}

void IdWindow::add(std::string_view id, std::uint64_t sequence, WallTime time, WallTime since) {
  if (id.empty()) {
    return;
  }
  const std::uint64_t hash = hash_of(id);
  if (const auto place = place_of(id, hash)) {
    if (order_[*place].time >= since) {
      return;
    }
    empty_place(*place, hash);
  }
  if (2 * (order_.size() + 1) > places_.size()) {
    grow();
  }
  order_.push_back({time, sequence, hash, std::string(id)});
  put(hash, first_ + order_.size() - 1);
  bytes_ += id.size();
  while (order_.size() > ids_max_ || bytes_ > bytes_max_) {
    drop_oldest();
    ++overflowed_;
  }
}

void IdWindow::renew(std::string_view id, std::uint64_t sequence, WallTime time) {
  const std::uint64_t hash = hash_of(id);
  if (const auto place = place_of(id, hash); place && order_[*place].sequence < sequence) {
    empty_place(*place, hash);
  }
  add(id, sequence, time);
}

// The entry stays in its place by age, without an id.
void IdWindow::empty_place(std::size_t place, std::uint64_t hash) noexcept {
  take(hash, first_ + place);
  bytes_ -= order_[place].id.size();
  order_[place].id.clear();
}

void IdWindow::grow() {
  places_ = std::vector<Place>(std::max(kPlacesLeast, 2 * places_.size()));
  std::uint64_t number = first_;
  for (const Entry& each : order_) {
    if (!each.id.empty()) {
      put(each.hash, number);
    }
    ++number;
  }
}

void IdWindow::put(std::uint64_t hash, std::uint64_t number) noexcept {
  const std::size_t mask = places_.size() - 1;
  std::size_t i = hash & mask;
  while (places_[i].number != 0) {
    i = (i + 1) & mask;
  }
  places_[i] = {static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(number) | kTaken};
}

// Each place after the hole moves into it, unless its own probe begins after the hole.
void IdWindow::take(std::uint64_t hash, std::uint64_t number) noexcept {
  const std::size_t mask = places_.size() - 1;
  std::size_t hole = hash & mask;
  while (places_[hole].number != (static_cast<std::uint32_t>(number) | kTaken)) {
    hole = (hole + 1) & mask;
  }
  for (std::size_t i = (hole + 1) & mask; places_[i].number != 0; i = (i + 1) & mask) {
    const std::size_t wanted = places_[i].hash & mask;
    if (((i - wanted) & mask) >= ((i - hole) & mask)) {
      places_[hole] = places_[i];
      hole = i;
    }
  }
  places_[hole].number = 0;
}

void IdWindow::forget_from(std::uint64_t sequence) {
  while (!order_.empty() && order_.back().sequence >= sequence) {
    bytes_ -= order_.back().id.size();
    if (!order_.back().id.empty()) {
      take(order_.back().hash, first_ + order_.size() - 1);
    }
    order_.pop_back();
  }
}

void IdWindow::forget_before(WallTime time, std::size_t most) {
  for (; most != 0 && !order_.empty() && order_.front().time < time; --most) {
    drop_oldest();
  }
}

bool IdWindow::free_some(std::size_t most) noexcept {
  places_ = {};
  for (; most != 0 && !order_.empty(); --most) {
    order_.pop_front();
  }
  return order_.empty();
}

void IdWindow::drop_oldest() {
  bytes_ -= order_.front().id.size();
  if (!order_.front().id.empty()) {
    take(order_.front().hash, first_);
  }
  order_.pop_front();
  ++first_;
}

}  // namespace weft::store
