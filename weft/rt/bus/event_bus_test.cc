// SPDX-License-Identifier: MIT
#include "weft/rt/bus/event_bus.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/exec/test_executors.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using test::Signal;

struct Number {
  int value = 0;
};
struct Text {
  std::string value;
};

template <typename Event, typename Handler>
Subscription subscribed(EventBus& bus, Handler handler, SubscribeOptions<Event> options = {}) {
  return std::move(bus.subscribe<Event>(std::move(handler), std::move(options))).value();
}

struct HandlerThrowsInItsCopy {
  HandlerThrowsInItsCopy() = default;
  HandlerThrowsInItsCopy(const HandlerThrowsInItsCopy& /*other*/) { throw std::runtime_error("thrown by a copy"); }
  HandlerThrowsInItsCopy& operator=(const HandlerThrowsInItsCopy&) = delete;
  ~HandlerThrowsInItsCopy() = default;
  void operator()(int /*event*/) const { ADD_FAILURE(); }
};

TEST(EventBus, TheExceptionOfAHandlersCopyPassesThroughAndNothingIsSubscribed) {
  EventBus bus;
  const HandlerThrowsInItsCopy handler;
  EXPECT_THROW((void)bus.subscribe<int>(handler), std::runtime_error);
  EXPECT_EQ(bus.publish(1), 0u);
  EXPECT_EQ(bus.counts().handlers, 0u);
}

TEST(EventBus, CallsTheHandlersOfTheVeryType) {
  EventBus bus;
  int sum = 0;
  std::string text;
  const auto numbers = subscribed<Number>(bus, [&](const Number& event) { sum += event.value; });
  const auto texts = subscribed<Text>(bus, [&](const Text& event) { text += event.value; });
  EXPECT_EQ(bus.publish(Number{3}), 1u);
  EXPECT_EQ(bus.publish(Text{"a"}), 1u);
  EXPECT_EQ(bus.publish(1.5), 0u);
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(text, "a");
  EXPECT_EQ(bus.counts().handlers, 2u);
}

TEST(EventBus, HigherPrioritiesComeFirstAndEqualsInTheirOrder) {
  EventBus bus;
  std::string order;
  const auto add = [&](char name, int priority) {
    return subscribed<Number>(bus, [&order, name](const Number&) { order += name; },
                              {.priority = priority, .filter = {}});
  };
  const auto a = add('a', 0);
  const auto b = add('b', 5);
  const auto c = add('c', -5);
  const auto d = add('d', 5);
  const auto e = add('e', 0);
  bus.publish(Number{});
  EXPECT_EQ(order, "bdaec");
}

TEST(EventBus, AFilterDecides) {
  EventBus bus;
  int calls = 0;
  const auto odd =
      subscribed<Number>(bus, [&](const Number&) { ++calls; },
                         {.priority = 0, .filter = [](const Number& event) { return event.value % 2 == 1; }});
  EXPECT_EQ(bus.publish(Number{1}), 1u);
  EXPECT_EQ(bus.publish(Number{2}), 0u);
  EXPECT_EQ(calls, 1);
}

TEST(EventBus, ASubscriptionEndsWithItsOwner) {
  EventBus bus;
  int calls = 0;
  std::optional<Subscription> subscription = subscribed<Number>(bus, [&](const Number&) { ++calls; });
  bus.publish(Number{});
  Subscription moved = std::move(*subscription);
  subscription.reset();
  bus.publish(Number{});
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(moved.active());
  moved.unsubscribe();
  moved.unsubscribe();
  EXPECT_FALSE(moved.active());
  EXPECT_EQ(bus.publish(Number{}), 0u);
  EXPECT_EQ(calls, 2);
}

