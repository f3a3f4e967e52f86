// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "capi/topics/call.h"
#include "capi/topics/handle_table.h"
#include "weft/base/result.h"
#include "weft/topic/consumer.h"
#include "weft/topic/key_value.h"
#include "weft/topic/node/topic_message.h"
#include "weft/topic/service.h"

namespace weft::capi::topics {

// StreamNumbers: the answer to weft_topics_calls_info(), as a message.
struct StreamNumbers {
  StreamNumbers() noexcept = default;
  explicit StreamNumbers(const StreamInfo& info) noexcept
      : numbers{info.first, info.next, info.bytes, info.instance, info.evicted, info.dropped_unread} {}
  weft_topics_stream_info numbers{};
};
// KeysPage: the answer to weft_topics_calls_keys(), as a message.
struct KeysPage {
  std::vector<std::string> keys{};
  std::optional<std::string> after{};  // for the next page; none after the last one
};

// MessageHandle: a message of the program, of any kind. The memory of a freed one is kept for the next one
// (capi/handle_store.h), so a call with a freed message reads no freed memory.
// Affinity: one thread at a time. Cost: a lock to make one, and a lock to free it.
struct MessageHandle {
  static constexpr std::uint32_t kTag = 0x5754'4d53;
  using Content = std::variant<std::monostate, TopicMessage, TakenRequest, KeptMessage, Delivery, KeyValueEntry,
                               StreamNumbers, KeysPage>;
  std::atomic<std::uint32_t> tag{0};
  Content content;
  bool settled = false;  // a Delivery has its outcome
  MessageHandle* next_free = nullptr;
};

// Reserves a handle before the message is taken from its queue: without memory the message stays there.
class MessagePlace {
 public:
  MessagePlace() noexcept;
  MessagePlace(const MessagePlace&) = delete;
  MessagePlace& operator=(const MessagePlace&) = delete;
  ~MessagePlace();
  [[nodiscard]] bool valid() const noexcept { return handle_ != nullptr; }
  // The place becomes the program's message.
  template <typename Message>
  [[nodiscard]] weft_topics_message* fill(Message&& message) noexcept {
    handle_->content.template emplace<std::remove_cvref_t<Message>>(std::forward<Message>(message));
    return publish();
  }

 private:
  [[nodiscard]] weft_topics_message* publish() noexcept;
  MessageHandle* handle_;
};

// Sets `message` to the result of `take`, a Result of a message.
template <typename Take>
[[nodiscard]] Result<void> take_message(weft_topics_message** message, Take take) {
  MessagePlace place;
  if (!place.valid()) {
    return Error(Errc::resource_exhausted, "no memory");
  }
  auto taken = take();
  *message = place.fill(WEFT_TRY(std::move(taken)));
  return {};
}

// The next message of an object with next_until() and try_next(), for a function of the C interface.
template <typename T>
[[nodiscard]] int next_of(const void* handle, std::int64_t timeout_ms, weft_topics_message** message) {
  if (message == nullptr) {
    return code_of(kNullPointer);
  }
  *message = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<T>(handle));
    const Patience patience = WEFT_TRY(patience_of(timeout_ms));
    return take_message(
        message, [&] { return patience.waits ? own->value.next_until(patience.deadline) : own->value.try_next(); });
  });
}
template <typename T>
[[nodiscard]] int descriptor_of(const void* handle) {
  return call([&]() -> Result<int> { return WEFT_TRY(pin<T>(handle))->value.descriptor(); });
}

// The live message of the program. Fails with invalid_argument.
[[nodiscard]] Result<MessageHandle*> message_of(const weft_topics_message* message) noexcept;
// The same for a message of a consumer that has no outcome. Errors: invalid_argument; invalid_state (it has one).
[[nodiscard]] Result<MessageHandle*> delivery_of(const weft_topics_message* message) noexcept;

}  // namespace weft::capi::topics
