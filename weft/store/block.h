// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/store/settings.h"

namespace weft::store {

// A message for a stream, from an application. Views of the caller's bytes.
struct NewMessage {
  std::string_view topic;
  std::string_view id{};  // empty: none
  Bytes headers{};
  Bytes body{};
  bool erased = false;       // the topic has no value any longer
  Duration time_to_live{0};  // 0: none
  Duration delay{0};         // from the publish to the time at which it enters the stream; 0: none
};

// A stored message. Its views point into the bytes of `block`, or of the row that made it.
struct StoredMessage {
  std::uint64_t sequence = 0;
  WallTime time{};
  std::string_view topic;
  std::string_view id;
  Bytes headers;
  Bytes body;
  bool erased = false;
  WallTime expires = WallTime::max();  // from then on no reader gets it; max: never, min: its bytes are gone

  [[nodiscard]] bool is_over(WallTime now) const noexcept { return expires <= now; }
};
[[nodiscard]] WallTime expiry_of(WallTime time, Duration time_to_live) noexcept;

// Bounds of one message, in bytes.
inline constexpr std::size_t kTopicMax = 255;
inline constexpr std::size_t kIdMax = 255;
inline constexpr std::size_t kHeadersMax = 64 * 1024;
inline constexpr std::size_t kBodyMax = 1024 * 1024;
inline constexpr std::size_t kBlockMax = 256 * 1024;  // bound of a block; a longer message is a block alone
inline constexpr std::size_t kBlockHeader = 24;
// the range of a number in the database
inline constexpr std::uint64_t kSequenceMax = std::numeric_limits<std::int64_t>::max();

// A block is the messages of one stream with consecutive sequences, as bytes:
//   0  version, 1; three zero bytes    4  CRC-32C of all bytes after this number
//   8  number of the stream           12  count of messages
//   16 sequence of the first message  24  the messages, one after the other
// A message: time (8, ns since 1970), size of the body (4), of the headers (3), of the topic (1), of the id (1), flags
// (1: erased, 2: expires, 4: gone), two zero bytes; with `expires` the time from which on no reader gets it (8); topic,
// id, headers, body. With `gone` it stands for several messages whose bytes were removed: the size of the body is their
// number, it has no fields, and the time is that of the last one. Numbers are big-endian.
inline constexpr std::size_t kBlockMessagesMax = kBlockMax / 20;

// BlockBuilder: the block that is being written.
// Owner: a value. Affinity: one thread. Cost: a copy of each message.
class BlockBuilder {
 public:
  // Errors: message_too_large (a field exceeds its bound); invalid_argument (no topic, or an impossible time
  // to live or delay).
  [[nodiscard]] static Result<void> check(const NewMessage& message) noexcept;
  [[nodiscard]] static std::size_t size_of(const NewMessage& message) noexcept;

  // Whether the message belongs into this block of at most `most` bytes: it fits, or the block is empty.
  [[nodiscard]] bool takes(const NewMessage& message, std::size_t most = kBlockMax) const noexcept;
  void add(const NewMessage& message, WallTime time);  // requires takes() and check()
  void add_gone(WallTime time);                        // a message whose bytes are removed
  // The time at which half of the bytes are of messages that are over, or all messages are; max: never, 1970: now.
  [[nodiscard]] WallTime half_over() const;
  // Returns the bytes of the block; the builder is empty then.
  [[nodiscard]] std::vector<std::uint8_t> finish(std::uint32_t stream, std::uint64_t first);

  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

 private:
  struct Ending {
    WallTime expires;
    std::size_t bytes;
  };
  std::vector<std::uint8_t> bytes_;
  std::vector<Ending> endings_;
  std::size_t gone_at_ = 0;  // of the last message, if it is gone; 0: it is not
  std::uint32_t gone_ = 0;   // messages
  std::uint32_t count_ = 0;
};

// Block: messages that were read, or just written. Immutable; any thread. Cost: the bytes, and 4 bytes a message.
class Block {
 public:
  // Fails with corrupt if the checksum or the form is wrong, or if the block does not belong to `stream` and `first`.
  [[nodiscard]] static Result<std::shared_ptr<const Block>> parse(std::vector<std::uint8_t> bytes, std::uint32_t stream,
                                                                  std::uint64_t first);

  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint64_t last() const noexcept { return first_ + at_.size() - 1; }
  [[nodiscard]] std::size_t count() const noexcept { return at_.size(); }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] StoredMessage message(std::uint64_t sequence) const noexcept;  // requires first() <= sequence <= last()

 private:
  Block() = default;

  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint32_t> at_;
  std::uint64_t first_ = 0;
};

}  // namespace weft::store
