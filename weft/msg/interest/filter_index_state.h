// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string_view>
#include <vector>

#include "weft/msg/interest/filter_index.h"
#include "weft/msg/interest/hash_table.h"
#include "weft/msg/interest/prefix_table.h"

// The parts of FilterIndex. filter_index.cc is the only user.
namespace weft::msg {

[[nodiscard]] inline std::uint64_t random_hash(std::random_device& device) {
  return ((std::uint64_t{device()} << 32 | device()) % (kHashPrime - 1)) + 1;
}

// Holder: a peer among those of a filter.
struct FilterIndex::Holder {
  Peer* peer;
  std::uint32_t place;        // in the peer's list
  std::uint32_t group_place;  // in the group, if the filter is tried one by one
};

// Holders: those of a filter with several: a hash table by the address of the peer.
struct FilterIndex::Holders {
  std::uint32_t count;
  std::uint32_t capacity;  // a power of two

  [[nodiscard]] Holder* slots() noexcept { return reinterpret_cast<Holder*>(this + 1); }
  [[nodiscard]] std::uint32_t place_of(const Peer* peer) const noexcept {
    const auto mixed = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(peer) >> 4) * 0x9e3779b97f4a7c15u;
    return static_cast<std::uint32_t>((mixed >> 32) * capacity >> 32);
  }
  [[nodiscard]] std::uint32_t next(std::uint32_t place) const noexcept { return (place + 1) & (capacity - 1); }
  // The peer's slot, or the free one that it would have.
  [[nodiscard]] std::uint32_t find(const Peer* peer) noexcept {
    std::uint32_t place = place_of(peer);
    while (slots()[place].peer != nullptr && slots()[place].peer != peer) {
      place = next(place);
    }
    return place;
  }
  void erase(std::uint32_t gap) noexcept {
    for (std::uint32_t place = next(gap); slots()[place].peer != nullptr; place = next(place)) {
      const std::uint32_t home = place_of(slots()[place].peer);
      if (((place - home) & (capacity - 1)) >= ((place - gap) & (capacity - 1))) {
        slots()[gap] = slots()[place];
        gap = place;
      }
    }
    slots()[gap].peer = nullptr;
    --count;
  }
  // Returns null if there is no memory.
  [[nodiscard]] static Holders* make(std::uint32_t capacity) noexcept {
    auto* const made = static_cast<Holders*>(std::calloc(1, sizeof(Holders) + capacity * sizeof(Holder)));
    if (made != nullptr) {
      made->capacity = capacity;
    }
    return made;
  }
};

// Entry: a filter and its holders. The text stands behind it.
struct FilterIndex::Entry {
  static constexpr std::uint16_t kTried = 0xFFFF;  // as shape: the filter is tried one by one
  static constexpr std::size_t kTextAt = 29;       // after is_many

  std::uint64_t hash;
  union {
    Holder one;
    Holders* many;
  };
  FilterKind kind;
  std::uint8_t size;
  std::uint16_t shape;  // number of the shape of tokens
  bool is_many;

  [[nodiscard]] static std::size_t bytes(std::size_t text_size) noexcept {
    return std::max(sizeof(Entry), kTextAt + text_size);
  }
  [[nodiscard]] char* text() noexcept { return reinterpret_cast<char*>(this) + kTextAt; }
  [[nodiscard]] FilterView view() const noexcept {
    return {kind, {reinterpret_cast<const char*>(this) + kTextAt, size}};
  }
  [[nodiscard]] bool is_tried() const noexcept { return shape == kTried; }
  [[nodiscard]] std::size_t count() const noexcept { return is_many ? many->count : one.peer != nullptr ? 1 : 0; }
  [[nodiscard]] Holder* find_holder(const Peer& peer) noexcept {
    if (!is_many) {
      return one.peer == &peer ? &one : nullptr;
    }
    Holder& slot = many->slots()[many->find(&peer)];
    return slot.peer != nullptr ? &slot : nullptr;
  }
  // Room for one more. Returns false if there is no memory.
  [[nodiscard]] bool reserve_one() noexcept {
    if (!is_many && one.peer == nullptr) {
      return true;
    }
    return is_many ? (many->count + 1) * 4 <= many->capacity * 3 || resize(many->capacity * 2) : resize(4);
  }
  void put(const Holder& holder) noexcept {
    if (!is_many) {
      one = holder;
      return;
    }
    many->slots()[many->find(holder.peer)] = holder;
    ++many->count;
  }
  void erase(const Peer& peer) noexcept {
    if (!is_many) {
      one = {};
      return;
    }
    many->erase(many->find(&peer));
    if (many->count <= 1) {  // 0: there was room for a second one, which memory refused
      Holders* const old = many;
      const Holder* const end = old->slots() + old->capacity;
      const Holder* const last =
          std::find_if<const Holder*>(old->slots(), end, [](const Holder& h) { return h.peer != nullptr; });
      one = last != end ? *last : Holder{};
      is_many = false;
      std::free(old);
    } else if (many->count * 8 < many->capacity) {
      (void)resize(many->capacity / 2);
    }
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    if (!is_many) {
      if (one.peer != nullptr) {
        visit(*one.peer);
      }
      return;
    }
    for (std::uint32_t place = 0; place < many->capacity; ++place) {
      if (Peer* const peer = many->slots()[place].peer; peer != nullptr) {
        visit(*peer);
      }
    }
  }

