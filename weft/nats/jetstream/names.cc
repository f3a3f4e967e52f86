// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/names.h"

#include <algorithm>

#include "weft/nats/protocol/escape.h"

namespace weft::nats::jetstream {

namespace {

[[nodiscard]] bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}
[[nodiscard]] bool is_plain_of_key(char c) noexcept { return is_plain(c) || c == '/' || c == '.'; }

template <typename IsPlain>
void append_escaped(std::string_view text, IsPlain is_plain_byte, std::string& out) {
  for (const char c : text) {
    if (is_plain_byte(c)) {
      out += c;
    } else {
      append_escape(c, out);
    }
  }
}

template <typename IsPlain>
[[nodiscard]] bool append_unescaped(std::string_view name, IsPlain is_plain_byte, std::string& out) {
  const std::size_t before = out.size();
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (is_plain_byte(name[i])) {
      out += name[i];
      continue;
    }
    const int byte = escaped_byte(name, i);
    if (byte < 0 || is_plain_byte(static_cast<char>(byte))) {
      out.resize(before);
      return false;
    }
    out += static_cast<char>(byte);
    i += kEscapeSize - 1;
  }
  return true;
}

[[nodiscard]] bool has_empty_token(std::string_view text) noexcept {
  return text.empty() || text.front() == '.' || text.back() == '.' || text.find("..") != std::string_view::npos;
}

}  // namespace

bool is_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= kNameMax && std::all_of(name.begin(), name.end(), [](char c) {
    return c > 0x20 && c < 0x7F && std::string_view(".*>/\\").find(c) == std::string_view::npos;
  });
}

Result<void> append_name(std::string_view text, std::string& out) {
  if (text.empty() || text.size() > kNameMax) {
    return Error(Errc::invalid_argument, "a name of JetStream has 1 to 255 bytes");
  }
  const std::size_t before = out.size();
  append_escaped(text, is_plain, out);
  if (out.size() - before > kNameMax) {
    out.resize(before);
    return Error(Errc::invalid_argument, "a name of JetStream has 1 to 255 bytes, and three for each special one");
  }
  return {};
}

Result<void> append_text_of_name(std::string_view name, std::string& out) {
  if (name.empty() || name.size() > kNameMax || !append_unescaped(name, is_plain, out)) {
    return Error(Errc::invalid_argument, "another program gave this name");
  }
  return {};
}

Result<void> append_key(std::string_view topic, std::string& out) {
  if (has_empty_token(topic)) {
    return Error(Errc::invalid_argument, "a key has an empty token");
  }
  append_escaped(topic, is_plain_of_key, out);
  return {};
}

Result<void> append_topic_of_key(std::string_view key, std::string& out) {
  if (has_empty_token(key) || !append_unescaped(key, is_plain_of_key, out)) {
    return Error(Errc::invalid_argument, "another program gave this key");
  }
  return {};
}

}  // namespace weft::nats::jetstream
