// SPDX-License-Identifier: MIT
#include "weft/serve/session/log.h"

#include <algorithm>
#include <charconv>

#include "weft/base/utf8.h"

namespace weft::serve {

namespace {

void append_number(std::string& out, std::uint64_t number, int base = 10, std::size_t width = 1) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, base).ptr;
  const auto size = static_cast<std::size_t>(end - digits);
  out.append(width - std::min(width, size), '0').append(digits, size);
}

void append_key(std::string& out, std::string_view key) {
  if (!out.empty() && out.back() != '\n') {
    out += ' ';
  }
  out.append(key) += '=';
}
void append_field(std::string& out, std::string_view key, std::string_view value) {
  append_key(out, key);
  append_log_value(value, out);
}
void append_field(std::string& out, std::string_view key, std::uint64_t value) {
  append_key(out, key);
  append_number(out, value);
}

// 2026-11-22T05:28:21.123456Z
void append_time(std::string& out, std::chrono::system_clock::time_point time) {
  using std::chrono::floor;
  const auto day = floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(floor<std::chrono::microseconds>(time - day));
  append_number(out, static_cast<std::uint64_t>(std::max(0, static_cast<int>(date.year()))), 10, 4);
  const auto part = [&out](char before, std::uint64_t value, std::size_t width) {
    out += before;
    append_number(out, value, 10, width);
  };
  part('-', static_cast<unsigned>(date.month()), 2);
  part('-', static_cast<unsigned>(date.day()), 2);
  part('T', static_cast<std::uint64_t>(clock.hours().count()), 2);
  part(':', static_cast<std::uint64_t>(clock.minutes().count()), 2);
  part(':', static_cast<std::uint64_t>(clock.seconds().count()), 2);
  part('.', static_cast<std::uint64_t>(clock.subseconds().count()), 6);
  out += 'Z';
}

void append_code_unit(std::string& out, std::uint32_t unit) {
  out += "\\u";
  append_number(out, unit, 16, 4);
}

// Appends the first character of the text, escaped where necessary. Returns the number of bytes read from the
// text.
std::size_t append_character(std::string_view text, std::string& out) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first >= ' ' && first <= '~') {
    if (first == '"' || first == '\\') {
      out += '\\';
    }
    out += text[0];
    return 1;
  }
  constexpr std::string_view kShort = "\n\r\t";
  if (const std::size_t which = kShort.find(text[0]); which != std::string_view::npos) {
    out += '\\';
    out += "nrt"[which];
    return 1;
  }
  const std::size_t size = utf8_size(text);
  if (size == 0) {
    append_code_unit(out, 0xFFFD);
    return 1;
  }
  const std::uint32_t code = utf8_decode(text.substr(0, size));
  if (code < 0x10000) {
    append_code_unit(out, code);
  } else {
    append_code_unit(out, 0xD800 + ((code - 0x10000) >> 10));
    append_code_unit(out, 0xDC00 + ((code - 0x10000) & 0x3FF));
  }
  return size;
}

bool is_word(std::string_view value) noexcept {
  return !value.empty() && std::all_of(value.begin(), value.end(),
                                       [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '=' && c != '\\'; });
}

}  // namespace

std::string_view describe(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
  }
  return "unknown";
}

std::string_view describe(LogEvent event) noexcept {
  switch (event) {
    case LogEvent::session_closed: return "session_closed";
    case LogEvent::connection_rejected: return "connection_rejected";
    case LogEvent::handler_threw: return "handler_threw";
    case LogEvent::core_stalled: return "core_stalled";
  }
  return "unknown";
}

LogLevel level_of(CloseReason reason) noexcept {
  switch (reason) {
    case CloseReason::peer_closed:
    case CloseReason::service:
    case CloseReason::server_stopped: return LogLevel::info;
    case CloseReason::out_of_memory:
    case CloseReason::service_failed: return LogLevel::error;
    default: return LogLevel::warning;
  }
}

void append_log_value(std::string_view value, std::string& out) {
  value = value.substr(0, kLogTextMax);
  if (is_word(value)) {
    out += value;
    return;
  }
  out += '"';
  while (!value.empty()) {
    value.remove_prefix(append_character(value, out));
  }
  out += '"';
}

void append_suppressed_line(std::chrono::system_clock::time_point time, std::uint64_t lines, std::string& out) {
  append_key(out, "time");
  append_time(out, time);
  append_field(out, "level", describe(LogLevel::warning));
  append_field(out, "event", "suppressed");
  append_field(out, "lines", lines);
  out += '\n';
}

void append_line(const LogRecord& record, std::string& out) {
  append_key(out, "time");
  append_time(out, record.time);
  append_field(out, "level", describe(record.level));
  append_field(out, "event", describe(record.event));
  append_field(out, "core", record.core);
  if (record.session) {
    append_key(out, "session");
    out += "0x";
    append_number(out, record.session.value, 16, 16);
  }
  append_field(out, "peer", record.peer);
  append_field(out, "reason", record.reason);
  if (!(record.error == Errc::ok)) {
    char text[kLogTextMax];
    append_field(out, "error", record.error.write_message(text));
  }
  if (record.event == LogEvent::handler_threw || record.event == LogEvent::core_stalled) {
    append_field(out, "what", record.what);
  }
  if (record.event == LogEvent::session_closed) {
    append_field(out, "age_ms",
                 static_cast<std::uint64_t>(
                     std::max<std::int64_t>(0, std::chrono::floor<std::chrono::milliseconds>(record.age).count())));
    append_field(out, "frames_in", record.counts.frames_in);
    append_field(out, "bytes_in", record.counts.bytes_in);
    append_field(out, "frames_out", record.counts.frames_out);
    append_field(out, "bytes_out", record.counts.bytes_out);
    append_field(out, "undelivered", record.undelivered);
  }
  out += '\n';
}

}  // namespace weft::serve
