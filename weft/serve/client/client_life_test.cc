// SPDX-License-Identifier: MIT
// Connecting, connecting again, and the ends of clients.
#include <atomic>
#include <new>
#include <string>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/serve/client/client.h"
#include "weft/serve/client/test_serve_client.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/limits.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::ask;
using test::ask_into;
using test::echo;
using test::HeaderClient;
using test::HeaderSession;
using test::in_long;
using test::kLong;
using test::kOne;
using test::open_client;
using test::Signal;
using test::soon;
using Texts = std::vector<Result<std::string>>;

class ClientLifeTest : public test::ClientFixture {};

rt::Task<void> ask_nobody() {
  const auto client = open_client("tcp://127.0.0.1:1");  // no listener on this port
  const auto answer = co_await ask(client.get(), kOne, "anyone?");
  EXPECT_EQ(answer.error(), Errc::unreachable);
  EXPECT_FALSE(client->send(kOne, {}));
  EXPECT_EQ(client->requests().refused.value(), 2u);
  EXPECT_EQ(answer.error().message(), "no such peer: not connected yet: the first attempt has not ended; not sent");
}
TEST_F(ClientLifeTest, WithoutAConnectionARequestIsRefusedAtOnceAndCounted) { run(ask_nobody()); }

rt::Task<void> close_before_the_attempt_begins() {
  std::unique_ptr<HeaderClient> client;
  rt::TaskScope scope(rt::Core::current()->loop());
  EXPECT_TRUE(scope.spawn(test::run_nested(&scope, [&]() -> rt::Task<void> {
    client = open_client("tcp://127.0.0.1:1");
    co_return;
  })));
  const auto closed = co_await client->close(sys::now() + std::chrono::seconds(5));
  EXPECT_TRUE(closed) << closed.error().message();
  EXPECT_TRUE(co_await scope.join());
}
TEST_F(ClientLifeTest, AClientThatClosesBeforeItsFirstAttemptBeginsWaitsForNothing) {
  run(close_before_the_attempt_begins());
}

// Waits for the first attempt's end, so that no deadline races with it.
rt::Task<void> ask_why(std::string endpoint, ClientOptions options, std::vector<std::string>* texts) {
  rt::AsyncEvent told;
  options.on_event = [&](const ClientEvent& event) {
    EXPECT_EQ(event.kind, ClientEvent::Kind::unconnected);
    told.set();
  };
  const auto client = open_client(endpoint, std::move(options));
  EXPECT_TRUE(co_await told.wait());
  const Result<void> connected = co_await client->connected(soon());
  texts->push_back(connected.error().message());
  const auto answer = co_await ask(client.get(), kOne, "anyone?");
  texts->push_back(answer.error().message());
}
TEST_F(ClientLifeTest, AServerThatRefusesIsNamedWithTheReason) {
  std::vector<std::string> texts;
  run(ask_why("tcp://127.0.0.1:1", {}, &texts));
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0].find("connection failed: tcp://127.0.0.1:1"), 0u) << texts[0];
  EXPECT_NE(texts[0].find("Connection refused"), std::string::npos) << texts[0];
  EXPECT_EQ(texts[1].find("no such peer: not connected: connection failed: tcp://127.0.0.1:1"), 0u) << texts[1];
  EXPECT_NE(texts[1].find("Connection refused"), std::string::npos) << texts[1];
}
TEST_F(ClientLifeTest, ANameWithoutAnAddressIsSaidToBeOne) {
  net::Resolver resolver([](const std::string&, std::uint16_t, bool) -> Result<net::Resolver::Addresses> {
    return Error(Errc::name_unresolved, "no such host");
  });
  ClientOptions options;
  options.resolver = &resolver;
  std::vector<std::string> texts;
  run(ask_why("tcp://server.test:5", options, &texts));
  EXPECT_EQ(texts, (std::vector<std::string>{
                       "name not resolved: tcp://server.test:5: no such host",
                       "no such peer: not connected: name not resolved: tcp://server.test:5: no such host; not sent"}));
}

