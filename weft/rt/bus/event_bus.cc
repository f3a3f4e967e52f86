// SPDX-License-Identifier: MIT
#include "weft/rt/bus/event_bus.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>

namespace weft::rt {
namespace detail {

namespace {

// The readers of all threads: a list that only grows. A new thread reuses the reader of a thread that has ended.
// Readers are never freed, so that any thread may walk the list at any time.
std::atomic<EventReader*> first_reader{nullptr};
thread_local bool thread_ending = false;

struct ReaderHolder {
  ~ReaderHolder() {
    if (EventReader* const reader = event_reader; reader != nullptr) {
      event_reader = nullptr;
      EventCore::end_kept(*reader);
      reader->used.store(false, std::memory_order_release);  // pairs with the acquire in make_event_reader()
    }
    thread_ending = true;
  }
  volatile bool armed = false;  // a write makes the thread's copy, so that its destructor will run
};
thread_local ReaderHolder holder;

}  // namespace

constinit thread_local EventReader* event_reader = nullptr;

EventReader* make_event_reader() noexcept {
  if (thread_ending) {
    return nullptr;
  }
  holder.armed = true;
  // Acquire pairs with the release of the compare-exchange below: the reader was made before.
  for (EventReader* each = first_reader.load(std::memory_order_acquire); each != nullptr; each = each->next) {
    bool used = false;
    if (each->used.compare_exchange_strong(used, true, std::memory_order_acquire, std::memory_order_relaxed)) {
      return event_reader = each;
    }
  }
  auto* made = new (std::nothrow) EventReader;
  if (made != nullptr) {
    made->next = first_reader.load(std::memory_order_relaxed);
    // Release pairs with the acquires of the threads that walk the list. A thread that misses this reader passed its
    // heavy fence before the light fence of this reader's first enter(), which then sees that thread's change.
    while (
        !first_reader.compare_exchange_weak(made->next, made, std::memory_order_release, std::memory_order_relaxed)) {
    }
    event_reader = made;
  }
  return made;
}

namespace {
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
}  // namespace

std::size_t take_event_type() noexcept {
  static std::atomic<std::size_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// Garbage: lists and handlers to destroy after the mutex was released: a closure's destructor may run any code.
struct EventCore::Garbage {
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

EventCore::~EventCore() {
  Garbage garbage;  // no publish is under way any more
  garbage.lists = retired_;
  garbage.chunks = dropped_;
  garbage.handlers = removed_;
}

void EventCore::keep(EventReader& reader, std::shared_ptr<EventCore> core) noexcept {
  core->next_kept_ = std::move(reader.kept);
  reader.kept = std::move(core);
}

void EventCore::end_kept(EventReader& reader) noexcept {
  while (reader.kept != nullptr) {
    const std::shared_ptr<EventCore> ended = std::move(reader.kept);
    reader.kept = std::move(ended->next_kept_);
  }
}

EventHandlers* EventCore::current(std::size_t type) const noexcept {
  return lists_[type].load(std::memory_order_relaxed);  // relaxed: only a holder of the mutex stores
}

// Puts a list in the place of another, and retires the other with its chunks that the new one has not.
void EventCore::replace(std::size_t type, EventHandlers* with, EventChunk* dropped) noexcept {
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
void EventCore::note_birth(EventChunk* fresh) const noexcept {
  for (; fresh != nullptr; fresh = fresh->next) {
    fresh->born = last_retired_;
  }
}

// Called before replace() of the list that has the handler.
void EventCore::forget(EventHandler* handler) noexcept {
  handler->number = last_retired_ + 1;
  handler->next = std::exchange(removed_, handler);
  --handlers_;
}

Result<void> EventCore::add(std::size_t type, EventHandler* handler) {
  constexpr std::size_t kRetiredMost = 16;  // then add() pays for a heavy fence and a walk through the readers
  Garbage garbage;
  const std::lock_guard lock(mutex_);
  if (closed_) {
    return Error(Errc::closed, "the bus was closed");
  }
  EventHandlers* const old = type < EventBus::kTypesMax ? current(type) : nullptr;
  const std::size_t count = old == nullptr ? 0 : old->count;
  if (type >= EventBus::kTypesMax || count >= EventBus::kHandlersMax) {
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
    sys::heavy_fence();  // pairs with the light fence in ReaderSlot::enter()
    collect(garbage);
  }
  return {};
}

void EventCore::remove(std::size_t type, EventHandler* handler) noexcept {
  Garbage garbage;
  std::unique_lock lock(mutex_);
  if (closed_) {  // close() has removed the handler, and perhaps still waits for it
    wait_for_readers(lock, type);
    collect(garbage);
    return;
  }
  handler->alive.store(false, std::memory_order_relaxed);  // made visible by the heavy fence of wait_for_readers()
  if (const HandlerEdit edit = without_handler(current(type), handler); edit.made) {
    forget(handler);
    replace(type, edit.list, edit.dropped);
    note_birth(edit.fresh);
  }  // else there is no memory: the handler stays in its list, not alive, until close()
  wait_for_readers(lock, type);
  collect(garbage);
}

// Moves lists and handlers that no thread reads to the garbage. Called after a heavy fence.
void EventCore::collect(Garbage& garbage) noexcept {
  const auto is_read = [](const void* list) {
    EventReader* each = first_reader.load(std::memory_order_acquire);
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
bool EventCore::read_elsewhere(std::uint64_t newest, std::size_t type, bool inside) const noexcept {
  for (EventReader* each = first_reader.load(std::memory_order_acquire); each != nullptr; each = each->next) {
    if (each == event_reader || (inside && each->waits.load(std::memory_order_relaxed))) {
      continue;
    }
    for (const EventHandlers* list = retired_; list != nullptr; list = list->next) {
      const bool meant = list->number <= newest && (type == EventBus::kTypesMax || list->type == type);
      if (meant && each->slot.reads(list)) {
        return true;
      }
    }
  }
  return false;
}

// Waits until no other thread reads a list of the type that was retired before the call. Sleeps without the lock.
void EventCore::wait_for_readers(std::unique_lock<std::mutex>& lock, std::size_t type) noexcept {
  const std::uint64_t newest = last_retired_;
  EventReader* const mine = event_reader;
  const bool inside = mine != nullptr && mine->slot.depth() > 0;
  if (inside) {
    mine->waits.store(true, std::memory_order_relaxed);  // ordered by the heavy fence in announce_futex()
  }
  for (;;) {
    const auto ticket = quiet_.announce_futex(true);  // a heavy fence: pairs with the light fences in publish()
    if (!read_elsewhere(newest, type, inside)) {
      break;
    }
    lock.unlock();
    quiet_.sleep(ticket, Duration(-1));
    lock.lock();
  }
  if (inside) {
    mine->waits.store(false, std::memory_order_relaxed);
  }
}

void EventCore::close() noexcept {
  Garbage garbage;
  std::unique_lock lock(mutex_);
  closed_ = true;
  for (std::size_t type = 0; type < EventBus::kTypesMax; ++type) {
    if (EventHandlers* const list = current(type); list != nullptr) {
      list->for_each([this](EventHandler& handler) {
        handler.alive.store(false, std::memory_order_relaxed);
        forget(&handler);
      });
      replace(type, nullptr, chunks_of(list));
    }
  }
  wait_for_readers(lock, EventBus::kTypesMax);
  collect(garbage);
}

EventBusCounts EventCore::counts() const noexcept {
  const std::lock_guard lock(mutex_);
  return {threw_.load(std::memory_order_relaxed), refused_.load(std::memory_order_relaxed), handlers_};
}

void EventCore::handle_exception() noexcept {
  threw_.fetch_add(1, std::memory_order_relaxed);
  try {
    if (on_exception_) {
      on_exception_(std::current_exception());
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): dropped; the count has the handler's own exception
  }
}

}  // namespace detail

EventBus::EventBus(ExceptionHandler on_exception)
    : core_(std::make_shared<detail::EventCore>(std::move(on_exception))) {}

EventBus::~EventBus() {
  if (core_->inherited()) {
    (void)new std::shared_ptr<detail::EventCore>(core_);  // never destroyed
    return;
  }
  core_->close();
  if (detail::EventReader* const reader = detail::event_reader; reader != nullptr && reader->slot.depth() > 0) {
    detail::EventCore::keep(*reader, core_);  // a handler destroys the bus while its publish still runs
  }
}

void EventBus::close() noexcept {
  if (!core_->inherited()) {
    core_->close();
  }
}
EventBusCounts EventBus::counts() const noexcept { return core_->counts(); }

namespace {
constexpr CounterRow kEventBusRows[] = {WEFT_EVENT_BUS_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(std::size(kEventBusRows) == sync::count_of_rows<EventBusCounts>());
}  // namespace

constinit const CounterTable kEventBusTable = {"event_bus", "An `rt::EventBus`: `admin->add(name, bus)`.",
                                               kEventBusRows};

CounterSource EventBus::counter_source() const {
  return [weak = std::weak_ptr<const detail::EventCore>(core_)](std::string_view name, CounterReadings& into) {
    if (const auto core = weak.lock()) {
      into.push_back({&kEventBusTable, {{"event_bus", std::string(name)}}, sync::read_counters(core->counts())});
    }
  };
}

void Subscription::unsubscribe() noexcept {
  if (const std::shared_ptr<detail::EventCore> core = std::move(core_); core != nullptr && !core->inherited()) {
    core->remove(type_, std::exchange(handler_, nullptr));
  }
}

}  // namespace weft::rt
