// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/bus/handler_list.h"
#include "weft/sync/atomic.h"
#include "weft/sync/lock.h"

namespace weft::rt::detail {

// EventLists: the handlers of a bus, a list for each type of event, and the handlers that were removed while threads
// read.
// Owner: the bus's core.
// Affinity: any thread; enter() and leave() the thread of the reader.
// Cost: enter() and leave() are those of ReaderSlot, and a load. The others lock a mutex, and copy as handler_list.h
// says; add() pays for a heavy fence only now and then.
// Users: BasicEventLists of the bus; the parameter is a seam for the model test.
// Invariants:
//   1. After remove() has returned no other thread calls the handler, but one that itself waits in a remove().
//   2. After close() has returned the same holds for every handler, and add() takes none.
//   3. A handler that was taken over is destroyed once, when no reader's list has it.
template <typename System>
class BasicEventLists {
  using Reader = typename System::Reader;

 public:
  static constexpr std::size_t kTypesMax = System::kTypesMax;

  BasicEventLists() noexcept = default;
  BasicEventLists(const BasicEventLists&) = delete;
  BasicEventLists& operator=(const BasicEventLists&) = delete;
  ~BasicEventLists() {  // after close(), and no thread is inside enter() and leave() any more
    Garbage garbage;
    garbage.lists = retired_;
    garbage.chunks = dropped_;
    garbage.handlers = removed_;
  }

  // Whether there is a handler, roughly.
  [[nodiscard]] bool any(std::size_t type) const noexcept {
    return lists_[type].load(std::memory_order_relaxed) != nullptr;
  }
  // The handlers that the reader may call until leave(), those that are alive. Returns null if there is none, and no
  // leave() follows. Requires that the reader's slot is not full.
  [[nodiscard]] EventHandlers* enter(Reader& reader, std::size_t type) noexcept {
    EventHandlers* const list = reader.slot.enter(lists_[type]);
    if (list == nullptr) [[unlikely]] {
      quiet_.wake();  // a thread may have waited for the announcement that enter() made and took back
    }
    return list;
  }
  void leave(Reader& reader) noexcept {
    reader.slot.leave();
    quiet_.wake();
  }

  Result<void> add(std::size_t type, EventHandler* handler) noexcept;  // not taken over when refused
  void remove(std::size_t type, EventHandler* handler) noexcept;       // one that add() took, once
  void close() noexcept;
  [[nodiscard]] std::size_t handlers() const noexcept {
    const sync::LockGuard lock(mutex_);
    return handlers_;
  }

 private:
  // Garbage: the objects that are destroyed after the release of the mutex: a closure's destructor may run any code.
  struct Garbage {
    EventHandlers* lists = nullptr;
    EventChunk* chunks = nullptr;
    EventHandler* handlers = nullptr;

    Garbage() = default;
    Garbage(const Garbage&) = delete;
    Garbage& operator=(const Garbage&) = delete;
    ~Garbage() {
      while (lists != nullptr) {
        free_list(std::exchange(lists, lists->next));
      }
      while (chunks != nullptr) {
        free_chunk(std::exchange(chunks, chunks->next));
      }
      while (handlers != nullptr) {
        EventHandler* const handler = std::exchange(handlers, handlers->next);
        handler->destroy(handler);
      }
    }
  };

  [[nodiscard]] EventHandlers* current(std::size_t type) const noexcept WEFT_REQUIRES(mutex_) {
    return lists_[type].load(std::memory_order_relaxed);  // relaxed: only a holder of the mutex stores
  }
  void replace(std::size_t type, EventHandlers* with, EventChunk* dropped) noexcept WEFT_REQUIRES(mutex_);
  void note_birth(EventChunk* fresh) const noexcept WEFT_REQUIRES(mutex_);
  void forget(EventHandler* handler) noexcept WEFT_REQUIRES(mutex_);
  [[nodiscard]] bool read_elsewhere(std::uint64_t newest, std::size_t type, bool inside) const noexcept
      WEFT_REQUIRES(mutex_);
  void wait_for_readers(std::size_t type) noexcept WEFT_REQUIRES(mutex_);
  void collect(Garbage& garbage) noexcept WEFT_REQUIRES(mutex_);

