// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "weft/base/intrusive_ptr.h"
#include "weft/store/log.h"

namespace weft::topic {

class Node;
struct PublisherCore;

// StoredFeed: publishes the stored messages of a hub to the volatile subscribers of the topics, through the handle that
// hosts.
// Owner: the hub. Affinity: take(): the hub's thread.
// Cost: a message is published as one of the handle's own; of an asynchronous handle, in a job of its loop. Bounds:
// kWaitingBytesMax of messages that wait for that loop; it does not take messages beyond.
class StoredFeed : public std::enable_shared_from_this<StoredFeed> {
 public:
  static constexpr std::size_t kWaitingBytesMax = 16 * 1024 * 1024;

  explicit StoredFeed(const std::shared_ptr<Node>& node) noexcept;
  ~StoredFeed();
  StoredFeed(const StoredFeed&) = delete;
  StoredFeed& operator=(const StoredFeed&) = delete;

  // returns the number of taken messages
  [[nodiscard]] std::size_t take(std::vector<store::ReadMessage>&& messages) noexcept;

 private:
  [[nodiscard]] std::size_t publish(Node& node, const std::vector<store::ReadMessage>& messages);

  std::weak_ptr<Node> node_;  // the feed ends with the handle
  std::atomic<std::size_t> waiting_bytes_{0};
  IntrusivePtr<PublisherCore> last_;  // of the last published topic
};

}  // namespace weft::topic