rt::Task<void> use_on_another_core(rt::Runtime* runtime, HeaderClient* client, std::vector<std::string>* texts) {
  const auto use = [client, texts]() -> rt::Task<void> {
    const auto answer = co_await ask(client, kOne, "hello", in_long());
    texts->push_back(answer.error().message());
    const Result<void> connected = co_await client->connected(in_long());
    texts->push_back(connected.error().message());
    texts->push_back(client->send(kOne, {}).error().message());
    const Result<void> closed = co_await client->close(in_long());
    texts->push_back(closed.error().message());
  };
  const auto used = co_await runtime->call(1, use);
  EXPECT_TRUE(used);
}
TEST_F(ClientLifeTest, AClientOfOneCoreIsRefusedOnAnother) {
  rt::RuntimeOptions cores;
  cores.cores = 2;
  const auto runtime = std::move(rt::Runtime::start(cores)).value();
  std::vector<std::string> texts;
  const auto live = [](rt::Runtime* on, std::string endpoint, std::vector<std::string>* into) -> rt::Task<void> {
    const auto client = open_client(endpoint);
    EXPECT_TRUE(co_await client->connected(in_long()));
    co_await use_on_another_core(on, client.get(), into);
    EXPECT_TRUE(client->is_connected());
  };
  EXPECT_TRUE(rt::spawn(runtime->core(0).loop(), live(runtime.get(), listen(), &texts)).get());
  const std::string wrong = "not allowed in this state: client of core 0 used on core 1";
  EXPECT_EQ(texts, (std::vector<std::string>{wrong + "; not sent", wrong, wrong + "; not sent", wrong}));
}

TEST_F(ClientLifeTest, EndpointsThatNoClientCanConnectToAreRefused) {
  const auto check = []() -> rt::Task<void> {
    const auto host = std::make_shared<ClientHost>(*rt::Core::current());
    EXPECT_EQ(HeaderClient::open(host, "inproc://x").error(), Errc::not_supported);
    EXPECT_EQ(HeaderClient::open(host, "tcp://127.0.0.1").error(), Errc::malformed_endpoint);
    co_return;
  };
  run(check());
  const auto host = std::make_shared<ClientHost>(runtime_->core(0));
  EXPECT_EQ(HeaderClient::open(host, "tcp://127.0.0.1:1").error(), Errc::invalid_state);  // not on the host's core
}

// A client must recover each time that its server comes back.
TEST_F(ClientLifeTest, AClientConnectsAgainWheneverItsServerCameBack) {
  struct Steps {
    Signal connected, answered, lost;
  };
  const auto live = [](std::string endpoint, Steps* steps, int times) -> rt::Task<void> {
    ClientOptions options;
    options.on_event = [steps](const ClientEvent& event) {
      if (event.kind == ClientEvent::Kind::lost) {
        steps->lost.give();
      }
    };
    const auto client = open_client(endpoint, options);
    for (int i = 0; i < times; ++i) {
      EXPECT_TRUE(co_await client->connected(in_long()));
      const auto answer = co_await ask(client.get(), kOne, std::to_string(i));
      EXPECT_EQ(answer, std::to_string(i));
      steps->answered.give();
      // And until the event was delivered.
      while (client->connections().lost.value() == static_cast<std::uint64_t>(i)) {
        (void)co_await rt::sleep(std::chrono::milliseconds(1));
      }
    }
  };
  script_.on_frame = echo;
  Steps steps;
  auto done = rt::spawn(runtime_->core(0).loop(), live(listen(), &steps, 5));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(steps.answered.take());
    ASSERT_TRUE(server_->stop(sys::now() + kLong));
    ASSERT_TRUE(steps.lost.take());
    ASSERT_TRUE(server_->restart());
  }
  ASSERT_TRUE(done.wait_until(sys::now() + kLong));
}

