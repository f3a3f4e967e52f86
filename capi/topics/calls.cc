// SPDX-License-Identifier: MIT
// Calls that do not wait.
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "capi/topics/call.h"
#include "capi/topics/call_queue.h"
#include "capi/topics/kept_options.h"
#include "capi/topics/message_handle.h"
#include "capi/topics/objects.h"

using namespace weft;                // NOLINT(google-build-using-namespace)
using namespace weft::capi::topics;  // NOLINT(google-build-using-namespace)

namespace {

constexpr Error kObjectClosed(Errc::closed, "the handle of topics was closed");

struct CallsObject final : Object {
  static constexpr Kind kKind = Kind::calls;
  CallsObject(ContextPtr own, std::shared_ptr<topic::Node> node, sys::EventFd event)
      : Object(kKind), context(std::move(own)), value(std::move(node), std::move(event)) {}
  void close() noexcept override { value.close(); }
  const ContextPtr context;  // destroyed after the value
  CallQueue value;
};

using Answer = CallQueue::Answer;

// Starts the call that `make(StreamCore)` prepares.
template <typename Make>
int start_on_stream(weft_topics_calls* calls, std::uint64_t tag, weft_topics_stream* stream, Answer answer, Make make) {
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<CallsObject>(calls));
    const auto of = WEFT_TRY(pin<StreamObject>(stream));
    const auto core = of->value.core();
    return core == nullptr ? Result<void>(kObjectClosed)
                           : own->value.start(tag, core->link(), WEFT_TRY(make(*core)),
                                              {.answer = answer, .stream = answer == Answer::info ? core : nullptr});
  });
}

// Starts the call that `make(KeyValueCore, key)` prepares.
template <typename Make>
int start_on_bucket(weft_topics_calls* calls, std::uint64_t tag, weft_topics_kv* kv, const char* key, Answer answer,
                    Make make) {
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<CallsObject>(calls));
    const auto of = WEFT_TRY(pin<KeyValueObject>(kv));
    const std::string_view name = WEFT_TRY(text_of(key));
    const auto core = of->value.core();
    return core == nullptr ? Result<void>(kObjectClosed)
                           : own->value.start(tag, core->stream().link(), WEFT_TRY(make(*core, name)),
                                              {.answer = answer, .bucket = core});
  });
}

int change_later(weft_topics_calls* calls, std::uint64_t tag, weft_topics_kv* kv, const char* key, const void* data,
                 std::size_t size, const topic::KeyChange& change) {
  return start_on_bucket(
      calls, tag, kv, key, Answer::published,
      [&](const topic::KeyValueCore& core, std::string_view name) -> Result<IntrusivePtr<topic::HubCall>> {
        return core.change(name, WEFT_TRY(bytes_of(data, size)), change);
      });
}

}  // namespace

extern "C" {

int weft_topics_calls_open(weft_topics* topics, weft_topics_calls** calls) {
  if (calls == nullptr) {
    return code_of(kNullPointer);
  }
  *calls = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<TopicsObject>(topics));
    sys::EventFd event = WEFT_TRY(sys::EventFd::make());
    try {
      return open_handle<CallsObject>(calls, own->context, own->value.node(), std::move(event));
    } catch (const std::system_error&) {
      return Error(Errc::resource_exhausted, "no thread");
    }
  });
}

int weft_topics_calls_close(weft_topics_calls* calls) {
  return call([&] { return HandleTable::instance().close(calls, Kind::calls); });
}

int weft_topics_calls_fd(weft_topics_calls* calls) {
  return call([&]() -> Result<int> { return WEFT_TRY(pin<CallsObject>(calls))->value.descriptor(); });
}

int weft_topics_calls_next(weft_topics_calls* calls, int64_t timeout_ms, weft_topics_outcome* outcome) {
  if (outcome == nullptr) {
    return code_of(kNullPointer);
  }
  *outcome = {};
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<CallsObject>(calls));
    const Patience patience = WEFT_TRY(patience_of(timeout_ms));
    MessagePlace place;
    if (!place.valid()) {
      return Error(Errc::resource_exhausted, "no memory");
    }
    auto next = patience.waits ? own->value.next_until(patience.deadline) : own->value.try_next();
    CallQueue::Outcome taken = WEFT_TRY(std::move(next));
    outcome->tag = taken.tag;
    outcome->code = taken.error == Error() ? WEFT_TOPICS_OK : code_of(taken.error);
    put_published(&outcome->published, taken.published);
    std::visit(
        [&](auto&& content) {
          if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(content)>, std::monostate>) {
            outcome->message = place.fill(std::forward<decltype(content)>(content));
          }
        },
        std::move(taken.content));
    return {};
  });
}

int weft_topics_calls_request(weft_topics_calls* calls, uint64_t tag, const char* topic, const void* data, size_t size,
                              int64_t timeout_ms, const weft_topics_header* headers, size_t header_count) {
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<CallsObject>(calls));
    const std::string_view name = WEFT_TRY(text_of(topic));
    const Bytes body = WEFT_TRY(bytes_of(data, size));
    const Headers block = WEFT_TRY(headers_of(headers, header_count));
    const Patience patience = WEFT_TRY(patience_of(timeout_ms));
    return own->value.request(tag, name, body, patience.deadline, block);
  });
}

