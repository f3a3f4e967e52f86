// SPDX-License-Identifier: MIT
#include "weft/serve/web/fields.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weft/net/http/chars.h"
#include "weft/net/http/field.h"

namespace weft::serve::web {

namespace {

namespace http = net::http;

constexpr std::array<std::string_view, 7> kServersOwn = {"content-length", "transfer-encoding", "connection", "date",
                                                         "keep-alive",     "trailer",           "upgrade"};

}  // namespace

Result<void> Fields::check(std::string_view name, std::string_view value) const noexcept {
  if (!http::is_token(name) || !http::is_field_value(value)) {
    return Error(Errc::invalid_argument, "a field has a name that is a token, and a value of one line");
  }
  if (std::any_of(kServersOwn.begin(), kServersOwn.end(),
                  [name](std::string_view own) { return http::same_text(own, name); })) {
    return Error(Errc::invalid_argument, "the server writes this field itself");
  }
  return {};
}

Result<void> Fields::add(std::string_view name, std::string_view value) {
  WEFT_TRY(check(name, value));
  const std::size_t size = name.size() + value.size() + 4;
  if (size > bytes_max_ - lines_.size()) {
    return Error(Errc::message_too_large, "more bytes of fields than a head may have");
  }
  lines_.reserve(lines_.size() + size);
  lines_.append(name).append(": ").append(value).append("\r\n");
  return {};
}

Result<void> Fields::set(std::string_view name, std::string_view value) {
  if (!find(name)) {
    return add(name, value);
  }
  WEFT_TRY(check(name, value));
  Fields without = *this;
  without.remove(name);
  WEFT_TRY(without.add(name, value));
  lines_ = std::move(without.lines_);
  return {};
}

void Fields::remove(std::string_view name) {
  std::string kept;
  std::string_view rest = lines_;
  while (!rest.empty()) {
    const std::string_view line = http::take_line(rest);
    if (!http::same_text(http::field_of(line).name, name)) {
      kept.append(line).append("\r\n");
    }
  }
  lines_ = std::move(kept);
}

std::optional<std::string_view> Fields::find(std::string_view name) const noexcept {
  return http::find_field(lines_, name);
}

}  // namespace weft::serve::web
