// SPDX-License-Identifier: MIT
#include "weft/net/http/request_head.h"

#include <algorithm>

#include "weft/net/http/chars.h"
#include "weft/net/http/field.h"

namespace weft::net::http {

namespace {

constexpr std::size_t kLengthDigitsMax = 19;  // of a Content-Length: fewer than 2^63 bytes

// Whether the text has only characters of `is_one`, and "%XX".
template <typename IsOne>
bool is_encoded(std::string_view text, IsOne is_one) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (text.size() - i < 3 || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0) {
        return false;
      }
      i += 2;
    } else if (!is_one(text[i])) {
      return false;
    }
  }
  return true;
}

// "host", "host:port" or "[v6]:port".
bool is_host(std::string_view text) noexcept {
  std::size_t end = 0;
  if (text.starts_with('[')) {
    end = std::min(text.find(']'), text.size());
    const std::string_view inside = text.substr(1, end - 1);
    if (end == text.size() || inside.empty() ||
        !std::all_of(inside.begin(), inside.end(), [](char c) { return hex_value(c) >= 0 || c == ':' || c == '.'; })) {
      return false;
    }
    ++end;
  } else {
    end = std::min(text.find(':'), text.size());
    if (!is_encoded(text.substr(0, end), [](char c) { return is_path_char(c) && c != '/' && c != '@' && c != ':'; })) {
      return false;
    }
  }
  std::string_view port = text.substr(end);
  if (port.empty()) {
    return true;
  }
  port.remove_prefix(1);
  return text[end] == ':' && port.size() <= 5 && std::all_of(port.begin(), port.end(), is_digit);
}

// A segment "." or "..", also percent-encoded.
bool is_dots(std::string_view segment) noexcept {
  std::size_t dots = 0;
  while (!segment.empty()) {
    const bool encoded = segment.size() >= 3 && segment[0] == '%' && segment[1] == '2' && (segment[2] | 0x20) == 'e';
    if (!encoded && segment[0] != '.') {
      return false;
    }
    segment.remove_prefix(encoded ? 3 : 1);
    ++dots;
  }
  return dots == 1 || dots == 2;
}

// Whether it is an absolute path that stays below its root, without the byte 0.
bool is_path(std::string_view path) noexcept {
  if (!path.starts_with('/') || !is_encoded(path, is_path_char) || path.find("%00") != std::string_view::npos) {
    return false;
  }
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    if (is_dots(path.substr(0, end))) {
      return false;
    }
    path.remove_prefix(end);
  }
  return true;
}

Refusal parse_target(RequestHead& into) noexcept {
  std::string_view rest = into.target;
  if (into.method == "CONNECT") {
    return is_host(rest) ? Refusal::method_unknown : Refusal::malformed;
  }
  if (rest == "*") {
    into.path = rest;
    return into.method == "OPTIONS" ? Refusal::none : Refusal::malformed;
  }
  if (!rest.starts_with('/')) {
    const std::size_t scheme = rest.find("://");
    const std::string_view name = rest.substr(0, scheme);
    if (scheme == std::string_view::npos || (!same_text(name, "http") && !same_text(name, "https"))) {
      return Refusal::malformed;
    }
    rest.remove_prefix(scheme + 3);
    into.host = rest.substr(0, rest.find_first_of("/?"));
    rest.remove_prefix(into.host.size());
    if (into.host.empty() || into.host.starts_with(':') || !is_host(into.host)) {
      return Refusal::host;
    }
  }
  const std::size_t mark = std::min(rest.find('?'), rest.size());
  into.path = mark == 0 ? std::string_view("/") : rest.substr(0, mark);
  into.query = rest.substr(std::min(mark + 1, rest.size()));
  return is_path(into.path) && is_encoded(into.query, is_query_char) ? Refusal::none : Refusal::malformed;
}

// The minor version of "HTTP/1.1"; -1: none has this form; -2: another major version.
int minor_of(std::string_view version) noexcept {
  if (version.size() != 8 || !version.starts_with("HTTP/") || !is_digit(version[5]) || version[6] != '.' ||
      !is_digit(version[7])) {
    return -1;
  }
  return version[5] == '1' ? version[7] - '0' : -2;
}

