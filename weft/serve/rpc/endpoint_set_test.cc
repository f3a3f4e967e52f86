// SPDX-License-Identifier: MIT
// Endpoints with host names: the addresses come from a look-up of the test.
#include "weft/serve/rpc/endpoint_set.h"

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/rpc/test_rpc.h"
#include "weft/sync/lock.h"
#include <gtest/gtest.h>

namespace weft::serve::rpc {
namespace {

using std::chrono::milliseconds;

using Hold = Method<"store.hold", std::string, std::string>;

// FakeNames: a resolver with one answer for every name. Affinity: any thread.
class FakeNames {
 public:
  FakeNames()
      : resolver_([this](const std::string& /*host*/, std::uint16_t port, bool /*ipv6*/) { return answer(port); }) {}

  void set(Result<std::vector<std::string>> hosts) {
    const sync::LockGuard lock(mutex_);
    hosts_ = std::move(hosts);
  }
  [[nodiscard]] net::Resolver* resolver() noexcept { return &resolver_; }
  [[nodiscard]] int lookups() const noexcept { return lookups_; }

 private:
  Result<net::Resolver::Addresses> answer(std::uint16_t port) {
    ++lookups_;
    const sync::LockGuard lock(mutex_);
    net::Resolver::Addresses addresses;
    for (const std::string& host : WEFT_TRY(Result<std::vector<std::string>>(hosts_))) {
      addresses.push_back(sys::SocketAddress::parse_numeric(host, port).value());
    }
    return addresses;
  }

  sync::StdMutex mutex_;
  Result<std::vector<std::string>> hosts_ WEFT_GUARDED_BY(mutex_) = Error(Errc::name_unresolved, "nothing is known");
  std::atomic<int> lookups_{0};
  net::Resolver resolver_;
};

// Servers at 127.0.0.1 and its neighbours, which have one port. Each counts its calls. A call with the text "hold"
// waits until release().
class EndpointNames : public test::RpcFixture {
 protected:
  // Serves at so many addresses, and returns the endpoint with a name.
  std::string serve_at(int count) {
    make_server();
    for (int attempt = 0; attempt < 20; ++attempt) {
      std::string port;
      std::vector<std::string> bound;
      for (int i = 0; i < count; ++i) {
        Methods methods;
        EXPECT_TRUE(methods.add<Hold>([this, i](const std::string& text, Call&) -> rt::Task<Result<std::string>> {
          ++ran_[i];
          while (text == "hold" && !released_) {
            const Result<void> slept = co_await rt::sleep(milliseconds(1));
            if (!slept) {
              co_return slept.error();
            }
          }
          co_return std::to_string(i);
        }));
        services_.emplace_back(std::move(methods));
        const auto at = rpc::listen(*server_, "tcp://127.0.0." + std::to_string(i + 1) + ":" + (i == 0 ? "0" : port),
                                    services_.back());
        if (!at) {
          break;  // another program has this port of the neighbour
        }
        port = at->substr(at->rfind(':') + 1);
        bound.push_back(*at);
      }
      if (bound.size() == static_cast<std::size_t>(count)) {
        return "tcp://store.test:" + port;
      }
    }
    ADD_FAILURE() << "no port is free at each address";
    return "";
  }
  BalancedOptions options() {
    BalancedOptions options;
    options.client.connection.reconnect_first = milliseconds(1);
    options.client.connection.reconnect_max = milliseconds(5);
    options.client.connection.connect_timeout = test::kLong;
    options.client.connection.resolver = names_.resolver();
    options.client.timeout = test::kLong;
    options.resolve_every = milliseconds(10);
    return options;
  }
  void open(const std::string& endpoint, const BalancedOptions& options) {
    auto client = BalancedClient::open(std::make_shared<ClientHost>(*rt::Core::current()), {endpoint}, options);
    ASSERT_TRUE(client) << client.error().message();
    client_ = std::move(client).value();
  }
  rt::Task<std::string> ask(std::string text) {
    BalancedCall call;
    call.wait_for_ready = true;
    const auto answer = co_await client_->call<Hold>(text, call);
    co_return answer ? *answer : std::string(answer.error().message());
  }
  template <typename Condition>
  static rt::Task<void> until(Condition condition) {
    const Instant limit = test::in_long();
    while (!condition() && sys::now() < limit) {
      (void)co_await rt::sleep(milliseconds(1));
    }
    EXPECT_TRUE(condition());
  }
  // Until the client has a connection to this host alone.
  rt::Task<void> move_to(std::string host) {
    names_.set(std::vector<std::string>{std::move(host)});
    const int before = names_.lookups();
    co_await until([&] { return names_.lookups() >= before + 2; });  // the one after the first new answer
    co_await until_connected(1);
  }
  rt::Task<void> until_connected(std::size_t count) {
    return until([this, count] {
      for (std::size_t i = 0; i < client_->size(); ++i) {
        if (!client_->client(i).is_connected()) {
          return false;
        }
      }
      return client_->size() == count;
    });
  }
  rt::Task<void> close() {
    const auto closed = co_await client_->close(test::in_long());
    EXPECT_TRUE(closed) << closed.error().message();
    client_.reset();
  }
  [[nodiscard]] std::uint64_t requests_of_page() const {
    CounterReadings readings;
    client_->counter_source()("store", readings);
    std::uint64_t sum = 0;
    for (const CounterReading& reading : readings) {
      for (std::size_t row = 0; row < reading.values.size(); ++row) {
        sum +=
            reading.table->thing == "client" && reading.table->rows[row].member == "answered" ? reading.values[row] : 0;
      }
    }
    return sum;
  }

