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

}  // namespace

std::array<char, kDateSize> http_date(std::chrono::sys_seconds time) noexcept {
  using namespace std::chrono;  // NOLINT(google-build-using-namespace)
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss<seconds> clock(time - day);
  std::array<char, kDateSize> text;
  std::string_view("DDD, dd MMM yyyy hh:mm:ss GMT").copy(text.data(), text.size());
  put_name(text.data(), "SunMonTueWedThuFriSat", weekday(day).c_encoding());
  put_number(&text[5], static_cast<unsigned>(date.day()), 2);
  put_name(&text[8], "JanFebMarAprMayJunJulAugSepOctNovDec", static_cast<unsigned>(date.month()) - 1);
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
