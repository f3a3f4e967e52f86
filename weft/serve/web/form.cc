// SPDX-License-Identifier: MIT
#include "weft/serve/web/form.h"

#include "weft/net/http/chars.h"

namespace weft::serve::web {

namespace {

std::string decoded(std::string_view text, char plus) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i] == '+' ? plus : text[i];
    if (c == '%' && text.size() - i > 2) {
      const int high = net::http::hex_value(text[i + 1]);
      const int low = net::http::hex_value(text[i + 2]);
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

}  // namespace weft::serve::web
