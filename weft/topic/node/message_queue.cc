// SPDX-License-Identifier: MIT
#include "weft/topic/node/message_queue.h"

#include <new>
#include <utility>

namespace weft::topic {

namespace {
constexpr std::size_t kCapacityLeast = 8;
constexpr std::size_t kCapacityKept = 1024;  // an empty queue gives back more than this
}  // namespace

bool MessageQueue::full_for(const TopicMessage& message) const noexcept {
  return count_ >= messages_max_ || (count_ > 0 && bytes_ + message.footprint() > bytes_max_);
}

bool MessageQueue::make_place() noexcept {
  if (count_ < capacity_) {
    return true;
  }
  const std::size_t capacity = capacity_ == 0 ? kCapacityLeast : 2 * capacity_;
  std::unique_ptr<TopicMessage[]> ring(new (std::nothrow) TopicMessage[capacity]);
  if (ring == nullptr) {
    return false;
  }
  for (std::size_t i = 0; i < count_; ++i) {
    ring[(first_ + i) & (capacity - 1)] = std::move(at(first_ + i));
  }
  ring_ = std::move(ring);
  capacity_ = capacity;
  return true;
}

// Conflated: the message takes the place, and so the turn, of the waiting one of its topic.
bool MessageQueue::replace(TopicMessage& message) noexcept {
  const auto found = newest_.find(std::string(message.topic()));
  if (found == newest_.end()) {
    return false;
  }
  TopicMessage& waiting = at(found->second);
  message.missed_ = waiting.missed_ + 1;
  bytes_ = bytes_ - waiting.footprint() + message.footprint();
  waiting = std::move(message);
  ++lost_.conflated;
  return true;
}

bool MessageQueue::push(TopicMessage&& message) noexcept {
  ++pushed_;
  if (ended_) {
    lose(lost_.ended);
    return false;
  }
  try {
    if (policy_ == Full::newest_per_topic && replace(message)) {
      return true;
    }
    while (full_for(message)) {
      if (policy_ == Full::drop_newest) {
        lose(lost_.newest);
        return false;
      }
      if (policy_ == Full::end) {
        ended_ = true;
        lose(lost_.ended);
        return false;
      }
      const TopicMessage oldest = take_front();
      ++lost_.oldest;
      missed_front_ += oldest.missed_ + 1;
    }
    if (!make_place()) {
      lose(lost_.no_memory);
      return false;
    }
    const std::uint64_t number = first_ + count_;
    if (policy_ == Full::newest_per_topic) {
      newest_.emplace(message.topic(), number);
    }
    message.missed_ = std::exchange(missed_back_, 0);
    bytes_ += message.footprint();
    at(number) = std::move(message);
    ++count_;
    return true;
  } catch (const std::bad_alloc&) {
    lose(lost_.no_memory);
    return false;
  }
}

TopicMessage MessageQueue::take_front() noexcept {
  TopicMessage message = std::move(at(first_));
  bytes_ -= message.footprint();
  if (policy_ == Full::newest_per_topic) {
    try {
      newest_.erase(std::string(message.topic()));
    } catch (const std::bad_alloc&) {
      newest_.clear();  // a waiting message of a forgotten topic is delivered besides the newer one
    }
  }
  ++first_;
  if (--count_ == 0 && capacity_ > kCapacityKept) {
    ring_.reset();
    capacity_ = 0;
  }
  return message;
}

std::optional<TopicMessage> MessageQueue::pop() noexcept {
  if (count_ == 0) {
    return std::nullopt;
  }
  TopicMessage message = take_front();
  message.missed_ += std::exchange(missed_front_, 0);
  ++popped_;
  return message;
}

}  // namespace weft::topic
