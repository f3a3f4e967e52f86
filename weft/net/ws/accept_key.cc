// SPDX-License-Identifier: MIT
#include "weft/net/ws/accept_key.h"

#include <algorithm>
#include <bit>

#include "weft/base/bytes.h"
#include "weft/base/endian.h"
#include "weft/base/text/base64.h"

namespace weft::net::ws {
namespace {

constexpr std::size_t kBlock = 64;
using State = std::array<std::uint32_t, 5>;

void mix(State& state, const std::uint8_t* block) noexcept {
  std::array<std::uint32_t, 80> words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = i < 16 ? load_big_endian<std::uint32_t>(block + 4 * i)
                      : std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  auto [a, b, c, d, e] = state;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5A827999u
                            : i < 40 ? (b ^ c ^ d) + 0x6ED9EBA1u
                            : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDCu
                                     : (b ^ c ^ d) + 0xCA62C1D6u;
    const std::uint32_t next = std::rotl(a, 5) + f + e + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d, state[4] + e};
}

}  // namespace

std::array<std::uint8_t, 20> sha1(std::string_view text) {
  State state{0x67452301u, 0xEFCDAB89u, 0x98BADCFEu, 0x10325476u, 0xC3D2E1F0u};
  std::string padded(text);
  padded += '\x80';
  padded.resize((padded.size() + 8 + kBlock - 1) / kBlock * kBlock, '\0');
  auto* const bytes = reinterpret_cast<std::uint8_t*>(padded.data());
  store_big_endian<std::uint64_t>(bytes + padded.size() - 8, text.size() * 8);
  for (std::size_t at = 0; at < padded.size(); at += kBlock) {
    mix(state, bytes + at);
  }
  std::array<std::uint8_t, 20> digest;
  for (std::size_t i = 0; i < state.size(); ++i) {
    store_big_endian(&digest[4 * i], state[i]);
  }
  return digest;
}

bool is_key(std::string_view key) noexcept {
  return key.size() == kKeySize && key.ends_with("==") && std::all_of(key.begin(), key.end() - 2, [](char c) {
           return kBase64Digits.find(c) != std::string_view::npos;
         });
}

std::string accept_key(std::string_view key) {
  return encode_base64(as_text(sha1(std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")));
}

}  // namespace weft::net::ws
