// SPDX-License-Identifier: MIT
#include "weft/topic/async_key_value.h"

#include <utility>

#include "weft/topic/kept/stream_core.h"

namespace weft {

namespace {

using topic::HubLink;
using CallPtr = IntrusivePtr<topic::HubCall>;
using Core = std::shared_ptr<const topic::KeyValueCore>;

constexpr Error kAsyncBucketMoved(Errc::closed, "the bucket was moved from");

rt::Task<Result<std::uint64_t>> change_call(Core core, Result<CallPtr> call) {
  if (!call) {
    co_return call.error();
  }
  WEFT_CO_TRY(co_await HubLink::run_task(core->stream().link(), *call));
  co_return topic::StreamCore::published(**call).sequence;
}

rt::Task<Result<KeyValueEntry>> value_call(Core core, Result<CallPtr> call) {
  if (!call) {
    co_return call.error();
  }
  WEFT_CO_TRY(co_await HubLink::run_task(core->stream().link(), *call));
  co_return core->entry(**call);
}

rt::Task<Result<std::vector<std::string>>> list_keys(Core core, Result<Filter> wanted) {
  if (core == nullptr) {
    co_return kAsyncBucketMoved;
  }
  if (!wanted) {
    co_return wanted.error();
  }
  std::vector<std::string> keys;
  std::optional<std::string> behind = std::string();
  while (behind) {
    const Result<CallPtr> call = core->stream().list(*behind);
    if (!call) {
      co_return call.error();
    }
    WEFT_CO_TRY(co_await HubLink::run_task(core->stream().link(), *call));
    Result<std::optional<std::string>> next = core->add_keys(**call, *wanted, keys);
    if (!next) {
      co_return next.error();
    }
    behind = *std::move(next);
  }
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
Result<KeyValueEntry> AsyncKeyValueWatch::try_next() { return core_->entry(WEFT_TRY(reader_.try_next())); }

AsyncKeyValue::AsyncKeyValue(Core core) noexcept : core_(std::move(core)) {}

rt::Task<Result<AsyncKeyValue>> AsyncKeyValue::declare(std::shared_ptr<HubLink> link, std::string_view name,
                                                       const KeyValueOptions& options) {
  static constexpr auto kDeclare = [](Result<Core> core, bool redeclare) -> rt::Task<Result<AsyncKeyValue>> {
    if (!core) {
      co_return core.error();
    }
    topic::StreamCore& stream = (*core)->stream();
    const Result<CallPtr> call = stream.declare(redeclare);
    if (!call) {
      co_return call.error();
    }
    WEFT_CO_TRY(co_await HubLink::run_task(stream.link(), *call));
    WEFT_CO_TRY(stream.declared(**call));
    co_return AsyncKeyValue(*core);
  };
  return kDeclare(topic::KeyValueCore::make(std::move(link), name, options), options.redeclare);
}

AsyncKeyValue::Revision AsyncKeyValue::change(std::string_view key, Bytes value, const topic::KeyChange& change) {
  return change_call(core_, core_ == nullptr ? Result<CallPtr>(kAsyncBucketMoved) : core_->change(key, value, change));
}
AsyncKeyValue::Revision AsyncKeyValue::put(std::string_view key, Bytes value) { return change(key, value, {}); }
AsyncKeyValue::Revision AsyncKeyValue::create(std::string_view key, Bytes value) {
  return change(key, value, {.absent = true});
}
AsyncKeyValue::Revision AsyncKeyValue::update(std::string_view key, Bytes value, std::uint64_t revision) {
  return change(key, value, {.revision = revision});
}
AsyncKeyValue::Revision AsyncKeyValue::update(std::string_view key, Bytes value, const KeyValueEntry& seen) {
  return change(key, value, {.revision = seen.revision(), .instance = seen.instance()});
}
AsyncKeyValue::Revision AsyncKeyValue::erase(std::string_view key, const KeyValueEntry& seen) {
  return change(key, {}, {.revision = seen.revision(), .instance = seen.instance(), .erase = true});
}
AsyncKeyValue::Revision AsyncKeyValue::erase(std::string_view key, std::optional<std::uint64_t> revision) {
  return change(key, {}, {.revision = revision, .erase = true});
}
rt::Task<Result<KeyValueEntry>> AsyncKeyValue::value(std::string_view key) {
  return value_call(core_, core_ == nullptr ? Result<CallPtr>(kAsyncBucketMoved) : core_->value(key));
}
rt::Task<Result<std::vector<std::string>>> AsyncKeyValue::keys(std::string_view filter) {
  return list_keys(core_, Filter::parse(filter));
}
rt::Task<Result<AsyncKeyValueWatch>> AsyncKeyValue::watch(std::string_view filter, bool all) {
  using Channel = Result<IntrusivePtr<topic::KeptChannel>>;
  return open_watch(core_,
                    AsyncReader::open(core_ == nullptr ? nullptr : core_->stream().link(),
                                      core_ == nullptr ? Channel(kAsyncBucketMoved) : core_->watch(filter, all)));
}
std::string_view AsyncKeyValue::name() const noexcept {
  return core_ == nullptr ? std::string_view() : std::string_view(core_->name());
}

}  // namespace weft
