// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/filter.h"
#include "weft/topic/kept/key_value_core.h"
#include "weft/topic/kept/operation.h"

namespace weft::topic {

// The calls of a bucket, for KeyValue and AsyncKeyValue. Each fails with `closed` without a core.
template <typename T>
using BucketOperation = Operation<const KeyValueCore, T>;
using BucketPtr = std::shared_ptr<const KeyValueCore>;

[[nodiscard]] BucketOperation<void> declare(const BucketPtr& bucket, bool redeclare);
// Each change of a key returns its revision.
[[nodiscard]] BucketOperation<std::uint64_t> put(const BucketPtr& bucket, std::string_view key, Bytes value,
                                                 const PutOptions& options);
[[nodiscard]] BucketOperation<std::uint64_t> create(const BucketPtr& bucket, std::string_view key, Bytes value,
                                                    const PutOptions& options);
[[nodiscard]] BucketOperation<std::uint64_t> update(const BucketPtr& bucket, std::string_view key, Bytes value,
                                                    std::uint64_t revision, const PutOptions& options);
[[nodiscard]] BucketOperation<std::uint64_t> update(const BucketPtr& bucket, std::string_view key, Bytes value,
                                                    const KeyValueEntry& seen, const PutOptions& options);
[[nodiscard]] BucketOperation<std::uint64_t> erase(const BucketPtr& bucket, std::string_view key,
                                                   std::optional<std::uint64_t> revision);
[[nodiscard]] BucketOperation<std::uint64_t> erase(const BucketPtr& bucket, std::string_view key,
                                                   const KeyValueEntry& seen);
[[nodiscard]] BucketOperation<KeyValueEntry> value(const BucketPtr& bucket, std::string_view key);

// BucketKeys: the series of calls for the keys of a bucket that a filter passes.
class BucketKeys {
 public:
  BucketKeys(BucketPtr bucket, Filter filter) noexcept : bucket_(std::move(bucket)), filter_(std::move(filter)) {}
  [[nodiscard]] Result<IntrusivePtr<HubCall>> next();
  [[nodiscard]] Result<void> take(const HubCall& call, const Result<void>& ran);
  [[nodiscard]] Result<std::vector<std::string>> result() { return std::move(keys_); }

 private:
  BucketPtr bucket_;
  Filter filter_;
  std::optional<std::string> behind_ = std::string();
  std::vector<std::string> keys_;
};

}  // namespace weft::topic
