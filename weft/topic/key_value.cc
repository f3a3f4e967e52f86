// SPDX-License-Identifier: MIT
#include "weft/topic/key_value.h"

#include <utility>

#include "weft/topic/kept/stream_core.h"

namespace weft {

namespace {
constexpr Error kBucketMoved(Errc::closed, "the bucket was moved from");
// A waiting call holds the object on which it waits: another thread may destroy the bucket meanwhile.
}  // namespace

KeyValueWatch::KeyValueWatch(std::shared_ptr<const topic::KeyValueCore> core, Reader reader) noexcept
    : core_(std::move(core)), reader_(std::move(reader)) {}

Result<KeyValueEntry> KeyValueWatch::next() { return next_until(kNever); }
Result<KeyValueEntry> KeyValueWatch::next_until(Instant deadline) {
  const auto core = core_;
  return core->entry(WEFT_TRY(reader_.next_until(deadline)));
}
Result<KeyValueEntry> KeyValueWatch::try_next() { return core_->entry(WEFT_TRY(reader_.try_next())); }
Result<std::optional<KeyValueEntry>> KeyValueWatch::next_stored() {
  const auto core = core_;
  auto stored = WEFT_TRY(reader_.next_stored());
  if (!stored) {
    return std::optional<KeyValueEntry>();
  }
  return std::optional<KeyValueEntry>(WEFT_TRY(core->entry(*std::move(stored))));
}

KeyValue::KeyValue(std::shared_ptr<const topic::KeyValueCore> core) noexcept : core_(std::move(core)) {}

Result<KeyValue> KeyValue::declare(std::shared_ptr<topic::HubLink> link, std::string_view name,
                                   const KeyValueOptions& options) {
  const auto core = WEFT_TRY(topic::KeyValueCore::make(std::move(link), name, options));
  const auto call = WEFT_TRY(core->stream().declare(options.redeclare));
  WEFT_TRY(core->stream().link()->run(call));
  WEFT_TRY(core->stream().declared(*call));
  return KeyValue(core);
}

Result<std::uint64_t> KeyValue::change(std::string_view key, Bytes value, const topic::KeyChange& change) {
  const auto core = core_;
  if (core == nullptr) {
    return kBucketMoved;
  }
  const auto call = WEFT_TRY(core->change(key, value, change));
  WEFT_TRY(core->stream().link()->run(call));
  return topic::StreamCore::published(*call).sequence;
}

Result<std::uint64_t> KeyValue::put(std::string_view key, Bytes value) { return change(key, value, {}); }
Result<std::uint64_t> KeyValue::create(std::string_view key, Bytes value) {
  return change(key, value, {.absent = true});
}
Result<std::uint64_t> KeyValue::update(std::string_view key, Bytes value, std::uint64_t revision) {
  return change(key, value, {.revision = revision});
}
Result<std::uint64_t> KeyValue::update(std::string_view key, Bytes value, const KeyValueEntry& seen) {
  return change(key, value, {.revision = seen.revision(), .instance = seen.instance()});
}
Result<std::uint64_t> KeyValue::erase(std::string_view key, const KeyValueEntry& seen) {
  return change(key, {}, {.revision = seen.revision(), .instance = seen.instance(), .erase = true});
}
Result<std::uint64_t> KeyValue::erase(std::string_view key, std::optional<std::uint64_t> revision) {
  return change(key, {}, {.revision = revision, .erase = true});
}

Result<KeyValueEntry> KeyValue::value(std::string_view key) {
  const auto core = core_;
  if (core == nullptr) {
    return kBucketMoved;
  }
  const auto call = WEFT_TRY(core->value(key));
  WEFT_TRY(core->stream().link()->run(call));
  return core->entry(*call);
}

Result<std::vector<std::string>> KeyValue::keys(std::string_view filter) {
  const auto core = core_;
  if (core == nullptr) {
    return kBucketMoved;
  }
  const Filter wanted = WEFT_TRY(Filter::parse(filter));
  std::vector<std::string> keys;
  std::optional<std::string> behind = std::string();
  while (behind) {
    const auto call = WEFT_TRY(core->stream().list(*behind));
    WEFT_TRY(core->stream().link()->run(call));
    behind = WEFT_TRY(core->add_keys(*call, wanted, keys));
  }
  return keys;
}

Result<KeyValueWatch> KeyValue::watch(std::string_view filter, bool all) {
  const auto core = core_;
  if (core == nullptr) {
    return kBucketMoved;
  }
  const auto channel = WEFT_TRY(core->watch(filter, all));
  Reader reader(core->stream().link(), channel);
  WEFT_TRY(core->stream().link()->wait_open(*channel));
  return KeyValueWatch(core, std::move(reader));
}

std::string_view KeyValue::name() const noexcept {
  return core_ == nullptr ? std::string_view() : std::string_view(core_->name());
}

}  // namespace weft