rt::Task<void> connect_by_name(std::string endpoint, net::Resolver* resolver, Signal* looked_up) {
  ClientOptions options;
  options.resolver = resolver;
  const auto client = open_client("tcp://server.test" + endpoint.substr(endpoint.rfind(':')), options);
  EXPECT_EQ((co_await client->connected(soon())).error(), Errc::timed_out);  // this core runs meanwhile
  looked_up->give();
  EXPECT_TRUE(co_await client->connected(in_long()));
  const auto answer = co_await ask(client.get(), kOne, "by name");
  EXPECT_EQ(answer, "by name");
}
TEST_F(ClientLifeTest, ASlowLookUpBlocksNoOtherTask) {
  script_.on_frame = echo;
  Signal may_answer;
  net::Resolver resolver([&](const std::string& host, std::uint16_t port, bool) -> Result<net::Resolver::Addresses> {
    EXPECT_EQ(host, "server.test");
    EXPECT_TRUE(may_answer.take());
    return net::Resolver::Addresses{sys::SocketAddress::parse_numeric("127.0.0.1", port).value()};
  });
  run(connect_by_name(listen(), &resolver, &may_answer));
}
// An attempt that failed would throw the answer away, and the next one would begin the look-up anew.
rt::Task<void> connect_by_slow_name(std::string endpoint, net::Resolver* resolver, Signal* looked_up) {
  ClientOptions options;
  options.resolver = resolver;
  options.connect_timeout = std::chrono::milliseconds(1);
  const auto client = open_client("tcp://server.test" + endpoint.substr(endpoint.rfind(':')), options);
  (void)co_await rt::sleep(std::chrono::milliseconds(10));
  EXPECT_EQ(client->connections().attempts.value(), 1u);
  EXPECT_EQ(client->connections().timed_out.value(), 0u);
  looked_up->give(1000);  // a busy machine may need several attempts
  EXPECT_TRUE(co_await client->connected(in_long()));
}
TEST_F(ClientLifeTest, ALookUpTakesNoneOfTheTimeToConnect) {
  Signal may_answer;
  net::Resolver resolver([&](const std::string&, std::uint16_t port, bool) -> Result<net::Resolver::Addresses> {
    EXPECT_TRUE(may_answer.take());
    return net::Resolver::Addresses{sys::SocketAddress::parse_numeric("127.0.0.1", port).value()};
  });
  run(connect_by_slow_name(listen(), &resolver, &may_answer));
}
TEST_F(ClientLifeTest, ALookUpThatIsNotDoneInTimeIsGivenUp) {
  Signal may_end;
  {
    net::Resolver resolver([&](const std::string&, std::uint16_t, bool) -> Result<net::Resolver::Addresses> {
      EXPECT_TRUE(may_end.take());
      return Error(Errc::name_unresolved);
    });
    const auto give_up = [](net::Resolver* slow) -> rt::Task<void> {
      rt::AsyncEvent told;
      ClientOptions options;
      options.resolver = slow;
      options.lookup_timeout = std::chrono::milliseconds(1);
      options.on_event = [&](const ClientEvent& event) {
        EXPECT_EQ(event.kind, ClientEvent::Kind::unconnected);
        EXPECT_EQ(event.why.message(),
                  "timed out: tcp://nowhere.test:1: looking up the host's name took longer than lookup_timeout");
        told.set();
      };
      const auto client = open_client("tcp://nowhere.test:1", options);
      EXPECT_TRUE(co_await told.wait());
      EXPECT_GE(client->connections().timed_out.value(), 1u);
    };
    run(give_up(&resolver));
    may_end.give(100);
  }
}

// --- ends ---

rt::Task<void> end_with_waiters(std::string endpoint, bool close) {
  auto client = open_client(endpoint);
  EXPECT_TRUE(co_await client->connected());
  Texts texts(20);
  rt::TaskScope scope(*rt::Loop::current());
  for (auto& text : texts) {
    EXPECT_TRUE(scope.spawn(ask_into(client.get(), kOne, "?", &text)));
  }
  if (close) {
    EXPECT_EQ((co_await client->close(soon())).error(), Errc::timed_out);
  } else {
    client.reset();
  }
  EXPECT_TRUE(co_await scope.join());
  for (const auto& text : texts) {
    EXPECT_EQ(text.error(), Errc::closed);
  }
}
// An awaiting request must not hang.
TEST_F(ClientLifeTest, RequestsThatWaitWhenTheClientIsClosedAreAnswered) { run(end_with_waiters(listen(), true)); }
TEST_F(ClientLifeTest, RequestsThatWaitWhenTheClientIsDestroyedAreAnswered) { run(end_with_waiters(listen(), false)); }

