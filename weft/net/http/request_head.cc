// SPDX-License-Identifier: MIT
#include "weft/net/http/request_head.h"

#include <algorithm>

#include "weft/net/http/chars.h"
#include "weft/net/http/field.h"
#include "weft/net/http/message_fields.h"
#include "weft/net/http/target.h"

namespace weft::net::http {

namespace {

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

HttpRefusal parse_target(RequestHead& into) noexcept {
  std::string_view rest = into.target;
  if (into.method == "CONNECT") {
    return is_host(rest) ? HttpRefusal::method_unknown : HttpRefusal::malformed;
  }
  if (rest == "*") {
    into.path = rest;
    return into.method == "OPTIONS" ? HttpRefusal::none : HttpRefusal::malformed;
  }
  if (!rest.starts_with('/')) {
    const std::size_t scheme = rest.find("://");
    const std::string_view name = rest.substr(0, scheme);
    if (scheme == std::string_view::npos || (!same_text(name, "http") && !same_text(name, "https"))) {
      return HttpRefusal::malformed;
    }
    into.secure_target = name.size() == 5;
    rest.remove_prefix(scheme + 3);
    into.host = rest.substr(0, rest.find_first_of("/?"));
    rest.remove_prefix(into.host.size());
    if (into.host.empty() || into.host.starts_with(':') || !is_host(into.host)) {
      return HttpRefusal::host;
    }
  }
  const std::size_t mark = std::min(rest.find('?'), rest.size());
  into.path = mark == 0 ? std::string_view("/") : rest.substr(0, mark);
  into.query = rest.substr(std::min(mark + 1, rest.size()));
  return is_path(into.path) && is_encoded(into.query, is_query_char) ? HttpRefusal::none : HttpRefusal::malformed;
}

// The minor version of "HTTP/1.1"; -1: none has this form; -2: another major version.
int minor_of(std::string_view version) noexcept {
  if (version.size() != 8 || !version.starts_with("HTTP/") || !is_digit(version[5]) || version[6] != '.' ||
      !is_digit(version[7])) {
    return -1;
  }
  return version[5] == '1' ? version[7] - '0' : -2;
}

HttpRefusal parse_request_line(std::string_view line, const HeadLimits& limits, RequestHead& into) noexcept {
  const std::size_t method_end = std::min(line.find(' '), line.size());
  if (method_end > kMethodMax || !is_token(line.substr(0, method_end)) || method_end == line.size()) {
    return HttpRefusal::malformed;
  }
  into.method = line.substr(0, method_end);
  line.remove_prefix(method_end + 1);
  const std::size_t target_end = std::min(line.find(' '), line.size());
  into.target = line.substr(0, target_end);
  if (target_end > limits.target_max) {
    return HttpRefusal::target_long;
  }
  if (target_end == 0 || target_end == line.size()) {
    return HttpRefusal::malformed;
  }
  const int minor = minor_of(line.substr(target_end + 1));
  if (minor < 0) {
    return minor == -1 ? HttpRefusal::malformed : HttpRefusal::version;
  }
  into.minor = static_cast<std::uint8_t>(std::min(minor, 1));
  return parse_target(into);
}

// Collects the fields about the message itself.
class FieldJudge {
 public:
  [[nodiscard]] HttpRefusal take(const Field& field, RequestHead& into) noexcept {
    if (same_text(field.name, "host")) {
      return take_host(field.value, into);
    }
    if (same_text(field.name, "expect") && into.minor != 0) {
      unexpected_ = unexpected_ || !same_text(field.value, "100-continue");
      into.expects_continue = true;
      return HttpRefusal::none;
    }
    return message_.take(field);
  }
  [[nodiscard]] HttpRefusal finish(RequestHead& into) const noexcept {
    into.content_length = message_.content_length();
    into.chunked = message_.chunked();
    into.keep_alive = message_.keep_alive(into.minor);
    if (!hosted_ && into.minor != 0) {
      return HttpRefusal::host;
    }
    const HttpRefusal why = message_.check(into.minor);
    return why == HttpRefusal::none && unexpected_ ? HttpRefusal::expectation : why;
  }

 private:
  HttpRefusal take_host(std::string_view value, RequestHead& into) noexcept {
    if (hosted_ || !is_host(value)) {
      return HttpRefusal::host;
    }
    hosted_ = true;
    if (into.host.empty()) {
      into.host = value;
    }
    return HttpRefusal::none;
  }

  MessageFields message_;
  bool hosted_ = false;
  bool unexpected_ = false;
};

}  // namespace

HttpRefusal parse_request_head(std::string_view head, const HeadLimits& limits, RequestHead& into) noexcept {
  into = {};
  std::string_view rest = head;
  const HttpRefusal line = parse_request_line(take_line(rest), limits, into);
  if (line != HttpRefusal::none) {
    return line;
  }
  FieldJudge judge;
  const HttpRefusal why =
      take_fields(rest, into.fields, [&](const Field& field) noexcept { return judge.take(field, into); });
  if (why != HttpRefusal::none) {
    return why;
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
