// SPDX-License-Identifier: MIT
#include "bench/server/abuse_bytes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "bench/server/web_wire.h"
#include "bench/server/wire.h"

namespace bench {
namespace {

constexpr std::size_t kBombSize = std::size_t{1} << 20U;

std::string header_of(std::uint8_t version, std::uint32_t size) {
  std::array<std::uint8_t, kHeaderSize> bytes{};
  encode_header({version, kEcho, size}, bytes.data());
  return {bytes.begin(), bytes.end()};
}

std::string upgrade_of(const std::string& fields) {
  return "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nSec-WebSocket-Key: " + std::string(kWebSocketKey) +
         "\r\n" + fields + "\r\n";
}

// A whole message with a mask of 0. `first`: 0x82 for a binary message, and 0x40 if it is compressed.
std::string frame_of(std::uint8_t first, const std::string& body) {
  std::string frame{static_cast<char>(first), '\xfe', static_cast<char>(body.size() >> 8U),
                    static_cast<char>(body.size())};
  return frame.append(4, '\0').append(body);
}

// Bits, the lowest one first, in bytes.
class BitWriter {
 public:
  void write(unsigned bits, unsigned count) {
    for (unsigned i = 0; i < count; ++i, ++at_) {
      if (at_ % 8 == 0) {
        bytes_ += '\0';
      }
      bytes_.back() = static_cast<char>(static_cast<unsigned char>(bytes_.back()) | ((bits >> i & 1U) << at_ % 8));
    }
  }
  // A Huffman code, whose highest bit comes first.
  void write_code(unsigned code, unsigned count) {
    for (unsigned i = count; i > 0; --i) {
      write(code >> (i - 1) & 1U, 1);
    }
  }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
  unsigned at_ = 0;
};

}  // namespace

// One block with the fixed codes of RFC 1951 section 3.2.6: the letter, then copies of 258 bytes at distance 1. An
// empty stored block ends it, without the four bytes that RFC 7692 section 7.2.1 leaves out.
std::string deflate_bomb(std::size_t size) {
  constexpr std::size_t kCopy = 258;
  BitWriter bits;
  bits.write(0b010, 3);  // not the last block; fixed codes
  for (; size % kCopy != 1 && size > 0; --size) {
    bits.write_code(0x30 + 'x', 8);
  }
  if (size > 0) {
    bits.write_code(0x30 + 'x', 8);
  }
  for (; size > 1; size -= kCopy) {
    bits.write_code(0b11000101, 8);
    bits.write_code(0, 5);
  }
  bits.write_code(0, 7);  // the end of the block
  bits.write(0, 3);       // a stored block, whose length begins with the next byte
  return bits.take();
}

Abuse parse_abuse(const std::string& name) {
  static const std::map<std::string, Abuse> kNames{{"wrong_version", Abuse::wrong_version},
                                                   {"oversized", Abuse::oversized},
                                                   {"half_open", Abuse::half_open},
                                                   {"slow_loris", Abuse::slow_loris},
                                                   {"flood", Abuse::flood},
                                                   {"fd_exhaustion", Abuse::fd_exhaustion},
                                                   {"malformed", Abuse::malformed},
                                                   {"slow_head", Abuse::slow_head},
                                                   {"slow_body", Abuse::slow_body},
                                                   {"bad_upgrade", Abuse::bad_upgrade},
                                                   {"slow_frame", Abuse::slow_frame},
                                                   {"bomb", Abuse::bomb},
                                                   {"idle_upgrade", Abuse::idle_upgrade}};
  const auto found = kNames.find(name);
  if (found == kNames.end()) {
    throw LoadError("no bad peer '" + name + "'");
  }
  return found->second;
}

LoadWire wire_of(Abuse kind) {
  return kind < Abuse::malformed ? LoadWire::frames : kind < Abuse::bad_upgrade ? LoadWire::http : LoadWire::websocket;
}

AbuseBytes bytes_of(Abuse kind) {
  const std::string head = " / HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  const std::string upgrade = "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n";
  switch (kind) {
    case Abuse::wrong_version: return {header_of(9, 64), {}};
    case Abuse::oversized: return {header_of(kVersion, ~std::uint32_t{0}), {}};
    case Abuse::half_open: return {header_of(kVersion, 64).substr(0, kHeaderSize / 2), {}};
    case Abuse::slow_loris: return {{}, header_of(kVersion, 64).substr(0, kHeaderSize - 1)};
    case Abuse::malformed: return {"POST" + head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", {}};
    case Abuse::slow_head: return {{}, "GET" + head + "X: " + std::string(1000, 'x')};
    case Abuse::slow_body: return {"POST" + head + "Content-Length: 1000\r\n\r\n", std::string(999, 'x')};
    case Abuse::bad_upgrade: return {upgrade_of("Connection: Upgrade, close\r\nSec-WebSocket-Version: 8\r\n"), {}};
    case Abuse::slow_frame:
      return {upgrade_of(upgrade) + frame_of(0x82, std::string(1000, 'x')).substr(0, 8), std::string(999, 'x')};
    case Abuse::bomb:
      return {upgrade_of(upgrade + "Sec-WebSocket-Extensions: permessage-deflate\r\n") +
                  frame_of(0xc2, deflate_bomb(kBombSize)),
              {}};
    case Abuse::idle_upgrade: return {upgrade_of(upgrade), {}};
    case Abuse::none:
    case Abuse::flood:
    case Abuse::fd_exhaustion: break;
  }
  return {};
}

}  // namespace bench
