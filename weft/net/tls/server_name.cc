// SPDX-License-Identifier: MIT
#include "weft/net/tls/server_name.h"

#include <algorithm>

#include "weft/sys/address.h"

namespace weft::net {
namespace {

constexpr std::size_t kNameMax = 253;

bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

}  // namespace

Result<std::string_view> parse_server_name(std::string_view name) noexcept {
  if (name.find(':') != std::string_view::npos) {
    const std::string_view address = name.substr(0, name.find('%'));
    if (sys::SocketAddress::parse_numeric(address, 0)) {
      return address;
    }
  } else {
    if (name.ends_with('.')) {
      name.remove_suffix(1);
    }
    const bool whole = !name.empty() && name.size() <= kNameMax && !name.starts_with('.') && !name.ends_with('.') &&
                       name.find("..") == std::string_view::npos;
    if (whole && std::all_of(name.begin(), name.end(), is_name_character)) {
      return name;
    }
  }
  return Error(Errc::invalid_argument, "the name of a server is a host name or an IP address");
}

bool is_server_name(std::string_view name) noexcept { return static_cast<bool>(parse_server_name(name)); }

}  // namespace weft::net
