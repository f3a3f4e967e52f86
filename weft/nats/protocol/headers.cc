// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/headers.h"

#include <algorithm>

#include "weft/nats/protocol/limits.h"

namespace weft::nats {

namespace {

constexpr std::string_view kVersion = "NATS/1.0";
constexpr std::string_view kEnd = "\r\n";

[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

[[nodiscard]] bool is_name_byte(char c) noexcept {
  return static_cast<unsigned char>(c) > 0x20 && c != ':' && c != '\x7F';
}

[[nodiscard]] bool is_value_byte(char c) noexcept { return c != '\r' && c != '\n' && c != '\0'; }

}  // namespace

std::string_view HeadersView::first_line() const noexcept {
  if (!block_.starts_with(kVersion)) {
    return {};
  }
  const std::string_view line = block_.substr(0, block_.find(kEnd));
  return trimmed(line.substr(kVersion.size()));
}

std::uint16_t HeadersView::status() const noexcept {
  const std::string_view line = first_line();
  if (line.size() < 3 || (line.size() > 3 && line[3] != ' ')) {
    return 0;
  }
  std::uint16_t status = 0;
  for (const char c : line.substr(0, 3)) {
    if (c < '0' || c > '9') {
      return 0;
    }
    status = static_cast<std::uint16_t>(status * 10 + (c - '0'));
  }
  return status;
}

std::string_view HeadersView::status_text() const noexcept {
  return status() == 0 ? std::string_view() : trimmed(first_line().substr(3));
}

std::string_view HeadersView::lines() const noexcept {
  const std::size_t end = block_.find(kEnd);
  return end == std::string_view::npos ? std::string_view() : block_.substr(end + kEnd.size());
}

bool HeadersView::next(std::string_view& rest, Field& field) noexcept {
  while (!rest.empty()) {
    const std::size_t end = rest.find(kEnd);
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + kEnd.size());
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && colon != 0) {
      field = {line.substr(0, colon), trimmed(line.substr(colon + 1))};
      return true;
    }
  }
  return false;
}

std::optional<std::string_view> HeadersView::find(std::string_view name) const noexcept {
  std::string_view rest = lines();
  for (Field field; next(rest, field);) {
    if (field.name == name) {
      return field.value;
    }
  }
  return std::nullopt;
}

Result<void> Headers::add(std::string_view name, std::string_view value) {
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_name_byte)) {
    return Error(Errc::invalid_argument, "the name of a header has a byte that may not be there");
  }
  if (!std::all_of(value.begin(), value.end(), is_value_byte) || trimmed(value).size() != value.size()) {
    return Error(Errc::invalid_argument, "the value of a header has a byte that may not be there");
  }
  const std::size_t before = block_.empty() ? kVersion.size() + 2 * kEnd.size() : block_.size();
  if (name.size() > kHeadersMax || value.size() > kHeadersMax ||
      before + name.size() + 2 + value.size() + kEnd.size() > kHeadersMax) {
    return Error(Errc::message_too_large, "the header block");
  }
  block_.reserve(before + name.size() + 2 + value.size() + kEnd.size());
  if (block_.empty()) {
    block_.append(kVersion).append(kEnd);
  } else {
    block_.resize(block_.size() - kEnd.size());
  }
  block_.append(name).append(": ").append(value).append(kEnd).append(kEnd);
  return {};
}

}  // namespace weft::nats