rt::Task<void> close_after_asking(std::string endpoint) {
  const auto client = open_client(endpoint);
  EXPECT_TRUE(co_await client->connected());
  Texts texts(20);
  rt::TaskScope scope(*rt::Loop::current());
  for (auto& text : texts) {
    EXPECT_TRUE(scope.spawn(ask_into(client.get(), kOne, "in flight", &text)));
  }
  EXPECT_TRUE(co_await client->close(in_long()));
  const auto refused = co_await ask(client.get(), kOne, "closed");
  EXPECT_EQ(refused.error(), Errc::closed);
  EXPECT_TRUE(co_await client->close(in_long()));
  EXPECT_EQ((co_await client->connected()).error(), Errc::closed);
  EXPECT_TRUE(co_await scope.join());
  EXPECT_EQ(texts, Texts(20, std::string("in flight")));
}
TEST_F(ClientLifeTest, CloseWaitsForTheResponsesThatAreOwed) {
  script_.on_frame = echo;
  run(close_after_asking(listen()));
}

TEST_F(ClientLifeTest, AResponseThatIsOwedWhenTheServerStopsComes) {
  Signal owed;
  std::atomic<std::uint64_t> id{0};
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    session.begin_reply();
    id = session.id().value;
    owed.give();
  };
  const auto live = [](std::string endpoint) -> rt::Task<void> {
    const auto client = open_client(endpoint);
    EXPECT_TRUE(co_await client->connected());
    const auto answer = co_await ask(client.get(), kOne, "?");
    EXPECT_EQ(answer, "late, but not lost");
  };
  auto done = rt::spawn(runtime_->core(0).loop(), live(listen()));
  ASSERT_TRUE(owed.take());
  server_->begin_stop(sys::now() + kLong);
  ASSERT_TRUE(server_->post_to(SessionId{id.load()}, [](Session& session) {
    (void)session.send_bytes(as_bytes(test::frame_of(1, "late, but not lost")));
    session.end_reply();
  }));
  ASSERT_TRUE(done.wait_until(sys::now() + kLong));
}

rt::Task<void> cancel_waiters(std::string endpoint) {
  const auto client = open_client(endpoint);
  EXPECT_TRUE(co_await client->connected());
  Texts texts(3);
  rt::TaskScope scope(*rt::Loop::current());
  for (auto& text : texts) {
    EXPECT_TRUE(scope.spawn(ask_into(client.get(), kOne, "dropped", &text)));
  }
  scope.cancel();
  EXPECT_TRUE(co_await scope.join());
  for (const auto& text : texts) {
    EXPECT_EQ(text.error(), rt::kCancelled);
  }
  EXPECT_EQ(client->requests().cancelled.value(), 3u);
  EXPECT_EQ(client->in_flight(), 0u);
  // The answers of the cancelled requests come before this one.
  const auto answer = co_await ask(client.get(), kOne, "kept");
  EXPECT_EQ(answer, "kept");
  EXPECT_EQ(client->requests().late.value(), 3u);
}
TEST_F(ClientLifeTest, ACancelledRequestResumesAtOnceAndItsResponseIsDropped) {
  script_.on_frame = echo;
  run(cancel_waiters(listen()));
}

TEST_F(ClientLifeTest, ACallbackMayCloseOrDestroyItsClient) {
  script_.on_open = [](HeaderSession& session) { (void)session.send({9, 0}, as_bytes("push")); };
  const auto from_event = [](std::string endpoint) -> rt::Task<void> {
    rt::AsyncEvent gone;
    std::unique_ptr<HeaderClient> client;
    ClientOptions options;
    options.on_event = [&](const ClientEvent& event) {
      if (event.kind == ClientEvent::Kind::connected) {
        client.reset();
        gone.set();
      }
    };
    client = open_client(endpoint, options);
    EXPECT_TRUE(co_await gone.wait());
    EXPECT_EQ(client, nullptr);
  };
  const auto from_push = [](std::string endpoint) -> rt::Task<void> {
    rt::AsyncEvent gone;
    auto client = open_client(endpoint);
    client->on_push([&](const HeaderCodec::Frame&) {
      client.reset();
      gone.set();
    });
    EXPECT_TRUE(co_await gone.wait());
    EXPECT_EQ(client, nullptr);
    EXPECT_TRUE(co_await rt::yield());
  };
  const std::string endpoint = listen();
  run(from_event(endpoint));
  run(from_push(endpoint));
}

