// SPDX-License-Identifier: MIT
#include "weft/net/resolver.h"

#include <atomic>
#include <future>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace weft::net {
namespace {

using Answer = Result<Resolver::Addresses>;

Answer one_address(std::uint16_t port) { return Resolver::Addresses{sys::SocketAddress::any(false, port)}; }

// A look-up that waits until the test opens its gate.
struct GatedLookup {
  std::atomic<int> started{0};
  std::promise<void> gate;
  std::shared_future<void> open{gate.get_future()};

  Resolver::Lookup function() {
    return [this](const std::string&, std::uint16_t port, bool) {
      started.fetch_add(1);
      started.notify_all();
      open.wait();
      return one_address(port);
    };
  }
  void wait_for_started(int count) {
    for (int seen = started.load(); seen < count; seen = started.load()) {
      started.wait(seen);
    }
  }
};

TEST(Resolver, DeliversWhatTheLookupFound) {
  Resolver resolver([](const std::string& host, std::uint16_t port, bool ipv6) -> Answer {
    if (host == "known" && ipv6) {
      return one_address(port);
    }
    return Error(Errc::name_unresolved);
  });
  std::promise<Answer> known;
  std::promise<Answer> unknown;
  ASSERT_TRUE(resolver.submit("known", 7, true, [&](Answer answer) { known.set_value(std::move(answer)); }));
  ASSERT_TRUE(resolver.submit("unknown", 7, true, [&](Answer answer) { unknown.set_value(std::move(answer)); }));
  EXPECT_EQ(known.get_future().get()->at(0).port(), 7);
  EXPECT_EQ(unknown.get_future().get().error().code(), Errc::name_unresolved);
}

TEST(Resolver, SharedOneAsksTheSystem) {
  std::promise<Answer> promise;
  ASSERT_TRUE(Resolver::shared().submit("localhost", 80, false, [&](Answer a) { promise.set_value(std::move(a)); }));
  const Answer answer = promise.get_future().get();
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->at(0).to_text(), "127.0.0.1:80");
}

TEST(Resolver, ASlowNameDoesNotHoldTheOthers) {
  std::promise<void> gate;
  std::shared_future<void> open(gate.get_future());
  Resolver resolver([&](const std::string& host, std::uint16_t port, bool) {
    if (host == "slow") {
      open.wait();
    }
    return one_address(port);
  });
  std::latch slow(1);
  std::promise<void> fast;
  ASSERT_TRUE(resolver.submit("slow", 1, false, [&](Answer) { slow.count_down(); }));
  ASSERT_TRUE(resolver.submit("fast", 1, false, [&](Answer) { fast.set_value(); }));
  fast.get_future().wait();
  EXPECT_FALSE(slow.try_wait());
  gate.set_value();
  slow.wait();
}

// As many names of which nothing is known as are looked up at once.
constexpr int kLookupsAtOnce = static_cast<int>(Resolver::kMaxWorkers) - 1;

std::string numbered_host(int number) { return "h" + std::to_string(number); }

TEST(Resolver, CancelledRequestsAreNotDelivered) {
  GatedLookup lookup;
  std::atomic<int> delivered{0};
  std::vector<Resolver::RequestId> ids;
  std::latch last(1);
  {
    Resolver resolver(lookup.function());
    for (int i = 0; i < kLookupsAtOnce + 2; ++i) {  // some being looked up, some queued; two requests for each
      ids.push_back(*resolver.submit(numbered_host(i), 1, false, [&](Answer) { delivered.fetch_add(1); }));
      ids.push_back(*resolver.submit(numbered_host(i), 1, false, [&](Answer) { delivered.fetch_add(1); }));
    }
    lookup.wait_for_started(kLookupsAtOnce);
    for (const auto id : ids) {
      EXPECT_TRUE(resolver.cancel(id));
      EXPECT_FALSE(resolver.cancel(id));
    }
    EXPECT_FALSE(resolver.cancel(0));
    ASSERT_TRUE(resolver.submit("h", 1, false, [&](Answer) { last.count_down(); }));
    lookup.gate.set_value();
    last.wait();
  }
  EXPECT_EQ(delivered.load(), 0);
}

