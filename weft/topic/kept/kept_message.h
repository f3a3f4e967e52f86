// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/msg/message/message.h"
#include "weft/store/settings.h"
#include "weft/topic/wire/headers.h"
#include "weft/topic/wire/name.h"
#include "weft/topic/wire/ops.h"

namespace weft {

// KeptMessage: a stored message of a stream.
// Owner: a move-only value. Affinity: one thread at a time. Cost: the received bytes, without a copy.
class KeptMessage {
 public:
  KeptMessage() noexcept = default;
  // For code that receives ops: makes the message of a delivery, or of the answer to `get`. Fails with protocol_error
  // if the op is another one.
  [[nodiscard]] static Result<KeptMessage> of(Message&& op, const topic::Names& names, std::uint64_t instance = 0);

  [[nodiscard]] std::string_view topic() const noexcept {
    return named_ ? std::string_view(name_) : text(topic_at_, topic_size_);
  }
  [[nodiscard]] Bytes body() const noexcept { return bytes_.bytes().subspan(body_at_ <= bytes_.size() ? body_at_ : 0); }
  [[nodiscard]] std::string_view text() const noexcept { return as_text(body()); }
  // Returns the value of the first header of that name; empty if there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const noexcept { return find_header(headers(), name); }
  [[nodiscard]] std::string_view headers() const noexcept { return text(body_at_ - headers_size_, headers_size_); }
  [[nodiscard]] std::string_view id() const noexcept { return text(topic_at_ + topic_size_, id_size_); }
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }  // in its stream, from 1
  [[nodiscard]] WallTime time() const noexcept { return time_; }               // the time of its storage
  [[nodiscard]] bool erased() const noexcept { return erased_; }               // the topic has no value any longer
  // The number of earlier deliveries, to any member of the consumer.
  [[nodiscard]] std::uint32_t tries() const noexcept { return tries_; }

  // The life of the stream that counts sequence(). A stream that is removed and made again has another life. 0:
  // unknown.
  [[nodiscard]] std::uint64_t stream_instance() const noexcept { return instance_; }
  [[nodiscard]] std::string_view wire_topic() const noexcept { return text(topic_at_, topic_size_); }
  // The message's share of a queue's bound, in bytes.
  [[nodiscard]] std::size_t footprint() const noexcept { return sizeof(KeptMessage) + bytes_.size(); }

 private:
  [[nodiscard]] std::string_view text(std::size_t at, std::size_t size) const noexcept {
    const std::string_view all = as_text(bytes_.bytes());
    return at <= all.size() ? all.substr(at, size) : std::string_view();  // a moved-from message has no bytes
  }

  Message bytes_;
  std::uint64_t sequence_ = 0;
  std::uint64_t instance_ = 0;
  WallTime time_{};
  std::uint32_t topic_at_ = 0;
  std::uint32_t headers_size_ = 0;
  std::uint32_t body_at_ = 0;
  std::uint16_t tries_ = 0;
  std::uint8_t topic_size_ = 0;
  std::uint8_t id_size_ = 0;
  bool erased_ = false;
  bool named_ = false;
  std::string name_;  // named_: the topic in the program's form
};

}  // namespace weft
