// SPDX-License-Identifier: MIT
// Messages.
#include <string_view>

#include "capi/handle_store.h"
#include "capi/topics/message_handle.h"
#include "capi/topics/objects.h"

namespace weft::capi::topics {

namespace {

constexpr Error kNotAMessage(Errc::invalid_argument, "the pointer is null, or its message was freed");
using MessageStore = HandleStore<MessageHandle>;

// Reading: the message of the program by its kind; null: it is of another kind, or not a live message.
struct Reading {
  const TopicMessage* topic = nullptr;
  const TakenRequest* request = nullptr;
  const KeptMessage* kept = nullptr;
  const KeyValueEntry* entry = nullptr;
};

Reading reading_of(const weft_topics_message* message) noexcept {
  const Result<MessageHandle*> handle = message_of(message);
  if (!handle) {
    (void)code_of(handle.error());
    return {};
  }
  const MessageHandle::Content& content = (*handle)->content;
  const KeptMessage* const delivery = std::get_if<Delivery>(&content);
  return {std::get_if<TopicMessage>(&content), std::get_if<TakenRequest>(&content),
          delivery != nullptr ? delivery : std::get_if<KeptMessage>(&content), std::get_if<KeyValueEntry>(&content)};
}

Bytes body_in(const Reading& reading) noexcept {
  return reading.topic != nullptr     ? reading.topic->body()
         : reading.request != nullptr ? reading.request->body()
         : reading.kept != nullptr    ? reading.kept->body()
         : reading.entry != nullptr   ? reading.entry->value()
                                      : Bytes();
}
std::string_view topic_in(const Reading& reading) noexcept {
  return reading.topic != nullptr     ? reading.topic->topic()
         : reading.request != nullptr ? reading.request->topic()
         : reading.kept != nullptr    ? reading.kept->topic()
         : reading.entry != nullptr   ? reading.entry->key()
                                      : std::string_view();
}
std::string_view headers_in(const Reading& reading) noexcept {
  return reading.topic != nullptr     ? reading.topic->headers()
         : reading.request != nullptr ? reading.request->headers()
         : reading.kept != nullptr    ? reading.kept->headers()
                                      : std::string_view();
}

const char* put_text(std::string_view text, std::size_t* size) noexcept {
  if (size != nullptr) {
    *size = text.size();
  }
  return text.data();
}

}  // namespace

MessagePlace::MessagePlace() noexcept : handle_(MessageStore::instance().take()) {}
MessagePlace::~MessagePlace() {
  if (handle_ != nullptr) {
    MessageStore::instance().put(handle_);
  }
}
weft_topics_message* MessagePlace::publish() noexcept {
  handle_->tag.store(MessageHandle::kTag, std::memory_order_release);  // pairs with message_of()
  return reinterpret_cast<weft_topics_message*>(std::exchange(handle_, nullptr));
}

Result<MessageHandle*> message_of(const weft_topics_message* message) noexcept {
  auto* const handle = reinterpret_cast<MessageHandle*>(const_cast<weft_topics_message*>(message));
  if (handle == nullptr || handle->tag.load(std::memory_order_acquire) != MessageHandle::kTag) {
    return kNotAMessage;
  }
  return handle;
}

namespace {

template <typename Content>
Result<const Content*> content_of(const weft_topics_message* message, StaticText otherwise) noexcept {
  const MessageHandle* const handle = WEFT_TRY(message_of(message));
  const auto* const content = std::get_if<Content>(&handle->content);
  return content != nullptr ? Result<const Content*>(content) : Error(Errc::invalid_argument, otherwise);
}

}  // namespace

Result<MessageHandle*> delivery_of(const weft_topics_message* message) noexcept {
  MessageHandle* const handle = WEFT_TRY(message_of(message));
  if (!std::holds_alternative<Delivery>(handle->content)) {
    return Error(Errc::invalid_argument, "the message is not of a consumer");
  }
  if (handle->settled) {
    return Error(Errc::invalid_state, "the message has an outcome");
  }
  return handle;
}

}  // namespace weft::capi::topics

