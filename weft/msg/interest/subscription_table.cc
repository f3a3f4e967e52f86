// SPDX-License-Identifier: MIT
#include "weft/msg/interest/subscription_table.h"

#include <bit>
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

Result<void> SubscriptionTable::check_bounds(const Peer& peer, std::size_t topics, std::size_t size,
                                             int topics_max) noexcept {
  const bool too_many = topics_max != 0 && topics > static_cast<std::size_t>(topics_max);
  if (peer.local || (!too_many && peer.bytes + size <= kTopicBytesMax)) {
    return {};
  }
  return Error(Errc::message_too_large,
               too_many ? StaticText("too many subscriptions") : StaticText("too many bytes of subscriptions"));
}

Result<bool> SubscriptionTable::add(Peer& peer, const FilterView& topic, int topics_max) noexcept {
  if (topic.kind == FilterKind::prefix) {
    return add_prefix(peer, as_bytes(topic.text), topics_max);
  }
  if (const Result<void> fits = check_bounds(peer, peer.topics() + 1, topic.text.size(), topics_max); !fits) {
    return filters_.has(peer, topic) ? Result<bool>(false) : fits.error();
  }
  const FilterIndex::Added added = WEFT_TRY(filters_.add(peer, topic));
  peer.bytes += added != FilterIndex::Added::nothing ? topic.text.size() : 0;
  return added == FilterIndex::Added::filter;
}

Result<bool> SubscriptionTable::add_prefix(Peer& peer, Bytes prefix, int topics_max) noexcept {
  constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for a subscription");
  std::uint32_t* own = nullptr;
  if (peer.walk == nullptr) {
    bool is_own_new = false;
    own = peer.places.insert(prefix, is_own_new);
    if (own == nullptr) {
      return kNoMemory;
    }
    if (!is_own_new) {
      return false;
    }
  } else if (place(peer, prefix, prefixes_.find(prefix))) {
    return false;
  }
  if (const Result<void> fits = check_bounds(peer, peer.topics() + 1, prefix.size(), topics_max); !fits) {
    peer.places.erase(prefix);
    return fits.error();
  }
  bool is_new = false;
  Peers* const peers = prefixes_.insert(prefix, is_new);
  if (peers != nullptr && !is_new) {
    own = make_places(peer, prefix, *peers);
  }
  // The first peer of a prefix needs no memory.
  if (peers == nullptr || (!is_new && own == nullptr) || !peers->put(peer)) {
    peer.places.erase(prefix);
    return kNoMemory;
  }
  if (own != nullptr) {
    *own = static_cast<std::uint32_t>(peers->all().size() - 1);
  }
  ++peer.prefixes;
  peer.bytes += prefix.size();
  begin_walk(peer);
  return is_new;
}

std::optional<std::uint32_t> SubscriptionTable::place(Peer& peer, Bytes prefix, const Peers* peers) noexcept {
  if (const std::uint32_t* const own = peer.places.find(prefix); own != nullptr) {
    return *own;
  }
  return peers != nullptr && peers->only() == &peer ? std::optional<std::uint32_t>(0) : std::nullopt;
}

std::uint32_t* SubscriptionTable::make_places(Peer& peer, Bytes prefix, const Peers& peers) noexcept {
  bool is_new = false;
  Peer* const first = peers.only();
  if (first != nullptr && first->places.insert(prefix, is_new) == nullptr) {
    return nullptr;
  }
  return peer.places.insert(prefix, is_new);
}

// A peer that has many of the table's prefixes gives up the places that it does not need. Without memory for the walk
// it keeps them, or some of them. Looked at whenever the number of its prefixes has doubled.
void SubscriptionTable::begin_walk(Peer& peer) noexcept {
  constexpr std::size_t kShare = 8;
  if (peer.walk != nullptr || peer.prefixes < kWalkMin || !std::has_single_bit(peer.prefixes) ||
      peer.prefixes * kShare < prefixes_.size()) {
    return;
  }
  try {
    peer.walk = std::make_unique<Peer::Walk>();
    for (void* at = peer.places.first(topic_); at != nullptr; at = peer.places.next(topic_)) {
      if (prefixes_.find(as_bytes(topic_))->only() == &peer) {
        peer.places.erase(as_bytes(topic_));
      }
    }
  } catch (const std::bad_alloc&) {
    return;
  }
}

void SubscriptionTable::remove(Peer& peer, const FilterView& topic) noexcept {
  if (topic.kind == FilterKind::prefix) {
    return remove_prefix(peer, as_bytes(topic.text));
  }
  if (filters_.has(peer, topic)) {
    peer.bytes -= topic.text.size();
    filters_.remove(peer, topic);
  }
}

void SubscriptionTable::remove_prefix(Peer& peer, Bytes prefix) noexcept {
  Peers* const peers = prefixes_.find(prefix);
  const std::optional<std::uint32_t> own = place(peer, prefix, peers);
  if (!own) {
    return;
  }
  Peer*& gap = peers->all()[*own];
  if (Peer* const last = peers->all().back(); last != &peer) {
    *last->places.find(prefix) = *own;
    gap = last;
  }
  peers->drop_last();
  peer.bytes -= prefix.size();
  peer.places.erase(prefix);
  if (--peer.prefixes == 0) {
    peer.walk.reset();
  }
  if (peers->all().empty()) {
    prefixes_.erase(prefix);
  }
}

bool SubscriptionTable::is_last(Peer& peer, const FilterView& topic) noexcept {
  if (topic.kind != FilterKind::prefix) {
    return filters_.has(peer, topic) && filters_.holders(topic) == 1;
  }
  const Peers* const peers = prefixes_.find(as_bytes(topic.text));
  return peers != nullptr && peers->only() == &peer;
}

// Sets topic_ to one of the peer's. Returns false if the peer has none, the step has walked far enough, or memory ran
// out.
bool SubscriptionTable::take_first(Peer& peer) noexcept {
  try {
    kind_ = FilterKind::prefix;
    if (peer.prefixes == 0 && peer.filters() != 0) {
      const FilterView filter = FilterIndex::last_of(peer);
      kind_ = filter.kind;
      topic_ = filter.text;
      return true;
    }
    return peer.places.first(topic_) != nullptr || walk_on(peer);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// Sets topic_ to the next prefix in the table that the peer alone has. At the end the walk begins again: the peer may
// have subscribed to more.
bool SubscriptionTable::walk_on(Peer& peer) {
  while (peer.walk != nullptr && steps_left_ > 0) {
    --steps_left_;
    Peer::Walk& walk = *peer.walk;
    topic_ = walk.at;
    const Peers* const peers = walk.begun ? prefixes_.next(topic_) : prefixes_.first(topic_);
    if (peers != nullptr && peers->only() == &peer) {
      return true;
    }
    walk.begun = peers != nullptr;
    walk.at = walk.begun ? topic_ : std::string();
  }
  return false;
}

}  // namespace weft::msg
