// SPDX-License-Identifier: MIT
#include "weft/msg/interest/subscription_table.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace weft::msg {

SubscriptionTable::~SubscriptionTable() {
  for (Many* const many : many_.all()) {
    std::free(many);
  }
}

template <typename T>
std::uint32_t SubscriptionTable::Numbered<T>::add(T* pointer) noexcept {
  if (!free_.empty()) {
    const std::uint32_t number = free_.back();
    free_.pop_back();
    (*this)[number] = pointer;
    return number;
  }
  try {
    if (free_.capacity() <= pointers_.size()) {
      free_.reserve(2 * pointers_.size() + 1);
    }
    pointers_.push_back(pointer);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return static_cast<std::uint32_t>(pointers_.size());
}

SubscriptionTable::Many* SubscriptionTable::resize(Many* many, std::uint32_t capacity) noexcept {
  auto* const array = static_cast<Many*>(std::realloc(many, sizeof(Many) + capacity * sizeof(Peer*)));
  if (array != nullptr) {
    array->capacity = capacity;
  }
  return array;
}

bool SubscriptionTable::put(Holders& holders, Peer& peer) noexcept {
  if (holders == 0) {
    holders = peer.number << 1;
    return true;
  }
  if ((holders & 1) == 0) {
    constexpr std::uint32_t kFirst = 2;
    Many* const many = resize(nullptr, kFirst);
    const std::uint32_t number = many != nullptr ? many_.add(many) : 0;
    if (number == 0) {
      std::free(many);
      return false;
    }
    many->count = 1;
    many->peers()[0] = only(holders);
    holders = number << 1 | 1;
  }
  Many*& many = many_[holders >> 1];
  if (many->count == many->capacity) {
    Many* const larger = resize(many, many->capacity * 2);
    if (larger == nullptr) {
      return false;
    }
    many = larger;
  }
  many->peers()[many->count++] = &peer;
  return true;
}

void SubscriptionTable::drop_last(Holders& holders) noexcept {
  if ((holders & 1) == 0) {
    holders = 0;
    return;
  }
  Many*& many = many_[holders >> 1];
  --many->count;
  if (many->count == 1) {
    const std::uint32_t last = many->peers()[0]->number;
    std::free(many);
    many_.remove(holders >> 1);
    holders = last << 1;
  } else if (many->count <= many->capacity / 4) {
    if (Many* const smaller = resize(many, many->capacity / 2); smaller != nullptr) {
      many = smaller;
    }
  }
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
  if (peer.without_place() == 0 && !is_large(peer)) {
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
  if (peer.number == 0) {
    peer.number = peers_.add(&peer);
  }
  bool is_new = false;
  Holders* const holders = peer.number != 0 ? prefixes_.insert(prefix, is_new) : nullptr;
  if (holders != nullptr && !is_new) {
    own = make_places(peer, prefix, *holders);
  }
  // The first peer of a prefix needs no memory.
  if (holders == nullptr || (!is_new && own == nullptr) || !put(*holders, peer)) {
    peer.places.erase(prefix);
    forget_number(peer);
    return kNoMemory;
  }
  if (own == nullptr && !is_large(peer)) {
    bool is_own_new = false;
    own = peer.places.insert(prefix, is_own_new);  // null: the only peer needs no place
  }
  if (own != nullptr) {
    *own = static_cast<std::uint32_t>(all(*holders).size() - 1);
  }
  ++peer.prefixes;
  peer.bytes += prefix.size();
  trim_places(peer);
  return is_new;
}

std::optional<std::uint32_t> SubscriptionTable::place(Peer& peer, Bytes prefix, const Holders* holders) noexcept {
  if (const std::uint32_t* const own = peer.places.find(prefix); own != nullptr) {
    return *own;
  }
  return holders != nullptr && only(*holders) == &peer ? std::optional<std::uint32_t>(0) : std::nullopt;
}

std::uint32_t* SubscriptionTable::make_places(Peer& peer, Bytes prefix, Holders holders) noexcept {
  bool is_new = false;
  Peer* const first = only(holders);
  if (first != nullptr && first->places.insert(prefix, is_new) == nullptr) {
    return nullptr;
  }
  return peer.places.insert(prefix, is_new);
}

// A large peer gives up the places that it does not need, a few at a time, whenever the number of its prefixes has
// doubled. Without memory it keeps them, or some of them.
void SubscriptionTable::trim_places(Peer& peer) noexcept {
  constexpr std::size_t kBytes = 2048;
  constexpr std::size_t kEach = 256;
  if (!is_large(peer)) {
    peer.trim.reset();
    return;
  }
  try {
    if (peer.trim == nullptr && std::has_single_bit(peer.prefixes)) {
      peer.trim = std::make_unique<std::string>();
    }
    for (std::size_t bytes = 0; peer.trim != nullptr && bytes < kBytes; bytes += kEach) {
      std::string& at = *peer.trim;
      if (peer.places.next(at) == nullptr) {
        peer.trim.reset();
        return;
      }
      bytes += at.size();
      if (only(*prefixes_.find(as_bytes(at))) == &peer) {
        peer.places.erase(as_bytes(at));
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
  Holders* const holders = prefixes_.find(prefix);
  const std::optional<std::uint32_t> own = place(peer, prefix, holders);
  if (!own) {
    return;
  }
  const std::span<Peer*> peers = all(*holders);
  if (Peer* const last = peers.back(); last != &peer) {
    *last->places.find(prefix) = *own;
    peers[*own] = last;
  }
  drop_last(*holders);
  if (*holders == 0) {
    prefixes_.erase(prefix);
  }
  peer.bytes -= prefix.size();
  peer.places.erase(prefix);
  --peer.prefixes;
  forget_number(peer);
}

void SubscriptionTable::forget_number(Peer& peer) noexcept {
  if (peer.prefixes == 0 && peer.number != 0) {
    peers_.remove(std::exchange(peer.number, 0));
    peer.trim.reset();
  }
}

bool SubscriptionTable::is_last(Peer& peer, const FilterView& topic) noexcept {
  if (topic.kind != FilterKind::prefix) {
    return filters_.has(peer, topic) && filters_.holders(topic) == 1;
  }
  const Holders* const holders = prefixes_.find(as_bytes(topic.text));
  return holders != nullptr && only(*holders) == &peer;
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

// Sets topic_ to a prefix that the peer alone has, and that had no place. The walk makes places for each other peer
// that has few prefixes without one: its own walk would take many steps for each of them. Without memory for a place,
// the walk finds the prefix when it comes round again. If next() throws, `walk_at_` is before the next prefix.
bool SubscriptionTable::walk_on(Peer& peer) {
  while (peer.without_place() != 0 && steps_left_ > 0) {
    const Holders* holders = prefixes_.next(walk_at_);
    if (holders == nullptr) {
      holders = prefixes_.first(walk_at_);
    }
    steps_left_ -= std::min(steps_left_, 1 + walk_at_.size() / (kStepBytes / kStepTopics));
    Peer* const holder = only(*holders);
    if (holder == nullptr || holder->without_place() == 0) {
      continue;
    }
    if (holder == &peer || holder->without_place() * kShare < prefixes_.size()) {
      bool is_new = false;
      (void)holder->places.insert(as_bytes(walk_at_), is_new);
    }
    if (holder == &peer) {
      topic_ = walk_at_;
      return true;
    }
  }
  return false;
}

}  // namespace weft::msg
