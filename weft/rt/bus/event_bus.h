// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/rt/bus/event_lists.h"
#include "weft/rt/bus/handler_list.h"
#include "weft/rt/bus/reader_slot.h"
#include "weft/rt/loop/job.h"
#include "weft/sync/atomic.h"
#include "weft/sync/counter_block.h"
#include "weft/sync/lock.h"
#include "weft/sync/parker.h"
#include "weft/sys/fence.h"
#include "weft/sys/fork.h"

namespace weft::rt {

class EventBus;

namespace detail {

[[nodiscard]] std::size_t take_event_type() noexcept;
// A number for each type of event, the same for every bus.
template <typename Event>
[[nodiscard]] std::size_t event_type() noexcept {
  static const std::size_t number = take_event_type();
  return number;
}

class EventCore;

// EventReader: a thread's slot and state, in a list of all readers that every thread may walk.
struct EventReader {
  ReaderSlot slot;
  sync::Atomic<bool> waits{false};  // the thread is inside an unsubscribe() that a handler calls
  sync::Atomic<bool> used{true};
  std::shared_ptr<EventCore> kept;  // only the thread uses it: a chain of buses that their handlers destroyed
  EventReader* next = nullptr;
};
extern thread_local EventReader* event_reader;            // null: none yet
extern std::atomic<EventReader*> first_event_reader;      // of all threads
[[nodiscard]] EventReader* make_event_reader() noexcept;  // null: no memory, or the thread is ending

}  // namespace detail

// Subscription: keeps a handler subscribed.
// Owner: a move-only value; destruction is unsubscribe(). May outlive the bus.
class [[nodiscard]] Subscription {
 public:
  Subscription() noexcept = default;
  Subscription(Subscription&& other) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept {
    if (this != &other) {
      unsubscribe();
      core_ = std::move(other.core_);
      type_ = other.type_;
      handler_ = other.handler_;
    }
    return *this;
  }
  ~Subscription() { unsubscribe(); }

  // After the return, the handler runs in no other thread and will not run again. Idempotent. A call from inside a
  // handler (this one, or another) does not wait for a thread that itself waits in an unsubscribe(): the two would wait
  // for each other.
  void unsubscribe() noexcept;
  [[nodiscard]] bool active() const noexcept { return core_ != nullptr; }  // not unsubscribed; the bus may be closed

 private:
  friend class EventBus;
  Subscription(std::shared_ptr<detail::EventCore> core, std::size_t type, detail::EventHandler* handler) noexcept
      : core_(std::move(core)), type_(type), handler_(handler) {}

  std::shared_ptr<detail::EventCore> core_;
  std::size_t type_ = 0;
  detail::EventHandler* handler_ = nullptr;
};

template <typename Event>
struct SubscribeOptions {
  int priority = 0;  // higher is called earlier; equal ones in the order of subscribing
  // returns false for an event that the handler does not take. Empty: the handler takes every event
  std::function<bool(const Event&)> filter{};
};

// clang-format off
#define WEFT_EVENT_BUS_COUNTERS(ROW)                                                               \
  ROW(threw, counter, "handlers_threw_total", "", "", "calls",                                     \
      "Calls of handlers and filters that threw.", "rt/bus/event_bus.cc")                          \
  ROW(refused, counter, "publishes_refused_total", "", "", "publishes",                            \
      "Publishes that were refused: nested too deep, or no memory.", "rt/bus/event_bus.h")         \
  ROW(handlers, gauge, "handlers", "", "", "handlers",                                             \
      "Handlers that are subscribed.", "rt/bus/event_bus.cc")
// clang-format on

struct EventBusCounts {
  using Number = std::uint64_t;
  WEFT_COUNTER_BLOCK(WEFT_EVENT_BUS_COUNTERS)
};
extern const CounterTable kEventBusTable;

// EventBus: passes events of any type to handlers of exactly that type, in the thread that publishes.
// Owner: its maker. Destruction is close().
// Affinity: any thread; handlers may publish, subscribe and unsubscribe. In a forked child close(), destruction and
// unsubscribe() do nothing.
// Cost: publish() takes no lock, allocates nothing and writes no memory that another publisher reads or writes: a store
// to the thread's own slot, two loads, and a call for each handler. The first publish of a thread makes that slot.
// subscribe() and unsubscribe() copy the list of the type under a mutex, of a long list one part and the pointers to
// the others; unsubscribe() waits for the publishes of that type that are under way.
// Invariants:
//   1. A publish calls, in order, the handlers that were subscribed when it began, without those that were unsubscribed
//      since. A handler's exception goes to on_exception and the count, and the publish calls the next handler.
//   2. After unsubscribe() has returned (see Subscription) the handler does not begin again.
//   3. After close() has returned no handler runs, except those that called it.
class EventBus {
 public:
  static constexpr std::size_t kTypesMax = 1024;      // of events, in a program
  static constexpr std::size_t kHandlersMax = 65536;  // of one type
  static constexpr std::size_t kNestedMax = ReaderSlot::kLevels;
  using ExceptionHandler = rt::ExceptionHandler;

  explicit EventBus(ExceptionHandler on_exception = {});
  EventBus(const EventBus&) = delete;
  EventBus& operator=(const EventBus&) = delete;
  ~EventBus();

  // Errors: resource_exhausted (kTypesMax, kHandlersMax, no memory); closed (by close(), or the process is a forked
  // child).
  template <typename Event, typename Handler>
    requires(std::same_as<Event, std::remove_cvref_t<Event>> && std::invocable<std::decay_t<Handler>&, const Event&>)
  Result<Subscription> subscribe(Handler&& handler, SubscribeOptions<Event> options = {});

