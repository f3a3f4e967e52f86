// SPDX-License-Identifier: MIT
#include "weft/topic/node/stored_feed.h"

#include <new>
#include <utility>

#include "weft/topic/node/node.h"

namespace weft::topic {

StoredFeed::StoredFeed(const std::shared_ptr<Node>& node) noexcept : node_(node) {}
StoredFeed::~StoredFeed() = default;

std::size_t StoredFeed::take(std::vector<store::ReadMessage>&& messages) noexcept {
  const std::size_t count = messages.size();
  try {
    const auto node = node_.lock();
    if (node == nullptr || node->closed()) {
      return 0;
    }
    if (!node->async()) {
      return publish(*node, messages);
    }
    std::size_t bytes = 0;
    for (const store::ReadMessage& each : messages) {
      bytes += sizeof each + each.message.topic.size() + each.message.headers.size() + each.message.body.size();
    }
    if (waiting_bytes_.load(std::memory_order_relaxed) + bytes > kWaitingBytesMax) {
      return 0;
    }
    waiting_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    node->loop().post([self = shared_from_this(), bytes, all = std::move(messages)] {
      self->waiting_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
      if (const auto still = self->node_.lock()) {
        (void)self->publish(*still, all);
      }
    });
    return count;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

std::size_t StoredFeed::publish(Node& node, const std::vector<store::ReadMessage>& messages) {
  std::size_t published = 0;
  for (const store::ReadMessage& each : messages) {
    if (last_ == nullptr || last_->wire != each.message.topic) {
      auto made = node.make_wire_publisher(std::string(each.message.topic), false);
      if (!made) {
        continue;
      }
      last_ = *std::move(made);
    }
    published += node.publish(*last_, each.message.body, as_text(each.message.headers), false) ? 1 : 0;
  }
  node.flush();
  return published;
}

}  // namespace weft::topic
