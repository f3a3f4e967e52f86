// SPDX-License-Identifier: MIT
// Keys with values.
#include <string>
#include <vector>

#include "capi/topics/call.h"
#include "capi/topics/kept_options.h"
#include "capi/topics/message_handle.h"
#include "capi/topics/objects.h"

using namespace weft;                // NOLINT(google-build-using-namespace)
using namespace weft::capi::topics;  // NOLINT(google-build-using-namespace)

namespace {

Result<KeyValueOptions> key_value_options_of(const weft_topics_kv_options* given) {
  const weft_topics_kv_options c = WEFT_TRY(options_of(given));
  KeyValueOptions options;
  options.history = c.history == 0 ? options.history : c.history;
  options.survives = WEFT_TRY(survives_of(c.survives));
  options.when_full = c.when_full == WEFT_TOPICS_FULL_DEFAULT ? options.when_full : WEFT_TRY(discard_of(c.when_full));
  options.redeclare = c.redeclare != 0;
  options.bytes_max = c.bytes_max == 0 ? options.bytes_max : c.bytes_max;
  options.age_max = WEFT_TRY(duration_of(c.age_max_ms));
  return options;
}

// Makes a change of a key; `revision` may be null.
template <typename Change>
int change_key(weft_topics_kv* kv, const char* key, std::uint64_t* revision, Change change) {
  if (revision != nullptr) {
    *revision = 0;
  }
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<KeyValueObject>(kv));
    const std::uint64_t made = WEFT_TRY(change(own->value, WEFT_TRY(text_of(key))));
    if (revision != nullptr) {
      *revision = made;
    }
    return {};
  });
}

}  // namespace

extern "C" {

int weft_topics_kv_open(weft_topics* topics, const char* name, const weft_topics_kv_options* options,
                        weft_topics_kv** kv) {
  if (kv == nullptr) {
    return code_of(kNullPointer);
  }
  *kv = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<TopicsObject>(topics));
    const KeyValueOptions how = WEFT_TRY(key_value_options_of(options));
    KeyValue made = WEFT_TRY(own->value.key_value(WEFT_TRY(text_of(name)), how));
    return open_handle<KeyValueObject>(kv, own->context, std::move(made));
  });
}

int weft_topics_kv_close(weft_topics_kv* kv) {
  return call([&] { return HandleTable::instance().close(kv, Kind::key_value); });
}

int weft_topics_kv_put(weft_topics_kv* kv, const char* key, const void* data, size_t size, uint64_t* revision) {
  return change_key(kv, key, revision, [&](KeyValue& bucket, std::string_view name) -> Result<std::uint64_t> {
    return bucket.put(name, WEFT_TRY(bytes_of(data, size)));
  });
}

int weft_topics_kv_create(weft_topics_kv* kv, const char* key, const void* data, size_t size, uint64_t* revision) {
  return change_key(kv, key, revision, [&](KeyValue& bucket, std::string_view name) -> Result<std::uint64_t> {
    return bucket.create(name, WEFT_TRY(bytes_of(data, size)));
  });
}

int weft_topics_kv_update(weft_topics_kv* kv, const char* key, const void* data, size_t size, uint64_t seen,
                          uint64_t* revision) {
  return change_key(kv, key, revision, [&](KeyValue& bucket, std::string_view name) -> Result<std::uint64_t> {
    return bucket.update(name, WEFT_TRY(bytes_of(data, size)), seen);
  });
}

int weft_topics_kv_put_with(weft_topics_kv* kv, const char* key, const void* data, size_t size,
                            const weft_topics_put_options* options, uint64_t* revision) {
  return change_key(kv, key, revision, [&](KeyValue& bucket, std::string_view name) -> Result<std::uint64_t> {
    const topic::KeyChange change = WEFT_TRY(change_of(options));
    const Bytes value = WEFT_TRY(bytes_of(data, size));
    const PutOptions how{change.time_to_live};
    return change.absent     ? bucket.create(name, value, how)
           : change.revision ? bucket.update(name, value, *change.revision, how)
                             : bucket.put(name, value, how);
  });
}

int weft_topics_kv_delete(weft_topics_kv* kv, const char* key, uint64_t* revision) {
  return change_key(kv, key, revision, [](KeyValue& bucket, std::string_view name) { return bucket.erase(name); });
}

int weft_topics_kv_get(weft_topics_kv* kv, const char* key, weft_topics_message** value) {
  if (value == nullptr) {
    return code_of(kNullPointer);
  }
  *value = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<KeyValueObject>(kv));
    const std::string_view name = WEFT_TRY(text_of(key));
    return take_message(value, [&] { return own->value.value(name); });
  });
}

int weft_topics_kv_keys(weft_topics_kv* kv, const char* filter, weft_topics_names** keys) {
  if (keys == nullptr) {
    return code_of(kNullPointer);
  }
  *keys = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<KeyValueObject>(kv));
    auto names = WEFT_TRY(own->value.keys(filter_or_all(filter)));
    return open_handle<NamesObject>(keys, own->context, std::move(names));
  });
}

int weft_topics_kv_watch(weft_topics_kv* kv, const char* filter, int all, weft_topics_watch** watch) {
  if (watch == nullptr) {
    return code_of(kNullPointer);
  }
  *watch = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<KeyValueObject>(kv));
    KeyValueWatch made = WEFT_TRY(own->value.watch(filter_or_all(filter), all != 0));
    return open_handle<WatchObject>(watch, own->context, std::move(made));
  });
}

int weft_topics_watch_close(weft_topics_watch* watch) {
  return call([&] { return HandleTable::instance().close(watch, Kind::watch); });
}

int weft_topics_watch_next(weft_topics_watch* watch, int64_t timeout_ms, weft_topics_message** message) {
  return next_of<WatchObject>(watch, timeout_ms, message);
}

int weft_topics_watch_fd(weft_topics_watch* watch) { return descriptor_of<WatchObject>(watch); }

int weft_topics_watch_is_live(weft_topics_watch* watch) {
  return call([&]() -> Result<int> { return WEFT_TRY(pin<WatchObject>(watch))->value.live() ? 1 : 0; });
}

int weft_topics_names_free(weft_topics_names* names) {
  return call([&] { return HandleTable::instance().close(names, Kind::names); });
}

int weft_topics_names_count(weft_topics_names* names, size_t* count) {
  if (count == nullptr) {
    return code_of(kNullPointer);
  }
  *count = 0;
  return call([&]() -> Result<void> {
    *count = WEFT_TRY(pin<NamesObject>(names))->value.size();
    return {};
  });
}

int weft_topics_names_at(weft_topics_names* names, size_t index, const char** name, size_t* size) {
  if (name == nullptr) {
    return code_of(kNullPointer);
  }
  *name = nullptr;
  if (size != nullptr) {
    *size = 0;
  }
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<NamesObject>(names));
    if (index >= own->value.size()) {
      return Error(Errc::invalid_argument, "the list has no such name");
    }
    *name = own->value[index].c_str();
    if (size != nullptr) {
      *size = own->value[index].size();
    }
    return {};
  });
}
}
