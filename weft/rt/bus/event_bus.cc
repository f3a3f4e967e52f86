// SPDX-License-Identifier: MIT
#include "weft/rt/bus/event_bus.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <new>
#include <string>
#include <utility>

namespace weft::rt {
namespace detail {

// The readers of all threads: a list that only grows. A new thread reuses the reader of a thread that has ended.
// Readers are never freed, so that any thread may walk the list at any time.
constinit std::atomic<EventReader*> first_event_reader{nullptr};

namespace {

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
  for (EventReader* each = first_event_reader.load(std::memory_order_acquire); each != nullptr; each = each->next) {
    bool used = false;
    if (each->used.compare_exchange_strong(used, true, std::memory_order_acquire, std::memory_order_relaxed)) {
      return event_reader = each;
    }
  }
  auto* made = new (std::nothrow) EventReader;
  if (made != nullptr) {
    made->next = first_event_reader.load(std::memory_order_relaxed);
    // Release pairs with the acquires of the threads that walk the list. A thread that misses this reader passed its
    // heavy fence before the light fence of this reader's first enter(), which then sees that thread's change.
    while (!first_event_reader.compare_exchange_weak(made->next, made, std::memory_order_release,
                                                     std::memory_order_relaxed)) {
    }
    event_reader = made;
  }
  return made;
}

std::size_t take_event_type() noexcept {
  static std::atomic<std::size_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
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

EventBusCounts EventCore::counts() const noexcept {
  return {threw_.load(std::memory_order_relaxed), refused_.load(std::memory_order_relaxed), lists_.handlers()};
}

void EventCore::handle_exception() noexcept {
  threw_.fetch_add(1, std::memory_order_relaxed);
  detail::handle_exception(on_exception_);
}

}  // namespace detail

EventBus::EventBus(ExceptionHandler on_exception)
    : core_(std::make_shared<detail::EventCore>(std::move(on_exception))) {}

EventBus::~EventBus() {
  if (core_->inherited()) {
    (void)new (std::nothrow) std::shared_ptr<detail::EventCore>(core_);  // never destroyed
    return;
  }
  core_->lists().close();
  if (detail::EventReader* const reader = detail::event_reader; reader != nullptr && reader->slot.depth() > 0) {
    detail::EventCore::keep(*reader, core_);  // a handler destroys the bus while its publish still runs
  }
}

void EventBus::close() noexcept {
  if (!core_->inherited()) {
    core_->lists().close();
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
    core->lists().remove(type_, std::exchange(handler_, nullptr));
  }
}

}  // namespace weft::rt