  // Returns the number of handlers that took the event, including those that threw. 0 if the bus is closed, and if the
  // bus refuses the event: inside kNestedMax nested publishes, or without memory for a thread's first. The bus counts
  // refusals.
  template <typename Event>
  std::size_t publish(const Event& event) noexcept;

  void close() noexcept;  // unsubscribes everything, like Subscription::unsubscribe(); idempotent
  [[nodiscard]] EventBusCounts counts() const noexcept;
  [[nodiscard]] CounterSource counter_source() const;  // the same for a page of metrics, until the bus has ended

 private:
  std::shared_ptr<detail::EventCore> core_;
};

namespace detail {

// The operations of the lists of a bus: the system's here, the model checker's in the model test.
struct SystemLists {
  static constexpr std::size_t kTypesMax = EventBus::kTypesMax;
  static constexpr std::size_t kHandlersMax = EventBus::kHandlersMax;
  using Mutex = sync::StdMutex;
  using Parker = sync::Parker;
  using Reader = EventReader;
  static Reader* reader() noexcept { return event_reader; }  // of this thread
  static Reader* first_reader() noexcept {
    return first_event_reader.load(std::memory_order_acquire);  // pairs with the release in make_event_reader()
  }
  static void heavy_fence() noexcept { sys::heavy_fence(); }
};
using EventLists = BasicEventLists<SystemLists>;

// EventCore: the state that a bus and its subscriptions share.
class EventCore {
 public:
  explicit EventCore(EventBus::ExceptionHandler on_exception) : on_exception_(std::move(on_exception)) {}
  EventCore(const EventCore&) = delete;
  EventCore& operator=(const EventCore&) = delete;
  ~EventCore() = default;

  [[nodiscard]] EventLists& lists() noexcept { return lists_; }
  // Whether this process is a forked child of the bus's. There a reader's thread does not exist, and a lock may be held
  // for ever.
  [[nodiscard]] bool inherited() const noexcept { return birth_.elsewhere(); }
  // For a bus that one of its handlers destroys: keeps the core until that thread's publishes have ended.
  static void keep(EventReader& reader, std::shared_ptr<EventCore> core) noexcept;
  static void end_kept(EventReader& reader) noexcept;
  [[nodiscard]] EventBusCounts counts() const noexcept;

  std::size_t publish(std::size_t type, const void* event) noexcept {
    if (type >= EventBus::kTypesMax) [[unlikely]] {
      return 0;  // add() refuses handlers of such a type
    }
    if (!lists_.any(type)) {
      return 0;
    }
    EventReader* const reader = event_reader != nullptr ? event_reader : make_event_reader();
    if (reader == nullptr || reader->slot.full()) [[unlikely]] {
      refused_.fetch_add(1, std::memory_order_relaxed);
      return 0;
    }
    EventHandlers* const list = lists_.enter(*reader, type);
    if (list == nullptr) [[unlikely]] {
      return 0;
    }
    std::size_t called = 0;
    list->for_each([&](EventHandler& handler) {
      // Relaxed: a publish that happens after unsubscribe() reads false. unsubscribe() waits for the others.
      if (!handler.alive.load(std::memory_order_relaxed)) [[unlikely]] {
        return;
      }
      try {
        called += static_cast<std::size_t>(handler.call(handler, event));
      } catch (...) {
        ++called;
        handle_exception();
      }
    });
    lists_.leave(*reader);
    if (reader->kept != nullptr && reader->slot.depth() == 0) [[unlikely]] {
      end_kept(*reader);  // last: may destroy this core
    }
    return called;
  }

 private:
  void handle_exception() noexcept;

  const EventBus::ExceptionHandler on_exception_;
  const sys::Birth birth_;
  EventLists lists_;
  std::shared_ptr<EventCore> next_kept_;  // in the chain EventReader::kept
  std::atomic<std::uint64_t> threw_{0};
  std::atomic<std::uint64_t> refused_{0};
};

// BusHandler: the handler and the filter of one subscription.
template <typename Event, typename Handler>
struct BusHandler final : EventHandler {
  template <typename H>
  BusHandler(H&& function, SubscribeOptions<Event>&& options)
      : EventHandler{&call_typed, &destroy_typed, options.priority},
        handler(std::forward<H>(function)),
        filter(std::move(options.filter)) {}

  static bool call_typed(EventHandler& self, const void* event) {
    auto& typed = static_cast<BusHandler&>(self);
    const Event& given = *static_cast<const Event*>(event);
    if (typed.filter && !typed.filter(given)) {
      return false;
    }
    static_cast<void>(typed.handler(given));
    return true;
  }
  static void destroy_typed(EventHandler* self) noexcept { delete static_cast<BusHandler*>(self); }

  Handler handler;
  std::function<bool(const Event&)> filter;
};

}  // namespace detail

template <typename Event, typename Handler>
  requires(std::same_as<Event, std::remove_cvref_t<Event>> && std::invocable<std::decay_t<Handler>&, const Event&>)
Result<Subscription> EventBus::subscribe(Handler&& handler, SubscribeOptions<Event> options) {
  using Typed = detail::BusHandler<Event, std::decay_t<Handler>>;
  const std::size_t type = detail::event_type<Event>();
  auto* typed = new (std::nothrow) Typed(std::forward<Handler>(handler), std::move(options));
  if (typed == nullptr) {
    return Error(Errc::resource_exhausted, "no memory for a handler");
  }
  const Result<void> added = core_->inherited() ? Result<void>(Error(Errc::closed, "a forked child has not the bus"))
                                                : core_->lists().add(type, typed);
  if (!added) {
    delete typed;
    return added.error();
  }
  return Subscription(core_, type, typed);
}

template <typename Event>
std::size_t EventBus::publish(const Event& event) noexcept {
  return core_->publish(detail::event_type<Event>(), &event);
}

}  // namespace weft::rt
