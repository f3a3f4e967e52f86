// SPDX-License-Identifier: MIT
#include "weft/serve/inspect/access.h"

#include <algorithm>
#include <cstdint>

#include "weft/net/admit/ip_prefix.h"
#include "weft/net/http/chars.h"
#include "weft/sys/address.h"

namespace weft::serve {

namespace {

constexpr Error kTokenSize(Errc::invalid_argument, "the token of an admin port has 16 to 256 characters");
constexpr Error kTokenText(Errc::invalid_argument,
                           "the token of an admin port is of letters, digits and the characters -._~+/=");

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
  return !net::IpPrefix::parse("127.0.0.0/8")->contains(address->ip_bytes()) &&
         !net::IpPrefix::parse("::1")->contains(address->ip_bytes());
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
