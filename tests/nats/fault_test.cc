// SPDX-License-Identifier: MIT
// Clients of NATS whose servers die, pause or leave.
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/support/nats_server.h"

namespace weft::nats {
namespace {

using rt::Task;
using test::in_long;
using test::NatsServer;
using test::Watch;

class NatsFaultTest : public test::NatsTest {
 public:
  using NatsTest::check_books;
  using NatsTest::open;
};

// Counts the events of a client.
struct Events {
  Watch watch;
  std::size_t connected = 0;
  std::size_t lost = 0;
  std::size_t lame = 0;
  Error why;
  std::string server;

  [[nodiscard]] std::function<void(const ClientEvent&)> sink() {
    return [this](const ClientEvent& event) {
      connected += event.kind == ClientEvent::Kind::connected ? 1 : 0;
      lost += event.kind == ClientEvent::Kind::lost ? 1 : 0;
      lame += event.kind == ClientEvent::Kind::lame_duck ? 1 : 0;
      if (event.kind == ClientEvent::Kind::connected) {
        server = event.server;
      } else if (event.kind == ClientEvent::Kind::lost) {
        why = event.why;
      }
      watch.changed();
    };
  }
};

TEST_F(NatsFaultTest, AKilledServerThatComesBackGetsSubscriptionsBeforeMessages) {
  run(this, [](NatsFaultTest* self) -> Task<void> {
    NatsServer server;
    Events events;
    ClientOptions options;
    options.servers = server.url();
    options.on_event = events.sink();
    auto client = self->open(std::move(options));
    std::vector<std::string> got;
    Watch watch;
    for (int i = 0; i < 200; ++i) {  // more than one walk of the table
      EXPECT_TRUE(client->subscribe("many." + std::to_string(i), [&](const Message& m) {
        got.emplace_back(m.subject);
        watch.changed();
      }));
    }
    std::size_t published = 0;
    for (std::size_t life = 1; life <= 3; ++life) {
      const bool up = co_await Watch::until(&events.watch, [&] { return events.connected == life; });
      EXPECT_TRUE(up);
      server.kill();
      const bool down = co_await Watch::until(&events.watch, [&] { return events.lost == life; });
      EXPECT_TRUE(down);
      EXPECT_FALSE(client->is_connected());
      const auto refused = co_await client->request("a", {}, in_long());
      EXPECT_EQ(refused.error().fate(), Fate::not_sent);
      // The first messages of the new connection come back: their subscriptions were there before them.
      for (int i = 0; i < 200; ++i) {
        EXPECT_TRUE(client->publish("many." + std::to_string(i), as_bytes("x")));
        ++published;
      }
      server.restart();
      const bool all = co_await Watch::until(&watch, [&] { return got.size() == published; });
      EXPECT_TRUE(all) << got.size() << " of " << published;
    }
    EXPECT_EQ(client->counts().dropped_oldest.value(), 0U);
    EXPECT_EQ(client->counts().published.value(), published);
    self->check_books(*client);
  });
}

TEST_F(NatsFaultTest, ARequestInFlightFailsWithItsConnection) {
  run(this, [](NatsFaultTest* self) -> Task<void> {
    NatsServer server;
    auto client = self->open(server);
    bool asked = false;
    Watch watch;
    EXPECT_TRUE(client->subscribe("svc", [&](const Message&) {
      asked = true;
      watch.changed();
    }));
    const auto connected = co_await client->connected(in_long());
    EXPECT_TRUE(connected);
    rt::TaskScope scope(*rt::Loop::current());
    Error outcome;
    const auto ask = [](Client* with, Error* into, Watch* told) -> Task<void> {
      const auto answer = co_await with->request("svc", {}, in_long());
      *into = answer.error();
      told->changed();
    };
    EXPECT_TRUE(scope.spawn(ask(client.get(), &outcome, &watch)));
    const bool came = co_await Watch::until(&watch, [&] { return asked; });
    EXPECT_TRUE(came);
    server.kill();
    const bool ended = co_await Watch::until(&watch, [&] { return outcome != Errc::ok; });
    EXPECT_TRUE(ended);
    EXPECT_EQ(outcome.fate(), Fate::outcome_unknown);
    EXPECT_NE(outcome.code(), Errc::timed_out);
    const auto joined = co_await scope.join();
    EXPECT_TRUE(joined);
  });
}

TEST_F(NatsFaultTest, AnOutageDropsTheOldestMessagesAndCountsThem) {
  run(this, [](NatsFaultTest* self) -> Task<void> {
    NatsServer server;
    Events events;
    ClientOptions options;
    options.servers = server.url();
    options.on_event = events.sink();
    options.pending_max = 1000;
    auto client = self->open(std::move(options));
    std::vector<std::string> got;
    EXPECT_TRUE(client->subscribe("n", [&](const Message& m) {
      got.emplace_back(as_text(m.body));
      events.watch.changed();
    }));
    const bool up = co_await Watch::until(&events.watch, [&] { return events.connected == 1; });
    EXPECT_TRUE(up);
    server.kill();
    const bool down = co_await Watch::until(&events.watch, [&] { return events.lost == 1; });
    EXPECT_TRUE(down);
    std::vector<std::string> all;
    for (int i = 0; i < 500; ++i) {
      all.push_back(std::to_string(1000 + i));
      EXPECT_TRUE(client->publish("n", as_bytes(all.back())));
      EXPECT_LE(client->kept_bytes(), 1000U);
    }
    EXPECT_EQ(client->publish("n", std::vector<std::uint8_t>(1000)).error().code(), Errc::resource_exhausted);
    const std::size_t kept = client->kept_messages();
    EXPECT_EQ(kept, 1000U / std::string_view("PUB n 4\r\n1234\r\n").size());
    EXPECT_EQ(client->counts().dropped_oldest.value(), all.size() - kept);
    self->check_books(*client);
    server.restart();
    const bool came = co_await Watch::until(&events.watch, [&] { return got.size() == kept; });
    EXPECT_TRUE(came);
    EXPECT_EQ(got, std::vector<std::string>(all.end() - static_cast<std::ptrdiff_t>(kept), all.end()));
    self->check_books(*client);
  });
}

TEST_F(NatsFaultTest, APausedServerIsLostAndItsMessagesAreKept) {
  run(this, [](NatsFaultTest* self) -> Task<void> {
    NatsServer server;
    Events events;
    ClientOptions options;
    options.servers = server.url();
    options.on_event = events.sink();
    options.ping_every = std::chrono::milliseconds(500);
    auto client = self->open(std::move(options));
    std::size_t got = 0;
    EXPECT_TRUE(client->subscribe("n", [&](const Message&) {
      ++got;
      events.watch.changed();
    }));
    const bool up = co_await Watch::until(&events.watch, [&] { return events.connected >= 1; });
    EXPECT_TRUE(up);
    server.pause();
    const bool lost = co_await Watch::until(&events.watch, [&] { return events.lost >= 1 && !client->is_connected(); });
    EXPECT_TRUE(lost);
    EXPECT_EQ(events.why.code(), Errc::timed_out) << events.why.message();
    EXPECT_NE(std::string(events.why.text()).find(server.port()), std::string::npos);
    EXPECT_TRUE(client->publish("n", {}));
    EXPECT_EQ(client->kept_messages(), 1U);
    server.resume();
    const bool came = co_await Watch::until(&events.watch, [&] { return got == 1; });
    EXPECT_TRUE(came);
    self->check_books(*client);
  });
}

TEST_F(NatsFaultTest, AClientMovesToAServerThatItLearntOf) {
  run(this, [](NatsFaultTest* self) -> Task<void> {
    const std::string cluster = "cluster { name: c, host: 127.0.0.1, port: -1 }\n";
    NatsServer first(cluster);
    Events events;
    ClientOptions options;
    options.servers = first.url();
    options.on_event = events.sink();
    auto client = self->open(std::move(options));
    std::size_t got = 0;
    EXPECT_TRUE(client->subscribe("n", [&](const Message&) {
      ++got;
      events.watch.changed();
    }));
    const bool up = co_await Watch::until(&events.watch, [&] { return events.connected == 1; });
    EXPECT_TRUE(up);
    NatsServer second(cluster, {"--routes", "nats://127.0.0.1:" + first.cluster_port()});
    // The news come as INFO in any turn; a PING a turn asks whether they are there.
    bool answers = true;
    while (answers && client->servers_known() < 2) {
      const auto flushed = co_await client->flush(in_long());
      answers = flushed.has_value();
    }
    EXPECT_TRUE(answers);
    first.kill();
    const bool moved = co_await Watch::until(&events.watch, [&] { return events.connected == 2; });
    EXPECT_TRUE(moved);
    EXPECT_NE(events.server.find(second.port()), std::string::npos) << events.server;
    EXPECT_TRUE(client->publish("n", {}));
    const bool came = co_await Watch::until(&events.watch, [&] { return got == 1; });
    EXPECT_TRUE(came);
  });
}

TEST_F(NatsFaultTest, ALameDuckIsLeftForAnotherServer) {
  run(this, [](NatsFaultTest* self) -> Task<void> {
    NatsServer first;
    NatsServer second;
    Events events;
    ClientOptions options;
    options.servers = first.url() + "," + second.url();
    options.shuffle = false;
    options.on_event = events.sink();
    auto client = self->open(std::move(options));
    const bool up = co_await Watch::until(&events.watch, [&] { return events.connected == 1; });
    EXPECT_TRUE(up);
    EXPECT_NE(events.server.find(first.port()), std::string::npos);
    first.send_signal(SIGUSR2);
    const bool moved = co_await Watch::until(&events.watch, [&] { return events.connected == 2; });
    EXPECT_TRUE(moved);
    EXPECT_EQ(events.lame, 1U);
    EXPECT_NE(events.server.find(second.port()), std::string::npos) << events.server;
  });
}

TEST_F(NatsFaultTest, NobodyThereIsReportedWithTheServersName) {
  run(this, [](NatsFaultTest* self) -> Task<void> {
    NatsServer server;
    const std::string url = server.url();
    server.kill();
    ClientOptions options;
    options.servers = url;
    std::size_t failed = 0;
    Watch watch;
    options.on_event = [&](const ClientEvent& event) {
      failed += event.kind == ClientEvent::Kind::unconnected ? 1 : 0;
      watch.changed();
    };
    auto client = self->open(std::move(options));
    const bool tried = co_await Watch::until(&watch, [&] { return failed >= 2; });
    EXPECT_TRUE(tried);
    const auto refused = co_await client->request("a", {}, in_long());
    EXPECT_EQ(refused.error().code(), Errc::unreachable);
    EXPECT_NE(std::string(refused.error().text()).find(url), std::string::npos) << refused.error().message();
    EXPECT_TRUE(client->publish("a", {}));
    const auto drained = co_await client->drain(in_long());
    EXPECT_TRUE(drained);
    EXPECT_EQ(client->counts().dropped_closed.value(), 1U);
    self->check_books(*client);
  });
}

// A sanitizer's locks are copied into a forked child.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(TestServers, ATestThatIsKilledLeavesNone) {
  if (std::string(WEFT_NATS_SERVER).empty()) {
    GTEST_SKIP() << "there is no nats-server";
  }
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  int more[2];
  ASSERT_EQ(::pipe2(more, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const NatsServer server;
    const pid_t pid = server.pid();
    char byte = 0;
    if (::write(ends[1], &pid, sizeof pid) == sizeof pid && ::read(more[0], &byte, 1) == 1) {
      ::kill(::getpid(), SIGKILL);
    }
    ::_exit(1);
  }
  pid_t server = -1;
  ASSERT_EQ(::read(ends[0], &server, sizeof server), static_cast<ssize_t>(sizeof server));
  pollfd ended{static_cast<int>(::syscall(SYS_pidfd_open, server, 0)), POLLIN, 0};
  ASSERT_GE(ended.fd, 0);
  ASSERT_EQ(::poll(&ended, 1, 0), 0);
  ASSERT_EQ(::write(more[1], "x", 1), 1);
  EXPECT_EQ(::poll(&ended, 1, 30'000), 1);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (const int fd : {ended.fd, ends[0], ends[1], more[0], more[1]}) {
    ::close(fd);
  }
}
#endif

}  // namespace
}  // namespace weft::nats
