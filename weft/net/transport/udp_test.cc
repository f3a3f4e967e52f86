// SPDX-License-Identifier: MIT
#include "weft/net/transport/udp.h"

#include <string>

#include "weft/sys/datagram.h"
#include "weft/sys/poll.h"
#include <gtest/gtest.h>

namespace weft::net {
namespace {

Result<UdpSocket> open(const std::string& text, bool for_bind, const MulticastOptions& udp = {}, bool ipv6 = false) {
  sys::SocketOptions options;
  options.ipv6 = ipv6;
  return open_udp(WEFT_TRY(parse_endpoint(text, for_bind)), for_bind, udp, options);
}

bool send(const UdpSocket& from, std::string_view text) {
  const sys::OutgoingDatagram datagram{from.to.raw(), from.to.raw_size(), {as_bytes(text), Bytes()}};
  return sys::send_datagrams(from.fd.fd(), {&datagram, 1}).count == 1;
}

// Waits for one.
std::string receive(const UdpSocket& at) {
  sys::PollFd polled{.fd = at.fd.fd(), .want = sys::Interest::readable};
  EXPECT_EQ(sys::poll_fds({&polled, 1}, std::chrono::seconds(10)).value_or(0u), 1u);
  std::uint8_t room[100];
  sys::IncomingDatagram datagram{.room = room};
  const sys::DatagramResult got = sys::receive_datagrams(at.fd.fd(), {&datagram, 1}, true);
  return got.count == 1 ? std::string(as_text({room, datagram.size})) : "errno " + std::to_string(got.os_errno);
}

// ":4711"; no socket has it now.
std::string free_port() {
  const auto bound = open("udp://127.0.0.1:*", true);
  return bound->text.substr(bound->text.rfind(':'));
}

TEST(Udp, BindsAPortOfTheSystemsChoice) {
  const auto bound = open("udp://127.0.0.1:*", true);
  ASSERT_TRUE(bound) << bound.error().message();
  EXPECT_TRUE(bound->text.starts_with("udp://127.0.0.1:")) << bound->text;
  const auto to = open(bound->text, false);
  ASSERT_TRUE(to);
  EXPECT_EQ(to->text, bound->text);
  ASSERT_TRUE(send(*to, "hello"));
  EXPECT_EQ(receive(*bound), "hello");
}

TEST(Udp, TwoSocketsNeverGetTheSameChosenPort) {
  const auto first = open("udp://127.0.0.1:*", true);
  for (int i = 0; i < 100; ++i) {
    const auto other = open("udp://127.0.0.1:*", true);
    ASSERT_TRUE(other);
    EXPECT_NE(other->text, first->text);
  }
}

TEST(Udp, BindsInterfacesAndNames) {
  for (const char* text : {"udp://lo:*", "udp://localhost:*", "udp://*:*"}) {
    const auto bound = open(text, true);
    ASSERT_TRUE(bound) << text << ": " << bound.error().message();
    const auto to = open("udp://localhost" + bound->text.substr(bound->text.rfind(':')), false);
    ASSERT_TRUE(to);
    ASSERT_TRUE(send(*to, "hello"));
    EXPECT_EQ(receive(*bound), "hello") << text;
  }
}

TEST(Udp, Ipv6TakesBothFamilies) {
  const auto bound = open("udp://*:*", true, {}, true);
  if (!bound || !open("udp://[::1]:9", false, {}, true)) {
    GTEST_SKIP() << "no IPv6 here";
  }
  const std::string port = bound->text.substr(bound->text.rfind(':'));
  for (const char* host : {"udp://[::1]", "udp://127.0.0.1"}) {
    const auto to = open(host + port, false, {}, true);
    ASSERT_TRUE(to);
    if (send(*to, host)) {
      EXPECT_EQ(receive(*bound), host);
    }
  }
}

TEST(Udp, EveryMemberOfAGroupGetsADatagram) {
  const std::string place = "udp://lo;239.12.34.56" + free_port();
  const auto first = open(place, true);
  const auto second = open(place, true);
  if (!first || !second) {
    GTEST_SKIP() << "no multicast here: " << (first ? second : first).error().message();
  }
  EXPECT_EQ(first->text, place);
  const auto other = open("udp://lo;239.12.34.57" + place.substr(place.rfind(':')), true);
  ASSERT_TRUE(other);
  const auto to = open(place, false);
  ASSERT_TRUE(to);
  if (!send(*to, "hello")) {
    GTEST_SKIP() << "no multicast here";
  }
  EXPECT_EQ(receive(*first), "hello");
  EXPECT_EQ(receive(*second), "hello");
  const auto to_other = open(other->text, false);
  ASSERT_TRUE(send(*to_other, "to the other group"));
  EXPECT_EQ(receive(*other), "to the other group");  // the system delivers to one after the other
  sys::PollFd polled{.fd = first->fd.fd(), .want = sys::Interest::readable};
  EXPECT_EQ(sys::poll_fds({&polled, 1}, Duration(0)).value_or(1u), 0u);
}

TEST(Udp, AGroupNeedsItsInterface) {
  EXPECT_EQ(open("udp://no-such-nic;239.0.0.1:5555", true).error().code(), Errc::address_unavailable);
  EXPECT_EQ(open("udp://no-such-nic;239.0.0.1:5555", false).error().code(), Errc::address_unavailable);
  EXPECT_EQ(open("udp://lo;localhost:5555", false).error().code(), Errc::malformed_endpoint);
  EXPECT_EQ(open("udp://127.0.0.1;[ff02::1]:5555", false).error().code(), Errc::address_unavailable);
}

TEST(Udp, RefusesNamesThatNobodyHas) {
  EXPECT_FALSE(open("udp://no-such-host.invalid:5555", false));
  EXPECT_FALSE(open("udp://192.0.2.99:5555", true));
}

}  // namespace
}  // namespace weft::net
