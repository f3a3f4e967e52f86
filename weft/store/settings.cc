// SPDX-License-Identifier: MIT
#include "weft/store/settings.h"

#include <array>
#include <charconv>
#include <limits>
#include <span>

namespace weft {
namespace {

constexpr std::array<std::string_view, 3> kKeepNames{"log", "work", "latest"};
constexpr std::array<std::string_view, 4> kSurvivesNames{"nothing", "process", "machine", "power"};
constexpr std::array<std::string_view, 2> kDiscardNames{"oldest", "refuse"};
constexpr std::array<std::string_view, 6> kFromNames{"first", "last", "next", "sequence", "time", "last_per_topic"};

constexpr std::size_t kNameMax = 255;
constexpr std::uint64_t kBytesMin = 64 * 1024;
constexpr Duration kWaitMax = std::chrono::hours(24 * 365);
constexpr Duration kAckWaitMin = std::chrono::milliseconds(1);

template <typename Enum>
std::string_view name_in(std::span<const std::string_view> names, Enum value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < names.size() ? names[index] : "unknown";
}

template <typename Enum>
Result<Enum> value_in(std::span<const std::string_view> names, std::string_view name, StaticText what) noexcept {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) {
      return static_cast<Enum>(i);
    }
  }
  return Error(Errc::invalid_argument, what);
}

template <typename Number>
Result<Number> number_of(std::string_view text) noexcept {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return Error(Errc::invalid_argument, "a setting that is no number");
  }
  return value;
}

Result<Duration> duration_of(std::string_view text) noexcept {
  return Duration(WEFT_TRY(number_of<Duration::rep>(text)));
}

void add_line(std::string& text, std::string_view name, std::string_view value) {
  text.append(name).append("=").append(value).append("\n");
}
void add_line(std::string& text, std::string_view name, std::uint64_t value) {
  add_line(text, name, std::to_string(value));
}
void add_line(std::string& text, std::string_view name, Duration value) {
  add_line(text, name, std::to_string(value.count()));
}

// Calls `take(name, value)` for each line.
template <typename Take>
Result<void> for_each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) {
      continue;
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      return Error(Errc::invalid_argument, "a line of settings without `=`");
    }
    WEFT_TRY(take(line.substr(0, equals), line.substr(equals + 1)));
  }
  return {};
}

Result<void> check_text(std::string_view text, StaticText what) noexcept {
  if (text.size() > kNameMax || text.find_first_of(std::string_view("\n\0", 2)) != std::string_view::npos) {
    return Error(Errc::invalid_argument, what);
  }
  return {};
}

Result<void> take_stream_setting(StreamSettings& settings, std::string_view name, std::string_view value) {
  if (name == "topic") {
    if (settings.topics.size() == StreamSettings::kTopicsMax) {
      return Error(Errc::invalid_argument, "more than 64 filters of a stream");
    }
    settings.topics.emplace_back(value);
  } else if (name == "keep") {
    settings.keep = WEFT_TRY(keep_of(value));
  } else if (name == "survives") {
    settings.survives = WEFT_TRY(survives_of(value));
  } else if (name == "age_max") {
    settings.age_max = WEFT_TRY(duration_of(value));
  } else if (name == "bytes_max") {
    settings.bytes_max = WEFT_TRY(number_of<std::uint64_t>(value));
  } else if (name == "when_full") {
    settings.when_full = WEFT_TRY(discard_of(value));
  } else if (name == "same_id_window") {
    settings.same_id_window = WEFT_TRY(duration_of(value));
  } else if (name == "history") {
    settings.history = WEFT_TRY(number_of<std::uint32_t>(value));
  } else {
    return Error(Errc::invalid_argument, "an unknown setting of a stream");
  }
  return {};
}

Result<void> take_consumer_setting(ConsumerSettings& settings, std::string_view name, std::string_view value) {
  if (name == "filter") {
    settings.filter = value;
  } else if (name == "from") {
    settings.from.kind = WEFT_TRY(from_of(value));
  } else if (name == "from_value") {
    settings.from.value = WEFT_TRY(number_of<std::uint64_t>(value));
  } else if (name == "unacked_max") {
    settings.unacked_max = WEFT_TRY(number_of<std::uint32_t>(value));
  } else if (name == "ack_wait") {
    settings.ack_wait = WEFT_TRY(duration_of(value));
  } else if (name == "tries_max") {
    settings.tries_max = WEFT_TRY(number_of<std::uint32_t>(value));
  } else if (name == "retry_wait") {
    if (settings.retry_waits.size() == ConsumerSettings::kRetryWaitsMax) {
      return Error(Errc::invalid_argument, "more than 32 waits of a consumer");
    }
    settings.retry_waits.push_back(WEFT_TRY(duration_of(value)));
  } else if (name == "dead_letters") {
    settings.dead_letters = value;
  } else {
    return Error(Errc::invalid_argument, "an unknown setting of a consumer");
  }
  return {};
}

}  // namespace

std::string_view name_of(Keep keep) noexcept { return name_in(kKeepNames, keep); }
std::string_view name_of(Survives survives) noexcept { return name_in(kSurvivesNames, survives); }
std::string_view name_of(Discard discard) noexcept { return name_in(kDiscardNames, discard); }
std::string_view name_of(From::Kind kind) noexcept { return name_in(kFromNames, kind); }

