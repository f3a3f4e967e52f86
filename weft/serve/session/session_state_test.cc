// SPDX-License-Identifier: MIT
// The state of a service that a session keeps and ends.
#include "weft/serve/session/session_state.h"

#include <atomic>
#include <stdexcept>
#include <string>

#include "weft/rt/task/task_time.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::HeaderSession;
using test::Signal;

struct Player {
  static inline std::atomic<int> alive{0};
  explicit Player(std::string own) : name(std::move(own)) { ++alive; }
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;
  ~Player() { --alive; }
  std::string name;
  int frames = 0;
};

class ServiceStates : public test::ServerTest {
 protected:
  void SetUp() override { start_runtime(1); }
};

TEST_F(ServiceStates, AreThereUntilAfterOnCloseAndTheCoroutines) {
  Signal slept;
  script_.on_open = [&](HeaderSession& session) {
    EXPECT_EQ(session.state<Player>(), nullptr);
    const auto made = session.make_state<Player>("anna");
    ASSERT_TRUE(made);
    EXPECT_EQ((*made)->name, "anna");
    const auto wait = [](HeaderSession& of, Signal* done) -> rt::Task<> {
      const auto waited = co_await rt::sleep(std::chrono::hours(1));
      EXPECT_FALSE(waited);
      EXPECT_EQ(of.state<Player>()->name, "anna");
      done->give();
    };
    ASSERT_TRUE(session.spawn(wait(session, &slept)));
  };
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    ++session.state<Player>()->frames;
    test::echo(session, frame);
  };
  script_.on_close = [&](HeaderSession& session, const Error&) {
    EXPECT_EQ(session.state<Player>()->frames, 2);
    EXPECT_EQ(session.context(), session.state<Player>());
    closed_.give();
  };
  Client client(listen());
  for (int i = 0; i < 2; ++i) {
    client.send(1, "x");
    EXPECT_EQ(client.receive(), "x");
  }
  client.close();
  ASSERT_TRUE(slept.take());
  ASSERT_TRUE(closed_.take());
  ASSERT_TRUE(server_->stop(sys::now() + test::kLong));
  EXPECT_EQ(Player::alive.load(), 0);
}

TEST_F(ServiceStates, HaveAType) {
  script_.on_open = [](HeaderSession& session) {
    ASSERT_TRUE(session.make_state<Player>("ben"));
    EXPECT_EQ(session.state<std::string>(), nullptr);
    ASSERT_TRUE(session.make_state<std::string>("text"));
    EXPECT_EQ(Player::alive.load(), 0) << "the earlier one has ended";
    EXPECT_EQ(session.state<Player>(), nullptr);
    EXPECT_EQ(*session.state<std::string>(), "text");
    int own = 0;
    session.set_context(&own);
    EXPECT_EQ(session.state<std::string>(), nullptr);
    EXPECT_EQ(session.context(), &own);
    session.set_context(nullptr);
  };
  script_.on_frame = test::echo;
  Client client(listen());
  client.send(1, "x");
  EXPECT_EQ(client.receive(), "x");
}

struct Throws {
  Throws() { throw std::runtime_error("no state"); }
};

TEST_F(ServiceStates, AConstructorThatThrowsLeavesNone) {
  script_.on_open = [](HeaderSession& session) {
    ASSERT_TRUE(session.make_state<Player>("carl"));
    EXPECT_THROW((void)session.make_state<Throws>(), std::runtime_error);
    EXPECT_EQ(session.state<Throws>(), nullptr);
    EXPECT_EQ(session.state<Player>(), nullptr);
    EXPECT_EQ(session.context(), nullptr);
  };
  script_.on_frame = test::echo;
  Client client(listen());
  client.send(1, "x");
  EXPECT_EQ(client.receive(), "x");
  EXPECT_EQ(Player::alive.load(), 0);
}

}  // namespace
}  // namespace weft::serve
