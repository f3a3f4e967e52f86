// SPDX-License-Identifier: MIT
// Sessions that move to another core: no frame is lost, none comes twice, and their order stays.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weft/net/tls/tls.h"
#include "weft/rt/task/async_event.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>
#ifdef WEFT_HAVE_OPENSSL
#include "weft/net/tls/test_certificates.h"
#endif

namespace weft::serve {
namespace {

using test::Client;
using test::frame_of;
using test::HeaderSession;
using test::kLong;
using test::Signal;

unsigned here() { return rt::Core::current()->index(); }
unsigned other() { return 1 - here(); }

// The number of frames that the connection has handled, on whatever core.
struct Count {
  static inline std::atomic<int> alive{0};
  Count() { ++alive; }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;
  ~Count() { --alive; }
  int frames = 0;
};

class SessionMoves : public test::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    script_.on_open = [this](HeaderSession& session) {
      if (session.state<Count>() == nullptr) {
        EXPECT_TRUE(session.make_state<Count>());
      } else {
        arrived_.fetch_add(1);
      }
    };
    script_.on_close = [this](HeaderSession& session, const Error& why) {
      EXPECT_NE(session.state<Count>(), nullptr);
      (why == Errc::ok ? departed_ : ended_).fetch_add(1);
    };
    script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) { answer(session, frame); };
  }
  void TearDown() override {
    ServerTest::TearDown();
    EXPECT_EQ(Count::alive.load(), 0);
  }

  // "text/3@1": the third frame of the connection, on core 1.
  static void answer(HeaderSession& session, const HeaderCodec::Frame& frame) {
    const std::string text(as_text(frame.body));
    const std::string said =
        text + "/" + std::to_string(++session.state<Count>()->frames) + "@" + std::to_string(here());
    EXPECT_TRUE(session.send(frame.header, as_bytes(said)));
    if (text == "go") {
      const auto moved = session.move_to(other());
      EXPECT_TRUE(moved || moved.error() == Errc::closed) << "the server may drain";
    }
  }
  // The answer to a frame without its core, which it adds to `core`.
  static std::string receive(Client& client, unsigned* core = nullptr) {
    const std::string said = client.receive().value_or("the end@9");
    if (core != nullptr) {
      *core = static_cast<unsigned>(said.back() - '0');
    }
    return said.substr(0, said.size() - 2);
  }

  std::atomic<int> arrived_{0};
  std::atomic<int> departed_{0};
  std::atomic<int> ended_{0};
};

TEST_F(SessionMoves, TheOtherCoreHandlesTheFramesAfterTheMoveInOrder) {
  Client client(listen());
  unsigned before = 9;
  unsigned after = 9;
  client.write(frame_of(1, "a") + frame_of(1, "go") + frame_of(1, "b") + frame_of(1, "half").substr(0, 12));
  EXPECT_EQ(receive(client, &before), "a/1");
  EXPECT_EQ(receive(client), "go/2");
  EXPECT_EQ(receive(client, &after), "b/3");
  EXPECT_EQ(after, 1 - before);
  client.write(frame_of(1, "half").substr(12) + frame_of(1, "go") + frame_of(1, "c"));
  EXPECT_EQ(receive(client, &after), "half/4");
  EXPECT_EQ(after, 1 - before);
  EXPECT_EQ(receive(client), "go/5");
  EXPECT_EQ(receive(client, &after), "c/6");
  EXPECT_EQ(after, before);
  EXPECT_EQ(server_->sessions(), 1u);
  EXPECT_EQ(arrived_.load(), 2);
  EXPECT_EQ(departed_.load(), 2);
  client.end_writing();
  EXPECT_EQ(client.read_to_end(), "");
  until([this](const CounterValues& counters) {
    return counters.closed_for(CloseReason::peer_closed) == 1 && server_->sessions() == 0;
  });
  EXPECT_EQ(server_->counters().moves, 2u);
  EXPECT_EQ(server_->counters().moves_refused, 0u);
  EXPECT_EQ(server_->counters().opened, 1u);
}