Refusal parse_request_line(std::string_view line, const HeadLimits& limits, RequestHead& into) noexcept {
  const std::size_t method_end = std::min(line.find(' '), line.size());
  if (method_end > kMethodMax || !is_token(line.substr(0, method_end)) || method_end == line.size()) {
    return Refusal::malformed;
  }
  into.method = line.substr(0, method_end);
  line.remove_prefix(method_end + 1);
  const std::size_t target_end = std::min(line.find(' '), line.size());
  into.target = line.substr(0, target_end);
  if (target_end > limits.target_max) {
    return Refusal::target_long;
  }
  if (target_end == 0 || target_end == line.size()) {
    return Refusal::malformed;
  }
  const int minor = minor_of(line.substr(target_end + 1));
  if (minor < 0) {
    return minor == -1 ? Refusal::malformed : Refusal::version;
  }
  into.minor = static_cast<std::uint8_t>(std::min(minor, 1));
  return parse_target(into);
}

// Collects the fields about the message itself.
class FieldJudge {
 public:
  [[nodiscard]] Refusal take(const Field& field, RequestHead& into) noexcept {
    const std::string_view name = field.name;
    if (same_text(name, "host")) {
      return take_host(field.value, into);
    }
    if (same_text(name, "content-length")) {
      return take_length(field.value, into);
    }
    if (same_text(name, "transfer-encoding")) {
      return take_coding(field.value, into);
    }
    if (same_text(name, "connection")) {
      any_element(field.value, [&](std::string_view option) {
        close_ = close_ || same_text(option, "close");
        keep_ = keep_ || same_text(option, "keep-alive");
        return false;
      });
    } else if (same_text(name, "expect") && into.minor != 0) {
      if (!same_text(field.value, "100-continue")) {
        unexpected_ = true;
      }
      into.expects_continue = true;
    }
    return Refusal::none;
  }
  [[nodiscard]] Refusal finish(RequestHead& into) const noexcept {
    into.keep_alive = !close_ && (into.minor != 0 || keep_);
    if (!hosted_ && into.minor != 0) {
      return Refusal::host;
    }
    if (into.chunked && (measured_ || into.minor == 0)) {
      return Refusal::framing;
    }
    return unexpected_ ? Refusal::expectation : Refusal::none;
  }

 private:
  Refusal take_host(std::string_view value, RequestHead& into) noexcept {
    if (hosted_ || !is_host(value)) {
      return Refusal::host;
    }
    hosted_ = true;
    if (into.host.empty()) {
      into.host = value;
    }
    return Refusal::none;
  }
  Refusal take_length(std::string_view value, RequestHead& into) noexcept {
    if (measured_ || value.empty() || !std::all_of(value.begin(), value.end(), is_digit)) {
      return Refusal::framing;
    }
    measured_ = true;
    if (value.size() > kLengthDigitsMax) {
      return Refusal::body_large;
    }
    for (const char digit : value) {
      into.content_length = into.content_length * 10 + static_cast<unsigned>(digit - '0');
    }
    return Refusal::none;
  }
  Refusal take_coding(std::string_view value, RequestHead& into) noexcept {
    std::size_t codings = 0;
    bool last_chunks = false;
    bool other = false;
    any_element(value, [&](std::string_view coding) {
      ++codings;
      last_chunks = same_text(coding, "chunked");
      other = other || !last_chunks;
      return false;
    });
    if (into.chunked || !last_chunks || (codings > 1 && !other)) {
      return Refusal::framing;
    }
    into.chunked = true;
    return other ? Refusal::coding : Refusal::none;
  }

  bool hosted_ = false;
  bool measured_ = false;
  bool close_ = false;
  bool keep_ = false;
  bool unexpected_ = false;
};

}  // namespace

Refusal parse_request_head(std::string_view head, const HeadLimits& limits, RequestHead& into) noexcept {
  into = {};
  std::string_view rest = head;
  const Refusal line = parse_request_line(take_line(rest), limits, into);
  if (line != Refusal::none) {
    return line;
  }
  if (!rest.ends_with("\r\n")) {
    return Refusal::malformed;
  }
  rest.remove_suffix(2);
  into.fields = rest;
  FieldJudge judge;
  while (!rest.empty()) {
    const Field field = field_of(take_line(rest));
    if (field.name.empty()) {
      return Refusal::malformed;
    }
    const Refusal why = judge.take(field, into);
    if (why != Refusal::none) {
      return why;
    }
  }
  return judge.finish(into);
}

StatusLine parse_status_line(std::string_view line) noexcept {
  const int minor = minor_of(line.substr(0, 8));
  const bool formed = line.size() >= 12 && line[8] == ' ' &&
                      std::all_of(line.begin() + 9, line.begin() + 12, is_digit) &&
                      (line.size() == 12 || line[12] == ' ') && line[9] != '0';
  if (minor < 0 || !formed) {
    return {};
  }
  const auto digit = [&](std::size_t at) { return static_cast<unsigned>(line[at] - '0'); };
  return {100 * digit(9) + 10 * digit(10) + digit(11), static_cast<std::uint8_t>(minor)};
}

}  // namespace weft::net::http
