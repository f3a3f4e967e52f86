// SPDX-License-Identifier: MIT
#include "weft/store/block.h"

#include <algorithm>
#include <utility>

#include "weft/base/assert.h"
#include "weft/base/endian.h"
#include "weft/store/checksum.h"

namespace weft::store {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kCrcAt = 4;
constexpr std::size_t kStreamAt = 8;
constexpr std::size_t kCountAt = 12;
constexpr std::size_t kFirstAt = 16;
constexpr std::size_t kMessageHeader = 20;
constexpr std::uint8_t kErased = 1;
constexpr std::uint8_t kExpires = 2;
constexpr std::uint8_t kGone = 4;
constexpr std::size_t kExpirySize = 8;

struct MessageHeader {
  std::int64_t time;
  std::size_t body;
  std::size_t headers;
  std::size_t topic;
  std::size_t id;
  std::uint8_t flags;

  [[nodiscard]] bool gone() const noexcept { return (flags & kGone) != 0; }
  [[nodiscard]] bool expires() const noexcept { return (flags & kExpires) != 0; }
  [[nodiscard]] std::size_t count() const noexcept { return gone() ? body : 1; }
  [[nodiscard]] std::size_t size() const noexcept {
    return kMessageHeader + (gone() ? 0 : (expires() ? kExpirySize : 0) + topic + id + headers + body);
  }
};

MessageHeader load_header(const std::uint8_t* at) noexcept {
  return {load_big_endian<std::int64_t>(at),
          load_big_endian<std::uint32_t>(at + 8),
          load_big_endian_24(at + 12),
          at[15],
          at[16],
          at[17]};
}

}  // namespace

WallTime expiry_of(WallTime time, Duration time_to_live) noexcept {
  const bool ends = time_to_live > Duration::zero() && time < WallTime::max() - time_to_live;
  return ends ? time + time_to_live : WallTime::max();
}

Result<void> BlockBuilder::check(const NewMessage& message) noexcept {
  if (message.topic.empty()) {
    return Error(Errc::invalid_argument, "a message without a topic");
  }
  if (message.topic.size() > kTopicMax || message.id.size() > kIdMax || message.headers.size() > kHeadersMax ||
      message.body.size() > kBodyMax) {
    return Error(Errc::message_too_large, "a message beyond the bounds of the store");
  }
  if (message.time_to_live != Duration::zero() &&
      (message.time_to_live < kTimeToLiveMin || message.time_to_live > kTimeToLiveMax)) {
    return Error(Errc::invalid_argument, "a time to live: 1 s to 100 years");
  }
  if (message.delay < Duration::zero() || message.delay > kDelayMax) {
    return Error(Errc::invalid_argument, "a delay: 0 to 100 years");
  }
  return {};
}

std::size_t BlockBuilder::size_of(const NewMessage& message) noexcept {
  return kMessageHeader + (message.time_to_live != Duration::zero() ? kExpirySize : 0) + message.topic.size() +
         message.id.size() + message.headers.size() + message.body.size();
}

bool BlockBuilder::takes(const NewMessage& message, std::size_t most) const noexcept {
  return count_ == 0 || (bytes_.size() + size_of(message) <= most && count_ < kBlockMessagesMax);
}

void BlockBuilder::add(const NewMessage& message, WallTime time) {
  WEFT_ASSERT(takes(message) && check(message).has_value());
  const std::size_t at = bytes_.empty() ? kBlockHeader : bytes_.size();
  bytes_.resize(at + size_of(message));
  std::uint8_t* to = bytes_.data() + at;
  store_big_endian(to, std::int64_t{time.time_since_epoch().count()});
  store_big_endian(to + 8, static_cast<std::uint32_t>(message.body.size()));
  store_big_endian_24(to + 12, static_cast<std::uint32_t>(message.headers.size()));
  to[15] = static_cast<std::uint8_t>(message.topic.size());
  to[16] = static_cast<std::uint8_t>(message.id.size());
  const WallTime expires = expiry_of(time, message.time_to_live);
  const bool has_expiry = message.time_to_live != Duration::zero();
  to[17] = static_cast<std::uint8_t>((message.erased ? kErased : 0) | (has_expiry ? kExpires : 0));
  to += kMessageHeader;
  if (has_expiry) {
    store_big_endian(to, std::int64_t{expires.time_since_epoch().count()});
    to += kExpirySize;
  }
  for (const Bytes field : {as_bytes(message.topic), as_bytes(message.id), message.headers, message.body}) {
    copy_bytes(to, field);
    to += field.size();
  }
  if (expires != WallTime::max()) {
    endings_.push_back({expires, size_of(message)});
  }
  gone_at_ = 0;
  ++count_;
}

