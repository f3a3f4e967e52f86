// SPDX-License-Identifier: MIT
#include "weft/msg/socket/lobby.h"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "weft/rt/loop/test_signal.h"
#include <gtest/gtest.h>

namespace weft::msg {
namespace {

using std::chrono::milliseconds;

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
                                     Lobby::Handlers{[this](Lobby::Guest&& guest) {
                                                       if (without_memory_) {
                                                         throw std::bad_alloc();
                                                       }
                                                       left_.push_back(std::move(guest));
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
  // The peer's end.
  sys::Fd enter() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    on_loop([&] { lobby_->enter(net::make_socket_stream(sys::Fd(ends[0])), {}); });
    return sys::Fd(ends[1]);
  }
  std::size_t size() {
    std::size_t size = 0;
    on_loop([&] { size = lobby_->size(); });
    return size;
  }
  static std::string received(const sys::Fd& peer) {
    char bytes[64];
    const ssize_t size = ::read(peer.fd(), bytes, sizeof bytes);
    return size < 0 ? "nothing" : std::string(bytes, static_cast<std::size_t>(size));
  }

  std::unique_ptr<rt::Loop> loop_;
  std::unique_ptr<Lobby> lobby_;
  rt::test::Signal handed_over_;
  std::vector<Lobby::Guest> left_;
  std::map<Instant, int> by_turn_;
  bool without_memory_ = false;
  int lost_ = 0;
};

TEST_F(LobbyTest, ASilentPeerStaysAndGetsTheOpening) {
  make(std::chrono::hours(1));
  const sys::Fd peer = enter();
  EXPECT_EQ(received(peer), "opening");
  EXPECT_EQ(size(), 1u);
}

TEST_F(LobbyTest, TheFirstByteHandsThePeerOver) {
  make(std::chrono::hours(1));
  const sys::Fd silent = enter();
  const sys::Fd peer = enter();
  ASSERT_EQ(::write(peer.fd(), "x", 1), 1);
  ASSERT_TRUE(handed_over_.take());
  on_loop([&] {
    ASSERT_EQ(left_.size(), 1u);
    EXPECT_EQ(left_[0].peer.greeted, 7u);
    std::uint8_t byte = 0;
    MutableBytes into(&byte, 1);
    EXPECT_EQ(left_[0].peer.stream->read({&into, 1}).bytes, 1u);
    EXPECT_EQ(byte, 'x');
  });
  EXPECT_EQ(size(), 1u);
}

TEST_F(LobbyTest, AByteThatCameBeforeThePeerEnteredHandsItOver) {
  make(std::chrono::hours(1), "");
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const sys::Fd peer(ends[1]);
  ASSERT_EQ(::write(peer.fd(), "x", 1), 1);
  on_loop([&] { lobby_->enter(net::make_socket_stream(sys::Fd(ends[0])), {}); });
  ASSERT_TRUE(handed_over_.take());
  on_loop([&] { EXPECT_EQ(left_[0].peer.greeted, 0u); });
}

TEST_F(LobbyTest, APeerThatEndsIsHandedOver) {
  make(Duration::zero());
  sys::Fd half = enter();
  ASSERT_EQ(::shutdown(half.fd(), SHUT_WR), 0);
  ASSERT_TRUE(handed_over_.take());
  enter().close();
  ASSERT_TRUE(handed_over_.take());
  EXPECT_EQ(size(), 0u);
}

TEST_F(LobbyTest, LatePeersAreHandedOverInOrderSomeInATurn) {
  make(milliseconds(200));
  constexpr std::size_t kPeers = Lobby::kLateAtOnce * 2 + 10;
  std::vector<sys::Fd> peers;
  std::vector<int> fds;
  for (std::size_t i = 0; i < kPeers; ++i) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    peers.emplace_back(ends[1]);
    fds.push_back(ends[0]);
  }
  on_loop([&] {  // all in one turn, so all are late in one turn
    for (const int fd : fds) {
      lobby_->enter(net::make_socket_stream(sys::Fd(fd)), {});
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
  const sys::Fd first = enter();
  ASSERT_TRUE(handed_over_.take());
  const sys::Fd second = enter();
  ASSERT_TRUE(handed_over_.take());
  on_loop([&] { EXPECT_GE(left_[1].peer.since - left_[0].peer.since, milliseconds(30)); });
}

TEST_F(LobbyTest, WithoutPatienceThereIsNoTimer) {
  make(Duration::zero());
  const sys::Fd peer = enter();
  on_loop([&] { EXPECT_EQ(loop_->timers().size(), 0u); });
  EXPECT_EQ(size(), 1u);
}

TEST_F(LobbyTest, CloseEndsEveryStreamAndHandsNoneOver) {
  make(milliseconds(30));
  const sys::Fd peer = enter();
  const sys::Fd other = enter();
  on_loop([&] {
    lobby_->close();
    lobby_->close();
    EXPECT_EQ(loop_->timers().size(), 0u);
  });
  EXPECT_EQ(received(peer), "opening");
  EXPECT_EQ(received(peer), "");
  EXPECT_EQ(size(), 0u);
  on_loop([&] { EXPECT_TRUE(left_.empty()); });
}

TEST_F(LobbyTest, APeerThatNobodyHasMemoryForIsClosedAndReported) {
  make(Duration::zero());
  const sys::Fd peer = enter();
  on_loop([&] { without_memory_ = true; });
  ASSERT_EQ(::write(peer.fd(), "x", 1), 1);
  ASSERT_TRUE(handed_over_.take());
  on_loop([&] { EXPECT_EQ(lost_, 1); });
  EXPECT_EQ(size(), 0u);
}

TEST_F(LobbyTest, APeerThatHasGoneBeforeTheGreetingIsHandedOver) {
  make(Duration::zero());
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  ::close(ends[1]);
  on_loop([&] { lobby_->enter(net::make_socket_stream(sys::Fd(ends[0])), {}); });
  ASSERT_TRUE(handed_over_.take());
  on_loop([&] { EXPECT_EQ(left_[0].peer.greeted, 0u); });
}

}  // namespace
}  // namespace weft::msg
