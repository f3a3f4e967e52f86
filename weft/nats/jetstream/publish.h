// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/nats/jetstream/api.h"
#include "weft/nats/jetstream/wall_time.h"
#include "weft/nats/protocol/headers.h"

namespace weft::nats::jetstream {

inline constexpr std::string_view kMessageIdHeader = "Nats-Msg-Id";
inline constexpr std::string_view kExpectedStreamHeader = "Nats-Expected-Stream";
inline constexpr std::string_view kExpectedLastSequenceHeader = "Nats-Expected-Last-Sequence";
inline constexpr std::string_view kExpectedLastSubjectSequenceHeader = "Nats-Expected-Last-Subject-Sequence";
inline constexpr std::string_view kExpectedLastMessageIdHeader = "Nats-Expected-Last-Msg-Id";
inline constexpr std::string_view kTtlHeader = "Nats-TTL";
inline constexpr std::string_view kRollupHeader = "Nats-Rollup";
inline constexpr std::string_view kScheduleHeader = "Nats-Schedule";
inline constexpr std::string_view kScheduleTargetHeader = "Nats-Schedule-Target";
inline constexpr std::string_view kBatchHeader = "Nats-Batch-Id";
inline constexpr std::string_view kBatchSequenceHeader = "Nats-Batch-Sequence";
inline constexpr std::string_view kBatchEndsHeader = "Nats-Batch-Commit";

// PublishHeaders: the conditions and the orders of a message for its stream.
struct PublishHeaders {
  enum class Rollup : std::uint8_t { none, subject, all };  // deletes the older messages, of its subject or all

  std::string_view message_id{};  // of a duplicate within the stream's window the stream keeps the first
  std::string_view expected_stream{};
  std::optional<std::uint64_t> expected_last_sequence{};          // of the stream
  std::optional<std::uint64_t> expected_last_subject_sequence{};  // of the subject; 0: it has no message
  std::string_view expected_last_message_id{};
  // Since 2.11, of streams with allow_message_ttl. Whole seconds, rounded up. 0: the stream's age_max; kForever: never.
  Duration ttl{0};
  Rollup rollup = Rollup::none;
  // Since 2.12, of streams with allow_schedules: at this time the stream publishes the message to the target.
  std::optional<WallTime> schedule_at{};
  std::string_view schedule_target{};
  // Since 2.12, of streams with allow_atomic: a batch of messages, numbered from 1, is stored with its last one, or not
  // at all. Only the last one is acknowledged; the first one may be refused.
  std::string_view batch{};  // its id, at most 64 bytes
  std::uint64_t batch_sequence = 0;
  bool batch_ends = false;

  static constexpr Duration kForever = Duration::max();

  // Errors: those of Headers::add(), after which some lines may have been added; invalid_argument (a negative ttl).
  [[nodiscard]] Result<void> add_to(Headers& headers) const;
};

// PublishAck: the answer to a message that was published with a reply subject. Its stream has it, on a majority of its
// replicas.
struct PublishAck {
  std::string stream{};
  std::uint64_t sequence = 0;
  bool duplicate = false;  // the message of this id was stored before, under this sequence
  std::string domain{};
  std::string batch{};  // since 2.12, of the last message of a batch
  std::uint64_t batch_size = 0;
};
// The errors of the failure: conflict (kWrongLastSequence, kWrongLastMessageId, …), resource_exhausted
// (the stream is full), message_too_large, not_found. A message that no stream takes has the status 503 instead: the
// request fails with unreachable.
[[nodiscard]] Result<Reply<PublishAck>> read_publish_ack(std::string_view json);
// The sequence in the text of kWrongLastSequence: "wrong last sequence: 7".
[[nodiscard]] std::optional<std::uint64_t> actual_last_sequence(const ApiError& failure) noexcept;

}  // namespace weft::nats::jetstream
