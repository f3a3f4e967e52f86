// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"

namespace weft {

// The time of day of a kept message. The store has no clock: the hub passes the time.
using WallTime = std::chrono::sys_time<Duration>;

// The time to live of a message: it is readable for so long after it was stored.
inline constexpr Duration kTimeToLiveMin = std::chrono::seconds(1);
inline constexpr Duration kTimeToLiveMax = std::chrono::hours(100 * 365 * 24);
// The delay of a message: it is readable so long after its publish.
inline constexpr Duration kDelayMax = kTimeToLiveMax;

// The messages that a stream keeps.
enum class Keep : std::uint8_t {
  log,     // every message, in one order
  work,    // every message until a consumer has acknowledged it
  latest,  // the newest values of each topic
};

// The fault that loses no acknowledged message.
enum class Survives : std::uint8_t {
  nothing,  // in memory: the messages end with the process that hosts the stream
  process,  // the death of every process at once
  machine,  // the loss of any one machine
  power,    // the loss of power of all machines at once
};

// The answer to a message that exceeds the bounds of its stream.
enum class Discard : std::uint8_t {
  oldest,  // drop the oldest messages and count them; a topic that loses its newest value this way is erased
  refuse,  // fail with resource_exhausted
};
// The policy of a declaration that does not name one. A log promises its messages until a bound drops them; work and
// latest promise each message until it was acknowledged or replaced.
[[nodiscard]] constexpr Discard default_when_full(Keep keep) noexcept {
  return keep == Keep::log ? Discard::oldest : Discard::refuse;
}

[[nodiscard]] std::string_view name_of(Keep keep) noexcept;
[[nodiscard]] std::string_view name_of(Survives survives) noexcept;
[[nodiscard]] std::string_view name_of(Discard discard) noexcept;
// Fails with invalid_argument if there is no such name.
[[nodiscard]] Result<Keep> keep_of(std::string_view name) noexcept;
[[nodiscard]] Result<Survives> survives_of(std::string_view name) noexcept;
[[nodiscard]] Result<Discard> discard_of(std::string_view name) noexcept;

// StreamSettings: the messages that a stream keeps, and for how long.
struct StreamSettings {
  static constexpr std::uint32_t kHistoryMax = 64;
  static constexpr std::size_t kTopicsMax = 64;

  std::vector<std::string> topics{};  // filters of the topics that it takes; empty: every topic
  Keep keep = Keep::log;
  Survives survives = Survives::power;
  Duration age_max{0};                   // 0: any age
  std::uint64_t bytes_max = 1ULL << 30;  // of all its messages; at least 64 KiB
  Discard when_full = Discard::oldest;
  Duration same_id_window = std::chrono::minutes(2);  // 0: ids are not compared
  std::uint32_t history = 1;                          // latest: values that are kept of each topic

  friend bool operator==(const StreamSettings&, const StreamSettings&) = default;
};
[[nodiscard]] Result<void> check_settings(const StreamSettings& settings) noexcept;  // fails with invalid_argument

// From: the first message of a consumer or a reader.
struct From {
  enum class Kind : std::uint8_t {
    first,           // the oldest one that is kept
    last,            // the newest one that is kept, then the new ones
    next,            // those that arrive after the opening
    sequence,        // `value`
    time,            // the first one at or after `value` ns since 1970
    last_per_topic,  // the newest of every topic, then the new ones
  };
  Kind kind = Kind::first;
  std::uint64_t value = 0;

  static From first() noexcept { return {}; }
  static From last() noexcept { return {Kind::last}; }
  static From next() noexcept { return {Kind::next}; }
  static From sequence(std::uint64_t sequence) noexcept { return {Kind::sequence, sequence}; }
  static From time(WallTime time) noexcept {
    return {Kind::time, static_cast<std::uint64_t>(time.time_since_epoch().count())};
  }
  static From last_per_topic() noexcept { return {Kind::last_per_topic}; }

  friend bool operator==(const From&, const From&) = default;
};
[[nodiscard]] std::string_view name_of(From::Kind kind) noexcept;
[[nodiscard]] Result<From::Kind> from_of(std::string_view name) noexcept;  // fails with invalid_argument

// ConsumerSettings: how a consumer, whose members share its messages, receives them.
struct ConsumerSettings {
  static constexpr std::uint32_t kUnackedMax = 65'536;
  static constexpr std::size_t kRetryWaitsMax = 32;

  std::string filter{};  // of topics; empty: every topic of the stream
  From from{};
  std::uint32_t unacked_max = 1000;              // delivered and not acknowledged; the delivery stops at this number
  Duration ack_wait = std::chrono::seconds(30);  // from the begin of a delivery to the next one of the same message
  std::uint32_t tries_max = 0;                   // begun deliveries of one message; 0: any number
  std::vector<Duration> retry_waits{};           // after each refused delivery; the last one holds for all others
  std::string dead_letters{};                    // the topic for messages beyond tries_max; empty: the hub drops them

  friend bool operator==(const ConsumerSettings&, const ConsumerSettings&) = default;
};
[[nodiscard]] Result<void> check_settings(const ConsumerSettings& settings) noexcept;  // fails with invalid_argument

// The settings as lines `name=value`, for the database and the wire. The parser takes the writer's output, in any
// order; a setting whose name is missing keeps its default. Errors: invalid_argument (an unknown name or a malformed
// value, which `text` names).
[[nodiscard]] std::string write_settings(const StreamSettings& settings);
[[nodiscard]] std::string write_settings(const ConsumerSettings& settings);
[[nodiscard]] Result<StreamSettings> parse_stream_settings(std::string_view text);
[[nodiscard]] Result<ConsumerSettings> parse_consumer_settings(std::string_view text);

}  // namespace weft
