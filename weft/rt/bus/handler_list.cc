// SPDX-License-Identifier: MIT
#include "weft/rt/bus/handler_list.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <utility>

namespace weft::rt::detail {

namespace {

constexpr std::size_t kMost = EventHandlers::kShortMost;

// The order of calling.
bool precedes(const EventHandler* left, const EventHandler* right) noexcept {
  return left->priority != right->priority ? left->priority > right->priority : left->order < right->order;
}

EventHandlers* make_list(std::size_t handlers, std::size_t chunks) noexcept {
  const std::size_t pointers = chunks == 0 ? handlers : chunks;
  void* memory = std::malloc(sizeof(EventHandlers) + pointers * sizeof(void*));
  auto* list = memory == nullptr ? nullptr : ::new (memory) EventHandlers();
  if (list != nullptr) {
    list->count = handlers;
    list->chunk_count = chunks;
  }
  return list;
}

EventChunk* make_chunk(std::size_t count) noexcept {
  void* memory = std::malloc(sizeof(EventChunk) + count * sizeof(EventHandler*));
  auto* chunk = memory == nullptr ? nullptr : ::new (memory) EventChunk();
  if (chunk != nullptr) {
    chunk->count = count;
  }
  return chunk;
}

// Handlers that are to lie in the new chunks or the new short list: of at most two old chunks, and one more.
class Gathered {
 public:
  void add(EventHandler* handler) noexcept { handlers_[count_++] = handler; }
  void add(EventHandler* const* begin, std::size_t count) noexcept {
    std::copy_n(begin, count, handlers_.begin() + static_cast<std::ptrdiff_t>(count_));
    count_ += count;
  }
  void insert(EventHandler* handler) noexcept {
    add(handler);
    auto* const end = handlers_.data() + count_;
    std::rotate(std::upper_bound(handlers_.data(), end - 1, handler, precedes), end - 1, end);
  }
  void erase(EventHandler* handler) noexcept {
    EventHandler** const end = std::remove(handlers_.data(), handlers_.data() + count_, handler);
    count_ = static_cast<std::size_t>(end - handlers_.data());
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] EventHandler* const* data() const noexcept { return handlers_.data(); }

 private:
  std::array<EventHandler*, 2 * kMost> handlers_;  // filled up to count_
  std::size_t count_ = 0;
};

HandlerEdit make_short(const Gathered& handlers, EventHandlers* old) noexcept {
  HandlerEdit edit;
  if (handlers.count() != 0) {
    edit.list = make_list(handlers.count(), 0);
    if (edit.list == nullptr) {
      return edit;
    }
    std::copy_n(handlers.data(), handlers.count(), edit.list->handlers);
  }
  edit.made = true;
  edit.dropped = old == nullptr ? nullptr : chunks_of(old);
  return edit;
}

// The old list with new chunks in the place of those from `from` to `to`. A short list has no chunks.
HandlerEdit make_long(EventHandlers* old, std::size_t from, std::size_t to, const Gathered& handlers,
                      std::size_t count) noexcept {
  HandlerEdit edit;
  const std::size_t fresh = (handlers.count() + kMost - 1) / kMost;
  const std::size_t each = fresh == 0 ? 0 : (handlers.count() + fresh - 1) / fresh;
  EventHandlers* const list = make_list(count, old->chunk_count - (to - from) + fresh);
  bool made = list != nullptr;
  for (std::size_t i = 0; made && i < fresh; ++i) {
    const std::size_t begin = i * each;
    EventChunk* const chunk = make_chunk(std::min(each, handlers.count() - begin));
    made = chunk != nullptr;
    if (made) {
      std::copy_n(handlers.data() + begin, chunk->count, chunk->handlers);
      chunk->next = std::exchange(edit.fresh, chunk);
      list->chunks[from + i] = chunk;
    }
  }
  if (!made) {
    while (edit.fresh != nullptr) {
      free_chunk(std::exchange(edit.fresh, edit.fresh->next));
    }
    free_list(list);
    return {};
  }
  std::copy_n(old->chunks, from, list->chunks);
  std::copy(old->chunks + to, old->chunks + old->chunk_count, list->chunks + from + fresh);
  for (std::size_t i = from; i < to; ++i) {
    old->chunks[i]->next = std::exchange(edit.dropped, old->chunks[i]);
  }
  edit.made = true;
  edit.list = list;
  return edit;
}

// The last chunk that does not begin after the handler.
std::size_t chunk_for(const EventHandlers& list, const EventHandler* handler) noexcept {
  EventChunk* const* const end = list.chunks + list.chunk_count;
  EventChunk* const* const behind = std::upper_bound(
      list.chunks, end, handler,
      [](const EventHandler* left, const EventChunk* right) { return precedes(left, right->handlers[0]); });
  return behind == list.chunks ? 0 : static_cast<std::size_t>(behind - list.chunks) - 1;
}

}  // namespace

HandlerEdit with_handler(EventHandlers* old, EventHandler* handler) noexcept {
  Gathered gathered;
  if (old == nullptr || old->chunk_count == 0) {
    if (old != nullptr) {
      gathered.add(old->handlers, old->count);
    }
    gathered.insert(handler);
    return gathered.count() <= kMost ? make_short(gathered, old) : make_long(old, 0, 0, gathered, gathered.count());
  }
  const std::size_t place = chunk_for(*old, handler);
  const EventChunk& chunk = *old->chunks[place];
  if (chunk.count == kMost && precedes(chunk.handlers[kMost - 1], handler)) {
    gathered.add(handler);
    return make_long(old, place + 1, place + 1, gathered, old->count + 1);  // handlers that come in their order
  }
  gathered.add(chunk.handlers, chunk.count);
  gathered.insert(handler);
  return make_long(old, place, place + 1, gathered, old->count + 1);
}

HandlerEdit without_handler(EventHandlers* old, EventHandler* handler) noexcept {
  Gathered gathered;
  const std::size_t count = old->count - 1;
  if (count <= kMost / 2 || old->chunk_count == 0) {
    old->for_each([&](EventHandler& each) { gathered.add(&each); });
    gathered.erase(handler);
    return make_short(gathered, old);
  }
  std::size_t from = chunk_for(*old, handler);
  std::size_t to = from + 1;
  // Joins chunks that became small: the list has at most about four times as many chunks as it needs.
  const auto fits = [&](std::size_t place) {
    return place < old->chunk_count && old->chunks[place]->count + old->chunks[from]->count - 1 <= kMost / 2;
  };
  if (fits(to)) {
    ++to;
  } else if (from > 0 && fits(from - 1)) {
    --from;
  }
  for (std::size_t i = from; i < to; ++i) {
    gathered.add(old->chunks[i]->handlers, old->chunks[i]->count);
  }
  gathered.erase(handler);
  return make_long(old, from, to, gathered, count);
}

EventChunk* chunks_of(EventHandlers* list) noexcept {
  EventChunk* all = nullptr;
  for (std::size_t i = 0; i < list->chunk_count; ++i) {
    list->chunks[i]->next = std::exchange(all, list->chunks[i]);
  }
  return all;
}

void free_list(EventHandlers* list) noexcept { std::free(list); }
void free_chunk(EventChunk* chunk) noexcept { std::free(chunk); }

}  // namespace weft::rt::detail