TEST(Resolver, CancelWaitsForADeliveryUnderWay) {
  Resolver resolver([](const std::string&, std::uint16_t port, bool) { return one_address(port); });
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> entered{false};
    std::atomic<bool> left{false};
    const auto id = *resolver.submit("h", 1, false, [&](Answer) {
      entered.store(true);
      for (int i = 0; i < 20; ++i) {
        std::this_thread::yield();  // long enough to catch a cancel() that does not wait
      }
      left.store(true);
    });
    while (!entered.load()) {
      std::this_thread::yield();
    }
    EXPECT_FALSE(resolver.cancel(id));
    EXPECT_TRUE(left.load());  // and `entered` may go out of scope
  }
}

TEST(Resolver, ACallbackMayCancelItselfAndSubmit) {
  Resolver resolver([](const std::string&, std::uint16_t port, bool) { return one_address(port); });
  std::promise<Resolver::RequestId> id;
  std::shared_future<Resolver::RequestId> known(id.get_future());
  std::promise<void> second;
  id.set_value(*resolver.submit("h", 1, false, [&](Answer) {
    EXPECT_FALSE(resolver.cancel(known.get()));
    EXPECT_TRUE(resolver.submit("h", 1, false, [&](Answer) { second.set_value(); }));
  }));
  second.get_future().wait();
}

TEST(Resolver, RequestsForANameHaveOneLookup) {
  GatedLookup lookup;
  Resolver resolver(lookup.function());
  std::promise<Answer> answers[3];
  for (std::uint16_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(resolver.submit("h", static_cast<std::uint16_t>(i + 1), false,
                                [&, i](Answer answer) { answers[i].set_value(std::move(answer)); }));
  }
  std::promise<Answer> other;  // the same name with IPv6 is another one
  ASSERT_TRUE(resolver.submit("h", 9, true, [&](Answer answer) { other.set_value(std::move(answer)); }));
  lookup.wait_for_started(2);
  lookup.gate.set_value();
  for (std::uint16_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answers[i].get_future().get()->at(0).port(), i + 1);
  }
  EXPECT_EQ(other.get_future().get()->at(0).port(), 9);
  EXPECT_EQ(lookup.started.load(), 2);
}

TEST(Resolver, WhoeverGivesUpAndAsksAgainGetsTheAnswerOfTheLookupUnderWay) {
  GatedLookup lookup;
  std::atomic<int> given_up{0};
  std::promise<Answer> answer;
  Resolver resolver(lookup.function());
  for (int i = 0; i < 10; ++i) {
    const auto id = *resolver.submit("h", 1, false, [&](Answer) { given_up.fetch_add(1); });
    lookup.wait_for_started(1);
    EXPECT_TRUE(resolver.cancel(id));
  }
  ASSERT_TRUE(resolver.submit("h", 7, false, [&](Answer got) { answer.set_value(std::move(got)); }));
  lookup.gate.set_value();
  EXPECT_EQ(answer.get_future().get()->at(0).port(), 7);
  EXPECT_EQ(lookup.started.load(), 1);
  EXPECT_EQ(given_up.load(), 0);
}

// A look-up of "good" answers at once, every other one waits for the gate of its generation.
struct Hanging {
  std::atomic<int> generation{0};
  GatedLookup lookups[2];

  Resolver::Lookup function() {
    return [this](const std::string& host, std::uint16_t port, bool ipv6) {
      return host.starts_with("good") ? one_address(port) : lookups[generation.load()].function()(host, port, ipv6);
    };
  }
  static void expect_answer(Resolver& resolver, const std::string& host) {
    std::promise<void> answered;
    ASSERT_TRUE(resolver.submit(host, 1, false, [&](Answer) { answered.set_value(); }));
    answered.get_future().wait();
  }
};