TEST_F(SessionMoves, WrongMovesAreRefused) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    EXPECT_EQ(session.move_to(2).error(), Errc::invalid_argument);
    EXPECT_TRUE(session.move_to(here())) << "it is there";
    session.begin_reply();
    EXPECT_TRUE(session.move_to(other()));
    EXPECT_EQ(session.move_to(other()).error(), Errc::invalid_state);
    answer(session, frame);
    session.close();
    EXPECT_EQ(session.move_to(other()).error(), Errc::closed);
    session.end_reply();
  };
  Client client(listen());
  client.send(1, "x");
  EXPECT_EQ(receive(client), "x/1");
  EXPECT_EQ(client.read_to_end(), "");
  until([](const CounterValues& counters) { return counters.closed_total() == 1; });
  EXPECT_EQ(server_->counters().moves, 0u);
  EXPECT_EQ(server_->counters().moves_refused, 1u);
}

// Of each core, one event at a time waits.
struct MoveGate {
  rt::AsyncEvent event;
  std::atomic<unsigned> core{9};
};

TEST_F(SessionMoves, ASessionMovesAfterItsCoroutinesAndSendsUntilThen) {
  MoveGate gate;
  script_.on_frame = [&gate](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (as_text(frame.body) == "go") {
      EXPECT_TRUE(session.spawn([](HeaderSession& of, MoveGate* wait) -> rt::Task<void> {
        const auto waited = co_await wait->event.wait();
        EXPECT_TRUE(waited);
        EXPECT_TRUE(of.send(FrameHeader{1, 0}, as_bytes("late/0@0")));
      }(session, &gate)));
      gate.core = here();
    }
    answer(session, frame);
  };
  Client client(listen());
  client.write(frame_of(1, "go") + frame_of(1, "next"));
  unsigned before = 9;
  unsigned after = 9;
  EXPECT_EQ(receive(client, &before), "go/1");
  ASSERT_EQ(gate.core.load(), before);
  EXPECT_EQ(departed_.load(), 0);
  ASSERT_TRUE(runtime_->post(before, [&gate] { gate.event.set(); }));
  EXPECT_EQ(receive(client), "late/0");
  EXPECT_EQ(receive(client, &after), "next/2");
  EXPECT_EQ(after, 1 - before);
}

TEST_F(SessionMoves, AllQueuedBytesLeaveBeforeASessionMoves) {
  const std::string large(4u << 20, 'x');
  script_.on_frame = [&large](HeaderSession& session, const HeaderCodec::Frame& frame) {
    answer(session, frame);
    if (as_text(frame.body) == "go") {
      EXPECT_TRUE(session.send(frame.header, as_bytes(large)));
    }
  };
  ListenerOptions options;
  options.limits.write_budget = 16u << 20;
  Client client(listen(options));
  client.write(frame_of(1, "go") + frame_of(1, "next"));
  EXPECT_EQ(receive(client), "go/1");
  EXPECT_EQ(client.receive(), large);
  EXPECT_EQ(receive(client), "next/2");
  EXPECT_EQ(arrived_.load(), 1);
}

TEST_F(SessionMoves, ADrainKeepsASessionThatHasNotMoved) {
  std::atomic<std::uint64_t> id{0};
  script_.on_frame = [&id](HeaderSession& session, const HeaderCodec::Frame& frame) {
    session.begin_reply();
    answer(session, frame);
    id = session.id().value;
  };
  Client client(listen());
  client.write(frame_of(1, "go"));
  EXPECT_EQ(receive(client), "go/1");
  server_->begin_stop(sys::now() + kLong);
  until([](const CounterValues& counters) { return counters.moves_refused == 1; });
  ASSERT_TRUE(server_->post_to<HeaderCodec>(SessionId{id}, [](HeaderSession& session) {
    EXPECT_EQ(session.move_to(other()).error(), Errc::closed);
    EXPECT_TRUE(session.send(FrameHeader{1, 0}, as_bytes("late/0@0")));
    session.end_reply();
  }));
  EXPECT_EQ(receive(client), "late/0");
  EXPECT_EQ(client.read_to_end(), "");
  client.close();
  EXPECT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(server_->counters().moves, 0u);
}

