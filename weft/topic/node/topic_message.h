// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/filter.h"
#include "weft/base/intrusive_ptr.h"
#include "weft/msg/message/message.h"
#include "weft/sync/atomic_counted.h"
#include "weft/topic/wire/headers.h"

namespace weft {

namespace topic {

// OwnFilter: one filter of one subscription, in the program's form and in the wire's form. Immutable.
struct OwnFilter : sync::AtomicCounted<OwnFilter> {
  OwnFilter(std::string written, Filter on_wire) : text(std::move(written)), wire(std::move(on_wire)) {}
  const std::string text;
  const Filter wire;
};

class MessageQueue;

}  // namespace topic

// TopicMessage: a message as a subscription receives it.
// Owner: a move-only value. Affinity: one thread at a time. Cost: topics and bodies of up to 48 bytes are inside the
// object; larger ones are shared with every other receiver in the process.
class TopicMessage {
 public:
  TopicMessage() noexcept = default;
  TopicMessage(Message&& topic, Message&& body, Message&& headers, IntrusivePtr<const topic::OwnFilter> filter) noexcept
      : topic_(std::move(topic)), body_(std::move(body)), headers_(std::move(headers)), filter_(std::move(filter)) {}

  [[nodiscard]] std::string_view topic() const noexcept { return topic_.text(); }
  [[nodiscard]] Bytes body() const noexcept { return body_.bytes(); }
  [[nodiscard]] std::string_view text() const noexcept { return body_.text(); }
  [[nodiscard]] Message take_body() noexcept { return std::move(body_); }  // body() is empty afterwards
  // Returns the value of the first header of that name; empty if there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const noexcept {
    return find_header(headers_.text(), name);
  }
  [[nodiscard]] std::string_view headers() const noexcept { return headers_.text(); }  // the block
  // Returns the filter that matched, in the program's form. If several filters of the subscription matched, it is one
  // of them.
  [[nodiscard]] std::string_view filter() const noexcept {
    return filter_ == nullptr ? std::string_view() : std::string_view(filter_->text);
  }
  // Returns the topic for the reply; empty if the sender does not expect a reply.
  [[nodiscard]] std::string_view reply_to() const noexcept { return header("Weft-Reply"); }
  // Returns the number of messages that this subscription lost between the message before and this one.
  [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }

  // The bytes that the message counts in a queue.
  [[nodiscard]] std::size_t footprint() const noexcept {
    return footprint(topic_.size(), body_.size(), headers_.size());
  }
  [[nodiscard]] static constexpr std::size_t footprint(std::size_t topic, std::size_t body,
                                                       std::size_t headers) noexcept;

  // Moves the parts into an empty message, in place.
  void take(Message&& topic, Message&& body, Message&& headers,
            const IntrusivePtr<const topic::OwnFilter>& filter) noexcept {
    topic_ = std::move(topic);
    body_ = std::move(body);
    if (!headers.empty()) {
      headers_ = std::move(headers);
    }
    filter_ = filter;
  }
  // Copies the parts into an empty message, in place. Returns false if there is no memory; then the message is empty.
  [[nodiscard]] bool fill(const Message& topic, Bytes body, std::string_view headers,
                          const IntrusivePtr<const topic::OwnFilter>& filter) noexcept {
    if (!body_.assign_copy(body) || (!headers.empty() && !headers_.assign_copy(as_bytes(headers)))) [[unlikely]] {
      body_ = Message();
      return false;
    }
    if (topic.size() <= Message::kInlineMax) {
      (void)topic_.assign_copy(topic.bytes());  // small: it does not allocate
    } else {
      topic_ = topic.share();
    }
    filter_ = filter;
    return true;
  }

 private:
  friend class topic::MessageQueue;
  Message topic_;
  Message body_;
  Message headers_;
  IntrusivePtr<const topic::OwnFilter> filter_;
  std::uint64_t missed_ = 0;
};

constexpr std::size_t TopicMessage::footprint(std::size_t topic, std::size_t body, std::size_t headers) noexcept {
  return sizeof(TopicMessage) + topic + body + headers;
}

}  // namespace weft
