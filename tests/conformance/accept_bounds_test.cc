// SPDX-License-Identifier: MIT
// Bounds on accepted connections: the options connections_max, address_connections_max and address_rate_max.
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"

namespace weft::conformance {
namespace {

class AcceptBounds : public testing::Test {
 protected:
  static constexpr Duration kLong = 20s;

  AcceptBounds() : pull_(std::move(context_.socket(SocketType::pull)).value()) {
    EXPECT_TRUE(pull_.set(option::receive_timeout, kLong));
    EXPECT_TRUE(pull_.set(option::handshake_timeout, kLong));  // a test may be slow to speak
    EXPECT_TRUE(pull_.watch_events());
  }
  void bind(const char* endpoint = "tcp://127.0.0.1:*") {
    auto bound = pull_.bind(endpoint);
    ASSERT_TRUE(bound) << bound.error().message();
    endpoint_ = *bound;
  }
  void expect_admitted(int count) {
    for (int i = 0; i < count; ++i) {
      peers_.push_back(WirePeer::dial(endpoint_, zmtp::WireType::push));
    }
  }
  void expect_refused(std::string_view reason) {
    WirePeer peer = WirePeer::dial(endpoint_);
    EXPECT_EQ(peer.read_to_end(), "") << "a refused peer gets no greeting";
    const MonitorEvent event = wait_for(EventKind::accept_failed);
    EXPECT_EQ(event.reason.text(), reason);
    EXPECT_EQ(event.endpoint, endpoint_);
  }
  MonitorEvent wait_for(EventKind kind) { return test::wait_for_event(pull_, kind, kLong); }

  Context context_;
  Socket pull_;
  std::string endpoint_;
  std::vector<WirePeer> peers_;
};

TEST_F(AcceptBounds, TheSocketClosesConnectionsBeyondItsBoundUntilOneLeaves) {
  ASSERT_TRUE(pull_.set(option::connections_max, 3));
  bind();
  expect_admitted(3);
  expect_refused("the socket has connections_max connections");
  expect_refused("the socket has connections_max connections");
  EXPECT_EQ(pull_.statistics()->refused_full, 2U);
  EXPECT_EQ(pull_.statistics()->accepts_failed, 2U);
  EXPECT_EQ(pull_.statistics()->accepted, 3U);
  peers_.pop_back();
  (void)wait_for(EventKind::disconnected);
  expect_admitted(1);
}

TEST_F(AcceptBounds, TheBoundOfTheSocketHoldsForUnixPeersToo) {
  const std::string directory = std::move(sys::make_private_directory()).value();
  ASSERT_TRUE(pull_.set(option::connections_max, 1));
  ASSERT_TRUE(pull_.set(option::address_connections_max, 1));
  bind(("ipc://" + directory + "/place").c_str());
  expect_admitted(1);
  expect_refused("the socket has connections_max connections");
  peers_.clear();
  pull_.close();
  context_.close();
  EXPECT_TRUE(sys::remove_directory(directory));
}

TEST_F(AcceptBounds, APeerThatLeftCountsUntilItsMessagesAreReceived) {
  ASSERT_TRUE(pull_.set(option::connections_max, 1));
  bind();
  expect_admitted(1);
  peers_[0].write(wire_frame(0, "a") + wire_frame(0, "b"));
  peers_.clear();
  (void)wait_for(EventKind::disconnected);
  expect_refused("the socket has connections_max connections");
  EXPECT_TRUE(pull_.recv());
  EXPECT_TRUE(pull_.recv());
  EXPECT_EQ(pull_.try_recv().error(), Errc::would_block);
  expect_admitted(1);
}

TEST_F(AcceptBounds, AnAddressHasItsOwnBoundAtEachEndpoint) {
  ASSERT_TRUE(pull_.set(option::address_connections_max, 2));
  bind();
  expect_admitted(2);
  expect_refused("too many connections of its address");
  EXPECT_EQ(pull_.statistics()->refused_address, 1U);
  bind();
  expect_admitted(2);
  expect_refused("too many connections of its address");
  peers_.pop_back();
  (void)wait_for(EventKind::disconnected);
  expect_admitted(1);
}

TEST_F(AcceptBounds, AsManyAddressesAsConnectionsAreTakenAlsoAfterTheBoundWasRaised) {
  ASSERT_TRUE(pull_.set(option::connections_max, 32));
  ASSERT_TRUE(pull_.set(option::address_connections_max, 100));
  bind();
  const std::string to = endpoint_.substr(6);
  const auto expect_address = [&](int number) {
    const std::string from = "127.0." + std::to_string(number / 200) + '.' + std::to_string(2 + number % 200);
    peers_.push_back(WirePeer::dial("tcp://" + from + ":0;" + to, zmtp::WireType::push));
  };
  for (int i = 0; i < 32; ++i) {
    expect_address(i);
  }
  expect_refused("the socket has connections_max connections");
  ASSERT_TRUE(pull_.set(option::connections_max, 1000));
  for (int i = 32; i < 200; ++i) {
    expect_address(i);
  }
  EXPECT_EQ(pull_.statistics()->accepts_failed, 1U);
}

TEST_F(AcceptBounds, AnAddressMayConnectSoManyTimesInASecond) {
  ASSERT_TRUE(pull_.set(option::address_rate_max, 1));
  bind();
  expect_admitted(1);
  // A machine that stops this test for a second admits another one: the third of three in a row is refused then.
  for (int i = 0; i < 100 && pull_.statistics()->refused_rate == 0; ++i) {
    (void)WirePeer::dial(endpoint_).read(1);
  }
  EXPECT_EQ(wait_for(EventKind::accept_failed).reason.text(), std::string("its prefix connects too often"));
}

TEST_F(AcceptBounds, WithoutBoundsEveryConnectionIsKept) {
  for (const auto* row : {&option::connections_max, &option::address_connections_max, &option::address_rate_max}) {
    ASSERT_TRUE(pull_.set(*row, 0));
  }
  bind();
  expect_admitted(50);
  EXPECT_EQ(pull_.statistics()->accepts_failed, 0U);
}

TEST_F(AcceptBounds, APartBeyondTheDefaultSizeEndsItsConnection) {
  bind();
  expect_admitted(1);
  std::string header(9, '\0');
  header[0] = 2;                                     // a long frame
  header.replace(5, 4, std::string("\4\0\0\1", 4));  // of 64 MiB and one byte
  peers_[0].write(header);
  (void)peers_[0].read_to_end();
  EXPECT_EQ(wait_for(EventKind::disconnected).reason, Errc::message_too_large);
}

}  // namespace
}  // namespace weft::conformance
