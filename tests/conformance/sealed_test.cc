// SPDX-License-Identifier: MIT
// A peer that has the keys and misuses them: a frame that is not sealed, or sealed for another place, ends the
// connection.
#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"

namespace weft::conformance {
namespace {

using zmtp::kMore;

class SealedWire : public Conformance {
 protected:
  void SetUp() override {
    ASSERT_TRUE(pull_.watch_events());
    endpoint_ = bind(pull_);
  }
  [[nodiscard]] WirePeer dial() {
    return WirePeer::dial(endpoint_, zmtp::WireType::push,
                          zmtp::make_curve_client(zmtp::make_curve_key_pair().value(), server_keys().public_key));
  }
  void expect_end(std::string_view text) {
    const MonitorEvent event = wait_for_event(pull_, EventKind::disconnected);
    EXPECT_EQ(event.reason.code(), Errc::protocol_error);
    EXPECT_EQ(event.reason.text(), text);
    WirePeer next = dial();  // the socket still accepts peers
    next.write(next.sealed_frame(0, "next"));
    EXPECT_EQ(recv_text(pull_), "next");
  }

  Socket pull_ = make(SocketType::pull);
  std::string endpoint_;
};
WEFT_TRANSPORTS_WHERE(SealedWire, over_curve);

constexpr std::string_view kForged = "a message that cannot be decrypted";

TEST_P(SealedWire, ASealedMessageArrives) {
  WirePeer peer = dial();
  peer.write(peer.sealed_frame(kMore, "one"));
  peer.write(peer.sealed_frame(0, std::string(100'000, 'x')));
  EXPECT_EQ(recv(pull_), (Texts{"one", std::string(100'000, 'x')}));
}

TEST_P(SealedWire, AChangedByteEndsTheConnection) {
  WirePeer peer = dial();
  std::string frame = peer.sealed_frame(0, "sealed");
  frame.back() ^= 1;
  peer.write(frame);
  expect_end(kForged);
}

TEST_P(SealedWire, ARepeatedFrameEndsTheConnectionAndIsNotDelivered) {
  WirePeer peer = dial();
  const std::string frame = peer.sealed_frame(0, "pay 100");
  peer.write(frame + frame);
  EXPECT_EQ(recv_text(pull_), "pay 100");
  expect_end(kForged);
}

TEST_P(SealedWire, AFrameOutOfOrderEndsTheConnection) {
  WirePeer peer = dial();
  const std::string first = peer.sealed_frame(0, "first");
  const std::string second = peer.sealed_frame(0, "second");
  peer.write(second + first);
  EXPECT_EQ(recv_text(pull_), "second");  // numbers may be left out
  expect_end(kForged);
}

TEST_P(SealedWire, AMessageInTheClearEndsTheConnection) {
  WirePeer peer = dial();
  peer.write(wire_frame(0, "in the clear, and long enough to be a sealed one"));
  expect_end(kForged);
}

TEST_P(SealedWire, AFrameTooShortToBeSealedEndsTheConnection) {
  WirePeer peer = dial();
  peer.write(wire_frame(0, "short"));
  expect_end(kForged);
}

TEST_P(SealedWire, AFrameOfAnotherConnectionEndsThisOne) {
  WirePeer other = dial();
  WirePeer peer = dial();
  peer.write(other.sealed_frame(0, "for another"));
  expect_end(kForged);
}

}  // namespace
}  // namespace weft::conformance