  std::array<sync::Atomic<EventHandlers*>, kTypesMax> lists_{};
  typename System::Parker quiet_;  // a reader that leaves wakes it

  mutable typename System::Mutex mutex_;
  EventHandlers* retired_ WEFT_GUARDED_BY(mutex_) = nullptr;  // lists that a thread may still read
  EventHandler* removed_ WEFT_GUARDED_BY(mutex_) = nullptr;   // handlers in a retired list
  EventChunk* dropped_ WEFT_GUARDED_BY(mutex_) = nullptr;     // chunks in a retired list
  std::uint64_t subscriptions_ WEFT_GUARDED_BY(mutex_) = 0;   // that ever were
  std::uint64_t last_retired_ WEFT_GUARDED_BY(mutex_) = 0;    // the number of the newest retired list
  std::size_t retired_count_ WEFT_GUARDED_BY(mutex_) = 0;
  std::size_t handlers_ WEFT_GUARDED_BY(mutex_) = 0;
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
};

// Moves handlers or chunks that none of the lists has, which threads read.
template <typename T>
void take_unread(T*& from, T*& to, const EventHandlers* read) noexcept {
  for (T** place = &from; *place != nullptr;) {
    T* const each = *place;
    const EventHandlers* list = read;
    while (list != nullptr && (list->number <= each->born || list->number > each->number)) {
      list = list->next;
    }
    if (list != nullptr) {
      place = &each->next;
    } else {
      *place = each->next;
      each->next = std::exchange(to, each);
    }
  }
}

// Puts a list in the place of another, and retires the other with its chunks that the new one has not.
template <typename System>
void BasicEventLists<System>::replace(std::size_t type, EventHandlers* with, EventChunk* dropped) noexcept {
  EventHandlers* const old = current(type);
  lists_[type].store(with, std::memory_order_release);  // pairs with the acquire in ReaderSlot::enter()
  if (old != nullptr) {
    old->type = type;
    old->number = ++last_retired_;
    old->next = std::exchange(retired_, old);
    ++retired_count_;
  }
  while (EventChunk* const chunk = dropped) {
    dropped = chunk->next;
    chunk->number = last_retired_;
    chunk->next = std::exchange(dropped_, chunk);
  }
}

// Called after replace() by the list with these chunks, which no list that was retired so far has.
template <typename System>
void BasicEventLists<System>::note_birth(EventChunk* fresh) const noexcept {
  for (; fresh != nullptr; fresh = fresh->next) {
    fresh->born = last_retired_;
  }
}

// Called before replace() of the list that has the handler.
template <typename System>
void BasicEventLists<System>::forget(EventHandler* handler) noexcept {
  handler->number = last_retired_ + 1;
  handler->next = std::exchange(removed_, handler);
  --handlers_;
}

template <typename System>
Result<void> BasicEventLists<System>::add(std::size_t type, EventHandler* handler) noexcept {
  constexpr std::size_t kRetiredMost = 16;  // then add() pays for a heavy fence and a walk through the readers
  Garbage garbage;
  const sync::LockGuard lock(mutex_);
  if (closed_) {
    return Error(Errc::closed, "the bus was closed");
  }
  EventHandlers* const old = type < kTypesMax ? current(type) : nullptr;
  const std::size_t count = old == nullptr ? 0 : old->count;
  if (type >= kTypesMax || count >= System::kHandlersMax) {
    return Error(Errc::resource_exhausted, "too many types of events, or handlers of one");
  }
  handler->order = ++subscriptions_;
  const HandlerEdit edit = with_handler(old, handler);
  if (!edit.made) {
    return Error(Errc::resource_exhausted, "no memory for a list of handlers");
  }
  replace(type, edit.list, edit.dropped);
  handler->born = last_retired_;
  note_birth(edit.fresh);
  ++handlers_;
  if (retired_count_ >= kRetiredMost) {
    System::heavy_fence();  // pairs with the light fence in ReaderSlot::enter()
    collect(garbage);
  }
  return {};
}

template <typename System>
void BasicEventLists<System>::remove(std::size_t type, EventHandler* handler) noexcept {
  Garbage garbage;
  const sync::LockGuard lock(mutex_);
  if (closed_) {  // close() has removed the handler, and perhaps still waits for it
    wait_for_readers(type);
    collect(garbage);
    return;
  }
  handler->alive.store(false, std::memory_order_relaxed);  // made visible by the heavy fence of wait_for_readers()
  if (const HandlerEdit edit = without_handler(current(type), handler); edit.made) {
    forget(handler);
    replace(type, edit.list, edit.dropped);
    note_birth(edit.fresh);
  }  // otherwise there is no memory: the handler stays in its list, not alive, until close()
  wait_for_readers(type);
  collect(garbage);
}

// Moves lists and handlers that no thread reads to the garbage. Called after a heavy fence.
template <typename System>
void BasicEventLists<System>::collect(Garbage& garbage) noexcept {
  const auto is_read = [](const void* list) {
    Reader* each = System::first_reader();
    while (each != nullptr && !each->slot.reads(list)) {
      each = each->next;
    }
    return each != nullptr;
  };
  for (EventHandlers** place = &retired_; *place != nullptr;) {
    EventHandlers* const list = *place;
    if (is_read(list)) {
      place = &list->next;
    } else {
      *place = list->next;
      list->next = std::exchange(garbage.lists, list);
      --retired_count_;
    }
  }
  take_unread(removed_, garbage.handlers, retired_);
  take_unread(dropped_, garbage.chunks, retired_);
}

// Whether a thread that the caller must wait for reads a list of the type that is not newer than `newest`.
template <typename System>
bool BasicEventLists<System>::read_elsewhere(std::uint64_t newest, std::size_t type, bool inside) const noexcept {
  for (Reader* each = System::first_reader(); each != nullptr; each = each->next) {
    if (each == System::reader() || (inside && each->waits.load(std::memory_order_relaxed))) {
      continue;
    }
    for (const EventHandlers* list = retired_; list != nullptr; list = list->next) {
      const bool meant = list->number <= newest && (type == kTypesMax || list->type == type);
      if (meant && each->slot.reads(list)) {
        return true;
      }
    }
  }
  return false;
}

// Waits until no other thread reads a list of the type that was retired before the call. Sleeps without the lock.
template <typename System>
void BasicEventLists<System>::wait_for_readers(std::size_t type) noexcept {
  const std::uint64_t newest = last_retired_;
  Reader* const mine = System::reader();
  const bool inside = mine != nullptr && mine->slot.depth() > 0;
  if (inside) {
    mine->waits.store(true, std::memory_order_relaxed);  // ordered by the heavy fence in announce_futex()
  }
  for (;;) {
    const auto ticket = quiet_.announce_futex(true);  // a heavy fence: pairs with the light fences of readers
    if (!read_elsewhere(newest, type, inside)) {
      break;
    }
    const sync::Unlocked unlocked(mutex_);
    quiet_.sleep(ticket, Duration(-1));
  }
  if (inside) {
    mine->waits.store(false, std::memory_order_relaxed);
  }
}

template <typename System>
void BasicEventLists<System>::close() noexcept {
  Garbage garbage;
  const sync::LockGuard lock(mutex_);
  closed_ = true;
  for (std::size_t type = 0; type < kTypesMax; ++type) {
    if (EventHandlers* const list = current(type); list != nullptr) {
      list->for_each([this](EventHandler& handler) {
        sync::assume_locked(mutex_);
        handler.alive.store(false, std::memory_order_relaxed);
        forget(&handler);
      });
      replace(type, nullptr, chunks_of(list));
    }
  }
  wait_for_readers(kTypesMax);
  collect(garbage);
}

}  // namespace weft::rt::detail
