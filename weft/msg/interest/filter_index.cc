// SPDX-License-Identifier: MIT
#include "weft/msg/interest/filter_index.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <vector>

#include "weft/base/assert.h"
#include "weft/msg/interest/filter_index_state.h"

namespace weft::msg {

namespace {
constexpr Error kNoMemoryForFilter(Errc::resource_exhausted, "no memory for a subscription");

// Room for one more. Returns false if there is no memory.
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

// The new entry has no holders. Returns null if there is no memory, and nothing changed.
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

// The group for the peer and the entry's head, with room for the entry. Returns null if there is no memory, and nothing
// changed.
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
    return kNoMemoryForFilter;
  }
  Entry* entry = find(filter);
  if (entry != nullptr && entry->find_holder(peer) != nullptr) {
    return Added::nothing;
  }
  const bool is_new = entry == nullptr;
  entry = is_new && reserve_one(peer.own->entries) ? make_entry(peer, filter) : entry;
  if (entry == nullptr) {
    forget_peer_without_filters(peer);
    return kNoMemoryForFilter;
  }
  Group* group = nullptr;
  bool has_room = reserve_one(peer.own->entries) && entry->reserve_one();
  if (has_room && entry->is_tried()) {
    group = make_group(peer, *entry);
    has_room = group != nullptr;
  }
  if (!has_room) {
    if (is_new) {
      free_entry(*entry);
    }
    forget_peer_without_filters(peer);
    return kNoMemoryForFilter;
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

// A peer that a message reaches by one filter is left out from then on, so that only filters that do not match cost
// steps.
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
