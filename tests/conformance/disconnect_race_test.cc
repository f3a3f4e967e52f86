// SPDX-License-Identifier: MIT
// A disconnect while the I/O thread is about to end the connection's handshake.
#include <condition_variable>
#include <mutex>
#include <set>

#include "tests/conformance/wire.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/weft.h"
#include <gtest/gtest.h>

namespace weft::conformance {
namespace {

using namespace std::chrono_literals;

// Gates: places in the I/O thread where it waits for the test.
class Gates {
 public:
  // The I/O thread waits at the first event of this kind of the socket until open().
  void close_at(Socket& socket, EventKind kind, int gate) {
    socket.core()->monitor().set_sink([this, kind, gate](const MonitorEvent& event) {
      if (event.kind == kind) {
        std::unique_lock lock(mutex_);
        reached_.insert(gate);
        changed_.notify_all();
        changed_.wait_for(lock, 20s, [&] { return opened_.contains(gate); });
      }
      return true;
    });
  }
  [[nodiscard]] bool reached(int gate) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return reached_.contains(gate); });
  }
  void open(int gate) {
    const std::lock_guard lock(mutex_);
    opened_.insert(gate);
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int> reached_;
  std::set<int> opened_;
};

class DisconnectRace : public testing::Test {
 protected:
  static constexpr const char* kPlace = "tcp://127.0.0.1:*";

  ~DisconnectRace() override {
    for (int gate = 1; gate <= 3; ++gate) {
      gates_.open(gate);
    }
  }

  [[nodiscard]] Socket make(SocketType type) {
    Socket socket = context_.socket(type).value();
    EXPECT_TRUE(socket.set(option::linger, 0ms));
    EXPECT_TRUE(socket.set(option::handshake_timeout, 20s));  // it runs while the I/O thread waits at a gate
    EXPECT_TRUE(socket.set(option::immediate, true));         // messages wait for a peer, not at a pipe without one
    return socket;
  }
  // All bytes of a PULL's handshake, at once.
  [[nodiscard]] static std::string handshake() {
    zmtp::LocalEndConfig config;
    config.socket_type = zmtp::WireType::pull;
    zmtp::LocalEnd end(config);
    config.socket_type = zmtp::WireType::push;
    zmtp::LocalEnd other(config);
    end.start(sys::now());
    other.start(sys::now());
    std::string said;
    while (!end.ready()) {
      said += as_text(end.pending_output());
      (void)other.handle_input(end.pending_output(), sys::now());
      end.consume_output(end.pending_output().size());
      const std::string answer(as_text(other.pending_output()));
      other.consume_output(answer.size());
      (void)end.handle_input(as_bytes(answer), sys::now());
    }
    return said + std::string(as_text(end.pending_output()));
  }
  // A peer whose socket has sent the beginning of its greeting: its link waits for input.
  [[nodiscard]] static BytePeer greeted(net::Listener& listener) {
    BytePeer peer = BytePeer::accept(listener);
    EXPECT_EQ(peer.read(1), "\xFF");
    return peer;
  }
  // The I/O thread stops at gate 1. Then the handshakes of `other` and, after it, of the tested peer come in. The I/O
  // thread handles both in one turn, and stops between the two at gate 2.
  void stop_between(BytePeer& other, BytePeer& tested) {
    Socket third = make(SocketType::push);
    gates_.close_at(third, EventKind::connected, 1);
    ASSERT_TRUE(third.connect(listener_->bound_endpoint()));
    ASSERT_TRUE(gates_.reached(1));
    other.write(handshake());
    tested.write(handshake());
    gates_.open(1);
    ASSERT_TRUE(gates_.reached(2));
  }

  Gates gates_;  // outlives the context, whose I/O thread waits at them
  Context context_;
  std::unique_ptr<net::Listener> listener_ = net::Listener::open(*net::parse_endpoint(kPlace, true), {}).value();
};

TEST_F(DisconnectRace, APeerThatIsDisconnectedInItsHandshakeGetsNoMessages) {
  Socket push = make(SocketType::push);
  const std::string endpoint = listener_->bound_endpoint();
  ASSERT_TRUE(push.connect(endpoint));
  BytePeer tested = greeted(*listener_);
  Socket before = make(SocketType::push);
  ASSERT_TRUE(before.connect(endpoint));
  BytePeer other = greeted(*listener_);
  gates_.close_at(before, EventKind::handshake_succeeded, 2);
  gates_.close_at(push, EventKind::handshake_succeeded, 3);
  stop_between(other, tested);
  ASSERT_TRUE(push.disconnect(endpoint));
  gates_.open(2);
  ASSERT_TRUE(gates_.reached(3));
  EXPECT_EQ(push.try_send(as_bytes("late")).error(), Errc::would_block);
  EXPECT_EQ(push.statistics()->peers, 0u);
}

}  // namespace
}  // namespace weft::conformance
