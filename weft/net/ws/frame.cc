// SPDX-License-Identifier: MIT
#include "weft/net/ws/frame.h"

#include <cstring>

#include "weft/base/endian.h"

namespace weft::net::ws {
namespace {

constexpr std::uint8_t kLast = 0x80;
constexpr std::uint8_t kReserved = 0x70;
constexpr std::uint8_t kOpcode = 0x0F;
constexpr std::uint8_t kMasked = 0x80;
constexpr std::uint8_t kSize = 0x7F;
constexpr std::uint8_t kSize16 = 126;
constexpr std::uint8_t kSize64 = 127;

constexpr Parsed malformed(StaticText problem) noexcept { return {ParseStatus::malformed, problem}; }

StaticText find_problem(std::uint8_t first, bool deflate) noexcept {
  const std::uint8_t opcode = first & kOpcode;
  const bool may_be_compressed = deflate && opcode > 0 && opcode < 8;
  if ((first & kReserved & ~(may_be_compressed ? kCompressedBit : 0)) != 0) {
    return "a WebSocket frame with a reserved bit";
  }
  if (opcode > 10 || (opcode > 2 && opcode < 8)) {
    return "a WebSocket frame with a reserved opcode";
  }
  return opcode >= 8 && (first & kLast) == 0 ? StaticText("a fragmented WebSocket control frame") : StaticText();
}

}  // namespace

Parsed parse_header(Bytes input, bool masked, WsFrameHeader& out, bool deflate) noexcept {
  if (input.empty()) {
    return {};
  }
  if (const StaticText problem = find_problem(input[0], deflate); problem != nullptr) {
    return malformed(problem);
  }
  if (input.size() < 2) {
    return {};
  }
  if (((input[1] & kMasked) != 0) != masked) {
    return malformed(masked ? StaticText("a WebSocket client's frame without a mask")
                            : StaticText("a WebSocket server's frame with a mask"));
  }
  const auto opcode = static_cast<Opcode>(input[0] & kOpcode);
  const std::uint8_t size = input[1] & kSize;
  if (is_control(opcode) && size > kControlBodyMax) {
    return malformed("a WebSocket control frame of more than 125 bytes");
  }
  const std::size_t size_end = size == kSize64 ? 10 : size == kSize16 ? 4 : 2;
  const std::size_t end = size_end + (masked ? sizeof(MaskKey) : 0);
  if (input.size() < size_end) {
    return {};
  }
  const std::uint64_t body = size == kSize64   ? load_big_endian<std::uint64_t>(&input[2])
                             : size == kSize16 ? load_big_endian<std::uint16_t>(&input[2])
                                               : size;
  if ((size == kSize16 && body < kSize16) || (size == kSize64 && (body <= UINT16_MAX || body > INT64_MAX))) {
    return malformed("a WebSocket frame whose size is not in its shortest form");
  }
  if (input.size() < end) {
    return {};
  }
  out = {(input[0] & kLast) != 0,         opcode, static_cast<std::uint8_t>(end), body, std::nullopt,
         (input[0] & kCompressedBit) != 0};
  if (masked) {
    std::memcpy(out.mask.emplace().data(), &input[size_end], sizeof(MaskKey));
  }
  return {ParseStatus::complete};
}

std::size_t write_header(std::uint8_t* to, Opcode opcode, std::uint64_t body_size,
                         const std::optional<MaskKey>& mask) noexcept {
  const std::uint8_t masked = mask ? kMasked : 0;
  std::size_t size = 2;
  to[0] = static_cast<std::uint8_t>(kLast | static_cast<std::uint8_t>(opcode));
  if (body_size <= kControlBodyMax) {
    to[1] = static_cast<std::uint8_t>(masked | body_size);
  } else if (body_size <= UINT16_MAX) {
    to[1] = masked | kSize16;
    store_big_endian(to + 2, static_cast<std::uint16_t>(body_size));
    size = 4;
  } else {
    to[1] = masked | kSize64;
    store_big_endian(to + 2, body_size);
    size = 10;
  }
  if (mask) {
    std::memcpy(to + size, mask->data(), sizeof(MaskKey));
    size += sizeof(MaskKey);
  }
  return size;
}

void copy_masked(std::uint8_t* to, Bytes from, MaskKey mask, std::uint64_t offset) noexcept {
  std::uint8_t turned[8];
  for (std::size_t i = 0; i < sizeof turned; ++i) {
    turned[i] = mask[(offset + i) % sizeof(MaskKey)];
  }
  std::uint64_t word = 0;
  std::memcpy(&word, turned, sizeof word);
  std::size_t i = 0;
  for (; i + sizeof word <= from.size(); i += sizeof word) {
    std::uint64_t part = 0;
    std::memcpy(&part, &from[i], sizeof part);
    part ^= word;
    std::memcpy(to + i, &part, sizeof part);
  }
  for (; i < from.size(); ++i) {
    to[i] = static_cast<std::uint8_t>(from[i] ^ turned[i % sizeof turned]);
  }
}

}  // namespace weft::net::ws
