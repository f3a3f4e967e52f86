// SPDX-License-Identifier: MIT
#include "weft/msg/socket/input_set.h"

#include <algorithm>
#include <new>
#include <utility>

namespace weft::msg {

Result<void> InputSet::open() noexcept {
  if (is_open()) {
    return {};
  }
  auto event = WEFT_TRY(sys::EventFd::make());
  auto epoll = WEFT_TRY(sys::EpollSet::make());
  WEFT_TRY(epoll.add(event.fd(), 0, sys::Interest::readable));
  event_.emplace(std::move(event));
  epoll_.emplace(std::move(epoll));
  return {};
}

bool InputSet::add_place() noexcept {
  try {
    if (free_places_.capacity() == places_.size()) {
      free_places_.reserve(std::max<std::size_t>(4, 2 * places_.size()));
    }
    places_.emplace_back();
  } catch (const std::bad_alloc&) {
    return false;
  }
  free_places_.push_back(static_cast<std::uint32_t>(places_.size() - 1));
  return true;
}

Result<void> InputSet::add(InputSource& source, int fd) noexcept {
  WEFT_TRY(open());
  if (free_places_.empty() && !add_place()) {
    return Error(Errc::resource_exhausted, "no memory for a descriptor");
  }
  const std::uint32_t index = free_places_.back();
  free_places_.pop_back();
  Place& place = places_[index];
  const std::uint64_t tag = (static_cast<std::uint64_t>(place.generation) << 32) | index;
  if (auto added = epoll_->add(fd, tag, sys::Interest::readable); !added) {
    free_places_.push_back(index);
    return added.error();
  }
  place.source = &source;
  source.poll_tag = tag;
  sources_.push_back(source);
  // Wake the threads that sleep on the futex: one of them must wait for the descriptors instead.
  if (++size_ == 1) {
    share_.input_parker.wake_with_fence();
  }
  return {};
}

void InputSet::remove(InputSource& source, int fd) noexcept {
  if (source.poll_tag == 0) {
    return;
  }
  (void)epoll_->remove(fd);
  const auto index = static_cast<std::uint32_t>(source.poll_tag);
  places_[index].source = nullptr;
  ++places_[index].generation;
  free_places_.push_back(index);
  source.poll_tag = 0;
  --size_;
  source.unhook();
}

}  // namespace weft::msg
