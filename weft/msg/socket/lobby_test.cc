// SPDX-License-Identifier: MIT
#include "weft/msg/socket/lobby.h"

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weft/net/listener.h"
#include "weft/rt/loop/test_signal.h"
#include "weft/sys/socket.h"
#include <gtest/gtest.h>

namespace weft::msg {
namespace {

using std::chrono::milliseconds;
using StreamPtr = std::unique_ptr<net::ByteStream>;

// A lobby on a loop of its own, and the peers that it handed over. The loop's thread writes `left_` and `lost_`; a test
// reads them by on_loop().
class LobbyTest : public testing::Test {
 protected:
  LobbyTest() : loop_(std::move(rt::Loop::make("lobby")).value()) { EXPECT_TRUE(loop_->start(nullptr)); }
  ~LobbyTest() override {
    on_loop([this] { lobby_->close(); });
    loop_->stop();
  }

  void make(Duration patience, std::string_view opening = "opening") {
    const Bytes bytes = as_bytes(opening);
    lobby_ = std::make_unique<Lobby>(*loop_, std::vector<std::uint8_t>(bytes.begin(), bytes.end()), patience,
                                     Lobby::Handlers{[this](Lobby::Pending&& pending) {
                                                       if (without_memory_) {
                                                         throw std::bad_alloc();
                                                       }
                                                       left_.push_back(std::move(pending));
                                                       ++by_turn_[loop_->now()];
                                                       handed_over_.give();
                                                     },
                                                     [this] {
                                                       ++lost_;
                                                       handed_over_.give();
                                                     }});
  }
  void on_loop(const std::function<void()>& function) {
    std::promise<void> done;
    loop_->post([&] {
      function();
      done.set_value();
    });
    done.get_future().wait();
  }
  // A connection of loopback: our end and the peer's.
  struct Ends {
    StreamPtr ours;
    StreamPtr peers;
  };
  Ends connect() {
    const auto at = *net::parse_endpoint(listener_->bound_endpoint(), false);
    const auto to = *sys::SocketAddress::parse_numeric(at.host, at.port);
    auto dialled = std::move(sys::open_tcp_connection(to, nullptr, {})).value();
    auto accepted = listener_->try_accept();
    while (!accepted && accepted.error() == Errc::would_block) {
      std::this_thread::yield();
      accepted = listener_->try_accept();
    }
    return {std::move(accepted).value(), net::make_socket_stream(std::move(dialled.fd))};
  }
  StreamPtr enter() {
    Ends ends = connect();
    on_loop([&] { lobby_->enter(std::move(ends.ours), {}); });
    return std::move(ends.peers);
  }
  static void send(net::ByteStream& peer) {
    const Bytes byte = as_bytes("x");
    ASSERT_EQ(peer.write({&byte, 1}).bytes, 1u);
  }
  std::size_t size() {
    std::size_t size = 0;
    on_loop([&] { size = lobby_->size(); });
    return size;
  }
  // Empty: the other end is gone.
  static std::string received(net::ByteStream& peer) {
    std::uint8_t bytes[64];
    MutableBytes into(bytes);
    sys::IoResult result = peer.read({&into, 1});
    while (result.status == sys::IoResult::Status::would_block) {
      std::this_thread::yield();
      result = peer.read({&into, 1});
    }
    return std::string(as_text(Bytes(bytes, result.bytes)));
  }

