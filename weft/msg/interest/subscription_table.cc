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
  bool is_own_new = false;
  std::uint32_t* const place = peer.prefixes.insert(prefix, is_own_new);
  if (place == nullptr) {
    return kNoMemory;
  }
  if (!is_own_new) {
    return false;
  }
  if (const Result<void> fits = check_bounds(peer, peer.topics(), prefix.size(), topics_max); !fits) {
    peer.prefixes.erase(prefix);
    return fits.error();
  }
  bool is_new = false;
  Peers* const peers = prefixes_.insert(prefix, is_new);
  if (peers == nullptr || !peers->put(peer)) {  // the first peer of a prefix needs no memory
    peer.prefixes.erase(prefix);
    return kNoMemory;
  }
  *place = static_cast<std::uint32_t>(peers->all().size() - 1);
  peer.bytes += prefix.size();
  return is_new;
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
  const std::uint32_t* const place = peer.prefixes.find(prefix);
  if (place == nullptr) {
    return;
  }
  Peers& peers = *prefixes_.find(prefix);
  Peer*& gap = peers.all()[*place];
  if (Peer* const last = peers.all().back(); last != &peer) {
    *last->prefixes.find(prefix) = *place;
    gap = last;
  }
  peers.drop_last();
  peer.bytes -= prefix.size();
  peer.prefixes.erase(prefix);
  if (peers.all().empty()) {
    prefixes_.erase(prefix);
  }
}

bool SubscriptionTable::is_last(Peer& peer, const FilterView& topic) noexcept {
  if (topic.kind != FilterKind::prefix) {
    return filters_.has(peer, topic) && filters_.holders(topic) == 1;
  }
  return peer.prefixes.find(as_bytes(topic.text)) != nullptr && peers(as_bytes(topic.text)).size() == 1;
}

// Sets topic_ to one of the peer's. Returns false if the peer has none, or memory ran out.
bool SubscriptionTable::take_first(Peer& peer) noexcept {
  try {
    kind_ = FilterKind::prefix;
    if (peer.prefixes.size() == 0 && peer.filters() != 0) {
      const FilterView filter = FilterIndex::last_of(peer);
      kind_ = filter.kind;
      topic_ = filter.text;
      return true;
    }
    return peer.prefixes.first(topic_) != nullptr;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace weft::msg
