// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "weft/base/bytes.h"

namespace weft::net::ws {

// The streams of zlib by which permessage-deflate (RFC 7692) compresses and expands messages.

// Returns false if this build has no zlib; then make() returns null.
[[nodiscard]] bool deflate_available() noexcept;

// Bounds of the memory of a stream with a window of 2^window_bits bytes; a test compares them with zlib's allocations.
inline constexpr std::size_t kDeflateStateBytes = 16 * 1024;
[[nodiscard]] constexpr std::size_t deflater_bytes(int window_bits, int memory_level) noexcept {
  return (std::size_t{4} << window_bits) + (std::size_t{576} << memory_level) + kDeflateStateBytes;
}
[[nodiscard]] constexpr std::size_t inflater_bytes(int window_bits) noexcept {
  return (std::size_t{1} << window_bits) + kDeflateStateBytes;
}

// Deflater: compresses messages. Owner: a core, or one connection whose messages refer to earlier ones.
// Affinity: one thread at a time. Cost: deflater_bytes(), allocated by make().
class Deflater {
 public:
  // `window_bits` 9 to 15, `level` and `memory_level` 1 to 9. Null: there is no memory.
  [[nodiscard]] static std::unique_ptr<Deflater> make(int window_bits, int level, int memory_level);
  ~Deflater();

  // The payload of the compressed message, in `room`, which grows as it must. Requires a message that is not empty, and
  // less than 2^32 bytes.
  [[nodiscard]] Bytes compress(Bytes message, std::vector<std::uint8_t>& room);
  void reset() noexcept;  // the next message refers to none before it
  [[nodiscard]] std::size_t allocated() const noexcept;

 private:
  struct ByteStream;
  explicit Deflater(std::unique_ptr<ByteStream> stream) noexcept;

  std::unique_ptr<ByteStream> stream_;
};

// Inflater: expands messages of a peer, within a bound. Owner and affinity as those of Deflater.
// Cost: inflater_bytes(), allocated by make() and by the first message. The work is linear in the bytes that come and
// in those that are made, and no more than the bound and one are made.
class Inflater {
 public:
  enum class Outcome : std::uint8_t { ok, too_large, malformed, no_memory };

  [[nodiscard]] static std::unique_ptr<Inflater> make(int window_bits);
  ~Inflater();

  // A message begins, of at most `most` bytes.
  void begin(std::size_t most) noexcept;
  // Expands the next bytes of its payload into `room`, after those before; `room` grows as it must. After any other
  // outcome than ok nothing more is expanded.
  [[nodiscard]] Outcome take(Bytes payload, std::vector<std::uint8_t>& room);
  // The payload has ended. malformed: inside a block.
  [[nodiscard]] Outcome finish(std::vector<std::uint8_t>& room);
  [[nodiscard]] std::size_t size() const noexcept { return size_; }  // bytes of the message so far
  void reset() noexcept;                                             // the next message refers to none before it
  [[nodiscard]] std::size_t allocated() const noexcept;

 private:
  struct ByteStream;
  explicit Inflater(std::unique_ptr<ByteStream> stream) noexcept;

  std::unique_ptr<ByteStream> stream_;
  std::size_t most_ = 0;
  std::size_t size_ = 0;
  std::size_t payload_ = 0;  // bytes that came
};

}  // namespace weft::net::ws