Result<Keep> keep_of(std::string_view name) noexcept {
  return value_in<Keep>(kKeepNames, name, "keep: log, work or latest");
}
Result<Survives> survives_of(std::string_view name) noexcept {
  return value_in<Survives>(kSurvivesNames, name, "survives: nothing, process, machine or power");
}
Result<Discard> discard_of(std::string_view name) noexcept {
  return value_in<Discard>(kDiscardNames, name, "when_full: oldest or refuse");
}
Result<From::Kind> from_of(std::string_view name) noexcept {
  return value_in<From::Kind>(kFromNames, name, "from: first, last, next, sequence, time or last_per_topic");
}

Result<void> check_settings(const StreamSettings& settings) noexcept {
  if (settings.keep > Keep::latest || settings.survives > Survives::power || settings.when_full > Discard::refuse) {
    return Error(Errc::invalid_argument, "a setting of a stream outside its values");
  }
  if (settings.topics.size() > StreamSettings::kTopicsMax) {
    return Error(Errc::invalid_argument, "more than 64 filters of a stream");
  }
  for (const std::string& topic : settings.topics) {
    WEFT_TRY(check_text(topic, "a filter beyond 255 bytes"));
    if (topic.empty()) {
      return Error(Errc::invalid_argument, "an empty filter of a stream");
    }
  }
  if (settings.bytes_max < kBytesMin || settings.bytes_max > std::numeric_limits<std::int64_t>::max()) {
    return Error(Errc::invalid_argument, "bytes_max: at least 64 KiB");
  }
  if (settings.age_max < Duration::zero() || settings.age_max > 100 * kWaitMax ||
      settings.same_id_window < Duration::zero() || settings.same_id_window > kWaitMax) {
    return Error(Errc::invalid_argument, "a time of a stream outside its range");
  }
  if (settings.history == 0 || settings.history > StreamSettings::kHistoryMax) {
    return Error(Errc::invalid_argument, "history: 1 to 64");
  }
  if (settings.history != 1 && settings.keep != Keep::latest) {
    return Error(Errc::invalid_argument, "history: only of a stream that keeps the latest");
  }
  return {};
}

Result<void> check_settings(const ConsumerSettings& settings) noexcept {
  WEFT_TRY(check_text(settings.filter, "a filter beyond 255 bytes"));
  WEFT_TRY(check_text(settings.dead_letters, "a topic beyond 255 bytes"));
  if (settings.from.kind > From::Kind::last_per_topic) {
    return Error(Errc::invalid_argument, "from: an unknown kind");
  }
  if (settings.unacked_max == 0 || settings.unacked_max > ConsumerSettings::kUnackedMax) {
    return Error(Errc::invalid_argument, "unacked_max: 1 to 65,536");
  }
  if (settings.ack_wait < kAckWaitMin || settings.ack_wait > kWaitMax) {
    return Error(Errc::invalid_argument, "ack_wait: a millisecond to a year");
  }
  if (settings.retry_waits.size() > ConsumerSettings::kRetryWaitsMax) {
    return Error(Errc::invalid_argument, "more than 32 waits of a consumer");
  }
  for (const Duration wait : settings.retry_waits) {
    if (wait < Duration::zero() || wait > kWaitMax) {
      return Error(Errc::invalid_argument, "retry_waits: up to a year");
    }
  }
  if (!settings.dead_letters.empty() && settings.tries_max == 0) {
    return Error(Errc::invalid_argument, "dead_letters needs tries_max");
  }
  return {};
}

std::string write_settings(const StreamSettings& settings) {
  std::string text;
  for (const std::string& topic : settings.topics) {
    add_line(text, "topic", topic);
  }
  add_line(text, "keep", name_of(settings.keep));
  add_line(text, "survives", name_of(settings.survives));
  add_line(text, "age_max", settings.age_max);
  add_line(text, "bytes_max", settings.bytes_max);
  add_line(text, "when_full", name_of(settings.when_full));
  add_line(text, "same_id_window", settings.same_id_window);
  add_line(text, "history", settings.history);
  return text;
}

std::string write_settings(const ConsumerSettings& settings) {
  std::string text;
  add_line(text, "filter", settings.filter);
  add_line(text, "from", name_of(settings.from.kind));
  add_line(text, "from_value", settings.from.value);
  add_line(text, "unacked_max", settings.unacked_max);
  add_line(text, "ack_wait", settings.ack_wait);
  add_line(text, "tries_max", settings.tries_max);
  for (const Duration wait : settings.retry_waits) {
    add_line(text, "retry_wait", wait);
  }
  add_line(text, "dead_letters", settings.dead_letters);
  return text;
}

Result<StreamSettings> parse_stream_settings(std::string_view text) {
  StreamSettings settings;
  WEFT_TRY(for_each_line(text, [&settings](std::string_view name, std::string_view value) {
    return take_stream_setting(settings, name, value);
  }));
  return settings;
}

Result<ConsumerSettings> parse_consumer_settings(std::string_view text) {
  ConsumerSettings settings;
  WEFT_TRY(for_each_line(text, [&settings](std::string_view name, std::string_view value) {
    return take_consumer_setting(settings, name, value);
  }));
  return settings;
}

}  // namespace weft
