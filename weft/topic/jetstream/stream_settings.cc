// SPDX-License-Identifier: MIT
#include "weft/topic/jetstream/stream_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "weft/nats/jetstream/key_value.h"
#include "weft/nats/jetstream/names.h"

namespace weft::topic {

namespace {

namespace js = nats::jetstream;

constexpr std::uint32_t kCopiesOfMachine = 3;
constexpr Duration kIdWindowMin = std::chrono::milliseconds(100);  // of a server
// A server forgets a reader that has no request for messages for so long.
constexpr Duration kReaderInactive = std::chrono::minutes(2);
// The erasure that watches get at the end of a value.
constexpr Duration kErasureLives = std::chrono::minutes(10);
// The description of a consumer has the settings that a server does not have.
constexpr std::string_view kRetryWaits = "weft retry_waits=";

Result<void> check_kept(const StreamNames& names, const StreamSettings& settings) {
  if (settings.survives == Survives::power) {
    return Error(Errc::not_supported,
                 "servers of NATS acknowledge before the disk has it: name what the stream survives, process, or "
                 "machine with three servers");
  }
  if (settings.topics.empty()) {
    return Error(Errc::not_supported, "a stream on NATS names its topics: it cannot take every one");
  }
  if (settings.same_id_window < kIdWindowMin) {
    return Error(Errc::not_supported, "NATS always compares ids: same_id_window is 100 ms or more");
  }
  if (names.is_bucket() && (settings.keep != Keep::latest || settings.topics.size() != 1 ||
                            settings.topics.front() != names.wire() + ".>")) {
    return Error(Errc::not_supported, "on NATS a stream kv.NAME is the bucket NAME");
  }
  return {};
}

}  // namespace

namespace {

// The first three numbers of the text; 0: none.
std::array<unsigned, 3> numbers_of(std::string_view version) noexcept {
  std::array<unsigned, 3> numbers{};
  for (unsigned& number : numbers) {
    (void)std::from_chars(version.data(), version.data() + version.size(), number);
    version.remove_prefix(std::min(version.find('.'), version.size()));
    version.remove_prefix(version.empty() ? 0 : 1);
  }
  return numbers;
}

}  // namespace

bool ends_messages(std::string_view version) noexcept {
  return numbers_of(version) >= std::array<unsigned, 3>{2, 11, 3};
}
bool takes_batches(std::string_view version) noexcept {
  return numbers_of(version) >= std::array<unsigned, 3>{2, 12, 0};
}
bool takes_priorities(std::string_view version) noexcept {
  return numbers_of(version) >= std::array<unsigned, 3>{2, 12, 0};
}

Result<js::StreamConfig> stream_config(const StreamNames& names, const StreamSettings& settings) {
  WEFT_TRY(check_settings(settings));
  WEFT_TRY(check_kept(names, settings));
  js::StreamConfig config;
  if (names.is_bucket()) {
    js::BucketConfig bucket;
    bucket.bucket = names.bucket();
    bucket.history = settings.history;
    config = WEFT_TRY(js::bucket_stream(bucket));
  } else {
    config.name = names.stream();
    for (const std::string& topic : settings.topics) {
      std::string subject;
      WEFT_TRY(names.append_filter(topic, subject));
      config.subjects.push_back(std::move(subject));
    }
    config.allow_direct = settings.keep == Keep::latest;
    config.messages_per_subject_max = settings.keep == Keep::latest ? static_cast<std::int64_t>(settings.history) : -1;
  }
  config.retention = settings.keep == Keep::work ? js::Retention::work_queue : js::Retention::limits;
  config.storage = settings.survives == Survives::nothing ? js::Storage::memory : js::Storage::file;
  config.replicas = settings.survives == Survives::machine ? kCopiesOfMachine : 1;
  config.age_max = settings.age_max;
  config.bytes_max = static_cast<std::int64_t>(settings.bytes_max);
  config.discard = settings.when_full == Discard::oldest ? js::DiscardPolicy::oldest : js::DiscardPolicy::refuse;
  // After the end of a newer value of a topic an older one would come back: a topic has one value.
  if (settings.history == 1) {
    config.allow_message_ttl = true;
    config.subject_delete_marker_ttl = settings.keep == Keep::latest ? kErasureLives : Duration::zero();
    config.allow_rollup = config.allow_rollup || settings.keep == Keep::latest;  // markers need it
  }
  // A server refuses a window beyond the age: the messages have gone by then.
  config.duplicate_window = settings.age_max == Duration::zero() ? settings.same_id_window
                                                                 : std::min(settings.same_id_window, settings.age_max);
  return config;
}

StreamSettings settings_of(const StreamNames& names, const js::StreamConfig& config) {
  StreamSettings settings;
  for (const std::string& subject : config.subjects) {
    settings.topics.push_back(names.filter_of(subject));
  }
  settings.keep = config.retention == js::Retention::work_queue ? Keep::work
                  : config.messages_per_subject_max > 0         ? Keep::latest
                                                                : Keep::log;
  settings.survives = config.storage == js::Storage::memory ? Survives::nothing
                      : config.replicas >= kCopiesOfMachine ? Survives::machine
                                                            : Survives::process;
  settings.age_max = config.age_max;
  settings.bytes_max =
      static_cast<std::uint64_t>(config.bytes_max > 0 ? config.bytes_max : std::numeric_limits<std::int64_t>::max());
  settings.when_full = config.discard == js::DiscardPolicy::oldest ? Discard::oldest : Discard::refuse;
  settings.same_id_window = config.duplicate_window;
  if (settings.keep == Keep::latest) {
    settings.history = static_cast<std::uint32_t>(
        std::min<std::int64_t>(config.messages_per_subject_max, StreamSettings::kHistoryMax));
  }
  return settings;
}

bool same_stream(const StreamNames& names, const js::StreamConfig& a, const js::StreamConfig& b) {
  StreamSettings of_a = settings_of(names, a);
  StreamSettings of_b = settings_of(names, b);
  std::sort(of_a.topics.begin(), of_a.topics.end());
  std::sort(of_b.topics.begin(), of_b.topics.end());
  return of_a == of_b;
}

namespace {

Result<void> set_from(const From& from, js::ConsumerConfig& config) {
  switch (from.kind) {
    case From::Kind::first: config.deliver = js::Deliver::all; return {};
    case From::Kind::last: config.deliver = js::Deliver::last; return {};
    case From::Kind::next: config.deliver = js::Deliver::fresh; return {};
    case From::Kind::sequence:
      config.deliver = js::Deliver::by_start_sequence;
      config.start_sequence = std::max<std::uint64_t>(from.value, 1);
      return {};
    case From::Kind::time:
      config.deliver = js::Deliver::by_start_time;
      config.start_time = js::WallTime(Duration(
          static_cast<Duration::rep>(std::min<std::uint64_t>(from.value, std::numeric_limits<Duration::rep>::max()))));
      return {};
    case From::Kind::last_per_topic: config.deliver = js::Deliver::last_per_subject; return {};
  }
  return Error(Errc::invalid_argument, "from: an unknown kind");
}

Result<void> set_filter(const StreamNames& names, std::string_view filter, js::ConsumerConfig& config) {
  std::string subject;
  WEFT_TRY(names.append_filter(filter, subject));
  if (subject.empty() && config.deliver == js::Deliver::last_per_subject) {
    subject = ">";  // a server needs a filter for that
  }
  if (!subject.empty()) {
    config.filters.push_back(std::move(subject));
  }
  return {};
}

}  // namespace

Result<js::ConsumerConfig> consumer_config(const StreamNames& names, std::string_view consumer,
                                           const ConsumerSettings& settings) {
  WEFT_TRY(check_settings(settings));
  if (settings.tries_max != 0) {
    return Error(Errc::not_supported,
                 "tries_max and dead_letters on NATS: a server counts deliveries that no program saw");
  }
  if (settings.from.kind == From::Kind::last_per_topic) {
    return Error(Errc::not_supported, "a consumer from the newest of each topic: only a reader does so");
  }
  js::ConsumerConfig config;
  WEFT_TRY(js::append_name(consumer, config.name));
  config.durable = true;
  WEFT_TRY(set_from(settings.from, config));
  WEFT_TRY(set_filter(names, settings.filter, config));
  config.ack_wait = settings.ack_wait;
  config.ack_pending_max = settings.unacked_max;
  if (!settings.retry_waits.empty()) {
    config.description = kRetryWaits;
    for (const Duration wait : settings.retry_waits) {
      config.description.append(std::to_string(wait.count())).append(",");
    }
  }
  return config;
}

ConsumerSettings settings_of(const StreamNames& names, const js::ConsumerConfig& config) {
  ConsumerSettings settings;
  if (!config.filters.empty()) {
    settings.filter = names.filter_of(config.filters.front());
  }
  const auto ns = std::max<Duration::rep>(0, config.start_time.time_since_epoch().count());
  switch (config.deliver) {
    case js::Deliver::last: settings.from = From::last(); break;
    case js::Deliver::fresh: settings.from = From::next(); break;
    case js::Deliver::by_start_sequence: settings.from = From::sequence(config.start_sequence); break;
    case js::Deliver::by_start_time: settings.from = {From::Kind::time, static_cast<std::uint64_t>(ns)}; break;
    case js::Deliver::last_per_subject: settings.from = From::last_per_topic(); break;
    case js::Deliver::all:
    case js::Deliver::other: break;
  }
  if (config.ack_wait > Duration::zero()) {
    settings.ack_wait = config.ack_wait;
  }
  if (config.ack_pending_max != 0) {
    settings.unacked_max = config.ack_pending_max < 0 || config.ack_pending_max > ConsumerSettings::kUnackedMax
                               ? ConsumerSettings::kUnackedMax
                               : static_cast<std::uint32_t>(config.ack_pending_max);
  }
  std::string_view waits = config.description;
  if (waits.starts_with(kRetryWaits)) {
    waits.remove_prefix(kRetryWaits.size());
    while (!waits.empty() && settings.retry_waits.size() < ConsumerSettings::kRetryWaitsMax) {
      const std::string_view wait = waits.substr(0, waits.find(','));
      std::int64_t count = 0;
      (void)std::from_chars(wait.data(), wait.data() + wait.size(), count);
      settings.retry_waits.emplace_back(std::max<std::int64_t>(count, 0));
      waits.remove_prefix(std::min(waits.size(), wait.size() + 1));
    }
  }
  return settings;
}

bool same_consumer(const js::ConsumerConfig& a, const js::ConsumerConfig& b) {
  const auto wait = [](const js::ConsumerConfig& of) {
    return of.ack_wait == Duration::zero() ? Duration(std::chrono::seconds(30)) : of.ack_wait;
  };
  const auto pending = [](const js::ConsumerConfig& of) { return of.ack_pending_max == 0 ? 1000 : of.ack_pending_max; };
  return a.deliver == b.deliver && a.start_sequence == b.start_sequence && a.start_time == b.start_time &&
         a.filters == b.filters && a.ack_policy == b.ack_policy && wait(a) == wait(b) && pending(a) == pending(b) &&
         a.deliver_max == b.deliver_max && a.backoff == b.backoff && a.description == b.description;
}

Result<js::ConsumerConfig> reader_config(const StreamNames& names, const From& from, std::string_view filter) {
  js::ConsumerConfig config;
  WEFT_TRY(set_from(from, config));
  WEFT_TRY(set_filter(names, filter, config));
  config.ack_policy = js::AckPolicy::none;
  config.memory_storage = true;
  config.replicas = 1;
  config.inactive_threshold = kReaderInactive;
  return config;
}

}  // namespace weft::topic