rt::Task<void> destroy_and_listen(std::string endpoint) {
  int events = 0;
  ClientOptions options;
  options.on_event = [&events](const ClientEvent&) { ++events; };
  const auto host = std::make_shared<ClientHost>(*rt::Core::current());
  auto client = open_client(endpoint, options, host);
  EXPECT_TRUE(co_await client->connected());
  const auto answer = co_await ask(client.get(), kOne, "x");
  EXPECT_EQ(answer, "x");
  EXPECT_EQ(events, 1);
  client.reset();
  while (host->connections() != 0) {
    EXPECT_TRUE(co_await rt::yield());
  }
  EXPECT_TRUE(co_await rt::yield());
  EXPECT_TRUE(co_await rt::yield());
  EXPECT_EQ(events, 1);  // no second event: the objects of the function may be gone
}
TEST_F(ClientLifeTest, AClientThatWasDestroyedReportsNothingAnyMore) {
  script_.on_frame = echo;
  run(destroy_and_listen(listen()));
}

TEST_F(ClientLifeTest, AClientMayBeDestroyedInAnotherThread) {
  std::unique_ptr<HeaderClient> client;
  script_.on_frame = echo;
  watch_close();
  const auto make = [](std::string endpoint, std::unique_ptr<HeaderClient>* into) -> rt::Task<void> {
    *into = open_client(endpoint);
    EXPECT_TRUE(co_await (*into)->connected());
    const auto answer = co_await ask(into->get(), kOne, "here");
    EXPECT_EQ(answer, "here");
  };
  run(make(listen(), &client));
  client.reset();
  EXPECT_TRUE(closed_.take());
}

TEST_F(ClientLifeTest, ARuntimeThatStopsEndsItsClientsAndAnswersTheirRequests) {
  Signal asked;
  script_.on_frame = [&](HeaderSession&, const HeaderCodec::Frame&) { asked.give(); };
  const auto live = [](std::string endpoint) -> rt::Task<void> {
    const auto client = open_client(endpoint);
    EXPECT_TRUE(co_await client->connected());
    const auto answer = co_await ask(client.get(), kOne, "?");
    EXPECT_FALSE(answer);
  };
  auto done = rt::spawn(runtime_->core(0).loop(), live(listen()));
  ASSERT_TRUE(asked.take());
  ASSERT_TRUE(runtime_->stop(sys::now() + kLong));
  EXPECT_TRUE(done.ready());
}

// The core is busy and the lane to it is full: the destructor needs neither.
TEST_F(ClientLifeTest, TheDestructorInAnotherThreadDoesNotWait) {
  rt::RuntimeOptions options;
  options.cores = 2;
  options.lane_capacity = 1;
  runtime_ = rt::Runtime::start(options).value();
  std::unique_ptr<HeaderClient> client;
  script_.on_frame = echo;
  watch_close();
  const auto make = [](std::string endpoint, std::unique_ptr<HeaderClient>* into) -> rt::Task<void> {
    *into = open_client(endpoint);
    EXPECT_TRUE(co_await (*into)->connected());
  };
  run(make(listen(), &client));
  {
    const rt::test::Blocked blocked(*runtime_, 0);
    while (runtime_->post(0, [] {})) {
    }
    client.reset();
  }
  EXPECT_TRUE(closed_.take());
}

