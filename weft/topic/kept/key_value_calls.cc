// SPDX-License-Identifier: MIT
#include "weft/topic/kept/key_value_calls.h"

#include "weft/topic/kept/stream_core.h"

namespace weft::topic {

BucketOperation<void> declare(const BucketPtr& bucket, bool redeclare) {
  return {bucket, [&](const KeyValueCore& core) { return core.stream().declare(redeclare); },
          [](const KeyValueCore& core, HubCall& call, const Result<void>& ran) {
            return ran ? core.stream().declared(call) : ran;
          }};
}
BucketOperation<std::uint64_t> change(const BucketPtr& bucket, std::string_view key, Bytes value,
                                      const KeyChange& change) {
  return {bucket, [&](const KeyValueCore& core) { return core.change(key, value, change); },
          [](const KeyValueCore& /*core*/, HubCall& call, const Result<void>& ran) {
            return ran ? Result<std::uint64_t>(StreamCore::published(call).sequence) : ran.error();
          }};
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