using namespace weft;                // NOLINT(google-build-using-namespace)
using namespace weft::capi::topics;  // NOLINT(google-build-using-namespace)

extern "C" {

int weft_topics_message_free(weft_topics_message* message) {
  return call([&]() -> Result<void> {
    MessageHandle* const handle = WEFT_TRY(message_of(message));
    // Acquire and release: pair with message_of(). If two threads free a message, only one puts it back.
    if (handle->tag.exchange(0, std::memory_order_acq_rel) != MessageHandle::kTag) {
      return kNotAMessage;
    }
    handle->content = std::monostate();
    handle->settled = false;
    MessageStore::instance().put(handle);
    return {};
  });
}

const void* weft_topics_message_data(const weft_topics_message* message) { return body_in(reading_of(message)).data(); }

size_t weft_topics_message_size(const weft_topics_message* message) { return body_in(reading_of(message)).size(); }

const char* weft_topics_message_topic(const weft_topics_message* message, size_t* size) {
  return put_text(topic_in(reading_of(message)), size);
}

const char* weft_topics_message_header(const weft_topics_message* message, const char* name, size_t* size) {
  return put_text(find_header(headers_in(reading_of(message)), text_or_empty(name)), size);
}

const char* weft_topics_message_headers(const weft_topics_message* message, size_t* size) {
  return put_text(headers_in(reading_of(message)), size);
}

uint64_t weft_topics_message_missed(const weft_topics_message* message) {
  const Reading reading = reading_of(message);
  return reading.topic != nullptr ? reading.topic->missed() : 0;
}

uint64_t weft_topics_message_sequence(const weft_topics_message* message) {
  const Reading reading = reading_of(message);
  return reading.kept != nullptr ? reading.kept->sequence() : reading.entry != nullptr ? reading.entry->revision() : 0;
}

uint64_t weft_topics_message_instance(const weft_topics_message* message) {
  const Reading reading = reading_of(message);
  return reading.kept != nullptr    ? reading.kept->stream_instance()
         : reading.entry != nullptr ? reading.entry->instance()
                                    : 0;
}

int64_t weft_topics_message_time_ns(const weft_topics_message* message) {
  const Reading reading = reading_of(message);
  const WallTime time = reading.kept != nullptr    ? reading.kept->time()
                        : reading.entry != nullptr ? reading.entry->time()
                                                   : WallTime();
  return time.time_since_epoch().count();
}

uint32_t weft_topics_message_tries(const weft_topics_message* message) {
  const Reading reading = reading_of(message);
  return reading.kept != nullptr ? reading.kept->tries() : 0;
}

int weft_topics_message_is_erased(const weft_topics_message* message) {
  const Reading reading = reading_of(message);
  const bool erased =
      reading.kept != nullptr ? reading.kept->erased() : reading.entry != nullptr && reading.entry->erased();
  return erased ? 1 : 0;
}

int weft_topics_message_info(const weft_topics_message* message, weft_topics_stream_info* info) {
  if (info == nullptr) {
    return code_of(kNullPointer);
  }
  *info = {};
  return call([&]() -> Result<void> {
    *info = WEFT_TRY(content_of<StreamNumbers>(message, "the message is not an answer about a stream"))->numbers;
    return {};
  });
}

int weft_topics_message_keys(const weft_topics_message* message, weft_topics_names** keys, const char** after) {
  if (keys == nullptr || after == nullptr) {
    return code_of(kNullPointer);
  }
  *keys = nullptr;
  *after = nullptr;
  return call([&]() -> Result<void> {
    const KeysPage* const page = WEFT_TRY(content_of<KeysPage>(message, "the message is not a page of keys"));
    WEFT_TRY(open_handle<NamesObject>(keys, nullptr, page->keys));
    *after = page->after ? page->after->c_str() : nullptr;
    return {};
  });
}

const char* weft_topics_message_id(const weft_topics_message* message, size_t* size) {
  const Reading reading = reading_of(message);
  return put_text(reading.kept != nullptr ? reading.kept->id() : std::string_view(), size);
}
}
