// SPDX-License-Identifier: MIT
#include "weft/topic/jetstream/stream_names.h"

#include "weft/base/filter.h"
#include "weft/nats/jetstream/key_value.h"
#include "weft/nats/jetstream/names.h"
#include "weft/nats/protocol/escape.h"
#include "weft/topic/gate/gate.h"

namespace weft::topic {

namespace {

namespace js = nats::jetstream;

constexpr Error kNotOfBucket(Errc::invalid_argument, "the topic is not one of the bucket");

// "NAME" of "kv.NAME", "prod.NAME" of "prod.kv.NAME"; empty: the stream is not a bucket.
std::string bucket_text(std::string_view wire) {
  if (wire.starts_with("kv.")) {
    wire.remove_prefix(3);
    return wire.find('.') == std::string_view::npos ? std::string(wire) : std::string();
  }
  const std::size_t dot = wire.find('.');
  const std::string_view rest = dot == std::string_view::npos ? std::string_view() : wire.substr(dot + 1);
  if (!rest.starts_with("kv.") || rest.find('.', 3) != std::string_view::npos) {
    return {};
  }
  return std::string(wire.substr(0, dot + 1)).append(rest.substr(3));
}

std::string unescape(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int byte = nats::escaped_byte(text, i);
    plain += byte < 0 ? text[i] : static_cast<char>(byte);
    i += byte < 0 ? 0 : nats::kEscapeSize - 1;
  }
  return plain;
}

}  // namespace

Result<StreamNames> StreamNames::of(std::string_view wire) {
  StreamNames names;
  names.wire_ = wire;
  if (const std::string bucket = bucket_text(wire); !bucket.empty()) {
    WEFT_TRY(js::append_name(bucket, names.bucket_));
    names.stream_ = std::string(js::kBucketStreamPrefix) + names.bucket_;
    return names;
  }
  WEFT_TRY(js::append_name(wire, names.stream_));
  if (names.stream_.starts_with(js::kBucketStreamPrefix)) {
    return Error(Errc::invalid_argument, "a stream whose name begins with KV_ is a bucket on NATS");
  }
  return names;
}

Result<std::string> StreamNames::wire_of(std::string_view stream) {
  std::string text;
  if (const auto bucket = js::bucket_of_stream(stream)) {
    WEFT_TRY(js::append_text_of_name(*bucket, text));
    const std::size_t dot = text.find('.');
    text.insert(dot == std::string::npos ? 0 : dot + 1, "kv.");
  } else {
    WEFT_TRY(js::append_text_of_name(stream, text));
  }
  WEFT_TRY(check_topic(text));
  const auto back = WEFT_TRY(of(text));
  if (back.stream() != stream) {
    return Error(Errc::invalid_argument, "not the name of a stream of topics");
  }
  return text;
}

Result<void> StreamNames::append_subject(std::string_view topic, std::string& out) const {
  if (!is_bucket()) {
    return Gate::names().append_subject(topic, out);
  }
  // The keys of a bucket have their escapes already, those of append_key().
  if (topic.size() <= wire_.size() + 1 || !topic.starts_with(wire_) || topic[wire_.size()] != '.' ||
      !js::is_key(topic.substr(wire_.size() + 1))) {
    return kNotOfBucket;
  }
  js::append_key_subject(bucket_, topic.substr(wire_.size() + 1), out);
  return {};
}

Result<void> StreamNames::append_filter(std::string_view filter, std::string& out) const {
  if (filter.empty()) {
    if (is_bucket()) {
      js::append_key_subject(bucket_, ">", out);
    }
    return {};
  }
  const Filter parsed = WEFT_TRY(Filter::parse(filter));
  if (!is_bucket()) {
    return Gate::names().append_filter(parsed, out);
  }
  if (filter.size() <= wire_.size() + 1 || !filter.starts_with(wire_) || filter[wire_.size()] != '.') {
    return kNotOfBucket;
  }
  js::append_key_subject(bucket_, filter.substr(wire_.size() + 1), out);
  return {};
}

void StreamNames::append_topic(std::string_view subject, std::string& out) const {
  if (is_bucket()) {
    if (const auto key = js::key_of_subject(bucket_, subject)) {
      out.append(wire_).append(".").append(*key);
      return;
    }
  }
  if (is_bucket() || !Gate::names().append_topic(subject, out)) {
    out.append(subject);
  }
}

std::string StreamNames::filter_of(std::string_view subject) const {
  if (is_bucket()) {
    std::string text;
    append_topic(subject, text);
    return text;
  }
  return unescape(subject);
}

}  // namespace weft::topic