// Clients whose sessions move while they send, close and break off; the server may stop in between.
class SessionMoveStorm : public SessionMoves {
 protected:
  // Returns the number of answers that came, each in its turn.
  static int talk(Client& client, int frames) {
    std::string all;
    for (int i = 0; i < frames; ++i) {
      all += frame_of(1, i % 3 == 0 ? "go" : "f");
    }
    client.write(all);
    int answers = 0;
    while (answers < frames) {
      const auto said = client.receive();
      if (!said) {
        break;
      }
      const std::string wanted = std::string(answers % 3 == 0 ? "go/" : "f/") + std::to_string(answers + 1) + "@";
      EXPECT_EQ(said->substr(0, said->size() - 1), wanted);
      ++answers;
    }
    return answers;
  }
};

TEST_F(SessionMoveStorm, EveryFrameIsAnsweredOnceInItsOrder) {
  const std::string endpoint = listen();
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&endpoint] {
      Client client(endpoint);
      EXPECT_EQ(talk(client, 300), 300);
    });
  }
  // Peers that close, or break off, while their session moves.
  for (int i = 0; i < 100; ++i) {
    Client leaver(endpoint);
    leaver.write(frame_of(1, "go") + frame_of(1, "f"));
    if (i % 3 == 0) {
      leaver.end_writing();
      EXPECT_EQ(receive(leaver), "go/1");
      EXPECT_EQ(receive(leaver), "f/2");
    } else if (i % 3 == 1) {
      EXPECT_EQ(receive(leaver), "go/1");
    }
  }
  for (std::thread& client : clients) {
    client.join();
  }
  until([this](const CounterValues& counters) { return counters.closed_total() == 108 && server_->sessions() == 0; });
  EXPECT_GE(server_->counters().moves, 800u);
  EXPECT_EQ(server_->counters().opened, 108u);
  EXPECT_EQ(ended_.load(), 108);
  EXPECT_EQ(arrived_.load(), departed_.load());
}

TEST_F(SessionMoveStorm, AStopInBetweenAnswersWhatItReadAndEndsAllSessions) {
  for (int round = 0; round < 10; ++round) {
    const std::string endpoint = listen();
    std::vector<std::thread> clients;
    Signal begun;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&] {
        Client client(endpoint);
        client.send(1, "f");
        EXPECT_TRUE(client.receive());
        begun.give();
        std::string all;
        for (int frame = 0; frame < 200; ++frame) {
          all += frame_of(1, "go");
        }
        (void)client.write_some(all, kLong);
        int answers = 1;
        while (const auto said = client.receive()) {
          const std::string wanted = "go/" + std::to_string(++answers) + "@";
          EXPECT_EQ(said->substr(0, said->size() - 1), wanted);
        }
      });
    }
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(begun.take());
    }
    if (round % 2 == 0) {
      EXPECT_TRUE(server_->stop(sys::now() + kLong));
    } else {
      (void)stop_now();
    }
    for (std::thread& client : clients) {
      client.join();
    }
    EXPECT_EQ(server_->sessions(), 0u);
    server_.reset();
    EXPECT_EQ(Count::alive.load(), 0);
  }
}

#ifdef WEFT_HAVE_OPENSSL
TEST_F(SessionMoves, TlsMovesWithItsSession) {
  net::test::TestAuthority authority;
  const auto files = authority.issue("server");
  ListenerOptions options;
  options.limits.handshake_timeout = kLong;
  options.tls = *net::TlsServer::make({.certificate_file = files.certificate, .key_file = files.key});
  const auto connector = *net::TlsClient::make({.ca_file = authority.file()});
  Client client(listen(options));
  ASSERT_TRUE(client.start_tls(*connector)) << client.failure();
  std::string all;
  for (int i = 0; i < 20; ++i) {
    all += frame_of(1, "go") + frame_of(1, "f");
  }
  client.write(all);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(receive(client), "go/" + std::to_string(2 * i + 1));
    EXPECT_EQ(receive(client), "f/" + std::to_string(2 * i + 2));
  }
  EXPECT_EQ(arrived_.load(), 20);
}
#endif

}  // namespace
}  // namespace weft::serve
