// SPDX-License-Identifier: MIT
#include "weft/serve/udp/datagram_cookie.h"

#include <bit>
#include <cstddef>
#include <random>

#include "weft/base/endian.h"

namespace weft::serve {
namespace {

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() noexcept {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void take(std::uint64_t word) noexcept {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace

std::uint64_t sip_hash(const SipKey& key, Bytes bytes) noexcept {
  SipState state{key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u,
                 key[1] ^ 0x7465646279746573u};
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    word |= std::uint64_t{bytes[i]} << (8 * (i % 8));
    if (i % 8 == 7) {
      state.take(word);
      word = 0;
    }
  }
  state.take(word | std::uint64_t{bytes.size()} << 56);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) {
    state.round();
  }
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

SipKey random_sip_key() {
  std::random_device device;
  SipKey key{};
  for (std::uint64_t& word : key) {
    word = std::uint64_t{device()} << 32 | device();
  }
  return key;
}

std::uint64_t CookieMaker::of_slot(const sys::SocketAddress& address, std::uint64_t slot) const noexcept {
  std::array<std::uint8_t, 8 + 2 + 16> text{};
  store_big_endian(text.data(), slot);
  store_big_endian(text.data() + 8, address.port());
  const Bytes ip = address.ip_bytes();
  copy_bytes(text.data() + 10, ip);
  return sip_hash(key_, Bytes(text).first(10 + ip.size()));
}

std::uint64_t CookieMaker::make(const sys::SocketAddress& address, Instant now) const noexcept {
  return of_slot(address, slot_of(now));
}

bool CookieMaker::valid(std::uint64_t cookie, const sys::SocketAddress& address, Instant now) const noexcept {
  const std::uint64_t slot = slot_of(now);
  return cookie == of_slot(address, slot) || cookie == of_slot(address, slot - 1);
}

}  // namespace weft::serve
