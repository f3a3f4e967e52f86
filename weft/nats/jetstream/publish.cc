// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/publish.h"

#include <algorithm>
#include <string>

#include "weft/nats/jetstream/json_fields.h"
#include "weft/nats/jetstream/names.h"
#include "weft/nats/jetstream/number_text.h"

namespace weft::nats::jetstream {

namespace {

[[nodiscard]] bool take(std::string_view& text, std::string_view front) noexcept {
  const bool there = text.starts_with(front);
  text.remove_prefix(there ? front.size() : 0);
  return there;
}

// The forms that servers write: {"stream":"S","seq":1}, older ones with a blank before "seq", and perhaps
// `,"duplicate": true` at the end. The general reader takes six times as long (0.8 us).
[[nodiscard]] bool read_usual_ack(std::string_view json, PublishAck& ack) {
  if (!take(json, R"({"stream":")")) {
    return false;
  }
  const std::string_view name = json.substr(0, json.find('"'));
  if (!is_name(name)) {  // so it has no escape
    return false;
  }
  json.remove_prefix(name.size());
  if (!take(json, R"(","seq":)") && !take(json, R"(", "seq":)")) {
    return false;
  }
  const std::size_t digits = std::min(json.find_first_not_of("0123456789"), json.size());
  const auto sequence = read_number(json.substr(0, digits));
  if (!sequence || json.front() == '0') {
    return false;
  }
  json.remove_prefix(digits);
  const bool duplicate = take(json, R"(,"duplicate": true)");
  if (json != "}") {
    return false;
  }
  ack.stream = name;
  ack.sequence = *sequence;
  ack.duplicate = duplicate;
  return true;
}

}  // namespace

Result<void> PublishHeaders::add_to(Headers& headers) const {
  const auto add_text = [&headers](std::string_view name, std::string_view value) -> Result<void> {
    return value.empty() ? Result<void>() : headers.add(name, value);
  };
  const auto add_number = [&headers](std::string_view name, const std::optional<std::uint64_t>& value) -> Result<void> {
    return value ? headers.add(name, std::to_string(*value)) : Result<void>();
  };
  if (ttl < Duration::zero()) {
    return Error(Errc::invalid_argument, "a time to live is not negative");
  }
  WEFT_TRY(add_text(kMessageIdHeader, message_id));
  WEFT_TRY(add_text(kExpectedStreamHeader, expected_stream));
  WEFT_TRY(add_number(kExpectedLastSequenceHeader, expected_last_sequence));
  WEFT_TRY(add_number(kExpectedLastSubjectSequenceHeader, expected_last_subject_sequence));
  WEFT_TRY(add_text(kExpectedLastMessageIdHeader, expected_last_message_id));
  if (ttl == kForever) {
    WEFT_TRY(headers.add(kTtlHeader, "never"));
  } else if (ttl != Duration::zero()) {
    WEFT_TRY(headers.add(kTtlHeader, std::to_string(std::chrono::ceil<std::chrono::seconds>(ttl).count()) + 's'));
  }
  WEFT_TRY(add_text(kRollupHeader, rollup == Rollup::subject ? "sub" : rollup == Rollup::all ? "all" : ""));
  if (schedule_at) {
    std::string schedule = "@at ";
    append_wall_time(*schedule_at, schedule);
    WEFT_TRY(headers.add(kScheduleHeader, schedule));
    WEFT_TRY(headers.add(kScheduleTargetHeader, schedule_target));
  }
  if (!batch.empty()) {
    WEFT_TRY(headers.add(kBatchHeader, batch));
    WEFT_TRY(headers.add(kBatchSequenceHeader, std::to_string(batch_sequence)));
    WEFT_TRY(add_text(kBatchEndsHeader, batch_ends ? "1" : ""));
  }
  return {};
}

Result<Reply<PublishAck>> read_publish_ack(std::string_view json) {
  try {
    Reply<PublishAck> usual;
    if (read_usual_ack(json, usual.value)) {
      return Result<Reply<PublishAck>>(std::in_place, std::move(usual));
    }
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory to read an answer of JetStream");
  }
  return read_reply<PublishAck>(
      json,
      [](JsonFields& fields, PublishAck& ack) {
        fields.add("", "stream", ack.stream);
        fields.add("", "seq", ack.sequence);
        fields.add("", "duplicate", ack.duplicate);
        fields.add("", "domain", ack.domain);
        fields.add("", "batch", ack.batch);
        fields.add("", "count", ack.batch_size);
      },
      [](PublishAck& ack) { return is_name(ack.stream) && ack.sequence != 0; });
}

std::optional<std::uint64_t> actual_last_sequence(const ApiError& failure) noexcept {
  std::string_view text = failure.description;
  if (failure.number != kWrongLastSequence || !take(text, "wrong last sequence: ")) {
    return std::nullopt;
  }
  return read_number(text);
}

}  // namespace weft::nats::jetstream
