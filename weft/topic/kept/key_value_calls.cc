// SPDX-License-Identifier: MIT
#include "weft/topic/kept/key_value_calls.h"

#include "weft/topic/kept/stream_core.h"

namespace weft::topic {

namespace {

BucketOperation<std::uint64_t> change_key(const BucketPtr& bucket, std::string_view key, Bytes value,
                                          const KeyChange& change) {
  return {bucket, [&](const KeyValueCore& core) { return core.change(key, value, change); },
          [](const KeyValueCore& /*core*/, HubCall& call, const Result<void>& ran) {
            return ran ? Result<std::uint64_t>(StreamCore::published(call).sequence) : ran.error();
          }};
}

}  // namespace

BucketOperation<void> declare(const BucketPtr& bucket, bool redeclare) {
  return {bucket, [&](const KeyValueCore& core) { return core.stream().declare(redeclare); },
          [](const KeyValueCore& core, HubCall& call, const Result<void>& ran) {
            return ran ? core.stream().declared(call) : ran;
          }};
}
BucketOperation<std::uint64_t> put(const BucketPtr& bucket, std::string_view key, Bytes value,
                                   const PutOptions& options) {
  return change_key(bucket, key, value, {.time_to_live = options.time_to_live});
}
BucketOperation<std::uint64_t> create(const BucketPtr& bucket, std::string_view key, Bytes value,
                                      const PutOptions& options) {
  return change_key(bucket, key, value, {.absent = true, .time_to_live = options.time_to_live});
}
BucketOperation<std::uint64_t> update(const BucketPtr& bucket, std::string_view key, Bytes value,
                                      std::uint64_t revision, const PutOptions& options) {
  return change_key(bucket, key, value, {.revision = revision, .time_to_live = options.time_to_live});
}
BucketOperation<std::uint64_t> update(const BucketPtr& bucket, std::string_view key, Bytes value,
                                      const KeyValueEntry& seen, const PutOptions& options) {
  return change_key(bucket, key, value,
                    {.revision = seen.revision(), .instance = seen.instance(), .time_to_live = options.time_to_live});
}
BucketOperation<std::uint64_t> erase(const BucketPtr& bucket, std::string_view key,
                                     std::optional<std::uint64_t> revision) {
  return change_key(bucket, key, {}, {.revision = revision, .erase = true});
}
BucketOperation<std::uint64_t> erase(const BucketPtr& bucket, std::string_view key, const KeyValueEntry& seen) {
  return change_key(bucket, key, {}, {.revision = seen.revision(), .instance = seen.instance(), .erase = true});
}
BucketOperation<KeyValueEntry> value(const BucketPtr& bucket, std::string_view key) {
  return {bucket, [&](const KeyValueCore& core) { return core.value(key); },
          [](const KeyValueCore& core, HubCall& call, const Result<void>& ran) {
            return ran ? core.entry(call) : Result<KeyValueEntry>(ran.error());
          }};
}

Result<IntrusivePtr<HubCall>> BucketKeys::next() {
  return behind_ ? bucket_->stream().list(*behind_) : IntrusivePtr<HubCall>();
}
Result<void> BucketKeys::take(const HubCall& call, const Result<void>& ran) {
  WEFT_TRY(ran);
  behind_ = WEFT_TRY(bucket_->add_keys(call, filter_, keys_));
  return {};
}

}  // namespace weft::topic
