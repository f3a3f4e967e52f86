// SPDX-License-Identifier: MIT
#include "weft/serve/web/date.h"

#include "weft/sys/clock.h"

namespace weft::serve::web {

namespace {

// Writes `count` digits.
void put_number(char* at, unsigned number, int count) noexcept {
  while (--count >= 0) {
    at[count] = static_cast<char>('0' + number % 10);
    number /= 10;
  }
}
void put_name(char* at, std::string_view names, unsigned index) noexcept {
  names.substr(3 * std::size_t{index}).copy(at, 3);
}

constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";

// Takes the parts of a date off a text. After a part that is not there, `ok` is false.
struct DateText {
  std::string_view rest;
  bool ok = true;

  void take(std::string_view literal) noexcept {
    ok = ok && rest.starts_with(literal);
    rest.remove_prefix(ok ? literal.size() : 0);
  }
  // A number of exactly `digits` digits; a space may stand for the first one.
  int number(std::size_t digits, bool space = false) noexcept {
    int value = 0;
    for (std::size_t i = 0; ok && i < digits; ++i) {
      const char c = rest.size() > i ? rest[i] : 'x';
      const bool blank = space && i == 0 && c == ' ';
      ok = blank || (c >= '0' && c <= '9');
      value = value * 10 + (blank ? 0 : c - '0');
    }
    rest.remove_prefix(ok ? digits : 0);
    return value;
  }
  // The index of the three letters in `names`.
  unsigned name(std::string_view names) noexcept {
    const std::size_t at = rest.size() < 3 ? std::string_view::npos : names.find(rest.substr(0, 3));
    ok = ok && at != std::string_view::npos && at % 3 == 0;
    rest.remove_prefix(ok ? 3 : 0);
    return ok ? static_cast<unsigned>(at / 3) : 0;
  }
};

struct DateParts {
  int year = 0;
  unsigned month = 0;  // from 0
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;

  void take_clock(DateText& text) noexcept {
    hour = text.number(2);
    text.take(":");
    minute = text.number(2);
    text.take(":");
    second = text.number(2);
  }
};

// "Sun, 06 Nov 1994 08:49:37 GMT", and the obsolete "Sunday, 06-Nov-94 08:49:37 GMT" and "Sun Nov  6 08:49:37 1994".
DateParts take_date(DateText& text, int year_now) noexcept {
  DateParts parts;
  (void)text.name(kDays);
  if (text.rest.starts_with(' ')) {
    text.take(" ");
    parts.month = text.name(kMonths);
    text.take(" ");
    parts.day = text.number(2, true);
    text.take(" ");
    parts.take_clock(text);
    text.take(" ");
    parts.year = text.number(4);
    return parts;
  }
  const std::size_t comma = text.rest.find(", ");
  const bool old = comma != 0;  // the name of the day is whole
  text.ok = text.ok && comma <= 6;
  text.rest.remove_prefix(text.ok ? comma : 0);
  text.take(", ");
  const std::string_view between = old ? "-" : " ";
  parts.day = text.number(2);
  text.take(between);
  parts.month = text.name(kMonths);
  text.take(between);
  parts.year = text.number(old ? 2 : 4);
  if (old) {
    parts.year += year_now / 100 * 100;
    parts.year -= parts.year > year_now + 50 ? 100 : 0;
  }
  text.take(" ");
  parts.take_clock(text);
  text.take(" GMT");
  return parts;
}

}  // namespace

std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text, std::chrono::sys_seconds now) noexcept {
  using namespace std::chrono;  // NOLINT(google-build-using-namespace)
  DateText date{text};
  const int year_now = static_cast<int>(year_month_day(floor<days>(now)).year());
  const DateParts parts = take_date(date, year_now);
  const year_month_day day(year(parts.year), month(parts.month + 1),
                           std::chrono::day(static_cast<unsigned>(parts.day)));
  if (!date.ok || !date.rest.empty() || !day.ok() || parts.hour > 23 || parts.minute > 59 || parts.second > 60) {
    return std::nullopt;
  }
  return sys_days(day) + hours(parts.hour) + minutes(parts.minute) + seconds(parts.second);
}

std::array<char, kDateSize> http_date(std::chrono::sys_seconds time) noexcept {
  using namespace std::chrono;  // NOLINT(google-build-using-namespace)
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss<seconds> clock(time - day);
  std::array<char, kDateSize> text;
  std::string_view("DDD, dd MMM yyyy hh:mm:ss GMT").copy(text.data(), text.size());
  put_name(text.data(), kDays, weekday(day).c_encoding());
  put_number(&text[5], static_cast<unsigned>(date.day()), 2);
  put_name(&text[8], kMonths, static_cast<unsigned>(date.month()) - 1);
  put_number(&text[12], static_cast<unsigned>(static_cast<int>(date.year())), 4);
  put_number(&text[17], static_cast<unsigned>(clock.hours().count()), 2);
  put_number(&text[20], static_cast<unsigned>(clock.minutes().count()), 2);
  put_number(&text[23], static_cast<unsigned>(clock.seconds().count()), 2);
  return text;
}

std::string_view DateClock::text(Instant now) noexcept {
  if (now >= fresh_until_) {
    const auto wall = sys::wall_now();
    const auto second = std::chrono::floor<std::chrono::seconds>(wall);
    text_ = http_date(second);
    fresh_until_ = now + (std::chrono::seconds(1) - (wall - second));
  }
  return {text_.data(), text_.size()};
}

}  // namespace weft::serve::web
