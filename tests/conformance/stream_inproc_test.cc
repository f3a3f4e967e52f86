// SPDX-License-Identifier: MIT
// STREAM, and a raw ROUTER, refuse inproc.
#include <thread>

#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

class StreamInproc : public Conformance {};
INSTANTIATE_TEST_SUITE_P(Inproc, StreamInproc, testing::Values(kTransports[0]));

TEST_P(StreamInproc, ThereAreNoBytesWithinAProcess) {
  Socket stream = make(SocketType::stream);
  EXPECT_EQ(stream.bind(new_endpoint()).error(), Errc::incompatible_peer);
  EXPECT_EQ(stream.connect(new_endpoint()).error(), Errc::incompatible_peer);
}

TEST_P(StreamInproc, ARouterThatIsBoundBecomesNoStream) {
  Socket router = make(SocketType::router);
  const std::string endpoint = bind(router);
  EXPECT_EQ(router.set(option::router_raw, true).error(), Errc::invalid_argument);
  Socket dealer = make(SocketType::dealer);
  connect(dealer, endpoint);
  send(dealer, "x");
  EXPECT_EQ(recv(router).back(), "x");
  dealer.close();
  ASSERT_TRUE(router.unbind(endpoint));
  // The ended peer is forgotten with its messages, and then the router has no peer.
  const Instant end = sys::now() + kLong;
  while (!router.set(option::router_raw, true)) {
    ASSERT_LT(sys::now(), end);
    EXPECT_EQ(router.try_recv().error(), Errc::would_block);
  }
  EXPECT_EQ(router.bind(new_endpoint()).error(), Errc::incompatible_peer);
}

// Whichever thread wins: the router is raw without a peer over inproc, or has one and is not a stream.
TEST_P(StreamInproc, AThreadThatMakesTheRouterRawWhileAnotherOneBinds) {
  for (int round = 0; round < 200; ++round) {
    Socket router = make(SocketType::router);
    const std::string endpoint = new_endpoint();
    Socket dealer = make(SocketType::dealer);
    connect(dealer, endpoint);
    std::thread other([&] { (void)router.set(option::router_raw, true); });
    const bool bound = router.bind(endpoint).has_value();
    other.join();
    send(dealer, "x");
    const auto got = router.try_recv();
    if (router.set(option::router_raw, true)) {  // it is already
      EXPECT_EQ(got.error(), Errc::would_block);
    } else {
      EXPECT_TRUE(bound && got);
    }
  }
}

}  // namespace
}  // namespace weft::conformance
