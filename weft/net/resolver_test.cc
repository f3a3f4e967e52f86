// SPDX-License-Identifier: MIT
#include "weft/net/resolver.h"

#include <atomic>
#include <future>
#include <latch>
#include <stdexcept>

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

TEST(Resolver, CancelledRequestsAreNotDelivered) {
  GatedLookup lookup;
  std::atomic<int> delivered{0};
  std::vector<Resolver::RequestId> ids;
  std::latch last(1);
  {
    Resolver resolver(lookup.function());
    for (std::size_t i = 0; i < Resolver::kMaxWorkers + 2; ++i) {  // some being looked up, some queued
      ids.push_back(*resolver.submit("h", 1, false, [&](Answer) { delivered.fetch_add(1); }));
    }
    lookup.wait_for_started(static_cast<int>(Resolver::kMaxWorkers));
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
  for (int round = 0; round < 200; ++round) {
    std::atomic<bool> entered{false};
    std::atomic<bool> left{false};
    const auto id = *resolver.submit("h", 1, false, [&](Answer) {
      entered.store(true);
      for (int i = 0; i < 100; ++i) {
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

TEST(Resolver, RefusesBeyondItsBound) {
  GatedLookup lookup;
  Resolver resolver(lookup.function(), 1);
  for (int i = 1; i <= static_cast<int>(Resolver::kMaxWorkers); ++i) {
    ASSERT_TRUE(resolver.submit("h", 1, false, [](Answer) {}));
    lookup.wait_for_started(i);
  }
  ASSERT_TRUE(resolver.submit("h", 1, false, [](Answer) {}));
  EXPECT_EQ(resolver.submit("h", 1, false, [](Answer) {}).error().code(), Errc::resource_exhausted);
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
  for (std::size_t i = 0; i < 3 * Resolver::kMaxWorkers; ++i) {
    ASSERT_TRUE(resolver->submit("h", 1, false, [](Answer) {}));
  }
  lookup.wait_for_started(static_cast<int>(Resolver::kMaxWorkers));
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
