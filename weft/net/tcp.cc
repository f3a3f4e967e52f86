// SPDX-License-Identifier: MIT
#include "weft/net/tcp.h"

#include <algorithm>
#include <charconv>

#include "weft/net/layering.h"

namespace weft::net {

namespace {
bool is_host_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}
}  // namespace

Result<HostPort> split_host_port(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) {
      return Error(Errc::malformed_endpoint, "a [ in an address is not closed");
    }
    const std::string_view after = text.substr(end + 1);
    if (!after.starts_with(':')) {
      return Error(Errc::malformed_endpoint, "an address needs :port after its host");
    }
    return HostPort{text.substr(1, end - 1), after.substr(1)};
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return Error(Errc::malformed_endpoint, "an address needs :port after its host");
  }
  return HostPort{text.substr(0, colon), text.substr(colon + 1)};
}

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return Error(Errc::malformed_endpoint, "a port is a number up to 65535");
  }
  return port;
}

// Colons belong to IPv6 and to interface aliases ("eth0:1").
Result<void> check_host(std::string_view host) {
  if (host.empty()) {
    return Error(Errc::malformed_endpoint, "a host is missing");
  }
  if (host.size() > 253) {
    return Error(Errc::malformed_endpoint, "a host has at most 253 bytes");
  }
  if (std::all_of(host.begin(), host.end(), is_host_character) || sys::SocketAddress::parse_numeric(host, 0)) {
    return {};
  }
  // The interface of a zone may come later.
  if (const std::size_t zone = host.find('%');
      zone < host.size() - 1 && host.find(':') < zone && sys::SocketAddress::parse_numeric(host.substr(0, zone), 0)) {
    return {};
  }
  const std::size_t colon = host.find(':');
  if (colon != std::string_view::npos && colon > 0) {
    const std::string_view name = host.substr(0, colon);
    const std::string_view number = host.substr(colon + 1);
    if (std::all_of(name.begin(), name.end(), is_host_character) && parse_port(number)) {
      return {};
    }
  }
  return Error(Errc::malformed_endpoint, "a host is an address, a host name or an interface name");
}

std::string format_host_port(const std::string& host, bool any_host, std::uint16_t port, bool any_port) {
  std::string text;
  if (any_host) {
    text = "*";
  } else if (host.find(':') != std::string::npos) {
    text.append("[").append(host).append("]");
  } else {
    text = host;
  }
  return text.append(":").append(any_port ? "*" : std::to_string(port));
}

Result<sys::SocketAddress> local_address(const std::string& host, std::uint16_t port, bool ipv6) {
  if (auto numeric = sys::SocketAddress::parse_numeric(host, port)) {
    return numeric;
  }
  return sys::interface_address(host, port, ipv6);
}

