// SPDX-License-Identifier: MIT
#include "weft/topic/key_value.h"

#include <utility>

#include "weft/topic/kept/key_value_calls.h"
#include "weft/topic/kept/moved_from.h"
#include "weft/topic/kept/stream_core.h"

namespace weft {

KeyValueWatch::KeyValueWatch(std::shared_ptr<const topic::KeyValueCore> core, Reader reader) noexcept
    : core_(std::move(core)), reader_(std::move(reader)) {}

Result<KeyValueEntry> KeyValueWatch::next() { return next_until(kNever); }
Result<KeyValueEntry> KeyValueWatch::next_until(Instant deadline) {
  const auto core = WEFT_TRY(topic::share(core_));
  return core->entry(WEFT_TRY(reader_.next_until(deadline)));
}
Result<KeyValueEntry> KeyValueWatch::try_next() {
  return WEFT_TRY(topic::borrow(core_))->entry(WEFT_TRY(reader_.try_next()));
}
Result<std::optional<KeyValueEntry>> KeyValueWatch::next_stored() {
  const auto core = WEFT_TRY(topic::share(core_));
  auto stored = WEFT_TRY(reader_.next_stored());
  if (!stored) {
    return std::optional<KeyValueEntry>();
  }
  return std::optional<KeyValueEntry>(WEFT_TRY(core->entry(*std::move(stored))));
}

KeyValue::KeyValue(std::shared_ptr<const topic::KeyValueCore> core) noexcept : core_(std::move(core)) {}

Result<KeyValue> KeyValue::declare(std::shared_ptr<topic::HubLink> link, std::string_view name,
                                   const KeyValueOptions& options) {
  return topic::wait_for_declared<KeyValue>(topic::KeyValueCore::make(std::move(link), name, options),
                                            options.redeclare);
}

Result<std::uint64_t> KeyValue::put(std::string_view key, Bytes value, const PutOptions& options) {
  return topic::put(core_, key, value, options).wait();
}
Result<std::uint64_t> KeyValue::create(std::string_view key, Bytes value, const PutOptions& options) {
  return topic::create(core_, key, value, options).wait();
}
Result<std::uint64_t> KeyValue::update(std::string_view key, Bytes value, std::uint64_t revision,
                                       const PutOptions& options) {
  return topic::update(core_, key, value, revision, options).wait();
}
Result<std::uint64_t> KeyValue::update(std::string_view key, Bytes value, const KeyValueEntry& seen,
                                       const PutOptions& options) {
  return topic::update(core_, key, value, seen, options).wait();
}
Result<std::uint64_t> KeyValue::erase(std::string_view key, const KeyValueEntry& seen) {
  return topic::erase(core_, key, seen).wait();
}
Result<std::uint64_t> KeyValue::erase(std::string_view key, std::optional<std::uint64_t> revision) {
  return topic::erase(core_, key, revision).wait();
}

Result<KeyValueEntry> KeyValue::value(std::string_view key) { return topic::value(core_, key).wait(); }

Result<std::vector<std::string>> KeyValue::keys(std::string_view filter) {
  const auto core = WEFT_TRY(topic::share(core_));
  topic::BucketKeys list(core, WEFT_TRY(Filter::parse(filter)));
  return topic::wait_for_series(*core->link(), list);
}

Result<KeyValueWatch> KeyValue::watch(std::string_view filter, bool all) {
  const auto core = WEFT_TRY(topic::share(core_));
  return KeyValueWatch(core, WEFT_TRY(topic::wait_for_channel<Reader>(core->link(), core->watch(filter, all))));
}

std::string_view KeyValue::name() const noexcept {
  return core_ == nullptr ? std::string_view() : std::string_view(core_->name());
}

}  // namespace weft
