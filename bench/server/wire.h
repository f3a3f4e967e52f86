// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

// The protocol between the load generator and every server of the benchmark: frames of 12 bytes and a body.
//   header  version u8 = 2, flags u8, message id u32, body size u32, reserved u16; big endian
//   body    tag u64 (connection and sequence number), checksum u64 of all the rest of it, filling
// It does not use Weft, so that a mistake in Weft's codec cannot hide here too.
namespace bench {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kHeaderSize = 12;
constexpr std::size_t kBodyMin = 16;
constexpr std::size_t kBodyMax = std::size_t{16} << 20U;
constexpr std::uint8_t kVersion = 2;

// Message ids, on which a server dispatches.
constexpr std::uint32_t kEcho = 1;     // the server answers with the same frame
constexpr std::uint32_t kCount = 2;    // the server checks and counts it, and does not answer
constexpr std::uint32_t kSync = 3;     // the server answers with the same tag and the connection's counts
constexpr std::uint32_t kPublish = 4;  // the same frame goes to all connections

struct Header {
  std::uint8_t version = kVersion;
  std::uint32_t id = 0;
  std::uint32_t body_size = 0;
};

template <typename T>
T load_big(const std::uint8_t* from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value = static_cast<T>(value << 8U) | from[i];
  }
  return value;
}

template <typename T>
void store_big(std::uint8_t* to, T value) {
  for (std::size_t i = sizeof value; i-- > 0; value = static_cast<T>(value >> 8U)) {
    to[i] = static_cast<std::uint8_t>(value);
  }
}

inline Header decode_header(const std::uint8_t* from) {
  return {from[0], load_big<std::uint32_t>(from + 2), load_big<std::uint32_t>(from + 6)};
}

inline void encode_header(const Header& header, std::uint8_t* to) {
  to[0] = header.version;
  to[1] = 0;
  store_big(to + 2, header.id);
  store_big(to + 6, header.body_size);
  store_big(to + 10, std::uint16_t{0});
}

template <typename T>
T load_word(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Not for adversaries: finds damage, exchanged words and mixed-up bodies. 4 lanes, about 10 bytes per ns.
inline std::uint64_t hash_of(Bytes bytes) {
  constexpr std::uint64_t kPrime = 0x9e37'79b9'7f4a'7c15;
  std::uint64_t lanes[4] = {1, 2, 3, 4};
  const std::uint8_t* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 32; at += 32, left -= 32) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      lanes[lane] = std::rotl((lanes[lane] ^ load_word<std::uint64_t>(at + 8 * lane)) * kPrime, 29);
    }
  }
  for (; left >= 8; at += 8, left -= 8) {
    lanes[0] = std::rotl((lanes[0] ^ load_word<std::uint64_t>(at)) * kPrime, 29);
  }
  std::uint64_t tail = left;
  for (; left > 0; ++at, --left) {
    tail = tail << 8U | *at;
  }
  std::uint64_t hash = tail;
  for (const std::uint64_t lane : lanes) {
    hash = std::rotl((hash ^ lane) * kPrime, 31);
  }
  return hash;
}

inline std::uint64_t checksum_of(std::uint64_t tag, std::uint64_t hash) {
  return std::rotl((hash ^ tag) * 0xd6e8'feb8'6659'fd93, 32) * 0xd6e8'feb8'6659'fd93;
}

// A connection has a number below 2^20; its messages count up from 0.
inline std::uint64_t make_tag(std::uint64_t connection, std::uint64_t sequence) { return connection << 44U | sequence; }

inline std::uint64_t tag_of(Bytes body) { return load_word<std::uint64_t>(body.data()); }

inline bool intact(Bytes body) {
  return body.size() >= kBodyMin &&
         load_word<std::uint64_t>(body.data() + 8) == checksum_of(tag_of(body), hash_of(body.subspan(kBodyMin)));
}

// StreamCheck: the receiver of a stream of kCount frames on one connection. Checks that each frame comes once,
// in order and intact.
class StreamCheck {
 public:
  void take(Bytes body) {
    const bool good = intact(body) && (count_ == 0 || tag_of(body) == last_ + 1);
    last_ = body.size() >= kBodyMin ? tag_of(body) : 0;
    ++count_;
    bad_ += good ? 0 : 1;
  }
  // Writes the body of the answer to kSync, with the question's size, and begins a new stream.
  void answer(Bytes question, std::uint8_t* to) {
    std::memcpy(to, question.data(), question.size());
    if (question.size() >= kSyncSize) {
      std::memcpy(to + kBodyMin, &count_, sizeof count_);
      std::memcpy(to + kBodyMin + 8, &bad_, sizeof bad_);
    }
    *this = StreamCheck();
  }
  static constexpr std::size_t kSyncSize = kBodyMin + 16;  // bytes of the body of question and answer
  // The same without a question: its tag and its checksum are 0.
  std::array<std::uint8_t, kSyncSize> report() {
    constexpr std::uint8_t kNoQuestion[kSyncSize]{};
    std::array<std::uint8_t, kSyncSize> body{};
    answer(kNoQuestion, body.data());
    return body;
  }

 private:
  std::uint64_t last_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t bad_ = 0;
};

}  // namespace bench