namespace {

Result<void> parse_bind(std::string_view address, Endpoint& into) {
  if (address.find(';') != std::string_view::npos) {
    return Error(Errc::malformed_endpoint, "a source address is for connect only");
  }
  const HostPort parts = WEFT_TRY(split_host_port(address));
  if (parts.host == "*") {
    into.wildcard = true;
  } else {
    WEFT_TRY(check_host(parts.host));
    into.host = parts.host;
  }
  into.port = parts.port == "*" ? std::uint16_t{0} : WEFT_TRY(parse_port(parts.port));
  into.any_port = into.port == 0;
  return {};
}

Result<void> parse_source(std::string_view address, Endpoint& into) {
  const HostPort parts = WEFT_TRY(split_host_port(address));
  if (parts.host != "*") {
    WEFT_TRY(check_host(parts.host));
    into.source_host = parts.host;
  }
  into.source_port = parts.port == "*" ? std::uint16_t{0} : WEFT_TRY(parse_port(parts.port));
  into.has_source = true;
  return {};
}

Result<void> parse_connect(std::string_view address, Endpoint& into) {
  const std::size_t semicolon = address.find(';');
  if (semicolon != std::string_view::npos) {
    WEFT_TRY(parse_source(address.substr(0, semicolon), into));
    address.remove_prefix(semicolon + 1);
  }
  const HostPort parts = WEFT_TRY(split_host_port(address));
  if (parts.host == "*") {
    return Error(Errc::malformed_endpoint, "connect needs a host, not the wildcard");
  }
  WEFT_TRY(check_host(parts.host));
  into.host = parts.host;
  if (parts.port == "*") {
    return Error(Errc::malformed_endpoint, "connect needs a port, not the wildcard");
  }
  into.port = WEFT_TRY(parse_port(parts.port));
  if (into.port == 0) {
    return Error(Errc::malformed_endpoint, "connect needs a port other than 0");
  }
  return {};
}

Result<void> parse(std::string_view address, bool for_bind, Endpoint& into) {
  return for_bind ? parse_bind(address, into) : parse_connect(address, into);
}

std::string format(const Endpoint& endpoint) {
  std::string text;
  if (endpoint.has_source) {
    text = format_host_port(endpoint.source_host, endpoint.source_host.empty(), endpoint.source_port, false) + ";";
  }
  return text + format_host_port(endpoint.host, endpoint.wildcard, endpoint.port, endpoint.any_port);
}

Result<sys::Fd> listen_at(const Endpoint& endpoint, const sys::SocketOptions& options) {
  if (endpoint.wildcard) {
    auto fd = sys::open_tcp_listener(sys::SocketAddress::any(options.ipv6, endpoint.port), options);
    if (!fd && options.ipv6 && fd.error() == Errc::not_supported) {  // a kernel without IPv6
      return sys::open_tcp_listener(sys::SocketAddress::any(false, endpoint.port), options);
    }
    return fd;
  }
  const auto local = local_address(endpoint.host, endpoint.port, options.ipv6);
  if (local) {
    return sys::open_tcp_listener(*local, options);
  }
  if (!(local.error() == Errc::address_unavailable)) {
    return local.error();
  }
  const auto addresses = WEFT_TRY(sys::resolve(endpoint.host, endpoint.port, options.ipv6));
  return sys::open_tcp_listener(addresses.front(), options);
}

Result<BoundSocket> open_listener(const Endpoint& endpoint, const sys::SocketOptions& options) {
  BoundSocket bound;
  bound.fd = options.adopt_fd >= 0 ? WEFT_TRY(sys::adopt_listener(options.adopt_fd, &sys::SocketAddress::is_ip))
                                   : WEFT_TRY(listen_at(endpoint, options));
  bound.text = std::string(name_of(endpoint.transport)) + "://" + WEFT_TRY(sys::local_address(bound.fd.fd())).to_text();
  return bound;
}

Result<std::vector<sys::SocketAddress>> known_addresses(const Endpoint& endpoint) {
  std::vector<sys::SocketAddress> addresses;
  if (const auto numeric = sys::SocketAddress::parse_numeric(endpoint.host, endpoint.port)) {
    addresses.push_back(*numeric);
  }
  return addresses;
}

Result<sys::Connecting> begin_connect(const sys::SocketAddress& to, const Endpoint& endpoint,
                                      const sys::SocketOptions& options) {
  if (!endpoint.has_source) {
    return sys::open_tcp_connection(to, nullptr, options);
  }
  const bool ipv6 = to.family() == sys::SocketAddress::Family::ipv6;
  const sys::SocketAddress source = endpoint.source_host.empty()
                                        ? sys::SocketAddress::any(ipv6, endpoint.source_port)
                                        : WEFT_TRY(local_address(endpoint.source_host, endpoint.source_port, ipv6));
  return sys::open_tcp_connection(to, &source, options);
}

}  // namespace

TransportRow tcp_transport() noexcept {
  return {Transport::tcp, &parse, &format, &open_listener, &sys::tune_tcp, &known_addresses, &begin_connect, true};
}

TransportRow tls_tcp_transport() noexcept {
  TransportRow row = tcp_transport();
  row.transport = Transport::tls_tcp;
  row.has_tls = true;
  row.layer = &put_tls;
  return row;
}

}  // namespace weft::net
