// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/subscription_table.h"

#include <new>

namespace weft::msg {

bool SubscriptionTable::Peers::resize(std::uint32_t wanted) noexcept {
  void* const block = std::realloc(capacity != 0 ? many : nullptr, wanted * sizeof(Peer*));
  if (block == nullptr) {
    return false;
  }
  auto* const array = static_cast<Peer**>(block);
  if (capacity == 0) {
    array[0] = one;
  }
  many = array;
  capacity = wanted;
  return true;
}

bool SubscriptionTable::Peers::put(Peer& peer) noexcept {
  constexpr std::uint32_t kFirst = 4;
  if (capacity == 0 ? count == 1 && !resize(kFirst) : count == capacity && !resize(capacity * 2)) {
    return false;
  }
  ++count;
  all().back() = &peer;
  return true;
}

void SubscriptionTable::Peers::drop_last() noexcept {
  --count;
  if (capacity != 0 && count != 0 && count <= capacity / 4) {
    (void)resize(capacity / 2);
  }
}

Result<bool> SubscriptionTable::add(Peer& peer, Bytes topic) noexcept {
  constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for a subscription");
  bool is_own_new = false;
  std::uint32_t* const place = peer.topics.insert(topic, is_own_new);
  if (place == nullptr) {
    return kNoMemory;
  }
  if (!is_own_new) {
    return false;
  }
  const bool local = peer.pipe->connection() == nullptr;
  if (!local && (peer.topics.size() > kTopicsMax || peer.bytes + topic.size() > kTopicBytesMax)) {
    peer.topics.erase(topic);
    return Error(Errc::protocol_error,
                 peer.topics.size() >= kTopicsMax ? "too many subscriptions" : "too many bytes of subscriptions");
  }
  bool is_new = false;
  Peers* const peers = topics_.insert(topic, is_new);
  if (peers == nullptr || !peers->put(peer)) {
    peer.topics.erase(topic);
    if (is_new) {
      topics_.erase(topic);
    }
    return kNoMemory;
  }
  *place = peers->count - 1;
  peer.bytes += topic.size();
  return is_new;
}

void SubscriptionTable::remove(Peer& peer, Bytes topic) noexcept {
  const std::uint32_t* const place = peer.topics.find(topic);
  if (place == nullptr) {
    return;
  }
  Peers& peers = *topics_.find(topic);
  Peer*& gap = peers.all()[*place];
  if (Peer* const last = peers.all().back(); last != &peer) {
    *last->topics.find(topic) = *place;
    gap = last;
  }
  peers.drop_last();
  peer.bytes -= topic.size();
  peer.topics.erase(topic);
  if (peers.count == 0) {
    topics_.erase(topic);
  }
}

// Sets topic_ to one of the peer's. False: the peer has none, or memory ran out.
bool SubscriptionTable::take_first(Peer& peer) noexcept {
  try {
    return peer.topics.first(topic_) != nullptr;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace weft::msg
