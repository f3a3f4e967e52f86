// SPDX-License-Identifier: MIT
#include "weft/topic/node/message_queue.h"

#include <memory>
#include <new>
#include <utility>

namespace weft::topic {

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
  while (bytes_ > bytes_max_ && count_ > 1) {  // the newer one is larger
    drop_oldest();
  }
  return true;
}

void MessageQueue::drop_oldest() noexcept {
  const std::uint64_t number = first_;
  const TopicMessage& oldest = at(number);
  missed_front_ += oldest.missed_ + 1;
  leave(oldest);
  free_place(number);
  ++lost_.oldest;
}

// By the policy of a full queue. Returns false if the message that comes was lost, and counted.
bool MessageQueue::make_room(std::size_t footprint) noexcept {
  if (ended_) {
    lose(lost_.ended);
    return false;
  }
  while (full_for(footprint)) {
    if (policy_ == Full::drop_newest) {
      lose(lost_.newest);
      return false;
    }
    if (policy_ == Full::end) {
      ended_ = true;
      lose(lost_.ended);
      return false;
    }
    drop_oldest();
  }
  if (first_ + count_ == blocks_.end() && !blocks_.add()) {
    lose(lost_.no_memory);
    return false;
  }
  return true;
}

bool MessageQueue::push(TopicMessage&& message) noexcept {
  const std::size_t footprint = message.footprint();
  if (policy_ != Full::newest_per_topic) {
    return push(footprint, [&](TopicMessage& place) {
      place = std::move(message);
      return true;
    });
  }
  ++pushed_;
  if (ended_) {
    lose(lost_.ended);
    return false;
  }
  try {
    if (replace(message)) {
      return true;
    }
    if (!make_room(footprint)) {
      return false;
    }
    newest_.emplace(message.topic(), first_ + count_);
  } catch (const std::bad_alloc&) {
    lose(lost_.no_memory);
    return false;
  }
  TopicMessage& place = *std::construct_at(blocks_.at(first_ + count_), std::move(message));
  admit(place, footprint);
  return true;
}

void MessageQueue::forget_topic(const TopicMessage& oldest) noexcept {
  try {
    newest_.erase(std::string(oldest.topic()));
  } catch (const std::bad_alloc&) {
    newest_.clear();  // a waiting message of a forgotten topic is delivered besides the newer one
  }
}

std::optional<TopicMessage> MessageQueue::pop() noexcept {
  if (count_ == 0) {
    return std::nullopt;
  }
  return pop([](TopicMessage&& oldest) { return std::optional<TopicMessage>(std::move(oldest)); });
}

}  // namespace weft::topic
