// SPDX-License-Identifier: MIT
#include "weft/net/http/url.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "weft/net/http/chars.h"
#include "weft/net/http/target.h"

namespace weft::net::http {

namespace {

struct Scheme {
  std::string_view name;
  bool secure;
  bool websocket;
};
constexpr Scheme kSchemes[] = {
    {"http", false, false}, {"https", true, false}, {"ws", false, true}, {"wss", true, true}};

constexpr std::uint16_t port_of_scheme(bool secure) noexcept { return secure ? 443 : 80; }

std::string_view scheme_of(const Url& url) noexcept {
  const auto* const at = std::find_if(std::begin(kSchemes), std::end(kSchemes), [&url](const Scheme& scheme) {
    return scheme.secure == url.secure && scheme.websocket == url.websocket;
  });
  return at->name;
}

Error no_url(StaticText why) noexcept { return {Errc::invalid_argument, why}; }

// "host", "host:port", "[v6]:port".
Result<void> take_authority(std::string_view text, Url& into) {
  if (text.find('@') != std::string_view::npos) {
    return no_url("a URL with a user's name: put it into the field Authorization");
  }
  if (text.find('%') != std::string_view::npos || !is_host(text)) {
    return no_url("the host of a URL");
  }
  const bool v6 = text.starts_with('[');
  const std::size_t host_end = v6 ? text.find(']') + 1 : std::min(text.find(':'), text.size());
  std::string_view host = text.substr(0, host_end);
  host = v6 ? host.substr(1, host.size() - 2) : host;
  if (host.empty()) {
    return no_url("a URL without a host");
  }
  into.host.assign(host);
  for (char& c : into.host) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  }
  into.port = port_of_scheme(into.secure);
  const std::string_view port = text.substr(std::min(host_end + 1, text.size()));
  if (!port.empty()) {
    const auto read = std::from_chars(port.data(), port.data() + port.size(), into.port);
    if (read.ec != std::errc() || read.ptr != port.data() + port.size() || into.port == 0) {
      return no_url("the port of a URL is a number from 1 to 65535");
    }
  }
  return {};
}

// RFC 3986 section 5.2.4: `path` begins with '/'.
std::string without_dots(std::string_view path) {
  std::string kept;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view segment = path.substr(0, end);  // with the '/' before it
    path.remove_prefix(end);
    if (segment == "/..") {
      kept.resize(std::min(kept.rfind('/'), kept.size()));
    } else if (segment != "/.") {
      kept.append(segment);
      continue;
    }
    if (path.empty()) {
      kept += '/';
    }
  }
  return kept.empty() ? "/" : kept;
}

// A path, which is empty or begins with '/', and a query. Drops the fragment.
Result<void> take_target(std::string_view text, Url& into) {
  text = text.substr(0, text.find('#'));
  const std::size_t mark = std::min(text.find('?'), text.size());
  const std::string_view path = text.substr(0, mark);
  if (!is_encoded(path, is_path_char) || !is_encoded(text.substr(std::min(mark + 1, text.size())), is_query_char)) {
    return no_url("a URL has a character that must be percent-encoded");
  }
  into.target = without_dots(path).append(text.substr(mark));
  return {};
}

}  // namespace

std::string Url::authority() const {
  std::string text = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == port_of_scheme(secure) ? text : text.append(":").append(std::to_string(port));
}

std::string Url::origin() const {
  return std::string(secure ? "https://" : "http://").append(host).append(":").append(std::to_string(port));
}

std::string Url::text() const { return std::string(scheme_of(*this)).append("://").append(authority()).append(target); }

Result<Url> parse_url(std::string_view text) {
  if (text.size() > kUrlMax) {
    return no_url("a URL of more than 16 KiB");
  }
  const std::size_t colon = std::min(text.find("://"), text.size());
  const auto* const scheme = std::find_if(std::begin(kSchemes), std::end(kSchemes), [&](const Scheme& one) {
    return same_text(one.name, text.substr(0, colon));
  });
  if (colon == text.size() || scheme == std::end(kSchemes)) {
    return no_url("a URL begins with http://, https://, ws:// or wss://");
  }
  Url url;
  url.secure = scheme->secure;
  url.websocket = scheme->websocket;
  text.remove_prefix(colon + 3);
  const std::size_t end = std::min(text.find_first_of("/?#"), text.size());
  WEFT_TRY(take_authority(text.substr(0, end), url));
  WEFT_TRY(take_target(text.substr(end), url));
  return url;
}

Result<Url> resolve_url(const Url& base, std::string_view reference) {
  if (reference.size() > kUrlMax) {
    return no_url("a URL of more than 16 KiB");
  }
  const std::size_t colon = reference.find(':');
  if (colon != std::string_view::npos && colon < reference.find_first_of("/?#")) {
    return parse_url(reference);
  }
  if (reference.starts_with("//")) {
    return parse_url(std::string(scheme_of(base)).append(":").append(reference));
  }
  Url url = base;
  const std::string_view old = base.target;
  const std::string_view old_path = old.substr(0, old.find('?'));
  std::string target;
  if (reference.empty() || reference.starts_with('#')) {
    return url;
  }
  if (!reference.starts_with('/')) {
    target = reference.starts_with('?') ? old_path : old_path.substr(0, old_path.rfind('/') + 1);
  }
  WEFT_TRY(take_target(target.append(reference), url));
  return url;
}

}  // namespace weft::net::http
