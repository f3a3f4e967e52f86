// SPDX-License-Identifier: MIT
#include "weft/serve/inspect/access.h"

#include <algorithm>
#include <cstdint>

#include "weft/net/admit/ip_prefix.h"
#include "weft/net/http/chars.h"
#include "weft/net/http/target.h"
#include "weft/sys/address.h"

namespace weft::serve {

namespace {

constexpr Error kTokenSize(Errc::invalid_argument, "the token of an admin port has 16 to 256 characters");
constexpr Error kTokenText(Errc::invalid_argument,
                           "the token of an admin port is of letters, digits and the characters -._~+/=");

constexpr Error kManyHosts(Errc::invalid_argument, "an admin port has at most 64 names of hosts");
constexpr Error kNoHost(Errc::invalid_argument,
                        "a name of the admin port's hosts is a host without a port, like \"admin.internal\"");

// 127.0.0.0/8 or ::1, also as an address of IPv6 that contains one of IPv4.
bool is_of_this_machine(const sys::SocketAddress& address) noexcept {
  static const net::IpPrefix ipv4 = *net::IpPrefix::parse("127.0.0.0/8");
  static const net::IpPrefix ipv6 = *net::IpPrefix::parse("::1");
  return ipv4.contains(address.ip_bytes()) || ipv6.contains(address.ip_bytes());
}

// "[v6]:port" and "host:port" without the port.
std::string_view without_port(std::string_view host) noexcept {
  const std::size_t end = host.starts_with('[') ? host.find(']') : host.find(':');
  return host.starts_with('[') ? host.substr(0, std::min(end, host.size() - 1) + 1) : host.substr(0, end);
}

constexpr bool is_token_char(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~+/=").find(c) != std::string_view::npos;
}

// Reads all of `token`, whatever `offered` is.
bool same_secret(std::string_view offered, std::string_view token) noexcept {
  std::size_t differs = offered.size() ^ token.size();
  for (std::size_t i = 0; i < token.size(); ++i) {
    const char theirs = offered.empty() ? '\0' : offered[i % offered.size()];
    const volatile auto bits = static_cast<std::uint8_t>(theirs ^ token[i]);  // volatile: the loop does not end early
    differs |= bits;
  }
  return differs == 0;
}

}  // namespace

bool reached_from_afar(const net::Endpoint& endpoint) {
  if (endpoint.transport != net::Transport::tcp) {
    return false;
  }
  if (endpoint.wildcard) {
    return true;
  }
  const auto address = sys::SocketAddress::parse_numeric(endpoint.host, 0);
  if (!address) {
    return endpoint.host != "localhost";
  }
  return !is_of_this_machine(*address);
}

Result<void> check_admin_hosts(const std::vector<std::string>& hosts) {
  if (hosts.size() > kAdminHostsMax) {
    return kManyHosts;
  }
  const auto good = [](const std::string& host) {
    return !host.empty() && host.size() <= kAdminHostBytesMax && net::http::is_host(host) &&
           without_port(host).size() == host.size();
  };
  return std::all_of(hosts.begin(), hosts.end(), good) ? Result<void>() : kNoHost;
}

bool is_admin_host(std::string_view host, const std::vector<std::string>& hosts) noexcept {
  if (host.empty()) {
    return true;
  }
  const std::string_view name = without_port(host);
  const auto same = [name](const std::string& each) { return net::http::same_text(each, name); };
  if (net::http::same_text(name, "localhost") || std::any_of(hosts.begin(), hosts.end(), same)) {
    return true;
  }
  const bool bracketed = name.size() > 2 && name.starts_with('[');
  const auto address = sys::SocketAddress::parse_numeric(bracketed ? name.substr(1, name.size() - 2) : name, 0);
  return address && is_of_this_machine(*address);
}

Result<void> check_admin_token(std::string_view token) {
  if (token.size() < kAdminTokenMin || token.size() > kAdminTokenMax) {
    return kTokenSize;
  }
  return std::all_of(token.begin(), token.end(), is_token_char) ? Result<void>() : kTokenText;
}

bool bears_token(std::string_view authorization, std::string_view token) noexcept {
  constexpr std::string_view kScheme = "Bearer ";
  const bool scheme =
      authorization.size() > kScheme.size() && net::http::same_text(authorization.substr(0, kScheme.size()), kScheme);
  std::string_view offered = authorization.substr(scheme ? kScheme.size() : authorization.size());
  offered.remove_prefix(std::min(offered.find_first_not_of(' '), offered.size()));
  return same_secret(offered, token);
}

}  // namespace weft::serve
