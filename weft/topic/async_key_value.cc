// SPDX-License-Identifier: MIT
#include "weft/topic/async_key_value.h"

#include <utility>

#include "weft/topic/kept/key_value_calls.h"
#include "weft/topic/kept/moved_from.h"
#include "weft/topic/kept/stream_core.h"

namespace weft {

namespace {

using topic::HubLink;
using Core = topic::BucketPtr;

rt::Task<Result<std::vector<std::string>>> list_keys(Core core, Result<Filter> wanted) {
  WEFT_CO_TRY(topic::borrow(core));
  WEFT_CO_TRY(Filter filter, std::move(wanted));
  topic::BucketKeys list(core, std::move(filter));
  Result<std::vector<std::string>> keys = co_await topic::run_series(core->link(), &list);
  co_return keys;
}

rt::Task<Result<AsyncKeyValueWatch>> open_watch(Core core, rt::Task<Result<AsyncReader>> opening) {
  WEFT_CO_TRY(AsyncReader reader, co_await std::move(opening));
  co_return AsyncKeyValueWatch(core, std::move(reader));
}

}  // namespace

AsyncKeyValueWatch::AsyncKeyValueWatch(Core core, AsyncReader reader) noexcept
    : core_(std::move(core)), reader_(std::move(reader)) {}

rt::Task<Result<KeyValueEntry>> AsyncKeyValueWatch::next() {
  static constexpr auto kNext = [](Core core, rt::Task<Result<KeptMessage>> next) -> rt::Task<Result<KeyValueEntry>> {
    WEFT_CO_TRY(KeptMessage message, co_await std::move(next));
    co_return core->entry(std::move(message));
  };
  return kNext(core_, reader_.next());
}
rt::Task<Result<std::optional<KeyValueEntry>>> AsyncKeyValueWatch::next_stored() {
  using Stored = std::optional<KeptMessage>;
  using Entry = std::optional<KeyValueEntry>;
  static constexpr auto kNext = [](Core core, rt::Task<Result<Stored>> next) -> rt::Task<Result<Entry>> {
    WEFT_CO_TRY(Stored message, co_await std::move(next));
    if (!message) {
      co_return Entry();
    }
    WEFT_CO_TRY(KeyValueEntry entry, core->entry(*std::move(message)));
    co_return Entry(std::move(entry));
  };
  return kNext(core_, reader_.next_stored());
}
Result<KeyValueEntry> AsyncKeyValueWatch::try_next() {
  return WEFT_TRY(topic::borrow(core_))->entry(WEFT_TRY(reader_.try_next()));
}

AsyncKeyValue::AsyncKeyValue(Core core) noexcept : core_(std::move(core)) {}

rt::Task<Result<AsyncKeyValue>> AsyncKeyValue::declare(std::shared_ptr<HubLink> link, std::string_view name,
                                                       const KeyValueOptions& options) {
  return topic::run_declare<AsyncKeyValue>(topic::KeyValueCore::make(std::move(link), name, options),
                                           options.redeclare);
}

AsyncKeyValue::Revision AsyncKeyValue::put(std::string_view key, Bytes value, const PutOptions& options) {
  return topic::put(core_, key, value, options).task();
}
AsyncKeyValue::Revision AsyncKeyValue::create(std::string_view key, Bytes value, const PutOptions& options) {
  return topic::create(core_, key, value, options).task();
}
AsyncKeyValue::Revision AsyncKeyValue::update(std::string_view key, Bytes value, std::uint64_t revision,
                                              const PutOptions& options) {
  return topic::update(core_, key, value, revision, options).task();
}
AsyncKeyValue::Revision AsyncKeyValue::update(std::string_view key, Bytes value, const KeyValueEntry& seen,
                                              const PutOptions& options) {
  return topic::update(core_, key, value, seen, options).task();
}
AsyncKeyValue::Revision AsyncKeyValue::erase(std::string_view key, const KeyValueEntry& seen) {
  return topic::erase(core_, key, seen).task();
}
AsyncKeyValue::Revision AsyncKeyValue::erase(std::string_view key, std::optional<std::uint64_t> revision) {
  return topic::erase(core_, key, revision).task();
}
rt::Task<Result<KeyValueEntry>> AsyncKeyValue::value(std::string_view key) { return topic::value(core_, key).task(); }
rt::Task<Result<std::vector<std::string>>> AsyncKeyValue::keys(std::string_view filter) {
  return list_keys(core_, Filter::parse(filter));
}
rt::Task<Result<AsyncKeyValueWatch>> AsyncKeyValue::watch(std::string_view filter, bool all) {
  const auto make = [&](const topic::KeyValueCore* core) { return core->watch(filter, all); };
  auto link = core_ == nullptr ? nullptr : core_->link();
  auto opening = topic::open_channel<AsyncReader>(std::move(link), topic::borrow(core_).and_then(make));
  return open_watch(core_, std::move(opening));
}
std::string_view AsyncKeyValue::name() const noexcept {
  return core_ == nullptr ? std::string_view() : std::string_view(core_->name());
}

}  // namespace weft
