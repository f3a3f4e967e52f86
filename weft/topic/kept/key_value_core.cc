// SPDX-License-Identifier: MIT
#include "weft/topic/kept/key_value_core.h"

#include <algorithm>

#include "weft/base/no_memory.h"
#include "weft/base/text/hex.h"
#include "weft/topic/kept/stream_core.h"

namespace weft::topic {

namespace {

bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '/' || c == '.';
}

std::string escape(std::string_view text, std::string_view also_plain) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char& c : text) {
    if (is_plain(c) || also_plain.find(c) != std::string_view::npos) {
      escaped += c;
    } else {
      append_hex_bytes({&c, 1}, escaped += '=', kUpperHexDigits);
    }
  }
  return escaped;
}

}  // namespace

std::string escape_key(std::string_view key) { return escape(key, {}); }

std::string unescape_key(std::string_view text) {
  std::string key;
  key.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '=' && i + 2 < text.size() ? upper_hex_value(text[i + 1]) : -1;
    const int low = high >= 0 ? upper_hex_value(text[i + 2]) : -1;
    if (low >= 0) {
      key += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      key += text[i];
    }
  }
  return key;
}

Result<std::shared_ptr<const KeyValueCore>> KeyValueCore::make(std::shared_ptr<HubLink> link, std::string_view name,
                                                               const KeyValueOptions& options) {
  return or_no_memory([&]() -> Result<std::shared_ptr<const KeyValueCore>> {
    if (name.empty() || name.find_first_of(".*>=") != std::string_view::npos) {
      return Error(Errc::invalid_argument, "a bucket's name is one token, without '.', '=' and wildcards");
    }
    std::string wire = WEFT_TRY(link->names().encode("kv")) + '.' + std::string(name);
    WEFT_TRY(check_topic(wire));
    StreamSettings settings;
    settings.topics.push_back(wire + ".>");
    settings.keep = Keep::latest;
    settings.survives = options.survives;
    settings.bytes_max = options.bytes_max;
    settings.age_max = options.age_max;
    settings.when_full = options.when_full;
    settings.history = options.history;
    WEFT_TRY(check_settings(settings));
    return std::shared_ptr<const KeyValueCore>(std::make_shared<KeyValueCore>(
        std::string(name), std::make_shared<StreamCore>(std::move(link), std::move(wire), std::move(settings))));
  });
}

const std::shared_ptr<HubLink>& KeyValueCore::link() const noexcept { return stream_->link(); }

Result<std::string> KeyValueCore::topic(std::string_view key) const {
  std::string wire = stream_->wire() + '.' + escape_key(key);
  WEFT_TRY(check_topic(wire));
  return wire;
}

Result<IntrusivePtr<HubCall>> KeyValueCore::change(std::string_view key, Bytes value, const KeyChange& change) const {
  return or_no_memory([&]() -> Result<IntrusivePtr<HubCall>> {
    PublishOptions options;
    options.expect_last = change.revision;
    options.expect_instance = change.instance;
    options.time_to_live = change.time_to_live;
    return stream_->append_wire(WEFT_TRY(topic(key)), value, options,
                                {.expect_absent = change.absent, .erased = change.erase});
  });
}

Result<IntrusivePtr<HubCall>> KeyValueCore::value(std::string_view key) const {
  return or_no_memory([&]() -> Result<IntrusivePtr<HubCall>> { return stream_->get_wire(WEFT_TRY(topic(key))); });
}

Result<KeyValueEntry> KeyValueCore::entry(KeptMessage&& message) const {
  return or_no_memory([&]() -> Result<KeyValueEntry> {
    const std::string_view wire = message.wire_topic();
    if (wire.size() <= stream_->wire().size() || !wire.starts_with(stream_->wire())) {
      return Error(Errc::protocol_error, "the answer has a value of another bucket");
    }
    std::string key = unescape_key(wire.substr(stream_->wire().size() + 1));
    return KeyValueEntry(std::move(key), std::move(message));
  });
}

Result<KeyValueEntry> KeyValueCore::entry(HubCall& call) const {
  KeptMessage message = WEFT_TRY(StreamCore::message(call, stream_->link()->names()));
  KeyValueEntry found = WEFT_TRY(entry(std::move(message)));
  if (found.erased()) {
    return Error(Errc::not_found, "the key was erased");
  }
  return found;
}

Result<std::optional<std::string>> KeyValueCore::add_keys(const HubCall& call, const Filter& filter,
                                                          std::vector<std::string>& keys) const {
  return or_no_memory([&]() -> Result<std::optional<std::string>> {
    std::string_view text = as_text(call.answer.body);
    std::string_view last;
    while (!text.empty()) {
      const std::string_view topic = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), topic.size() + 1));
      if (topic.size() <= stream_->wire().size() || !topic.starts_with(stream_->wire()) || topic <= last) {
        return Error(Errc::protocol_error, "the answer has keys of another bucket, or in a wrong order");
      }
      last = topic;
      std::string key = unescape_key(topic.substr(stream_->wire().size() + 1));
      if (filter.matches(key)) {
        if (keys.size() >= kKeysMax) {
          return Error(Errc::resource_exhausted, "more than 1,000,000 keys: watch() gives any number");
        }
        keys.push_back(std::move(key));
      }
    }
    if (!call.answer.has(OpFlags::more) || last.empty()) {
      return std::optional<std::string>();
    }
    return std::optional<std::string>(std::string(last));
  });
}

Result<IntrusivePtr<KeptChannel>> KeyValueCore::watch(std::string_view filter, bool all) const {
  return or_no_memory([&]() -> Result<IntrusivePtr<KeptChannel>> {
    WEFT_TRY(Filter::parse(filter));
    ConsumerSettings settings;
    const std::string wire = stream_->wire() + '.' + escape(filter, "*>");
    settings.filter = WEFT_TRY(Filter::parse(wire)).text();
    settings.from = all ? From::first() : From::last_per_topic();
    const ReadOptions queue;
    return stream_->reader_wire(std::move(settings), queue.queue_messages_max, queue.queue_bytes_max);
  });
}

}  // namespace weft::topic