void BlockBuilder::add_gone(WallTime time) {
  if (gone_at_ == 0) {
    gone_at_ = bytes_.empty() ? kBlockHeader : bytes_.size();
    bytes_.resize(gone_at_ + kMessageHeader);
    bytes_[gone_at_ + 17] = kGone;
  }
  std::uint8_t* const to = bytes_.data() + gone_at_;
  store_big_endian(to, std::int64_t{time.time_since_epoch().count()});
  store_big_endian(to + 8, load_big_endian<std::uint32_t>(to + 8) + 1);
  ++gone_;
  ++count_;
}

WallTime BlockBuilder::half_over() const {
  std::vector<Ending> endings = endings_;
  std::sort(endings.begin(), endings.end(), [](const Ending& a, const Ending& b) { return a.expires < b.expires; });
  std::size_t over = 0;
  for (const Ending& ending : endings) {
    over += ending.bytes;
    if (over >= bytes_.size() / 2) {
      return ending.expires;
    }
  }
  const bool all = endings.size() + gone_ == count_;
  return !all ? WallTime::max() : endings.empty() ? WallTime() : endings.back().expires;
}

std::vector<std::uint8_t> BlockBuilder::finish(std::uint32_t stream, std::uint64_t first) {
  WEFT_ASSERT(count_ > 0);
  std::uint8_t* at = bytes_.data();
  at[0] = kVersion;
  store_big_endian(at + kStreamAt, stream);
  store_big_endian(at + kCountAt, count_);
  store_big_endian(at + kFirstAt, first);
  store_big_endian(at + kCrcAt, crc32c(Bytes(bytes_).subspan(kStreamAt)));
  count_ = gone_ = 0;
  gone_at_ = 0;
  endings_.clear();
  return std::exchange(bytes_, {});
}

Result<std::shared_ptr<const Block>> Block::parse(std::vector<std::uint8_t> bytes, std::uint32_t stream,
                                                  std::uint64_t first) {
  const std::uint8_t* at = bytes.data();
  if (bytes.size() < kBlockHeader || at[0] != kVersion || at[1] != 0 || at[2] != 0 || at[3] != 0) {
    return Error(Errc::corrupt, "a block of an unknown form");
  }
  if (load_big_endian<std::uint32_t>(at + kCrcAt) != crc32c(Bytes(bytes).subspan(kStreamAt))) {
    return Error(Errc::corrupt, "a block whose checksum is wrong");
  }
  if (load_big_endian<std::uint32_t>(at + kStreamAt) != stream ||
      load_big_endian<std::uint64_t>(at + kFirstAt) != first) {
    return Error(Errc::corrupt, "a block in the place of another one");
  }
  const std::size_t count = load_big_endian<std::uint32_t>(at + kCountAt);
  if (count == 0 || count > kBlockMessagesMax) {
    return Error(Errc::corrupt, "a block with a wrong count");
  }
  if (first == 0 || first > kSequenceMax - count) {
    return Error(Errc::corrupt, "a block with an impossible sequence");
  }
  std::shared_ptr<Block> block(new Block());
  block->at_.reserve(count);
  std::size_t next = kBlockHeader;
  while (block->at_.size() < count) {
    if (bytes.size() - next < kMessageHeader) {
      return Error(Errc::corrupt, "a block whose messages exceed it");
    }
    const MessageHeader header = load_header(at + next);
    if (header.size() > bytes.size() - next) {
      return Error(Errc::corrupt, "a block whose messages exceed it");
    }
    if (header.count() == 0 || header.count() > count - block->at_.size()) {
      return Error(Errc::corrupt, "a block with a wrong count");
    }
    block->at_.push_back(static_cast<std::uint32_t>(next));
    if (header.count() > 1) {
      block->at_.resize(block->at_.size() + header.count() - 1, static_cast<std::uint32_t>(next));
    }
    next += header.size();
  }
  if (next != bytes.size()) {
    return Error(Errc::corrupt, "a block with bytes behind its messages");
  }
  block->bytes_ = std::move(bytes);
  block->first_ = first;
  return std::shared_ptr<const Block>(std::move(block));
}

StoredMessage Block::message(std::uint64_t sequence) const noexcept {
  WEFT_ASSERT(sequence >= first_ && sequence - first_ < at_.size());
  const std::size_t at = at_[static_cast<std::size_t>(sequence - first_)];
  const MessageHeader header = load_header(bytes_.data() + at);
  StoredMessage message;
  message.sequence = sequence;
  message.time = WallTime(Duration(header.time));
  if (header.gone()) {
    message.expires = WallTime::min();
    return message;
  }
  Bytes rest = Bytes(bytes_).subspan(at + kMessageHeader);
  const auto take = [&rest](std::size_t size) {
    const Bytes field = rest.first(size);
    rest = rest.subspan(size);
    return field;
  };
  if (header.expires()) {
    message.expires = WallTime(Duration(load_big_endian<std::int64_t>(take(kExpirySize).data())));
  }
  message.topic = as_text(take(header.topic));
  message.id = as_text(take(header.id));
  message.headers = take(header.headers);
  message.body = take(header.body);
  message.erased = (header.flags & kErased) != 0;
  return message;
}

}  // namespace weft::store