TEST(EventBus, UnsubscribeDestroysTheCapturesOfTheHandler) {
  EventBus bus;
  const auto owned = std::make_shared<int>(1);
  {
    const auto subscription = subscribed<Number>(bus, [owned](const Number&) {});
    EXPECT_EQ(owned.use_count(), 2);
  }
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(EventBus, CapturesThatNoRunningPublishCanReachAreDestroyedBesideIt) {
  struct Other {};
  EventBus bus;
  bool destroyed = false;
  Subscription more;
  const auto running = subscribed<Number>(bus, [&](const Number&) {
    more = subscribed<Number>(bus, [](const Number&) {});  // this publish still reads the list before
    auto captured = std::make_shared<int>(1);
    const std::weak_ptr<int> weak = captured;
    subscribed<Other>(bus, [kept = std::move(captured)](const Other&) {}).unsubscribe();
    destroyed = weak.expired();
  });
  EXPECT_EQ(bus.publish(Number{1}), 1u);
  EXPECT_TRUE(destroyed);
}

TEST(EventBus, ThousandsOfHandlersAreCalledInTheirOrderAndEachMayLeave) {
  constexpr int kHandlers = 3000;
  EventBus bus;
  std::vector<int> called;
  std::vector<Subscription> subscriptions;
  for (int i = 0; i < kHandlers; ++i) {
    SubscribeOptions<Number> options;
    options.priority = i % 3;
    subscriptions.push_back(subscribed<Number>(bus, [&called, i](const Number&) { called.push_back(i); }, options));
  }
  EXPECT_EQ(bus.publish(Number{1}), static_cast<std::size_t>(kHandlers));
  const auto in_order = [](int left, int right) { return left % 3 != right % 3 ? left % 3 > right % 3 : left < right; };
  EXPECT_TRUE(std::is_sorted(called.begin(), called.end(), in_order));
  for (int i = 0; i < kHandlers; i += 2) {
    subscriptions[static_cast<std::size_t>(i)].unsubscribe();
  }
  called.clear();
  EXPECT_EQ(bus.publish(Number{1}), static_cast<std::size_t>(kHandlers / 2));
  EXPECT_TRUE(std::is_sorted(called.begin(), called.end(), in_order));
  EXPECT_TRUE(std::all_of(called.begin(), called.end(), [](int each) { return each % 2 == 1; }));
  bus.close();
  EXPECT_EQ(bus.publish(Number{1}), 0u);
}

TEST(EventBus, AHandlerThatThrowsIsCountedAndTheOthersAreCalled) {
  int told = 0;
  EventBus bus([&](std::exception_ptr thrown) {
    ++told;
    std::rethrow_exception(thrown);
  });
  int calls = 0;
  const auto throwing = subscribed<Number>(bus, [](const Number&) { throw std::runtime_error("thrown"); });
  const auto filtering =
      subscribed<Number>(bus, [](const Number&) {}, {.priority = 0, .filter = [](const Number&) -> bool { throw 1; }});
  const auto counting = subscribed<Number>(bus, [&](const Number&) { ++calls; });
  EXPECT_EQ(bus.publish(Number{}), 3u);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(told, 2);
  EXPECT_EQ(bus.counts().threw, 2u);
}

TEST(EventBus, AHandlerMayUnsubscribeItselfAndOthersAndSubscribe) {
  EventBus bus;
  std::string order;
  Subscription self;
  Subscription other;
  std::vector<Subscription> late;
  self = subscribed<Number>(bus, [&](const Number&) {
    order += 's';
    self.unsubscribe();
    other.unsubscribe();
    late.push_back(subscribed<Number>(bus, [&](const Number&) { order += 'l'; }));
  });
  other = subscribed<Number>(bus, [&](const Number&) { order += 'o'; });
  bus.publish(Number{});
  EXPECT_EQ(order, "s");  // `other` does not begin any more; `late` was subscribed after this publish began
  bus.publish(Number{});
  EXPECT_EQ(order, "sl");
}

TEST(EventBus, HandlersMayPublishUpToTheBound) {
  EventBus bus;
  std::size_t depth = 0;
  const auto nested = subscribed<Number>(bus, [&](const Number& event) {
    ++depth;
    bus.publish(event);
  });
  bus.publish(Number{});
  EXPECT_EQ(depth, EventBus::kNestedMax);
  EXPECT_EQ(bus.counts().refused, 1u);
  depth = EventBus::kNestedMax - 1;
  bus.publish(Number{});
  EXPECT_EQ(bus.counts().refused, 2u);
}

TEST(EventBus, AClosedBusDeliversNothingAndRefuses) {
  EventBus bus;
  int calls = 0;
  auto subscription = subscribed<Number>(bus, [&](const Number&) { ++calls; });
  bus.close();
  bus.close();
  EXPECT_EQ(bus.publish(Number{}), 0u);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(bus.subscribe<Number>([](const Number&) {}).error(), Errc::closed);
  subscription.unsubscribe();
}

TEST(EventBus, ASubscriptionMayOutliveTheBus) {
  Subscription subscription;
  {
    EventBus bus;
    subscription = subscribed<Number>(bus, [](const Number&) {});
  }
  EXPECT_TRUE(subscription.active());
}

TEST(EventBus, MayBeDestroyedByAHandler) {
  auto bus = std::make_unique<EventBus>();
  int after = 0;
  auto first = subscribed<Number>(*bus, [&](const Number&) { bus.reset(); }, {.priority = 1, .filter = {}});
  auto second = subscribed<Number>(*bus, [&](const Number&) { ++after; });
  first = {};
  first = subscribed<Number>(*bus, [&](const Number&) { bus.reset(); }, {.priority = 1, .filter = {}});
  EventBus* const last = bus.get();
  EXPECT_EQ(last->publish(Number{}), 1u);
  EXPECT_EQ(after, 0);
}

// The handler uses an object that is destroyed right after unsubscribe() has returned.
TEST(EventBus, AfterUnsubscribeTheHandlerRunsNowhere) {
  EventBus bus;
  std::atomic<bool> over{false};
  std::vector<std::thread> publishers;
  publishers.reserve(2);
  for (int i = 0; i < 2; ++i) {
    publishers.emplace_back([&] {
      while (!over.load()) {
        bus.publish(Number{1});
      }
    });
  }
  for (int round = 0; round < 300; ++round) {
    auto used = std::make_unique<std::vector<int>>(100, 1);
    auto* const raw = used.get();
    auto subscription = subscribed<Number>(bus, [raw](const Number&) {
      if (raw->size() != 100 || (*raw)[99] != 1) {
        std::abort();
      }
    });
    if (round % 3 == 0) {
      std::this_thread::yield();
    }
    subscription.unsubscribe();
    used.reset();
  }
  over.store(true);
  for (std::thread& publisher : publishers) {
    publisher.join();
  }
}

TEST(EventBus, UnsubscribeWaitsForAHandlerThatRuns) {
  EventBus bus;
  Signal inside;
  Signal go_on;
  std::atomic<bool> ended{false};
  auto subscription = subscribed<Number>(bus, [&](const Number&) {
    inside.give();
    (void)go_on.take();
    ended.store(true);
  });
  std::thread publisher([&] { bus.publish(Number{}); });
  ASSERT_TRUE(inside.take());
  std::atomic<bool> returned{false};
  std::thread unsubscriber([&] {
    subscription.unsubscribe();
    EXPECT_TRUE(ended.load());
    returned.store(true);
  });
  EXPECT_FALSE(returned.load());
  EXPECT_EQ(bus.publish(1), 0u);  // other types publish and subscribe meanwhile
  const auto another = subscribed<Text>(bus, [](const Text&) {});
  go_on.give();
  publisher.join();
  unsubscriber.join();
  EXPECT_TRUE(returned.load());
}

// Each handler unsubscribes the other while the other runs: neither may wait for ever.
TEST(EventBus, HandlersThatUnsubscribeEachOtherDoNotHang) {
  for (int round = 0; round < 200; ++round) {
    EventBus bus;
    std::atomic<int> inside{0};
    Subscription one;
    Subscription two;
    const auto meet = [&] {
      inside.fetch_add(1);
      while (inside.load() < 2) {
        std::this_thread::yield();
      }
    };
    one = subscribed<Number>(bus, [&](const Number&) {
      meet();
      two.unsubscribe();
    });
    two = subscribed<Text>(bus, [&](const Text&) {
      meet();
      one.unsubscribe();
    });
    std::thread other([&] { bus.publish(Text{}); });
    bus.publish(Number{});
    other.join();
    EXPECT_EQ(bus.publish(Number{}) + bus.publish(Text{}), 0u);
  }
}

TEST(EventBus, ThreadsSubscribePublishAndUnsubscribeAtWill) {
  EventBus bus;
  std::atomic<std::uint64_t> calls{0};
  const auto steady = subscribed<Number>(bus, [&](const Number&) { calls.fetch_add(1); });
  constexpr int kPublishes = 3000;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int publish = 0; publish < kPublishes; ++publish) {
        bus.publish(Number{publish});
      }
    });
  }
  std::atomic<std::uint64_t> passing{0};
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 300; ++turn) {
        const auto first =
            subscribed<Number>(bus, [&](const Number&) { passing.fetch_add(1); }, {.priority = turn, .filter = {}});
        const auto second = subscribed<Text>(bus, [&](const Text&) { passing.fetch_add(1); });
        bus.publish(Text{});
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(calls.load(), 2u * kPublishes);
  EXPECT_GE(passing.load(), 600u);
  EXPECT_EQ(bus.counts().handlers, 1u);
}