TEST(Resolver, NamesThatWereSlowLeaveWorkersToNamesThatNobodyKnows) {
  Hanging hanging;
  Resolver resolver(hanging.function(), Resolver::kMaxPending, Duration(0));  // each look-up counts as slow
  std::latch all(kLookupsAtOnce);
  for (int i = 0; i < kLookupsAtOnce; ++i) {
    ASSERT_TRUE(resolver.submit(numbered_host(i), 1, false, [&](Answer) { all.count_down(); }));
  }
  hanging.lookups[0].wait_for_started(kLookupsAtOnce);
  hanging.generation = 1;
  hanging.lookups[0].gate.set_value();
  all.wait();
  std::latch again(kLookupsAtOnce);
  for (int i = 0; i < kLookupsAtOnce; ++i) {
    ASSERT_TRUE(resolver.submit(numbered_host(i), 1, false, [&](Answer) { again.count_down(); }));
  }
  hanging.lookups[1].wait_for_started(static_cast<int>(Resolver::kMaxSlow));
  for (int i = 0; i < 3; ++i) {
    Hanging::expect_answer(resolver, "good" + std::to_string(i));
  }
  EXPECT_EQ(hanging.lookups[1].started.load(), static_cast<int>(Resolver::kMaxSlow));
  hanging.lookups[1].gate.set_value();
  again.wait();
}

TEST(Resolver, NamesThatNobodyKnowsLeaveAWorkerToNamesThatWereQuick) {
  Hanging hanging;
  Resolver resolver(hanging.function(), Resolver::kMaxPending, std::chrono::hours(1));
  Hanging::expect_answer(resolver, "good");
  std::latch all(2 * kLookupsAtOnce);
  for (int i = 0; i < 2 * kLookupsAtOnce; ++i) {
    ASSERT_TRUE(resolver.submit(numbered_host(i), 1, false, [&](Answer) { all.count_down(); }));
  }
  hanging.lookups[0].wait_for_started(kLookupsAtOnce);
  Hanging::expect_answer(resolver, "good");
  EXPECT_EQ(hanging.lookups[0].started.load(), kLookupsAtOnce);
  hanging.lookups[0].gate.set_value();
  all.wait();
}

TEST(Resolver, RefusesNamesBeyondItsBound) {
  GatedLookup lookup;
  Resolver resolver(lookup.function(), 1);
  for (int i = 1; i <= kLookupsAtOnce; ++i) {
    ASSERT_TRUE(resolver.submit(numbered_host(i), 1, false, [](Answer) {}));
    lookup.wait_for_started(i);
  }
  const auto waits = resolver.submit("waits", 1, false, [](Answer) {});
  ASSERT_TRUE(waits);
  EXPECT_EQ(resolver.submit("refused", 1, false, [](Answer) {}).error().code(), Errc::resource_exhausted);
  EXPECT_TRUE(resolver.submit("waits", 1, false, [](Answer) {}));
  EXPECT_TRUE(resolver.submit(numbered_host(1), 1, false, [](Answer) {}));
  lookup.gate.set_value();
}

TEST(Resolver, DestructionJoinsTheLookupsUnderWay) {
  GatedLookup lookup;
  std::atomic<int> finished{0};
  auto gated = lookup.function();
  auto resolver = std::make_unique<Resolver>([&](const std::string& host, std::uint16_t port, bool ipv6) {
    auto answer = gated(host, port, ipv6);
    finished.fetch_add(1);
    return answer;
  });
  for (int i = 0; i < 3 * kLookupsAtOnce; ++i) {
    ASSERT_TRUE(resolver->submit(numbered_host(i), 1, false, [](Answer) {}));
  }
  lookup.wait_for_started(kLookupsAtOnce);
  std::thread destroyer([&] { resolver.reset(); });
  lookup.gate.set_value();
  destroyer.join();
  EXPECT_EQ(finished.load(), lookup.started.load());
}

TEST(Resolver, AThrowingLookupIsAnError) {
  Resolver resolver([](const std::string&, std::uint16_t, bool) -> Answer { throw std::bad_alloc(); });
  std::promise<Answer> promise;
  ASSERT_TRUE(resolver.submit("h", 1, false, [&](Answer answer) { promise.set_value(std::move(answer)); }));
  EXPECT_EQ(promise.get_future().get().error().code(), Errc::resource_exhausted);
}

}  // namespace
}  // namespace weft::net
