// SPDX-License-Identifier: MIT
// A socket that closed delivers the bytes that the kernel took from it and for which the peer's system has no room yet.
#include <sys/socket.h>

#include <future>
#include <optional>
#include <string>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"

namespace weft::conformance {
namespace {

constexpr int kLateMessages = 60;

std::string numbered_message(int i) { return std::to_string(i) + std::string(5000, '.'); }

class LateReader : public Conformance {
 protected:
  // A socket closes that has sent more than the window of its peer has room for, and less than its own kernel takes.
  void send_and_close(Duration linger) {
    Socket push = make(SocketType::push);
    ASSERT_TRUE(push.set(option::linger, linger));
    ASSERT_TRUE(push.set(option::send_buffer, 1 << 20));
    peer_.emplace(WirePeer::dial(bind(push), zmtp::SocketType::pull));
    const int little = 32 * 1024;  // whatever this system's sockets have at first
    ASSERT_EQ(::setsockopt(peer_->stream().fd(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
    for (int i = 0; i < kLateMessages; ++i) {
      send(push, numbered_message(i));
    }
    push.close();
    ends_ = std::async(std::launch::async, [this] { context().close(); });
  }

  std::future<void> ends_;  // waits in its destructor, after the peer has gone
  std::optional<WirePeer> peer_;
};
bool by_hand_over_tcp(const Transport& row) { return over_tcp(row) && in_the_clear(row); }
WEFT_TRANSPORTS_WHERE(LateReader, by_hand_over_tcp);

TEST_P(LateReader, GetsEverythingAlthoughItReadsAndSpeaksLongAfterTheSenderClosed) {
  send_and_close(Duration(-1));
  EXPECT_EQ(ends_.wait_for(1500ms), std::future_status::timeout) << "the context closed with bytes in its kernel";
  peer_->write(wire_frame(zmtp::kCommand, std::string("\4PING\0\0", 7)));  // to a closed descriptor: a reset
  for (int i = 0; i < kLateMessages; ++i) {
    EXPECT_TRUE(peer_->read_frame().body == numbered_message(i)) << i;
  }
  EXPECT_EQ(peer_->read_to_end(), "");
  peer_->end_writing();
  EXPECT_EQ(ends_.wait_for(kLong), std::future_status::ready);
}

TEST_P(LateReader, KeepsTheSendersContextOpenForItsLingerOnly) {
  send_and_close(100ms);
  EXPECT_EQ(ends_.wait_for(kLong), std::future_status::ready);
}

TEST_P(LateReader, ThatLeavesLetsTheSendersContextClose) {
  send_and_close(Duration(-1));
  peer_.reset();
  EXPECT_EQ(ends_.wait_for(kLong), std::future_status::ready);
}

}  // namespace
}  // namespace weft::conformance