TEST(EventBus, UnsubscribeWaitsForItsHandlerAlsoBesideAClose) {
  EventBus bus;
  test::Signal begun;
  std::atomic<bool> go_on{false};
  std::atomic<bool> over{false};
  std::atomic<int> ending{0};
  Subscription subscription = bus.subscribe<int>([&](int) {
                                   begun.give();
                                   while (!go_on.load()) {
                                     std::this_thread::yield();
                                   }
                                   over.store(true);
                                 })
                                  .value();
  std::thread publisher([&] { bus.publish(1); });
  ASSERT_TRUE(begun.take());
  std::thread closer([&] {
    ending.fetch_add(1);
    bus.close();
    EXPECT_TRUE(over.load());
  });
  while (bus.counts().handlers != 0) {  // close() has removed the handler
    std::this_thread::yield();
  }
  std::thread leaver([&] {
    ending.fetch_add(1);
    subscription.unsubscribe();
    EXPECT_TRUE(over.load()) << "unsubscribe() returned while the handler ran";
  });
  while (ending.load() < 2) {
    std::this_thread::yield();
  }
  for (int i = 0; i < 100; ++i) {
    std::this_thread::yield();
  }
  go_on.store(true);
  publisher.join();
  closer.join();
  leaver.join();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // a sanitizer's malloc does not count
TEST(EventBus, ListsThatNoThreadReadsAreFreedAlsoWhileAThreadWaitsInUnsubscribe) {
  struct Slow {};
  constexpr std::size_t kHandlers = 2000;
  EventBus bus;
  std::vector<Subscription> subscriptions;
  const auto subscribe_many = [&] {
    for (std::size_t i = 0; i < kHandlers; ++i) {
      subscriptions.push_back(bus.subscribe<int>([](int) {}).value());
    }
  };
  subscriptions.reserve(3 * kHandlers);
  subscribe_many();
  test::Signal begun;
  test::Signal released;
  Subscription slow = bus.subscribe<Slow>([&](const Slow&) {
                           begun.give();
                           EXPECT_TRUE(released.take());
                         })
                          .value();
  std::thread publisher([&] { bus.publish(Slow()); });
  ASSERT_TRUE(begun.take());
  std::thread leaver([&] { slow.unsubscribe(); });
  while (bus.counts().handlers != kHandlers) {  // it has taken the handler out, and waits
    std::this_thread::yield();
  }
  const std::size_t before = ::mallinfo2().uordblks;
  subscribe_many();
  constexpr std::size_t kListBytes = 2 * kHandlers * sizeof(void*);
  EXPECT_LE(::mallinfo2().uordblks, before + 100 * kListBytes) << "of the 2,000 lists meanwhile nearly all are gone";
  released.give();
  publisher.join();
  leaver.join();
}
#endif

}  // namespace
}  // namespace weft::rt