int weft_topics_calls_publish(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream, const char* topic,
                              const void* data, size_t size, const weft_topics_append_options* options) {
  return start_on_stream(
      calls, tag, stream, Answer::published,
      [&](const topic::StreamCore& core) -> Result<IntrusivePtr<topic::HubCall>> {
        AppendOptions how = WEFT_TRY(append_options_of(options));
        how.options.headers = how.headers.block();
        if (how.options.order == Order::strict) {
          return Error(Errc::invalid_argument, "a strict order has one message of a topic under way");
        }
        return core.append(WEFT_TRY(text_of(topic)), WEFT_TRY(bytes_of(data, size)), how.options, {});
      });
}

int weft_topics_calls_publish_all(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream,
                                  const weft_topics_batch_message* messages, size_t count, size_t message_size,
                                  int64_t timeout_ms) {
  return start_on_stream(calls, tag, stream, Answer::published,
                         [&](const topic::StreamCore& core) -> Result<IntrusivePtr<topic::HubCall>> {
                           const Batch batch = WEFT_TRY(batch_of(messages, count, message_size, timeout_ms));
                           return core.append_all(batch.messages, batch.options);
                         });
}

int weft_topics_calls_message(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream, uint64_t sequence) {
  return start_on_stream(calls, tag, stream, Answer::message,
                         [&](const topic::StreamCore& core) -> Result<IntrusivePtr<topic::HubCall>> {
                           if (sequence == 0) {
                             return Error(Errc::not_found, "a stream counts its messages from 1");
                           }
                           return core.get({}, sequence);
                         });
}

int weft_topics_calls_newest(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream, const char* topic) {
  return start_on_stream(calls, tag, stream, Answer::message,
                         [&](const topic::StreamCore& core) -> Result<IntrusivePtr<topic::HubCall>> {
                           return core.get(WEFT_TRY(text_of(topic)), 0);
                         });
}

int weft_topics_calls_purge(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream, uint64_t before) {
  return start_on_stream(calls, tag, stream, Answer::none,
                         [&](const topic::StreamCore& core) { return core.purge(before); });
}

int weft_topics_calls_remove(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream) {
  return start_on_stream(calls, tag, stream, Answer::removed,
                         [](const topic::StreamCore& core) { return core.remove(); });
}

int weft_topics_calls_info(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream) {
  return start_on_stream(calls, tag, stream, Answer::info, [](const topic::StreamCore& core) { return core.info(); });
}

int weft_topics_calls_ack_confirmed(weft_topics_calls* calls, uint64_t tag, weft_topics_message* message) {
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<CallsObject>(calls));
    MessageHandle* const handle = WEFT_TRY(delivery_of(message));
    auto& delivery = std::get<Delivery>(handle->content);
    // A call that is not under way leaves the message without an outcome.
    WEFT_TRY(own->value.start(tag, delivery.link(), WEFT_TRY(delivery.confirmation()), {.answer = Answer::confirmed}));
    delivery.settle();
    handle->settled = true;
    return {};
  });
}

int weft_topics_calls_put(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* key, const void* data,
                          size_t size) {
  return change_later(calls, tag, kv, key, data, size, {});
}

int weft_topics_calls_create(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* key,
                             const void* data, size_t size) {
  return change_later(calls, tag, kv, key, data, size, {.absent = true});
}

int weft_topics_calls_update(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* key,
                             const void* data, size_t size, uint64_t seen) {
  return change_later(calls, tag, kv, key, data, size, {.revision = seen});
}

int weft_topics_calls_put_with(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* key,
                               const void* data, size_t size, const weft_topics_put_options* options) {
  return start_on_bucket(
      calls, tag, kv, key, Answer::published,
      [&](const topic::KeyValueCore& core, std::string_view name) -> Result<IntrusivePtr<topic::HubCall>> {
        return core.change(name, WEFT_TRY(bytes_of(data, size)), WEFT_TRY(change_of(options)));
      });
}

int weft_topics_calls_delete(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* key) {
  return change_later(calls, tag, kv, key, nullptr, 0, {.erase = true});
}

int weft_topics_calls_get(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* key) {
  return start_on_bucket(calls, tag, kv, key, Answer::entry,
                         [](const topic::KeyValueCore& core, std::string_view name) { return core.value(name); });
}

int weft_topics_calls_keys(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* filter,
                           const char* after) {
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<CallsObject>(calls));
    const auto of = WEFT_TRY(pin<KeyValueObject>(kv));
    auto wanted = std::make_unique<const Filter>(WEFT_TRY(Filter::parse(filter_or_all(filter))));
    const auto core = of->value.core();
    return core == nullptr
               ? Result<void>(kObjectClosed)
               : own->value.start(tag, core->stream().link(), WEFT_TRY(core->stream().list(text_or_empty(after))),
                                  {.answer = Answer::keys, .bucket = core, .filter = std::move(wanted)});
  });
}
}