  std::unique_ptr<net::Listener> listener_ =
      std::move(net::Listener::open(*net::parse_endpoint("tcp://127.0.0.1:*", true), {.backlog = 256})).value();
  std::unique_ptr<rt::Loop> loop_;
  std::unique_ptr<Lobby> lobby_;
  rt::test::Signal handed_over_;
  std::vector<Lobby::Pending> left_;
  std::map<Instant, int> by_turn_;
  bool without_memory_ = false;
  int lost_ = 0;
};

TEST_F(LobbyTest, ASilentPeerStaysAndGetsTheOpening) {
  make(std::chrono::hours(1));
  const StreamPtr peer = enter();
  EXPECT_EQ(received(*peer), "opening");
  EXPECT_EQ(size(), 1u);
}

TEST_F(LobbyTest, TheFirstByteHandsThePeerOver) {
  make(std::chrono::hours(1));
  const StreamPtr silent = enter();
  const StreamPtr peer = enter();
  send(*peer);
  ASSERT_TRUE(handed_over_.take());
  on_loop([&] {
    ASSERT_EQ(left_.size(), 1u);
    EXPECT_EQ(left_[0].peer.greeting_written, 7u);
    std::uint8_t byte = 0;
    MutableBytes into(&byte, 1);
    EXPECT_EQ(left_[0].peer.stream->read({&into, 1}).bytes, 1u);
    EXPECT_EQ(byte, 'x');
  });
  EXPECT_EQ(size(), 1u);
}

TEST_F(LobbyTest, AByteThatCameBeforeThePeerEnteredHandsItOver) {
  make(std::chrono::hours(1), "");
  Ends ends = connect();
  send(*ends.peers);
  on_loop([&] { lobby_->enter(std::move(ends.ours), {}); });
  ASSERT_TRUE(handed_over_.take());
  on_loop([&] {
    EXPECT_EQ(left_[0].peer.greeting_written, 0u);
    EXPECT_EQ(loop_->timers().size(), 0u);
  });
}

TEST_F(LobbyTest, APeerThatEndsIsHandedOver) {
  make(Duration::zero());
  const StreamPtr half = enter();
  half->shutdown_write();
  ASSERT_TRUE(handed_over_.take());
  enter().reset();
  ASSERT_TRUE(handed_over_.take());
  EXPECT_EQ(size(), 0u);
}

TEST_F(LobbyTest, LatePeersAreHandedOverInOrderSomeInATurn) {
  make(milliseconds(200));
  constexpr std::size_t kPeers = Lobby::kLateAtOnce * 2 + 10;
  std::vector<Ends> peers(kPeers);
  std::vector<int> fds;
  for (Ends& ends : peers) {
    ends = connect();
    fds.push_back(ends.ours->fd());
  }
  on_loop([&] {  // all in one turn, so all are late in one turn
    for (Ends& ends : peers) {
      lobby_->enter(std::move(ends.ours), {});
    }
  });
  for (std::size_t i = 0; i < kPeers; ++i) {
    ASSERT_TRUE(handed_over_.take());
  }
  on_loop([&] {
    for (std::size_t i = 0; i < kPeers; ++i) {
      EXPECT_EQ(left_[i].peer.stream->fd(), fds[i]);
      EXPECT_GE(loop_->now() - left_[i].peer.since, milliseconds(200));
    }
    for (const auto& [turn, count] : by_turn_) {
      EXPECT_LE(count, Lobby::kLateAtOnce);
    }
    EXPECT_EQ(lobby_->size(), 0u);
    EXPECT_EQ(loop_->timers().size(), 0u);
  });
}

TEST_F(LobbyTest, APeerThatComesLaterIsLateLater) {
  make(milliseconds(30));
  const StreamPtr first = enter();
  ASSERT_TRUE(handed_over_.take());
  const StreamPtr second = enter();
  ASSERT_TRUE(handed_over_.take());
  on_loop([&] { EXPECT_GE(left_[1].peer.since - left_[0].peer.since, milliseconds(30)); });
}

TEST_F(LobbyTest, WithoutPatienceThereIsNoTimer) {
  make(Duration::zero());
  const StreamPtr peer = enter();
  on_loop([&] { EXPECT_EQ(loop_->timers().size(), 0u); });
  EXPECT_EQ(size(), 1u);
}

TEST_F(LobbyTest, CloseEndsEveryStreamAndHandsNoneOver) {
  make(std::chrono::hours(1));
  const StreamPtr peer = enter();
  const StreamPtr other = enter();
  on_loop([&] {
    lobby_->close();
    lobby_->close();
    EXPECT_EQ(loop_->timers().size(), 0u);
  });
  EXPECT_EQ(received(*peer), "opening");
  EXPECT_EQ(received(*peer), "");
  EXPECT_EQ(size(), 0u);
  on_loop([&] { EXPECT_TRUE(left_.empty()); });
}

TEST_F(LobbyTest, APeerThatNobodyHasMemoryForIsClosedAndReported) {
  make(Duration::zero());
  const StreamPtr peer = enter();
  on_loop([&] { without_memory_ = true; });
  send(*peer);
  ASSERT_TRUE(handed_over_.take());
  on_loop([&] { EXPECT_EQ(lost_, 1); });
  EXPECT_EQ(size(), 0u);
}

TEST_F(LobbyTest, APeerThatHasGoneBeforeItEntersIsHandedOver) {
  make(Duration::zero());
  Ends ends = connect();
  ends.peers.reset();
  on_loop([&] { lobby_->enter(std::move(ends.ours), {}); });
  ASSERT_TRUE(handed_over_.take());
}

}  // namespace
}  // namespace weft::msg
