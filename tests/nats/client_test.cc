// SPDX-License-Identifier: MIT
// A client of NATS and one server.
#include <string>
#include <vector>

#include "tests/support/nats_server.h"

namespace weft::nats {
namespace {

using rt::Task;
using test::in_long;
using test::NatsServer;
using test::Watch;

class NatsClientTest : public test::NatsTest {
 protected:
  std::unique_ptr<NatsServer> server_;
  void SetUp() override {
    NatsTest::SetUp();
    if (!IsSkipped()) {
      server_ = std::make_unique<NatsServer>();
    }
  }

 public:
  [[nodiscard]] const NatsServer& server() const { return *server_; }
  using NatsTest::check_books;
  using NatsTest::open;
};

TEST_F(NatsClientTest, AMessageComesWithItsHeadersAndItsReply) {
  run(this, [](NatsClientTest* self) -> Task<void> {
    auto client = self->open(self->server());
    std::vector<std::string> got;
    Watch watch;
    const auto id = client->subscribe("a.*.>", [&](const Message& m) {
      got.push_back(std::string(m.subject) + '|' + std::string(m.reply) + '|' +
                    std::string(m.headers.find("Name").value_or("none")) + '|' + std::string(as_text(m.body)));
      watch.changed();
    });
    EXPECT_TRUE(id);
    const auto connected = co_await client->connected(in_long());
    EXPECT_TRUE(connected) << connected.error().message();
    EXPECT_FALSE(client->server_id().empty());
    Headers headers;
    EXPECT_TRUE(headers.add("Name", "value"));
    EXPECT_TRUE(client->publish("a.b.c", as_bytes("hello"), {"re.ply", headers.block()}));
    EXPECT_TRUE(client->publish("a.b", as_bytes("not matched")));
    EXPECT_TRUE(client->publish("a.b.c.d", {}));
    const bool all = co_await Watch::until(&watch, [&] { return got.size() == 2; });
    EXPECT_TRUE(all);
    EXPECT_EQ(got, (std::vector<std::string>{"a.b.c|re.ply|value|hello", "a.b.c.d||none|"}));
    self->check_books(*client);
  });
}

TEST_F(NatsClientTest, MessagesBeforeTheFirstConnectionAreKeptInOrder) {
  run(this, [](NatsClientTest* self) -> Task<void> {
    auto client = self->open(self->server());
    std::vector<std::string> got;
    Watch watch;
    EXPECT_TRUE(client->subscribe("n", [&](const Message& m) {
      got.emplace_back(as_text(m.body));
      watch.changed();
    }));
    std::vector<std::string> all;
    for (int i = 0; i < 1000; ++i) {
      all.push_back(std::to_string(i));
      EXPECT_TRUE(client->publish("n", as_bytes(all.back())));
    }
    EXPECT_EQ(client->kept_messages(), 1000U);
    const bool came = co_await Watch::until(&watch, [&] { return got.size() == all.size(); });
    EXPECT_TRUE(came);
    EXPECT_EQ(got, all);
    EXPECT_EQ(client->kept_bytes(), 0U);
    self->check_books(*client);
  });
}

TEST_F(NatsClientTest, EachMessageReachesOneMemberOfAGroup) {
  run(this, [](NatsClientTest* self) -> Task<void> {
    auto publisher = self->open(self->server());
    auto first = self->open(self->server());
    auto second = self->open(self->server());
    std::vector<int> times(500);
    std::size_t got = 0;
    Watch watch;
    const auto handler = [&](const Message& m) {
      ++times[std::stoul(std::string(as_text(m.body)))];
      ++got;
      watch.changed();
    };
    EXPECT_TRUE(first->subscribe("work.>", handler, {.group = "workers"}));
    EXPECT_TRUE(second->subscribe("work.>", handler, {.group = "workers"}));
    const auto one = co_await first->flush(in_long());
    const auto two = co_await first->connected(in_long());
    const auto three = co_await second->connected(in_long());
    const auto four = co_await publisher->connected(in_long());
    EXPECT_TRUE(two && three && four);
    EXPECT_TRUE(one || one.error() == Errc::unreachable);  // it may not be connected yet
    for (std::size_t i = 0; i < times.size(); ++i) {
      EXPECT_TRUE(publisher->publish("work." + std::to_string(i % 7), as_bytes(std::to_string(i))));
    }
    const bool all = co_await Watch::until(&watch, [&] { return got == times.size(); });
    EXPECT_TRUE(all);
    EXPECT_EQ(times, std::vector<int>(times.size(), 1));
    EXPECT_GT(first->counts().received.value(), 0U);
    EXPECT_GT(second->counts().received.value(), 0U);
  });
}

TEST_F(NatsClientTest, RequestsAreAnsweredOrSayWhyNot) {
  run(this, [](NatsClientTest* self) -> Task<void> {
    auto server = self->open(self->server());
    auto client = self->open(self->server());
    Client* const answering = server.get();
    EXPECT_TRUE(server->subscribe("svc.echo", [answering](const Message& m) {
      EXPECT_TRUE(answering->publish(m.reply, m.body, {{}, m.headers.block()}));
    }));
    EXPECT_TRUE(server->subscribe("svc.mute", [](const Message&) {}));
    const auto early = co_await client->request("svc.echo", as_bytes("x"), in_long());
    EXPECT_EQ(early.error().code(), Errc::unreachable);
    EXPECT_EQ(early.error().fate(), Fate::not_sent);
    const auto one = co_await server->connected(in_long());
    const auto two = co_await client->connected(in_long());
    EXPECT_TRUE(one && two);
    Headers headers;
    EXPECT_TRUE(headers.add("Trace", "7"));
    for (int i = 0; i < 100; ++i) {
      const std::string text = std::to_string(i);
      const auto answer = co_await client->request("svc.echo", as_bytes(text), in_long(), headers.block());
      EXPECT_TRUE(answer) << answer.error().message();
      if (answer) {
        EXPECT_EQ(as_text(answer->body()), text);
        EXPECT_EQ(answer->headers().find("Trace"), "7");
      }
    }
    const auto nobody = co_await client->request("svc.none", as_bytes("x"), in_long());
    EXPECT_EQ(nobody.error().code(), Errc::unreachable);
    EXPECT_EQ(nobody.error().fate(), Fate::not_sent);
    const auto mute =
        co_await client->request("svc.mute", {}, rt::Loop::current()->now() + std::chrono::milliseconds(1));
    EXPECT_EQ(mute.error().code(), Errc::timed_out);
    EXPECT_EQ(mute.error().fate(), Fate::outcome_unknown);
    EXPECT_EQ(client->in_flight(), 0U);
  });
}

TEST_F(NatsClientTest, ASubscriptionEndsInsideItsFunction) {
  run(this, [](NatsClientTest* self) -> Task<void> {
    auto client = self->open(self->server());
    Watch watch;
    SubscriptionId id;
    int times = 0;
    int others = 0;
    const auto made = client->subscribe("a", [&](const Message&) {
      ++times;
      client->unsubscribe(id);
      EXPECT_TRUE(client->subscribe("b", [&](const Message&) {
        ++others;
        watch.changed();
      }));
    });
    EXPECT_TRUE(made);
    id = *made;
    EXPECT_TRUE(client->publish("a", {}));
    EXPECT_TRUE(client->publish("a", {}));
    const auto connected = co_await client->connected(in_long());
    const auto flushed = co_await client->flush(in_long());
    EXPECT_TRUE(connected) << connected.error().message();
    EXPECT_TRUE(flushed) << flushed.error().message();
    EXPECT_EQ(times, 1);
    EXPECT_EQ(client->subscriptions(), 1U);
    EXPECT_TRUE(client->publish("b", {}));
    const bool came = co_await Watch::until(&watch, [&] { return others == 1; });
    EXPECT_TRUE(came);
  });
}

TEST_F(NatsClientTest, AFunctionMayDestroyItsClient) {
  run(this, [](NatsClientTest* self) -> Task<void> {
    auto client = self->open(self->server());
    Watch watch;
    int times = 0;
    EXPECT_TRUE(client->subscribe("a", [&](const Message&) {
      ++times;
      client.reset();
      watch.changed();
    }));
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(client->publish("a", {}));
    }
    const bool came = co_await Watch::until(&watch, [&] { return times != 0; });
    EXPECT_TRUE(came);
    (void)co_await rt::yield();
    EXPECT_EQ(times, 1);
  });
}

TEST_F(NatsClientTest, ADrainLosesNoMessage) {
  run(this, [](NatsClientTest* self) -> Task<void> {
    auto other = self->open(self->server());
    auto client = self->open(self->server());
    std::size_t got = 0;
    std::size_t came = 0;
    Watch watch;
    EXPECT_TRUE(other->subscribe("to.other", [&](const Message&) {
      ++came;
      watch.changed();
    }));
    EXPECT_TRUE(client->subscribe("to.client", [&](const Message&) { ++got; }));
    const auto one = co_await other->connected(in_long());
    const auto two = co_await client->connected(in_long());
    EXPECT_TRUE(one && two);
    constexpr std::size_t kMessages = 2000;
    for (std::size_t i = 0; i < kMessages; ++i) {
      EXPECT_TRUE(other->publish("to.client", as_bytes("x")));
    }
    const auto flushed = co_await other->flush(in_long());
    EXPECT_TRUE(flushed);
    for (std::size_t i = 0; i < kMessages; ++i) {
      EXPECT_TRUE(client->publish("to.other", as_bytes("x")));
    }
    const auto drained = co_await client->drain(in_long());
    EXPECT_TRUE(drained) << drained.error().message();
    EXPECT_EQ(got, kMessages);
    const bool all = co_await Watch::until(&watch, [&] { return came == kMessages; });
    EXPECT_TRUE(all);
    EXPECT_EQ(client->publish("a", {}).error().code(), Errc::closed);
    EXPECT_EQ(client->subscribe("a", [](const Message&) {}).error().code(), Errc::closed);
    const auto again = co_await client->drain(in_long());
    EXPECT_TRUE(again);
    self->check_books(*client);
  });
}

TEST_F(NatsClientTest, ADrainedSubscriptionGetsWhatTheServerSentBefore) {
  run(this, [](NatsClientTest* self) -> Task<void> {
    auto other = self->open(self->server());
    auto client = self->open(self->server());
    std::size_t got = 0;
    std::vector<Error> ends;
    Watch watch;
    const auto made = client->subscribe("a", [&](const Message&) { ++got; }, {.on_ended = [&](const Error& why) {
                                          ends.push_back(why);
                                          watch.changed();
                                        }});
    EXPECT_TRUE(made);
    const auto one = co_await other->connected(in_long());
    const auto two = co_await client->connected(in_long());
    const auto subscribed = co_await client->flush(in_long());
    EXPECT_TRUE(one && two && subscribed);
    constexpr std::size_t kMessages = 2000;
    for (std::size_t i = 0; i < kMessages; ++i) {
      EXPECT_TRUE(other->publish("a", as_bytes("x")));
    }
    const auto flushed = co_await other->flush(in_long());
    EXPECT_TRUE(flushed);
    client->drain(*made);
    client->drain(*made);
    const bool ended = co_await Watch::until(&watch, [&] { return !ends.empty(); });
    EXPECT_TRUE(ended);
    EXPECT_EQ(got, kMessages);
    EXPECT_EQ(client->subscriptions(), 0U);
    client->drain(*made);
    EXPECT_TRUE(other->publish("a", as_bytes("x")));
    const auto after = co_await other->flush(in_long());
    const auto heard = co_await client->flush(in_long());
    EXPECT_TRUE(after && heard);
    EXPECT_EQ(got, kMessages);
    EXPECT_EQ(ends, std::vector<Error>{Errc::closed});
    EXPECT_EQ(client->counts().unclaimed.value(), 0U);
  });
}

TEST_F(NatsClientTest, EachCallChecksItsArguments) {
  run(this, [](NatsClientTest* self) -> Task<void> {
    auto client = self->open(self->server());
    const auto connected = co_await client->connected(in_long());
    EXPECT_TRUE(connected);
    for (const std::string_view wrong : {"", "a b", "a..b", "a.*", "a\r\nPUB b 0\r\n"}) {
      EXPECT_EQ(client->publish(wrong, {}).error().code(), Errc::invalid_argument) << wrong;
      EXPECT_EQ(client->publish("a", {}, {.reply = wrong}).error().code(),
                wrong.empty() ? Errc::ok : Errc::invalid_argument);
    }
    EXPECT_EQ(client->publish("a", {}, {{}, as_bytes("no block")}).error().code(), Errc::invalid_argument);
    EXPECT_EQ(client->subscribe("a. b", [](const Message&) {}).error().code(), Errc::invalid_argument);
    EXPECT_EQ(client->subscribe("a", [](const Message&) {}, {.group = "a b"}).error().code(), Errc::invalid_argument);
    EXPECT_EQ(client->subscribe("a", {}).error().code(), Errc::invalid_argument);
    const std::vector<std::uint8_t> large((1U << 20U) + 1);
    EXPECT_EQ(client->publish("a", large).error().code(), Errc::message_too_large);
    EXPECT_TRUE(client->publish("a", Bytes(large).first(1U << 20U)));
    const auto flushed = co_await client->flush(in_long());
    EXPECT_TRUE(flushed) << flushed.error().message();
    EXPECT_EQ(client->counts().server_errors.value(), 0U);
    self->check_books(*client);
  });
}

TEST_F(NatsClientTest, SubscriptionsHaveABound) {
  run(this, [](NatsClientTest* self) -> Task<void> {
    ClientOptions options;
    options.servers = self->server().url();
    options.subscriptions_max = 2;
    auto client = self->open(std::move(options));
    const auto first = client->subscribe("a", [](const Message&) {});
    EXPECT_TRUE(first);
    EXPECT_TRUE(client->subscribe("b", [](const Message&) {}));
    EXPECT_EQ(client->subscribe("c", [](const Message&) {}).error().code(), Errc::resource_exhausted);
    client->unsubscribe(*first);
    client->unsubscribe(*first);
    client->unsubscribe({});
    EXPECT_TRUE(client->subscribe("c", [](const Message&) {}));
    co_return;
  });
}

}  // namespace
}  // namespace weft::nats