rt::Task<void> connect_by_bad_wraps(std::string endpoint, int bad) {
  struct Seen {
    int wraps = 0;
    std::vector<Error> errors;
  } seen;
  ClientOptions options;
  options.wrap = [&seen, bad](std::unique_ptr<net::ByteStream> stream) -> Result<std::unique_ptr<net::ByteStream>> {
    if (seen.wraps++ >= bad) {
      return stream;
    }
    switch (seen.wraps) {
      case 1: throw std::bad_alloc();
      case 2: throw 3;
      default: return std::unique_ptr<net::ByteStream>();
    }
  };
  options.on_event = [&seen](const ClientEvent& event) {
    if (event.kind == ClientEvent::Kind::unconnected) {
      seen.errors.push_back(event.why);
    }
  };
  const auto client = open_client(endpoint, options);
  if (bad == 3) {
    EXPECT_TRUE(co_await client->connected(in_long()));
    const auto answer = co_await ask(client.get(), kOne, "wrapped");
    EXPECT_EQ(answer, "wrapped");
    EXPECT_EQ(seen.errors, (std::vector<Error>{Errc::resource_exhausted, Errc::system, Errc::invalid_argument}));
  } else {
    while (seen.wraps < 5) {
      EXPECT_TRUE(co_await rt::yield());
    }
  }
  EXPECT_TRUE(co_await client->close(kNever));
}
TEST_F(ClientLifeTest, AWrapFunctionThatThrowsFailsTheAttemptOnly) {
  script_.on_frame = echo;
  run(connect_by_bad_wraps(listen(), 3));
}
TEST_F(ClientLifeTest, AClientWhoseWrapFunctionAlwaysThrowsCloses) { run(connect_by_bad_wraps(listen(), 1'000'000)); }

// --- limits ---

rt::Task<void> live_without_descriptors(std::string endpoint, Signal* refused, Signal* served) {
  ClientOptions options;
  options.on_event = [refused](const ClientEvent& event) {
    if (event.kind == ClientEvent::Kind::unconnected) {
      EXPECT_EQ(event.why, Errc::resource_exhausted);
      refused->give();
    }
  };
  const auto client = open_client(endpoint, options);
  EXPECT_TRUE(co_await client->connected(in_long()));
  const auto answer = co_await ask(client.get(), kOne, "at last");
  EXPECT_EQ(answer, "at last");
  served->give();
}

TEST_F(ClientLifeTest, WithoutADescriptorItWaitsAndConnectsWhenThereIsOne) {
  script_.on_frame = echo;
  const std::string endpoint = listen();
  auto probe = sys::EventFd::make();
  ASSERT_TRUE(probe);
  const int lowest = probe->fd();
  probe = Error(Errc::closed);
  const auto before = sys::set_descriptor_limit(static_cast<std::size_t>(lowest));
  ASSERT_TRUE(before);
  Signal refused;
  Signal served;
  auto done = rt::spawn(runtime_->core(0).loop(), live_without_descriptors(endpoint, &refused, &served));
  EXPECT_TRUE(refused.take());
  EXPECT_TRUE(refused.take());
  ASSERT_TRUE(sys::set_descriptor_limit(*before));
  EXPECT_TRUE(served.take());
  ASSERT_TRUE(done.wait_until(sys::now() + kLong));
}

rt::Task<void> hold_idle(std::string endpoint, std::size_t count, std::size_t* held) {
  const auto host = std::make_shared<ClientHost>(*rt::Core::current());
  std::vector<std::unique_ptr<HeaderClient>> clients;
  for (std::size_t i = 0; i < count; ++i) {
    clients.push_back(open_client(endpoint, {}, host));
  }
  for (const auto& client : clients) {
    EXPECT_TRUE(co_await client->connected());
    const auto answer = co_await ask(client.get(), kOne, "x");
    EXPECT_EQ(answer, "x");
  }
  EXPECT_TRUE(co_await rt::yield());
  EXPECT_EQ(host->connections(), count);
  *held = host->shard().budget().held();
}
TEST_F(ClientLifeTest, AnIdleConnectionHoldsNoBuffer) {
  script_.on_frame = echo;
  std::size_t held = 1;
  run(hold_idle(listen(), 50, &held));
  EXPECT_EQ(held, 0u);
}

}  // namespace
}  // namespace weft::serve