 private:
  [[nodiscard]] bool resize(std::uint32_t capacity) noexcept {
    Holders* const made = Holders::make(capacity);
    if (made == nullptr) {
      return false;
    }
    const auto move = [made](const Holder& holder) {
      made->slots()[made->find(holder.peer)] = holder;
      ++made->count;
    };
    if (!is_many) {
      move(one);
    } else {
      for (std::uint32_t place = 0; place < many->capacity; ++place) {
        if (many->slots()[place].peer != nullptr) {
          move(many->slots()[place]);
        }
      }
      std::free(many);
    }
    many = made;
    is_many = true;
    return true;
  }
};

// Group: the filters of one peer that have the same literal head and are tried one by one. The groups of a head are a
// list, whose first one is in State::heads.
struct FilterIndex::Group {
  Peer* peer;
  Group* next = nullptr;
  Group* previous = nullptr;  // null: the first
  std::uint64_t hash;
  std::vector<Entry*> entries;

  [[nodiscard]] std::string_view head() const noexcept { return entries.front()->view().literal_head(); }
};

// Own: a peer's part, while it has filters.
struct FilterIndex::Own {
  std::vector<Entry*> entries;
  std::size_t tried = 0;   // of them are tried one by one
  std::size_t shapes = 0;  // that this peer brought
  std::uint64_t mark = 0;  // of the message for which `steps` counts
  std::size_t steps = 0;   // that are left
};

// Shape: which tokens of a filter are `*`, and how many tokens there are.
struct FilterIndex::Shape {
  std::uint32_t stars;  // a bit for each
  std::uint8_t tokens;  // without a final >
  bool open;            // there is a final >
  std::uint32_t count;  // filters; 0: the place is free
  Peer* brought_by;     // null: the peer is gone
  std::uint64_t hash;

  [[nodiscard]] bool same(const Shape& other) const noexcept {
    return stars == other.stars && tokens == other.tokens && open == other.open;
  }
  [[nodiscard]] static Shape of(std::string_view text) noexcept {
    Shape shape{0, 0, text.ends_with('>'), 0, nullptr, 0};
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(kTopicSeparator, at), text.size());
      shape.stars |= end - at == 1 && text[at] == '*' ? 1u << shape.tokens : 0;
      ++shape.tokens;
      at = end + 1;
    }
    if (shape.open) {
      --shape.tokens;
    }
    return shape;
  }
};

struct FilterIndex::State {
  State() {
    std::random_device device;
    for (std::uint64_t* key : {&text_key, &exact_key, &glob_key, &shape_key}) {
      *key = random_hash(device);
    }
    std::generate(std::begin(token_keys), std::end(token_keys), [&] { return random_hash(device); });
    entries.set_multiplier(random_hash(device) << 3 | 1);
    groups.set_multiplier(random_hash(device) << 3 | 1);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    entries.for_each([](Entry& entry) {
      if (entry.is_many) {
        std::free(entry.many);
      }
      std::free(&entry);
    });
    groups.for_each([](Group& group) { delete &group; });
  }

  [[nodiscard]] std::uint64_t hash_text(std::string_view text) const noexcept {
    return hash_bytes(text_key, text.data(), text.size());
  }
  [[nodiscard]] std::uint64_t hash_token(std::string_view token, std::size_t place) const noexcept {
    return multiply_hashes(token_keys[place], hash_text(token));
  }
  [[nodiscard]] std::uint64_t hash_shape(const Shape& shape) const noexcept {
    return multiply_hashes(shape_key, shape.stars | std::uint64_t{shape.tokens} << 16 | (shape.open ? 1u << 24 : 0) |
                                          std::uint64_t{1} << 25);
  }
  [[nodiscard]] std::uint64_t hash_filter(const FilterView& filter) const noexcept {
    if (filter.kind != FilterKind::tokens) {
      return multiply_hashes(filter.kind == FilterKind::exact ? exact_key : glob_key, hash_text(filter.text));
    }
    const Shape shape = Shape::of(filter.text);
    std::uint64_t hash = hash_shape(shape);
    std::string_view rest = filter.text;
    for (std::size_t i = 0; i < shape.tokens; ++i) {
      const std::size_t end = std::min(rest.find(kTopicSeparator), rest.size());
      if ((shape.stars >> i & 1) == 0) {
        hash = add_hashes(hash, hash_token(rest.substr(0, end), i));
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return hash;
  }
  [[nodiscard]] std::uint64_t hash_group(const Peer& peer, std::string_view head) const noexcept {
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&peer)) % kHashPrime;
    return add_hashes(multiply_hashes(shape_key, address), multiply_hashes(glob_key, hash_text(head)));
  }
  [[nodiscard]] Group* find_group(const Peer& peer, std::uint64_t hash, std::string_view head) const noexcept {
    return groups.find(hash, [&](const Group& group) { return group.peer == &peer && group.head() == head; });
  }
  template <typename Visit>
  bool probe(std::string_view topic, Visit visit) const;
  [[nodiscard]] std::size_t steps_of_peer() const noexcept {
    return std::max(kStepsMin, kSteps / std::max<std::size_t>(1, peers_that_try));
  }

