// SPDX-License-Identifier: MIT
#include "weft/serve/udp/datagram_cookie.h"

#include <chrono>
#include <cstdint>
#include <numeric>

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using namespace std::chrono_literals;

const sys::SocketAddress kPeer = sys::SocketAddress::parse_numeric("192.0.2.1", 700).value();
const Instant kCookieStart = Instant(1000s);

TEST(DatagramCookie, TheHashIsTheOneOfThePaper) {  // appendix A: key 00..0f, message 00..0e
  std::array<std::uint8_t, 15> message{};
  std::iota(message.begin(), message.end(), std::uint8_t{0});
  EXPECT_EQ(sip_hash({0x0706050403020100u, 0x0f0e0d0c0b0a0908u}, message), 0xa129ca6149be45e5u);
}

TEST(DatagramCookie, IsValidForItsSlotAndTheNextOne) {
  const CookieMaker cookies({1, 2}, 10s);
  const std::uint64_t cookie = cookies.make(kPeer, kCookieStart);
  EXPECT_TRUE(cookies.valid(cookie, kPeer, kCookieStart));
  EXPECT_TRUE(cookies.valid(cookie, kPeer, kCookieStart + 19s));
  EXPECT_FALSE(cookies.valid(cookie, kPeer, kCookieStart + 20s));
}

TEST(DatagramCookie, IsOfOneAddressAndPortAndKey) {
  const CookieMaker cookies({1, 2}, 10s);
  const std::uint64_t cookie = cookies.make(kPeer, kCookieStart);
  EXPECT_FALSE(cookies.valid(cookie, kPeer.with_port(701), kCookieStart));
  EXPECT_FALSE(cookies.valid(cookie, sys::SocketAddress::parse_numeric("192.0.2.2", 700).value(), kCookieStart));
  EXPECT_FALSE(CookieMaker({1, 3}, 10s).valid(cookie, kPeer, kCookieStart));
}

}  // namespace
}  // namespace weft::serve
