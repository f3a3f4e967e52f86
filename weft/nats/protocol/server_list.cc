// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/server_list.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "weft/base/text/hex.h"
#include "weft/nats/protocol/limits.h"

namespace weft::nats {

namespace {

constexpr Error kMalformed(Errc::invalid_argument, "a NATS server is [nats://|tls://][user:password@]host[:port]");
constexpr Error kTooMany(Errc::invalid_argument, "too many NATS servers");

[[nodiscard]] bool is_host_byte(char c) noexcept {
  return static_cast<unsigned char>(c) > 0x20 && c != '/' && c != '@' && c != '?' && c != '#' && c != '[' && c != ']';
}

// `%XX` is a byte. Null: malformed.
[[nodiscard]] std::optional<std::string> unescape(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    const int high = text.size() - i > 2 ? hex_value(text[i + 1]) : -1;
    const int low = text.size() - i > 2 ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return std::nullopt;
    }
    plain += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return plain;
}

[[nodiscard]] std::optional<std::uint16_t> port_of(std::string_view digits) noexcept {
  std::uint32_t port = 0;
  if (digits.empty() || digits.size() > 5) {
    return std::nullopt;
  }
  for (const char c : digits) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    port = port * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return port == 0 || port > 0xFFFF ? std::nullopt : std::optional(static_cast<std::uint16_t>(port));
}

Result<void> read_login(std::string_view login, ServerUrl& url) {
  const std::size_t colon = login.find(':');
  auto user = unescape(login.substr(0, colon));
  if (!user || user->empty()) {
    return kMalformed;
  }
  url.user = std::move(*user);
  if (colon != std::string_view::npos) {
    auto password = unescape(login.substr(colon + 1));
    if (!password) {
      return kMalformed;
    }
    url.password = Secret(std::move(*password));
  }
  return {};
}

Result<void> read_address(std::string_view address, ServerUrl& url) {
  std::string_view host;
  std::string_view rest;
  if (address.starts_with('[')) {
    const std::size_t end = address.find(']');
    if (end == std::string_view::npos) {
      return kMalformed;
    }
    host = address.substr(1, end - 1);
    rest = address.substr(end + 1);
  } else {
    const std::size_t colon = address.find(':');
    host = address.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : address.substr(colon);
  }
  if (host.empty() || host.size() > 255 || !std::all_of(host.begin(), host.end(), is_host_byte)) {
    return kMalformed;
  }
  if (!rest.empty()) {
    const auto port = rest.front() == ':' ? port_of(rest.substr(1)) : std::nullopt;
    if (!port) {
      return kMalformed;
    }
    url.port = *port;
  }
  url.host = std::string(host);
  return {};
}

}  // namespace

std::string ServerUrl::text() const { return (tls ? "tls" : "nats") + endpoint().substr(3); }

std::string ServerUrl::endpoint() const {
  const bool v6 = host.find(':') != std::string::npos;
  return "tcp://" + (v6 ? '[' + host + ']' : host) + ':' + std::to_string(port);
}

Result<ServerUrl> parse_server_url(std::string_view text) {
  if (text.size() > kServerTextMax) {
    return kMalformed;
  }
  ServerUrl url;
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    const std::string_view name = text.substr(0, scheme);
    if (name != "nats" && name != "tls") {
      return Error(Errc::not_supported, "a NATS server is entered by nats:// or tls://");
    }
    url.tls = name == "tls";
    text.remove_prefix(scheme + 3);
  }
  if (text.ends_with('/')) {
    text.remove_suffix(1);
  }
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    WEFT_TRY(read_login(text.substr(0, at), url));
    text.remove_prefix(at + 1);
  }
  WEFT_TRY(read_address(text, url));
  return url;
}

Result<ServerList> ServerList::make(std::string_view urls, std::uint64_t seed, bool shuffle) {
  ServerList list(seed, shuffle);
  for (;;) {
    const std::size_t comma = urls.find(',');
    std::string_view text = urls.substr(0, comma);
    while (text.starts_with(' ')) {
      text.remove_prefix(1);
    }
    while (text.ends_with(' ')) {
      text.remove_suffix(1);
    }
    ServerUrl url = WEFT_TRY(parse_server_url(text));
    if (list.servers_.size() == kServersMax) {
      return kTooMany;
    }
    if (!list.has(url)) {
      list.servers_.push_back(std::move(url));
    }
    if (comma == std::string_view::npos) {
      break;
    }
    urls.remove_prefix(comma + 1);
  }
  list.shuffle(0);
  return list;
}

void ServerList::learn(const std::vector<std::string>& connect_urls, bool tls) {
  std::vector<ServerUrl> fresh;
  for (const std::string& text : connect_urls) {
    if (auto url = parse_server_url(text); url) {
      url->given = false;
      url->tls = url->tls || tls;
      fresh.push_back(std::move(*url));
    }
  }
  const auto same = [](const ServerUrl& a, const ServerUrl& b) { return a.port == b.port && a.host == b.host; };
  std::size_t kept = 0;
  std::size_t next = next_;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const bool stays = servers_[i].given || std::any_of(fresh.begin(), fresh.end(),
                                                        [&](const ServerUrl& url) { return same(url, servers_[i]); });
    if (!stays) {
      next -= i < next_ ? 1 : 0;
    } else if (kept++ != i) {
      servers_[kept - 1] = std::move(servers_[i]);
    }
  }
  servers_.resize(kept);
  next_ = next < kept ? next : 0;
  for (ServerUrl& url : fresh) {
    if (!has(url) && servers_.size() < kServersMax) {
      servers_.push_back(std::move(url));
    }
  }
  shuffle(std::max(kept, next_));
}

const ServerUrl& ServerList::next() noexcept {
  const ServerUrl& server = servers_[next_];
  next_ = next_ + 1 == servers_.size() ? 0 : next_ + 1;
  return server;
}

// Fisher and Yates, of the servers from `from` on.
void ServerList::shuffle(std::size_t from) noexcept {
  if (!shuffle_) {
    return;
  }
  for (std::size_t i = servers_.size(); i > from + 1; --i) {
    const auto other = from + static_cast<std::size_t>(random_.below(i - from));
    if (other != i - 1) {
      std::swap(servers_[i - 1], servers_[other]);
    }
  }
}

bool ServerList::has(const ServerUrl& url) const noexcept {
  return std::any_of(servers_.begin(), servers_.end(),
                     [&url](const ServerUrl& other) { return other.port == url.port && other.host == url.host; });
}

}  // namespace weft::nats