  FakeNames names_;
  std::unique_ptr<BalancedClient> client_;
  std::array<std::atomic<int>, 3> ran_{};
  std::atomic<bool> released_ = false;
  std::deque<Service> services_;
};

TEST_F(EndpointNames, EachAddressOfANameGetsCalls) {
  const std::string endpoint = serve_at(3);
  names_.set(std::vector<std::string>{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.2"});
  const auto story = [&]() -> rt::Task<void> {
    open(endpoint, options());
    co_await until_connected(3);
    for (int i = 0; i < 60; ++i) {
      (void)co_await ask("go");
    }
    co_await close();
  };
  run(story());
  for (const auto& ran : ran_) {
    EXPECT_GT(ran, 0);
  }
}

TEST_F(EndpointNames, AnAddressThatLeavesKeepsItsCallsAndGetsNoMore) {
  const std::string endpoint = serve_at(2);
  names_.set(std::vector<std::string>{"127.0.0.1"});
  std::string held;
  const auto hold = [&]() -> rt::Task<void> { held = co_await ask("hold"); };
  const auto change = [&]() -> rt::Task<void> {
    co_await until([&] { return ran_[0] == 1; });
    co_await move_to("127.0.0.2");
    for (int i = 0; i < 20; ++i) {
      const std::string answer = co_await ask("go");
      EXPECT_EQ(answer, "1");
    }
    EXPECT_EQ(held, "");
    released_ = true;
    // The page keeps the counters of a connection that ended.
    co_await until([&] { return held == "0" && requests_of_page() == 21; });
  };
  const auto story = [&]() -> rt::Task<void> {
    open(endpoint, options());
    rt::Task<void> holding = hold();
    rt::Task<void> changing = change();
    co_await rt::when_all(std::move(holding), std::move(changing));
    // Back again, many times: slots are used again.
    for (int i = 0; i < 5; ++i) {
      co_await move_to("127.0.0." + std::to_string(i % 2 + 1));
      const std::string answer = co_await ask("go");
      EXPECT_EQ(answer, std::to_string(i % 2));
    }
    co_await close();
  };
  run(story());
}

TEST_F(EndpointNames, AFailedLookUpKeepsTheAddresses) {
  const std::string endpoint = serve_at(1);
  const auto story = [&]() -> rt::Task<void> {
    open(endpoint, options());
    co_await until([&] { return client_->counts().lookups_failed.value() >= 2; });
    const auto refused = co_await client_->call<Hold>("go");
    EXPECT_EQ(refused.error(), Errc::unreachable);
    EXPECT_EQ(refused.error().fate(), Fate::not_sent);
    EXPECT_NE(refused.error().message().find("nothing is known"), std::string::npos) << refused.error().message();
    names_.set(std::vector<std::string>{"127.0.0.1"});
    const std::string first = co_await ask("go");
    EXPECT_EQ(first, "0");
    names_.set(Error(Errc::name_unresolved, "nothing is known any more"));
    const std::uint64_t failed = client_->counts().lookups_failed.value();
    co_await until([&] { return client_->counts().lookups_failed.value() >= failed + 2; });
    const std::string second = co_await ask("go");
    EXPECT_EQ(second, "0");
    co_await close();
  };
  run(story());
}

TEST_F(EndpointNames, ALostConnectionCausesALookUp) {
  const std::string endpoint = serve_at(1);
  names_.set(std::vector<std::string>{"127.0.0.1"});
  const auto story = [&]() -> rt::Task<void> {
    BalancedOptions rare = options();
    rare.resolve_every = std::chrono::hours(1);
    open(endpoint, rare);
    co_await until_connected(1);
    EXPECT_EQ(names_.lookups(), 1);
    client_->client(0).connection().drop_connection(Error(Errc::connection_closed, "dropped by the test"));
    co_await until([&] { return names_.lookups() == 2; });
    co_await close();
  };
  run(story());
}

TEST_F(EndpointNames, AnAnswerOfAnySizeMakesABoundedNumberOfConnections) {
  const std::string endpoint = serve_at(1);
  std::vector<std::string> hosts;
  for (int i = 0; i < 400; ++i) {
    hosts.push_back("127.0." + std::to_string(1 + i / 200) + "." + std::to_string(1 + i % 200));
  }
  names_.set(hosts);
  const auto story = [&]() -> rt::Task<void> {
    open(endpoint, options());
    co_await until([&] { return client_->size() == BalancedClient::kEndpointsMax; });
    names_.set(std::vector<std::string>{"127.0.0.1"});
    const std::string answer = co_await ask("go");
    EXPECT_EQ(answer, "0");
    co_await until([&] { return client_->size() == 1; });
    co_await close();
  };
  run(story());
}

TEST_F(EndpointNames, WithoutLookUpsANameHasOneConnection) {
  const std::string endpoint = serve_at(2);
  names_.set(std::vector<std::string>{"127.0.0.2", "127.0.0.1"});
  const auto story = [&]() -> rt::Task<void> {
    BalancedOptions once = options();
    once.resolve_every = Duration(-1);
    open(endpoint, once);
    const std::string answer = co_await ask("go");
    EXPECT_EQ(answer, "1");
    EXPECT_EQ(client_->size(), 1u);
    EXPECT_EQ(client_->counts().lookups.value(), 0u);
    co_await close();
  };
  run(story());
}

TEST_F(EndpointNames, AClientMayEndDuringALookUp) {
  std::atomic<bool> finish = false;
  net::Resolver slow([&](const std::string&, std::uint16_t, bool) -> Result<net::Resolver::Addresses> {
    while (!finish) {
      std::this_thread::yield();
    }
    return Error(Errc::name_unresolved, "late");
  });
  const auto story = [&](bool closes) -> rt::Task<void> {
    BalancedOptions hanging = options();
    hanging.client.connection.resolver = &slow;
    open("tcp://store.test:1", hanging);
    co_await until([&] { return client_->counts().lookups.value() == 1; });
    if (closes) {
      co_await close();
    }
    client_.reset();
  };
  run(story(false));
  run(story(true));
  finish = true;
}

}  // namespace
}  // namespace weft::serve::rpc
