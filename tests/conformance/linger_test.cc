// SPDX-License-Identifier: MIT
// A socket that closed delivers the bytes that the kernel took from it and for which the peer's system has no room yet.
#include <sys/socket.h>

#include <algorithm>
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
  testing::internal::CaptureStderr();
  EXPECT_EQ(ends_.wait_for(1500ms), std::future_status::timeout) << "the context closed with bytes in its kernel";
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(said.find("waits without a limit") != std::string::npos &&
              said.find("does not read") != std::string::npos)
      << said;
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

// A program without a peer gets one line about the reason why its end takes so long.
TEST(Linger, OfAnEndpointWhereNobodyIsConnectedIsSaid) {
  Context context;
  std::string endpoints[2];
  for (std::string& endpoint : endpoints) {
    Socket unused = context.socket(SocketType::pull).value();
    endpoint = unused.bind("tcp://127.0.0.1:0").value();
  }
  {
    Socket push = context.socket(SocketType::push).value();
    ASSERT_TRUE(push.set(option::linger, 1200ms));
    for (const std::string& endpoint : endpoints) {
      ASSERT_TRUE(push.connect(endpoint));
      ASSERT_TRUE(push.send("unread"));
    }
  }
  testing::internal::CaptureStderr();
  context.close();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("weft: the context's end waits for 0."), 0U) << said;
  EXPECT_NE(said.find("nobody is connected there\n"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

}  // namespace
}  // namespace weft::conformance
