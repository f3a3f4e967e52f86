// SPDX-License-Identifier: MIT
// Streams and readers.
#include <string>
#include <vector>

#include "capi/topics/call.h"
#include "capi/topics/kept_options.h"
#include "capi/topics/message_handle.h"
#include "capi/topics/objects.h"
#include "weft/sys/clock.h"

using namespace weft;                // NOLINT(google-build-using-namespace)
using namespace weft::capi::topics;  // NOLINT(google-build-using-namespace)

namespace {

Result<StreamOptions> stream_options_of(const char* name, const weft_topics_stream_options* given) {
  const weft_topics_stream_options c = WEFT_TRY(options_of(given));
  StreamOptions options;
  options.name = WEFT_TRY(text_of(name));
  if (c.topic_count > StreamSettings::kTopicsMax || (c.topics == nullptr && c.topic_count != 0)) {
    return Error(Errc::invalid_argument, "a stream takes at most 64 filters");
  }
  for (std::size_t i = 0; i < c.topic_count; ++i) {
    options.topics.emplace_back(WEFT_TRY(text_of(c.topics[i])));
  }
  options.keep = WEFT_TRY(keep_of(c.keep));
  options.survives = WEFT_TRY(survives_of(c.survives));
  if (c.when_full != WEFT_TOPICS_FULL_DEFAULT) {
    options.when_full = WEFT_TRY(discard_of(c.when_full));
  }
  options.redeclare = c.redeclare != 0;
  options.bytes_max = c.bytes_max == 0 ? options.bytes_max : c.bytes_max;
  options.age_max = WEFT_TRY(duration_of(c.age_max_ms));
  const Duration window = WEFT_TRY(duration_of(c.same_id_window_ms));
  options.same_id_window = window == Duration::zero() ? options.same_id_window : window;
  return options;
}

Result<ReadOptions> read_options_of(const weft_topics_read_options* given) {
  const weft_topics_read_options c = WEFT_TRY(options_of(given));
  ReadOptions options;
  options.filter = text_or_empty(c.filter);
  options.from = WEFT_TRY(from_of(c.from, c.from_value));
  options.queue_messages_max = c.queue_messages_max == 0 ? options.queue_messages_max : c.queue_messages_max;
  options.queue_bytes_max = c.queue_bytes_max == 0 ? options.queue_bytes_max : c.queue_bytes_max;
  return options;
}

}  // namespace

extern "C" {

int weft_topics_stream_open(weft_topics* topics, const char* name, const weft_topics_stream_options* options,
                            weft_topics_stream** stream) {
  if (stream == nullptr) {
    return code_of(kNullPointer);
  }
  *stream = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<TopicsObject>(topics));
    Stream made = WEFT_TRY(own->value.stream(WEFT_TRY(stream_options_of(name, options))));
    return open_handle<StreamObject>(stream, own->context, std::move(made));
  });
}

int weft_topics_stream_close(weft_topics_stream* stream) {
  return call([&] { return HandleTable::instance().close(stream, Kind::stream); });
}

int weft_topics_stream_publish(weft_topics_stream* stream, const char* topic, const void* data, size_t size,
                               const weft_topics_append_options* options, weft_topics_published* published) {
  put_published(published, {});
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<StreamObject>(stream));
    AppendOptions how = WEFT_TRY(append_options_of(options));
    how.options.headers = how.headers.block();
    put_published(published,
                  WEFT_TRY(own->value.publish(WEFT_TRY(text_of(topic)), WEFT_TRY(bytes_of(data, size)), how.options)));
    return {};
  });
}

int weft_topics_stream_publish_all(weft_topics_stream* stream, const weft_topics_batch_message* messages, size_t count,
                                   size_t message_size, int64_t timeout_ms, weft_topics_published* published) {
  put_published(published, {});
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<StreamObject>(stream));
    const Batch batch = WEFT_TRY(batch_of(messages, count, message_size, timeout_ms));
    put_published(published, WEFT_TRY(own->value.publish_all(batch.messages, batch.options)));
    return {};
  });
}

