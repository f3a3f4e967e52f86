// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/nats/jetstream/stream.h"
#include "weft/nats/protocol/headers.h"

// Buckets of keys and values as ADR-8 has them, so that other clients see the same.
namespace weft::nats::jetstream {

inline constexpr std::string_view kBucketStreamPrefix = "KV_";
inline constexpr std::string_view kKeyOperationHeader = "KV-Operation";
inline constexpr std::string_view kMarkerReasonHeader = "Nats-Marker-Reason";
inline constexpr std::uint32_t kBucketHistoryMax = 64;

struct BucketConfig {
  std::string bucket{};  // of [-_A-Za-z0-9], and `=` of append_name(), which other clients do not take
  std::string description{};
  std::uint32_t history = 1;  // values that are kept of each key; 1 to kBucketHistoryMax
  Duration age_max{0};
  std::int64_t bytes_max = -1;
  std::int64_t value_size_max = -1;
  Storage storage = Storage::file;
  std::uint32_t replicas = 1;
  // Since 2.11: values may have a ttl of their own, and a key that a bound deletes leaves a marker for that time.
  // It is also the least ttl of a value.
  Duration marker_ttl{0};
};
// The stream of a bucket. Errors: invalid_argument (the name or the history).
[[nodiscard]] Result<StreamConfig> bucket_stream(const BucketConfig& config);
// The bucket of a stream; null: it is not the stream of a bucket.
[[nodiscard]] std::optional<std::string_view> bucket_of_stream(std::string_view stream) noexcept;

// "$KV.<bucket>.<key>". The key is one of append_key(), or a filter of subjects for a consumer.
void append_key_subject(std::string_view bucket, std::string_view key, std::string& out);
// The key of a subject of the bucket; null: it is of another one.
[[nodiscard]] std::optional<std::string_view> key_of_subject(std::string_view bucket,
                                                             std::string_view subject) noexcept;
// Whether other clients take the key: 1 byte or more of [-/_=.A-Za-z0-9], no empty token.
[[nodiscard]] bool is_key(std::string_view key) noexcept;

// KeyOperation: the effect of a message of a bucket's stream on its key. A purge also deletes the key's history
// (Rollup::subject).
enum class KeyOperation : std::uint8_t { put, erase, purge };
// By KV-Operation, and by Nats-Marker-Reason of a marker: MaxAge and Purge are `purge`, Remove is `erase`.
[[nodiscard]] KeyOperation read_key_operation(const HeadersView& headers) noexcept;
// The headers of an erasure or a purge; a put has none. Errors: those of Headers::add().
[[nodiscard]] Result<void> add_key_operation(KeyOperation operation, Headers& headers);

}  // namespace weft::nats::jetstream
