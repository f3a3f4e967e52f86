// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "weft/topic/node/message_blocks.h"
#include "weft/topic/node/options.h"
#include "weft/topic/node/topic_message.h"

namespace weft::topic {

// Lost: the messages that a queue lost, by reason.
struct Lost {
  std::uint64_t oldest = 0;
  std::uint64_t newest = 0;
  std::uint64_t conflated = 0;  // replaced by a newer one of its topic
  std::uint64_t ended = 0;      // came after the queue's end
  std::uint64_t no_memory = 0;

  [[nodiscard]] std::uint64_t sum() const noexcept { return oldest + newest + conflated + ended + no_memory; }
};

// MessageQueue: the messages that wait for one subscription, with its policy.
// Owner: a subscription. Affinity: one thread at a time.
// Cost: a move of about 220 bytes to push and to pop; memory grows by blocks, and those beyond 1,024 messages are freed
// as the queue becomes shorter. newest_per_topic also costs a hash probe and a string a topic.
// Invariants:
//   1. pushed = popped + size() + lost().sum().
//   2. size() <= messages_max. Bytes exceed bytes_max by one message at most.
//   3. The sum of missed() over all popped messages, and of missed_at_end(), is lost().sum().
class MessageQueue {
 public:
  MessageQueue(Full policy, std::size_t messages_max, std::size_t bytes_max) noexcept
      : policy_(policy), messages_max_(messages_max == 0 ? 1 : messages_max), bytes_max_(bytes_max) {}
  MessageQueue(const MessageQueue&) = delete;
  MessageQueue& operator=(const MessageQueue&) = delete;
  ~MessageQueue() {
    while (pop()) {
    }
  }

  // Returns false if the message was lost, and counted.
  bool push(TopicMessage&& message) noexcept;
  // The same for a message of that footprint that fill(TopicMessage&) makes in its place, which saves two moves. If it
  // returns false, there is no memory, and the place is empty. Not with newest_per_topic.
  template <typename Fill>
  bool push(std::size_t footprint, Fill fill) noexcept;
  // The result of receive(TopicMessage&&) with the oldest message. Requires size() != 0.
  template <typename Receive>
  auto pop(Receive receive) noexcept;
  [[nodiscard]] std::optional<TopicMessage> pop() noexcept;

  [[nodiscard]] Full policy() const noexcept { return policy_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t pushed() const noexcept { return pushed_; }
  [[nodiscard]] std::uint64_t popped() const noexcept { return popped_; }
  [[nodiscard]] const Lost& lost() const noexcept { return lost_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }  // Full::end: the queue has been full once
  [[nodiscard]] std::uint64_t missed_at_end() const noexcept { return missed_front_ + missed_back_; }

 private:
  [[nodiscard]] bool full_for(std::size_t footprint) const noexcept {
    return count_ >= messages_max_ || (count_ > 0 && bytes_ + footprint > bytes_max_);
  }
  [[nodiscard]] bool make_room(std::size_t footprint) noexcept;
  void drop_oldest() noexcept;
  [[nodiscard]] bool has_room(std::size_t footprint) const noexcept {
    return !ended_ && first_ + count_ < blocks_.end() && !full_for(footprint);
  }
  void admit(TopicMessage& message, std::size_t footprint) noexcept {
    message.missed_ = std::exchange(missed_back_, 0);
    bytes_ += footprint;
    ++count_;
  }
  [[nodiscard]] TopicMessage& at(std::uint64_t number) noexcept { return *blocks_.at(number); }
  bool replace(TopicMessage& message) noexcept;
  // Drops the oldest message, which is still in its place.
  void leave(const TopicMessage& oldest) noexcept {
    bytes_ -= oldest.footprint();
    if (policy_ == Full::newest_per_topic) [[unlikely]] {
      forget_topic(oldest);
    }
    ++first_;
    --count_;
  }
  void forget_topic(const TopicMessage& oldest) noexcept;
  // After leave(): destroys the message.
  void free_place(std::uint64_t number) noexcept {
    std::destroy_at(blocks_.at(number));
    if (count_ == 0) {
      first_ = blocks_.restart(number);
    } else if (number % MessageBlocks::kMessages == MessageBlocks::kMessages - 1) {
      blocks_.free_block(number);
    }
  }
  void lose(std::uint64_t& reason) noexcept {
    ++reason;
    ++missed_back_;
  }

  const Full policy_;
  const std::size_t messages_max_;
  const std::size_t bytes_max_;
  MessageBlocks blocks_;
  std::uint64_t first_ = 0;  // the number of the oldest message
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t pushed_ = 0;
  std::uint64_t popped_ = 0;
  Lost lost_;
  std::uint64_t missed_front_ = 0;  // lost before the oldest message
  std::uint64_t missed_back_ = 0;   // lost after the newest message
  bool ended_ = false;
  std::unordered_map<std::string, std::uint64_t> newest_;  // newest_per_topic: topic to number
};

template <typename Fill>
bool MessageQueue::push(std::size_t footprint, Fill fill) noexcept {
  ++pushed_;
  if (!has_room(footprint) && !make_room(footprint)) [[unlikely]] {
    return false;
  }
  TopicMessage& place = *std::construct_at(blocks_.at(first_ + count_));
  if (!fill(place)) [[unlikely]] {
    std::destroy_at(&place);
    lose(lost_.no_memory);
    return false;
  }
  admit(place, footprint);
  return true;
}

template <typename Receive>
auto MessageQueue::pop(Receive receive) noexcept {
  const std::uint64_t number = first_;
  TopicMessage& oldest = at(number);
  oldest.missed_ += std::exchange(missed_front_, 0);
  leave(oldest);
  ++popped_;
  auto received = receive(std::move(oldest));
  free_place(number);
  return received;
}

}  // namespace weft::topic
