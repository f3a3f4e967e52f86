// SPDX-License-Identifier: MIT
#include "weft/msg/interest/filter_index.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <vector>

#include "weft/base/assert.h"
#include "weft/msg/interest/hash_table.h"
#include "weft/msg/interest/prefix_table.h"

namespace weft::msg {

namespace {
constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for a subscription");

[[nodiscard]] std::uint64_t random_hash(std::random_device& device) {
  return ((std::uint64_t{device()} << 32 | device()) % (kHashPrime - 1)) + 1;
}

// Room for one more. False: no memory.
template <typename Item>
[[nodiscard]] bool reserve_one(std::vector<Item>& items) noexcept {
  if (items.size() < items.capacity()) {
    return true;
  }
  try {
    items.reserve(std::max<std::size_t>(1, items.size() + items.size() / 2 + 1));
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}
}  // namespace

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
  // Null: no memory.
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
  static constexpr std::size_t kTextAt = 29;       // behind is_many

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
  // Room for one more. False: no memory.
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
    if (many->count == 1) {
      Holders* const old = many;
      one =
          *std::find_if(old->slots(), old->slots() + old->capacity, [](const Holder& h) { return h.peer != nullptr; });
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
  std::uint16_t begin[kPlaces];  // of the tokens, and of what would be the next one
  std::uint64_t terms[kTopicTokensMax];
  std::uint64_t sums[kPlaces];  // of the terms before each
};

FilterIndex::Peer::Peer() noexcept = default;
FilterIndex::Peer::~Peer() = default;
std::size_t FilterIndex::Peer::filters() const noexcept { return own != nullptr ? own->entries.size() : 0; }

FilterIndex::FilterIndex() noexcept = default;
FilterIndex::~FilterIndex() = default;

std::size_t FilterIndex::size() const noexcept { return state_ != nullptr ? state_->entries.size() : 0; }

FilterIndex::Entry* FilterIndex::find(const FilterView& filter) const noexcept {
  if (state_ == nullptr) {
    return nullptr;
  }
  return state_->entries.find(state_->hash_filter(filter), [&](const Entry& entry) { return entry.view() == filter; });
}

bool FilterIndex::has(const Peer& peer, const FilterView& filter) const noexcept {
  Entry* const entry = find(filter);
  return entry != nullptr && entry->find_holder(peer) != nullptr;
}

std::size_t FilterIndex::holders(const FilterView& filter) const noexcept {
  const Entry* const entry = find(filter);
  return entry != nullptr ? entry->count() : 0;
}

FilterView FilterIndex::last_of(const Peer& peer) noexcept { return peer.own->entries.back()->view(); }

// The new entry has no holders. Null: no memory, and nothing changed.
FilterIndex::Entry* FilterIndex::make_entry(Peer& peer, const FilterView& filter) noexcept {
  State& state = *state_;
  std::uint16_t number = filter.kind == FilterKind::exact ? 0 : Entry::kTried;
  if (filter.kind == FilterKind::tokens) {
    Shape shape = Shape::of(filter.text);
    auto found = std::find_if(state.shapes.begin(), state.shapes.end(),
                              [&](const Shape& there) { return there.count != 0 && there.same(shape); });
    if (found == state.shapes.end() && state.shapes_used < kShapesMax && peer.own->shapes < kShapesOfPeerMax) {
      found =
          std::find_if(state.shapes.begin(), state.shapes.end(), [](const Shape& there) { return there.count == 0; });
      shape.hash = state.hash_shape(shape);
      shape.brought_by = &peer;
      if (found != state.shapes.end()) {
        *found = shape;
      } else if (reserve_one(state.shapes)) {
        state.shapes.push_back(shape);
        found = state.shapes.end() - 1;
      } else {
        return nullptr;
      }
    }
    number = found != state.shapes.end() ? static_cast<std::uint16_t>(found - state.shapes.begin()) : Entry::kTried;
  }
  if (!state.entries.reserve_one()) {
    return nullptr;
  }
  void* const block = std::malloc(Entry::bytes(filter.text.size()));
  if (block == nullptr) {
    return nullptr;
  }
  auto* const entry = new (block)
      Entry{state.hash_filter(filter), {{}}, filter.kind, static_cast<std::uint8_t>(filter.text.size()), number, false};
  std::copy(filter.text.begin(), filter.text.end(), entry->text());
  state.entries.insert(entry->hash, *entry);
  state.exact += filter.kind == FilterKind::exact ? 1 : 0;
  if (filter.kind == FilterKind::tokens && number != Entry::kTried) {
    Shape& shape = state.shapes[number];
    if (shape.count++ == 0) {
      ++state.shapes_used;
      ++peer.own->shapes;
    }
  }
  return entry;
}

void FilterIndex::free_entry(Entry& entry) noexcept {
  State& state = *state_;
  state.exact -= entry.kind == FilterKind::exact ? 1 : 0;
  if (entry.kind == FilterKind::tokens && !entry.is_tried()) {
    Shape& shape = state.shapes[entry.shape];
    if (--shape.count == 0) {
      --state.shapes_used;
      if (shape.brought_by != nullptr) {
        --shape.brought_by->own->shapes;
      }
    }
  }
  state.entries.erase(entry.hash, entry);
  std::free(&entry);
}

// The group for the peer and the entry's head, with room for the entry. Null: no memory, and nothing changed.
FilterIndex::Group* FilterIndex::make_group(Peer& peer, const Entry& entry) noexcept {
  State& state = *state_;
  const std::string_view head = entry.view().literal_head();
  const std::uint64_t hash = state.hash_group(peer, head);
  Group* group = state.find_group(peer, hash, head);
  if (group != nullptr) {
    return reserve_one(group->entries) ? group : nullptr;
  }
  if (!state.groups.reserve_one()) {
    return nullptr;
  }
  group = new (std::nothrow) Group{&peer, nullptr, nullptr, hash, {}};
  if (group == nullptr) {
    return nullptr;
  }
  bool is_new = false;
  Group** const first = reserve_one(group->entries) ? state.heads.insert(as_bytes(head), is_new) : nullptr;
  if (first == nullptr) {
    delete group;
    return nullptr;
  }
  group->next = *first;
  if (group->next != nullptr) {
    group->next->previous = group;
  }
  *first = group;
  state.groups.insert(hash, *group);
  return group;
}

void FilterIndex::leave_group(Peer& peer, Entry& entry, std::uint32_t place) noexcept {
  State& state = *state_;
  const std::string_view head = entry.view().literal_head();
  Group& group = *state.find_group(peer, state.hash_group(peer, head), head);
  if (Entry* const last = group.entries.back(); last != &entry) {
    group.entries[place] = last;
    last->find_holder(peer)->group_place = place;
  }
  group.entries.pop_back();
  if (!group.entries.empty()) {
    return;
  }
  if (group.next != nullptr) {
    group.next->previous = group.previous;
  }
  if (group.previous != nullptr) {
    group.previous->next = group.next;
  } else if (group.next != nullptr) {
    *state.heads.find(as_bytes(head)) = group.next;
  } else {
    state.heads.erase(as_bytes(head));
  }
  state.groups.erase(group.hash, group);
  delete &group;
}

void FilterIndex::forget_peer_without_filters(Peer& peer) noexcept {
  if (peer.own == nullptr || !peer.own->entries.empty()) {
    return;
  }
  if (peer.own->shapes != 0) {
    for (Shape& shape : state_->shapes) {
      shape.brought_by = shape.brought_by == &peer ? nullptr : shape.brought_by;
    }
  }
  peer.own.reset();
  if (state_->entries.size() == 0) {
    state_.reset();
  }
}

Result<FilterIndex::Added> FilterIndex::add(Peer& peer, const FilterView& filter) noexcept {
  WEFT_ASSERT(filter.kind != FilterKind::prefix && filter.text.size() <= kTopicBytesMax);
  try {
    if (state_ == nullptr) {
      state_ = std::make_unique<State>();
    }
    if (peer.own == nullptr) {
      peer.own = std::make_unique<Own>();
    }
  } catch (const std::exception&) {  // no memory, or no random numbers
    if (state_ != nullptr && state_->entries.size() == 0) {
      state_.reset();
    }
    return kNoMemory;
  }
  Entry* entry = find(filter);
  if (entry != nullptr && entry->find_holder(peer) != nullptr) {
    return Added::nothing;
  }
  const bool is_new = entry == nullptr;
  entry = is_new && reserve_one(peer.own->entries) ? make_entry(peer, filter) : entry;
  if (entry == nullptr) {
    forget_peer_without_filters(peer);
    return kNoMemory;
  }
  Group* group = nullptr;
  if (!reserve_one(peer.own->entries) || !entry->reserve_one() ||
      (entry->is_tried() && (group = make_group(peer, *entry)) == nullptr)) {
    if (is_new) {
      free_entry(*entry);
    }
    forget_peer_without_filters(peer);
    return kNoMemory;
  }
  Holder holder{&peer, static_cast<std::uint32_t>(peer.own->entries.size()), 0};
  if (group != nullptr) {
    holder.group_place = static_cast<std::uint32_t>(group->entries.size());
    group->entries.push_back(entry);
    state_->peers_that_try += peer.own->tried++ == 0 ? 1 : 0;
  }
  entry->put(holder);
  peer.own->entries.push_back(entry);
  return is_new ? Added::filter : Added::holder;
}

void FilterIndex::remove(Peer& peer, const FilterView& filter) noexcept {
  Entry* const entry = find(filter);
  const Holder* const found = entry != nullptr ? entry->find_holder(peer) : nullptr;
  if (found == nullptr) {
    return;
  }
  const Holder holder = *found;
  std::vector<Entry*>& list = peer.own->entries;
  if (entry->is_tried()) {
    leave_group(peer, *entry, holder.group_place);
    state_->peers_that_try -= --peer.own->tried == 0 ? 1 : 0;
  }
  if (Entry* const last = list.back(); last != entry) {
    list[holder.place] = last;
    last->find_holder(peer)->place = holder.place;
  }
  list.pop_back();
  entry->erase(peer);
  if (entry->count() == 0) {
    free_entry(*entry);
  }
  forget_peer_without_filters(peer);
}

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

void FilterIndex::match_all(std::string_view topic, std::uint64_t mark, Visitor visitor, void* context) {
  State& state = *state_;
  (void)state.probe(topic, [&](const Entry& entry) {
    entry.for_each([&](Peer& peer) {
      if (peer.mark != mark) {
        visitor(context, peer, true);
      }
    });
    return true;
  });
  if (state.heads.size() == 0) {
    return;
  }
  const std::size_t steps = state.steps_of_peer();
  state.heads.match(as_bytes(topic), [&](Group* first) {
    for (Group* group = first; group != nullptr; group = group->next) {
      if (group->peer->mark != mark) {
        try_group(*group, topic, mark, steps, visitor, context);
      }
    }
    return true;
  });
}

// A peer that a message reaches by one filter is left out from then on, so that only what does not match costs steps.
void FilterIndex::try_group(Group& group, std::string_view topic, std::uint64_t mark, std::size_t steps,
                            Visitor visitor, void* context) {
  Own& own = *group.peer->own;
  if (own.mark != mark) {
    own.mark = mark;
    own.steps = steps;
  }
  for (const Entry* entry : group.entries) {
    const bool decided = own.steps != 0;
    if (entry->view().may_match(topic, own.steps)) {
      visitor(context, *group.peer, decided);
      return;
    }
  }
}

bool FilterIndex::matches(std::string_view topic) const {
  if (state_ == nullptr) {
    return false;
  }
  bool found = !state_->probe(topic, [](const Entry&) { return false; });
  if (!found && state_->heads.size() != 0) {
    state_->heads.match(as_bytes(topic), [&](const Group* first) {
      for (const Group* group = first; group != nullptr && !found; group = group->next) {
        found = std::any_of(group->entries.begin(), group->entries.end(),
                            [&](const Entry* entry) { return entry->view().matches(topic); });
      }
      return !found;
    });
  }
  return found;
}

}  // namespace weft::msg
