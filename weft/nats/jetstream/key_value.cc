// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/key_value.h"

#include <algorithm>

#include "weft/nats/jetstream/names.h"

namespace weft::nats::jetstream {

namespace {

constexpr std::string_view kSubjectFront = "$KV.";
constexpr Duration kDuplicateWindow = std::chrono::minutes(2);

[[nodiscard]] bool is_bucket_byte(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '=';
}

[[nodiscard]] bool is_bucket(std::string_view bucket) noexcept {
  return !bucket.empty() && bucket.size() + kBucketStreamPrefix.size() <= kNameMax &&
         std::all_of(bucket.begin(), bucket.end(), is_bucket_byte);
}

}  // namespace

Result<StreamConfig> bucket_stream(const BucketConfig& config) {
  if (!is_bucket(config.bucket)) {
    return Error(Errc::invalid_argument, "not the name of a bucket");
  }
  if (config.history == 0 || config.history > kBucketHistoryMax) {
    return Error(Errc::invalid_argument, "a bucket keeps 1 to 64 values of each key");
  }
  StreamConfig stream;
  stream.name.append(kBucketStreamPrefix).append(config.bucket);
  stream.description = config.description;
  append_key_subject(config.bucket, ">", stream.subjects.emplace_back());
  stream.storage = config.storage;
  stream.discard = DiscardPolicy::refuse;
  stream.bytes_max = config.bytes_max;
  stream.messages_per_subject_max = config.history;
  stream.message_size_max = config.value_size_max;
  stream.age_max = config.age_max;
  stream.duplicate_window =
      config.age_max > Duration::zero() ? std::min(config.age_max, kDuplicateWindow) : kDuplicateWindow;
  stream.replicas = config.replicas;
  stream.allow_direct = true;
  stream.allow_rollup = true;
  stream.deny_delete = true;
  stream.allow_message_ttl = config.marker_ttl != Duration::zero();
  stream.subject_delete_marker_ttl = config.marker_ttl;
  return Result<StreamConfig>(std::in_place, std::move(stream));
}

std::optional<std::string_view> bucket_of_stream(std::string_view stream) noexcept {
  if (!stream.starts_with(kBucketStreamPrefix) || stream.size() == kBucketStreamPrefix.size()) {
    return std::nullopt;
  }
  return stream.substr(kBucketStreamPrefix.size());
}

void append_key_subject(std::string_view bucket, std::string_view key, std::string& out) {
  out.append(kSubjectFront).append(bucket).append(1, '.').append(key);
}

std::optional<std::string_view> key_of_subject(std::string_view bucket, std::string_view subject) noexcept {
  const std::size_t front = kSubjectFront.size() + bucket.size();
  if (subject.size() <= front + 1 || !subject.starts_with(kSubjectFront) || subject[front] != '.' ||
      subject.substr(kSubjectFront.size(), bucket.size()) != bucket) {
    return std::nullopt;
  }
  return subject.substr(front + 1);
}

bool is_key(std::string_view key) noexcept {
  return !key.empty() && key.front() != '.' && key.back() != '.' && key.find("..") == std::string_view::npos &&
         std::all_of(key.begin(), key.end(), [](char c) { return is_bucket_byte(c) || c == '/' || c == '.'; });
}

KeyOperation read_key_operation(const HeadersView& headers) noexcept {
  const auto operation = headers.find(kKeyOperationHeader);
  const auto marker = headers.find(kMarkerReasonHeader);
  if (operation == "PURGE" || marker == "MaxAge" || marker == "Purge") {
    return KeyOperation::purge;
  }
  return operation == "DEL" || marker == "Remove" ? KeyOperation::erase : KeyOperation::put;
}

Result<void> add_key_operation(KeyOperation operation, Headers& headers) {
  switch (operation) {
    case KeyOperation::put: return {};
    case KeyOperation::erase: return headers.add(kKeyOperationHeader, "DEL");
    case KeyOperation::purge: return headers.add(kKeyOperationHeader, "PURGE");
  }
  return {};
}

}  // namespace weft::nats::jetstream