  std::uint64_t text_key;
  std::uint64_t exact_key;
  std::uint64_t glob_key;
  std::uint64_t shape_key;
  std::uint64_t token_keys[kTopicTokensMax];
  HashTable<Entry> entries;
  std::size_t exact = 0;      // entries
  std::vector<Shape> shapes;  // kShapesMax at most
  std::size_t shapes_used = 0;
  PrefixTable<Group*> heads;
  HashTable<Group> groups;
  std::size_t peers_that_try = 0;  // peers with filters that are tried one by one
};

// Topic: the tokens of a topic, hashed.
struct FilterIndex::Topic {
  static constexpr std::size_t kPlaces = kTopicTokensMax + 1;

  Topic(const State& state, std::string_view name) noexcept
      : text(name.substr(0, kTopicBytesMax)), whole(name.size() <= kTopicBytesMax) {
    std::size_t at = 0;
    for (sums[0] = 0; count < kTopicTokensMax; ++count) {
      const std::size_t end = std::min(text.find(kTopicSeparator, at), text.size());
      begin[count] = static_cast<std::uint16_t>(at);
      terms[count] = state.hash_token(text.substr(at, end - at), count);
      sums[count + 1] = add_hashes(sums[count], terms[count]);
      empty |= end == at ? 1u << count : 0;
      at = end + 1;
      if (end == text.size()) {
        ++count;
        ended = true;
        break;
      }
    }
    begin[count] = static_cast<std::uint16_t>(at);
  }

  // Whether the tokens are as many as those of the shape, and none that is a `*` there is empty.
  [[nodiscard]] bool fits(const Shape& shape) const noexcept {
    const bool fits = shape.open ? shape.tokens < count && begin[shape.tokens] < text.size()
                                 : whole && ended && shape.tokens == count;
    return fits && (shape.stars & empty) == 0;
  }
  [[nodiscard]] std::uint64_t hash(const Shape& shape) const noexcept {
    std::uint64_t hash = add_hashes(shape.hash, sums[shape.tokens]);
    for (std::uint32_t stars = shape.stars; stars != 0; stars &= stars - 1) {
      hash = add_hashes(hash, kHashPrime - terms[std::countr_zero(stars)]);
    }
    return hash;
  }
  // The filter is of the shape, which fits.
  [[nodiscard]] bool matches(const Shape& shape, const FilterView& filter) const noexcept {
    std::size_t at = 0;
    for (std::size_t i = 0; i < shape.tokens; ++i) {
      const std::size_t size = begin[i + 1] - 1u - begin[i];
      if ((shape.stars >> i & 1) != 0) {
        at += 2;
      } else if (filter.text.substr(std::min(at, filter.text.size()), size) != text.substr(begin[i], size)) {
        return false;
      } else {
        at += size + 1;
      }
    }
    return at == filter.text.size() + (shape.open ? -std::size_t{1} : 1);
  }

  std::string_view text;
  bool whole;  // the topic is no longer than a topic may be
  bool ended = false;
  std::size_t count = 0;
  std::uint32_t empty = 0;       // a bit for each token
  std::uint16_t begin[kPlaces];  // of the tokens, and of the place for the next one
  std::uint64_t terms[kTopicTokensMax];
  std::uint64_t sums[kPlaces];  // of the terms before each
};

// Calls visit(entry) for each exact and tokens filter that matches and is found by its hash, until it returns false.
template <typename Visit>
bool FilterIndex::State::probe(std::string_view topic, Visit visit) const {
  if (exact != 0 && topic.size() <= kTopicBytesMax) {
    const FilterView wanted{FilterKind::exact, topic};
    const Entry* const entry =
        entries.find(hash_filter(wanted), [&](const Entry& there) { return there.view() == wanted; });
    if (entry != nullptr && !visit(*entry)) {
      return false;
    }
  }
  if (shapes_used == 0) {
    return true;
  }
  const Topic tokens(*this, topic);
  for (std::size_t number = 0; number < shapes.size(); ++number) {
    const Shape& shape = shapes[number];
    if (shape.count == 0 || !tokens.fits(shape)) {
      continue;
    }
    const Entry* const entry = entries.find(tokens.hash(shape), [&](const Entry& there) {
      return there.kind == FilterKind::tokens && there.shape == number && tokens.matches(shape, there.view());
    });
    if (entry != nullptr && !visit(*entry)) {
      return false;
    }
  }
  return true;
}

}  // namespace weft::msg
