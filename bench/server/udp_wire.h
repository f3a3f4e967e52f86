// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// The datagrams of the UDP cells: docs/udp-server.md, written again. A kind, a cookie, and a body of wire.h.
namespace bench {

constexpr std::size_t kUdpHeader = 9;
constexpr std::size_t kUdpBodyMax = 1024;
constexpr std::size_t kUdpBatch = 32;  // datagrams in a system call

constexpr std::uint8_t kUdpHello = 1;
constexpr std::uint8_t kUdpChallenge = 2;
constexpr std::uint8_t kUdpOpen = 3;
constexpr std::uint8_t kUdpOpened = 4;
constexpr std::uint8_t kUdpData = 5;
constexpr std::uint8_t kUdpClose = 6;

using UdpCookie = std::array<std::uint8_t, 8>;

}  // namespace bench
