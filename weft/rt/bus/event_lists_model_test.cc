// SPDX-License-Identifier: MIT
#include <array>
#include <optional>

#include "tests/support/model_sites.h"
#include "tests/support/model_wait.h"
#include "weft/rt/bus/event_lists.h"
#include "weft/rt/bus/reader_slot.h"
#include "weft/sync/parker.h"
#include <gtest/gtest.h>

namespace weft::rt::detail {
namespace {

struct ModelWait : model::Wait {
  static constexpr std::size_t kLevels = 2;
};

struct Reader {
  BasicReaderSlot<ModelWait> slot;
  sync::Atomic<bool> waits{false};
  Reader* next = nullptr;
};

struct ModelLists {
  static constexpr std::size_t kTypesMax = 1;
  static constexpr std::size_t kHandlersMax = 4;
  using Mutex = model::Mutex;
  using Parker = sync::BasicParker<ModelWait>;
  using Reader = detail::Reader;
  static inline std::array<Reader*, 4> readers{};  // by thread
  static inline Reader* first = nullptr;
  static Reader* reader() { return readers[static_cast<std::size_t>(model::this_thread())]; }
  static Reader* first_reader() { return first; }
  static void heavy_fence(model::Where where = model::Where::current()) { model::heavy_fence(where); }
};
using Lists = BasicEventLists<ModelLists>;

// A handler: reports calls after it has left, and the number of its destructions.
struct Handler : EventHandler {
  Handler() : EventHandler{&called, &destroyed} {}
  static bool called(EventHandler& self, const void* /*event*/) {
    auto& handler = static_cast<Handler&>(self);
    model::require(handler.left == 0, "a handler begins after it has left");
    if (handler.on_call != nullptr) {
      handler.on_call(handler.context);
    }
    return handler.ended == 0;
  }
  static void destroyed(EventHandler* self) noexcept {
    auto& handler = *static_cast<Handler*>(self);
    model::require(handler.ended == 0, "a handler is destroyed twice");
    handler.ended = 1;
  }
  sync::Plain<int> left = 0;   // written by the thread that made it leave: a race with a call fails
  sync::Plain<int> ended = 0;  // the same for its destruction
  void (*on_call)(void* context) = nullptr;
  void* context = nullptr;
};

struct Place {
  // Each of the threads 1 .. `threads` has a reader.
  explicit Place(int threads) {
    ModelLists::readers = {};
    ModelLists::first = nullptr;
    for (int i = 1; i <= threads; ++i) {
      auto& reader = readers[static_cast<std::size_t>(i)];
      reader.next = std::exchange(ModelLists::first, &reader);
      ModelLists::readers[static_cast<std::size_t>(i)] = &reader;
    }
  }
  void add(int handler) { model::require(bool(lists->add(0, &handlers[handler])), "refused"); }
  void publish() {
    Reader& reader = *ModelLists::reader();
    EventHandlers* const list = lists->enter(reader, 0);
    if (list == nullptr) {
      return;
    }
    list->for_each([](EventHandler& handler) {
      if (handler.alive.load(std::memory_order_relaxed)) {
        handler.call(handler, nullptr);
      }
    });
    lists->leave(reader);
  }
  void remove(int handler) {
    lists->remove(0, &handlers[handler]);
    handlers[handler].left = 1;
  }
  void close() {
    lists->close();
    closed = 1;
  }
  void check(int count) {
    lists->close();
    lists.reset();
    for (int i = 0; i < count; ++i) {
      model::require(handlers[i].ended == 1, "a handler is not destroyed");
    }
  }

  Reader readers[4];
  Handler handlers[3];
  sync::Plain<int> closed = 0;
  std::optional<Lists> lists{std::in_place};
};

void an_unsubscribe_beside_a_close() {
  Place place(1);
  place.add(0);
  model::run_threads([&] { place.publish(); }, [&] { place.remove(0); }, [&] { place.close(); });
  place.check(1);
}

// After either has returned, no handler runs.
void a_close_beside_an_unsubscribe_of_another_handler() {
  Place place(1);
  place.add(0);
  place.add(1);
  model::run_threads([&] { place.publish(); }, [&] { place.remove(1); },
                     [&] {
                       place.close();
                       place.handlers[0].left = 1;
                     });
  place.check(2);
}

void two_unsubscribes_beside_a_publish() {
  Place place(1);
  place.add(0);
  place.add(1);
  model::run_threads([&] { place.publish(); }, [&] { place.remove(0); }, [&] { place.remove(1); });
  place.check(2);
}

void a_subscribe_beside_a_close() {
  Place place(1);
  place.add(0);
  bool taken = false;
  model::run_threads([&] { place.publish(); },
                     [&] {
                       place.handlers[1].left = 0;  // earlier writes are visible to a publish that calls the handler
                       taken = bool(place.lists->add(0, &place.handlers[1]));
                     },
                     [&] {
                       place.close();
                       place.handlers[0].left = 1;
                     });
  place.check(taken ? 2 : 1);
}

// Two handlers that make each other leave, each in its own thread: neither waits for the other for ever.
void handlers_that_make_each_other_leave() {
  Place place(2);
  place.add(0);
  place.add(1);
  struct Other {
    Place& place;
    int thread;
    int handler;
    bool done = false;
  };
  Other others[2] = {{place, 1, 1}, {place, 2, 0}};
  for (Other& other : others) {
    Handler& self = place.handlers[1 - other.handler];
    self.context = &other;
    self.on_call = [](void* context) {
      auto& mine = *static_cast<Other*>(context);
      if (model::this_thread() == mine.thread && !std::exchange(mine.done, true)) {
        mine.place.lists->remove(0, &mine.place.handlers[mine.handler]);
      }
    };
  }
  model::run_threads([&] { place.publish(); }, [&] { place.publish(); });
  place.check(2);
}

constexpr model::Scenario kScenarios[] = {
    {"an_unsubscribe_beside_a_close", an_unsubscribe_beside_a_close, {.preemptions = 2}},
    {"a_close_beside_an_unsubscribe_of_another_handler",
     a_close_beside_an_unsubscribe_of_another_handler,
     {.preemptions = 2}},
    {"two_unsubscribes_beside_a_publish", two_unsubscribes_beside_a_publish, {.preemptions = 2}},
    {"a_subscribe_beside_a_close", a_subscribe_beside_a_close, {.preemptions = 2}},
    {"handlers_that_make_each_other_leave", handlers_that_make_each_other_leave, {.preemptions = 2}},
};

TEST(EventListsModel, AHandlerThatHasLeftNeverRunsAndEndsOnce) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(EventListsModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("rt/bus/event_lists.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 7u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::rt::detail