int weft_topics_stream_publish_later(weft_topics_stream* stream, const char* topic, const void* data, size_t size,
                                     const weft_topics_append_options* options, weft_topics_pending** pending) {
  if (pending == nullptr) {
    return code_of(kNullPointer);
  }
  *pending = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<StreamObject>(stream));
    AppendOptions how = WEFT_TRY(append_options_of(options));
    how.options.headers = how.headers.block();
    PendingPublish sent =
        WEFT_TRY(own->value.publish_later(WEFT_TRY(text_of(topic)), WEFT_TRY(bytes_of(data, size)), how.options));
    return open_handle<PendingObject>(pending, own->context, std::move(sent));
  });
}

int weft_topics_pending_wait(weft_topics_pending* pending, int64_t timeout_ms, weft_topics_published* published) {
  put_published(published, {});
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<PendingObject>(pending));
    const Patience patience = WEFT_TRY(patience_of(timeout_ms));
    put_published(published,
                  WEFT_TRY(patience.waits ? own->value.wait_until(patience.deadline) : own->value.try_result()));
    return {};
  });
}

int weft_topics_pending_fd(weft_topics_pending* pending) { return descriptor_of<PendingObject>(pending); }

int weft_topics_pending_close(weft_topics_pending* pending) {
  return call([&] { return HandleTable::instance().close(pending, Kind::pending); });
}

int weft_topics_stream_message(weft_topics_stream* stream, uint64_t sequence, weft_topics_message** message) {
  if (message == nullptr) {
    return code_of(kNullPointer);
  }
  *message = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<StreamObject>(stream));
    return take_message(message, [&] { return own->value.message(sequence); });
  });
}

int weft_topics_stream_newest(weft_topics_stream* stream, const char* topic, weft_topics_message** message) {
  if (message == nullptr) {
    return code_of(kNullPointer);
  }
  *message = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<StreamObject>(stream));
    const std::string_view name = WEFT_TRY(text_of(topic));
    return take_message(message, [&] { return own->value.newest(name); });
  });
}

int weft_topics_stream_get_info(weft_topics_stream* stream, weft_topics_stream_info* info) {
  if (info == nullptr) {
    return code_of(kNullPointer);
  }
  *info = {};
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<StreamObject>(stream));
    *info = StreamNumbers(WEFT_TRY(own->value.info())).numbers;
    return {};
  });
}

int weft_topics_stream_purge(weft_topics_stream* stream, uint64_t before) {
  return call([&]() -> Result<void> { return WEFT_TRY(pin<StreamObject>(stream))->value.purge(before); });
}

int weft_topics_stream_remove(weft_topics_stream* stream) {
  return call([&]() -> Result<void> { return WEFT_TRY(pin<StreamObject>(stream))->value.remove(); });
}

int weft_topics_read(weft_topics_stream* stream, const weft_topics_read_options* options, weft_topics_reader** reader) {
  if (reader == nullptr) {
    return code_of(kNullPointer);
  }
  *reader = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<StreamObject>(stream));
    Reader made = WEFT_TRY(own->value.read(WEFT_TRY(read_options_of(options))));
    return open_handle<ReaderObject>(reader, own->context, std::move(made));
  });
}

int weft_topics_reader_close(weft_topics_reader* reader) {
  return call([&] { return HandleTable::instance().close(reader, Kind::reader); });
}

int weft_topics_reader_next(weft_topics_reader* reader, int64_t timeout_ms, weft_topics_message** message) {
  return next_of<ReaderObject>(reader, timeout_ms, message);
}

int weft_topics_reader_fd(weft_topics_reader* reader) { return descriptor_of<ReaderObject>(reader); }

int weft_topics_reader_is_live(weft_topics_reader* reader) {
  return call([&]() -> Result<int> { return WEFT_TRY(pin<ReaderObject>(reader))->value.live() ? 1 : 0; });
}
}
