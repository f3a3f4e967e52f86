// SPDX-License-Identifier: MIT
#include "weft/msg/interest/subscription_table.h"

#include <new>

namespace weft::msg {

bool SubscriptionTable::Peers::resize(std::uint32_t wanted) noexcept {
  Many* const old = many();
  auto* const array = static_cast<Many*>(std::realloc(old, sizeof(Many) + wanted * sizeof(Peer*)));
  if (array == nullptr) {
    return false;
  }
  if (old == nullptr) {
    array->count = 1;
    array->peers()[0] = one_;
  }
  array->capacity = wanted;
  one_ = reinterpret_cast<Peer*>(reinterpret_cast<std::byte*>(array) + 1);
  return true;
}

bool SubscriptionTable::Peers::put(Peer& peer) noexcept {
  if (one_ == nullptr) {
    one_ = &peer;
    return true;
  }
  constexpr std::uint32_t kFirst = 2;
  if (const Many* const array = many();
      array == nullptr ? !resize(kFirst) : array->count == array->capacity && !resize(array->capacity * 2)) {
    return false;
  }
  ++many()->count;
  all().back() = &peer;
  return true;
}

void SubscriptionTable::Peers::drop_last() noexcept {
  Many* const array = many();
  if (array == nullptr) {
    one_ = nullptr;
    return;
  }
  --array->count;
  if (array->count == 1) {
    one_ = array->peers()[0];
    std::free(array);
  } else if (array->count <= array->capacity / 4) {
    (void)resize(array->capacity / 2);
  }
}

void SubscriptionTable::Peers::free() noexcept {
  std::free(many());
  one_ = nullptr;
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
  if (!peer.local && (peer.topics.size() > kTopicsMax || peer.bytes + topic.size() > kTopicBytesMax)) {
    peer.topics.erase(topic);
    return Error(Errc::protocol_error,
                 peer.topics.size() >= kTopicsMax ? "too many subscriptions" : "too many bytes of subscriptions");
  }
  bool is_new = false;
  Peers* const peers = topics_.insert(topic, is_new);
  if (peers == nullptr || !peers->put(peer)) {  // the first peer of a topic needs no memory
    peer.topics.erase(topic);
    return kNoMemory;
  }
  *place = static_cast<std::uint32_t>(peers->all().size() - 1);
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
  if (peers.all().empty()) {
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
