// SPDX-License-Identifier: MIT
#include "weft/serve/web/form.h"

#include "weft/base/text/hex.h"
#include "weft/net/http/chars.h"
#include "weft/net/http/field.h"

namespace weft::serve::web {

namespace {

std::string decoded(std::string_view text, char plus) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i] == '+' ? plus : text[i];
    if (c == '%' && text.size() - i > 2) {
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high >= 0 && low >= 0) {
        c = static_cast<char>(high * 16 + low);
        i += 2;
      }
    }
    out += c;
  }
  return out;
}

// Compares without making the decoded name, unless it has something to decode.
bool is_named(std::string_view encoded, std::string_view name) {
  return encoded == name || (encoded.find_first_of("%+") != std::string_view::npos && form_decode(encoded) == name);
}

// A cookie-octet of RFC 6265 section 4.1.1.
bool is_cookie_char(char c) noexcept { return c > ' ' && c < '\x7F' && c != '"' && c != ',' && c != ';' && c != '\\'; }
bool is_attribute(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < '\x7F' && c != ';'; });
}

constexpr std::string_view name_of(SameSite same_site) noexcept {
  switch (same_site) {
    case SameSite::strict: return "Strict";
    case SameSite::lax: return "Lax";
    case SameSite::none: return "None";
  }
  return "Strict";
}

}  // namespace

std::string percent_decode(std::string_view text) { return decoded(text, '+'); }
std::string form_decode(std::string_view text) { return decoded(text, ' '); }

std::optional<std::string> find_pair(std::string_view text, std::string_view name) {
  std::optional<std::string> found;
  any_pair(text, [&](const FormPair& pair) {
    if (is_named(pair.name, name)) {
      found = form_decode(pair.value);
    }
    return found.has_value();
  });
  return found;
}

std::optional<std::string_view> find_cookie(std::string_view text, std::string_view name) noexcept {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    const std::string_view pair = net::http::without_spaces_around(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name) {
      return pair.substr(equals + 1);
    }
  }
  return std::nullopt;
}

Result<std::string> Cookie::text() const {
  if (!net::http::is_token(name) || !std::all_of(value.begin(), value.end(), is_cookie_char)) {
    return Error(Errc::invalid_argument, "a cookie has a name that is a token, and a value without spaces and \",;\\");
  }
  if (!is_attribute(path) || !is_attribute(domain)) {
    return Error(Errc::invalid_argument, "the path and the domain of a cookie have printable characters, and no ';'");
  }
  if (same_site == SameSite::none && !secure) {
    return Error(Errc::invalid_argument, "browsers drop a cookie with SameSite=None that is not Secure");
  }
  std::string text = name + "=" + value;
  if (!path.empty()) {
    text.append("; Path=").append(path);
  }
  if (!domain.empty()) {
    text.append("; Domain=").append(domain);
  }
  if (max_age) {
    text.append("; Max-Age=").append(std::to_string(std::max<std::chrono::seconds::rep>(max_age->count(), 0)));
  }
  text.append(secure ? "; Secure" : "").append(http_only ? "; HttpOnly" : "");
  return text.append("; SameSite=").append(name_of(same_site));
}

}  // namespace weft::serve::web
