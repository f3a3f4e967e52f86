// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/sync/atomic.h"

namespace weft::rt::detail {

// EventHandler: one subscription's function. Removed from the list of its type first, destroyed when no publish reads
// a list that has it.
struct EventHandler {
  // Returns whether the handler took the event; false: its filter refused it. May throw.
  bool (*call)(EventHandler& self, const void* event);
  void (*destroy)(EventHandler* self) noexcept;
  int priority = 0;
  sync::Atomic<bool> alive{true};
  EventHandler* next = nullptr;  // in the list of removed handlers
  std::uint64_t order = 0;       // counts the subscriptions of a bus
  std::uint64_t born = 0;        // lists of a number up to this one have not this handler
  std::uint64_t number = 0;      // the number of the last list that had this handler
};

// EventChunk: handlers of a long list that follow each other; shared by successive lists. Immutable once published.
struct EventChunk {
  EventChunk* next = nullptr;  // in a list of chunks
  std::uint64_t born = 0;      // as of a handler
  std::uint64_t number = 0;
  std::size_t count = 0;
  EventHandler* handlers[1];  // count of them, at least one
};

// EventHandlers: the handlers of one type, in the order of calling. Immutable once published. A long list is in chunks,
// so that a change copies one chunk and the pointers to the others.
struct EventHandlers {
  static constexpr std::size_t kShortMost = 256;  // handlers of a list without chunks, and of a chunk

  std::size_t count = 0;          // of handlers
  std::size_t chunk_count = 0;    // 0: a short list
  EventHandlers* next = nullptr;  // in the list of retired lists, newest first
  std::uint64_t number = 0;       // counts the retired lists
  std::size_t type = 0;
  union {
    EventHandler* handlers[1];  // count of them
    EventChunk* chunks[1];      // chunk_count of them
  };

  template <typename Use>
  void for_each(Use&& use) const {
    if (chunk_count == 0) [[likely]] {
      for (std::size_t i = 0; i < count; ++i) {
        use(*handlers[i]);
      }
      return;
    }
    for (std::size_t i = 0; i < chunk_count; ++i) {
      for (std::size_t k = 0; k < chunks[i]->count; ++k) {
        use(*chunks[i]->handlers[k]);
      }
    }
  }
};

// HandlerEdit: a new list beside the old one, with one handler more or less.
struct HandlerEdit {
  bool made = false;              // false: there is no memory, and nothing to free
  EventHandlers* list = nullptr;  // null if it is empty
  EventChunk* fresh = nullptr;    // chunks of the new list only, from the last to the first; linked by `next`
  EventChunk* dropped = nullptr;  // chunks of the old list only
};

// Cost: a copy of a list of up to kShortMost handlers, or of one chunk and of the pointers to all.
// The list before may be null. `handler` comes after those of its priority; its `order` is the highest.
[[nodiscard]] HandlerEdit with_handler(EventHandlers* old, EventHandler* handler) noexcept;
// Requires that the list has the handler.
[[nodiscard]] HandlerEdit without_handler(EventHandlers* old, EventHandler* handler) noexcept;
// All chunks of a list, linked by `next`; null: a short one.
[[nodiscard]] EventChunk* chunks_of(EventHandlers* list) noexcept;
void free_list(EventHandlers* list) noexcept;  // not its chunks
void free_chunk(EventChunk* chunk) noexcept;

}  // namespace weft::rt::detail
