// SPDX-License-Identifier: MIT
#include "weft/net/stream/endpoint.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "weft/sys/address.h"

namespace weft::net {
namespace {

// --- tcp, tls+tcp ---

bool is_host_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

// The parts of an address, which udp has too.
struct HostPort {
  std::string_view host;  // without brackets
  std::string_view port;
};

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

Result<void> parse_tcp_bind(std::string_view address, Endpoint& into) {
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

Result<void> parse_tcp_source(std::string_view address, Endpoint& into) {
  const HostPort parts = WEFT_TRY(split_host_port(address));
  if (parts.host != "*") {
    WEFT_TRY(check_host(parts.host));
    into.source_host = parts.host;
  }
  into.source_port = parts.port == "*" ? std::uint16_t{0} : WEFT_TRY(parse_port(parts.port));
  into.has_source = true;
  return {};
}

Result<void> parse_tcp_connect(std::string_view address, Endpoint& into) {
  const std::size_t semicolon = address.find(';');
  if (semicolon != std::string_view::npos) {
    WEFT_TRY(parse_tcp_source(address.substr(0, semicolon), into));
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

Result<void> parse_tcp(std::string_view address, bool for_bind, Endpoint& into) {
  return for_bind ? parse_tcp_bind(address, into) : parse_tcp_connect(address, into);
}

std::string format_tcp(const Endpoint& endpoint) {
  std::string text;
  if (endpoint.has_source) {
    text = format_host_port(endpoint.source_host, endpoint.source_host.empty(), endpoint.source_port, false) + ";";
  }
  return text + format_host_port(endpoint.host, endpoint.wildcard, endpoint.port, endpoint.any_port);
}

// --- ws, wss ---

constexpr std::size_t kMaxWsPath = 1024;  // bytes, with its query

Result<void> parse_ws(std::string_view address, bool for_bind, Endpoint& into) {
  const std::size_t slash = std::min(address.find('/'), address.size());
  WEFT_TRY(parse_tcp(address.substr(0, slash), for_bind, into));
  const std::string_view path = address.substr(slash);
  if (path.size() > kMaxWsPath) {
    return Error(Errc::malformed_endpoint, "a ws path has at most 1024 bytes", ENAMETOOLONG);
  }
  if (!std::all_of(path.begin(), path.end(), [](char c) { return c > ' ' && c <= '~'; })) {
    return Error(Errc::malformed_endpoint, "a ws path has only printable characters of ASCII and no space");
  }
  into.path = path.empty() ? "/" : path;
  return {};
}

std::string format_ws(const Endpoint& endpoint) { return format_tcp(endpoint) + endpoint.path; }

// --- udp ---

constexpr Error kInterfaceAlone(Errc::malformed_endpoint, "an interface is for a multicast group only");

Result<void> parse_interface(std::string_view text, Endpoint& into) {
  if (text.starts_with('[') && text.ends_with(']')) {
    text = text.substr(1, text.size() - 2);
  }
  into.has_source = true;
  if (text == "*") {
    return {};
  }
  WEFT_TRY(check_host(text));
  const auto numeric = sys::SocketAddress::parse_numeric(text, 0);
  if (numeric && numeric->is_multicast()) {
    return Error(Errc::malformed_endpoint, "a multicast group is no interface");
  }
  into.source_host = text;
  return {};
}

Result<void> parse_udp(std::string_view address, bool for_bind, Endpoint& into) {
  const std::size_t semicolon = address.rfind(';');
  if (semicolon != std::string_view::npos) {
    WEFT_TRY(parse_interface(address.substr(0, semicolon), into));
    address.remove_prefix(semicolon + 1);
  }
  const HostPort parts = WEFT_TRY(split_host_port(address));
  if (parts.host == "*" && for_bind && !into.has_source) {
    into.wildcard = true;
  } else if (parts.host == "*") {
    return into.has_source ? kInterfaceAlone
                           : Error(Errc::malformed_endpoint, "connect needs a host, not the wildcard");
  } else {
    WEFT_TRY(check_host(parts.host));
    into.host = parts.host;
  }
  const auto numeric = sys::SocketAddress::parse_numeric(into.host, 0);
  if (into.has_source && numeric && !numeric->is_multicast()) {
    return kInterfaceAlone;
  }
  if (parts.port == "*" && !for_bind) {
    return Error(Errc::malformed_endpoint, "connect needs a port, not the wildcard");
  }
  into.port = parts.port == "*" ? std::uint16_t{0} : WEFT_TRY(parse_port(parts.port));
  if (into.port == 0 && !for_bind) {
    return Error(Errc::malformed_endpoint, "connect needs a port other than 0");
  }
  into.any_port = into.port == 0;
  return {};
}

std::string format_udp(const Endpoint& endpoint) {
  std::string text = format_host_port(endpoint.host, endpoint.wildcard, endpoint.port, endpoint.any_port);
  return endpoint.has_source ? (endpoint.source_host.empty() ? "*" : endpoint.source_host) + ";" + text : text;
}

// --- ipc, inproc, vsock ---

Result<void> parse_ipc(std::string_view address, bool for_bind, Endpoint& into) {
  if (address == "*") {
    if (!for_bind) {
      return Error(Errc::malformed_endpoint, "connect needs a path, not the wildcard");
    }
    into.wildcard = true;
    return {};
  }
  into.abstract = address.starts_with('@');
  if (into.abstract) {
    address.remove_prefix(1);
  }
  if (address.empty()) {
    return Error(Errc::malformed_endpoint, "an ipc path is missing");
  }
  if (address.size() > kMaxIpcPath) {
    return Error(Errc::malformed_endpoint, "an ipc path has at most 107 bytes", ENAMETOOLONG);
  }
  if (address.find('\0') != std::string_view::npos) {
    return Error(Errc::malformed_endpoint, "an ipc path has no NUL byte");
  }
  into.path = address;
  return {};
}

std::string format_ipc(const Endpoint& endpoint) {
  return endpoint.wildcard ? "*" : (endpoint.abstract ? "@" : "") + endpoint.path;
}

Result<void> parse_inproc(std::string_view address, bool /*for_bind*/, Endpoint& into) {
  if (address.empty()) {
    return Error(Errc::malformed_endpoint, "an inproc name is missing");
  }
  if (address.size() > kMaxInprocName) {
    return Error(Errc::malformed_endpoint, "an inproc name has at most 255 bytes");
  }
  into.name = address;
  return {};
}

std::string format_inproc(const Endpoint& endpoint) { return endpoint.name; }

constexpr std::uint32_t kVsockAny = sys::SocketAddress::kVsockAny;

// "*" and "-1" are the wildcard, which has a number as well.
Result<std::uint32_t> parse_number(std::string_view text, StaticText rule) {
  if (text == "*" || text == "-1") {
    return kVsockAny;
  }
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return Error(Errc::malformed_endpoint, rule);
  }
  return number;
}

Result<void> parse_vsock(std::string_view address, bool for_bind, Endpoint& into) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) {
    return Error(Errc::malformed_endpoint, "a vsock address is CID:PORT");
  }
  const std::string_view machine = address.substr(0, colon);
  const std::uint32_t cid = machine == "@" ? sys::SocketAddress::kVsockHost
                                           : WEFT_TRY(parse_number(machine, "a CID is a number of 32 bits, * or @"));
  const std::uint32_t port =
      WEFT_TRY(parse_number(address.substr(colon + 1), "a vsock port is a number of 32 bits or *"));
  if (!for_bind && cid == kVsockAny) {
    return Error(Errc::malformed_endpoint, "connect needs a CID, not the wildcard");
  }
  if (!for_bind && port == kVsockAny) {
    return Error(Errc::malformed_endpoint, "connect needs a port, not the wildcard");
  }
  into.wildcard = cid == kVsockAny;
  into.cid = into.wildcard ? 0 : cid;
  into.any_port = port == kVsockAny;
  into.vsock_port = into.any_port ? 0 : port;
  return {};
}

std::string format_vsock(const Endpoint& endpoint) {
  return sys::SocketAddress::from_vsock(endpoint.wildcard ? kVsockAny : endpoint.cid,
                                        endpoint.any_port ? kVsockAny : endpoint.vsock_port)
      .to_text();
}

// --- the table ---

// AddressForm: the text of a transport's addresses, after "name://".
struct AddressForm {
  Result<void> (*parse)(std::string_view address, bool for_bind, Endpoint& into);
  std::string (*format)(const Endpoint& endpoint);  // the inverse
};

// In the order of Transport.
constexpr std::array kForms = {AddressForm{&parse_tcp, &format_tcp}, AddressForm{&parse_tcp, &format_tcp},
                               AddressForm{&parse_ws, &format_ws},   AddressForm{&parse_ws, &format_ws},
                               AddressForm{&parse_ipc, &format_ipc}, AddressForm{&parse_inproc, &format_inproc},
                               AddressForm{&parse_udp, &format_udp}, AddressForm{&parse_vsock, &format_vsock}};
static_assert(static_cast<std::size_t>(Transport::vsock) + 1 == kForms.size());

}  // namespace

std::string Endpoint::text() const {
  return std::string(name_of(transport))
      .append("://")
      .append(kForms[static_cast<std::size_t>(transport)].format(*this));
}

Result<Endpoint> parse_endpoint(std::string_view text, bool for_bind) {
  const std::size_t separator = text.find("://");
  if (separator == std::string_view::npos || separator == 0) {
    return Error(Errc::malformed_endpoint, "an endpoint is transport://address");
  }
  const std::string_view name = text.substr(0, separator);
  for (std::size_t i = 0; i < kForms.size(); ++i) {
    Endpoint endpoint;
    endpoint.transport = static_cast<Transport>(i);
    if (name_of(endpoint.transport) == name) {
      WEFT_TRY(kForms[i].parse(text.substr(separator + 3), for_bind, endpoint));
      return endpoint;
    }
  }
  return Error(Errc::unknown_transport, "the transports are tcp, tls+tcp, ws, wss, ipc, inproc, udp and vsock");
}

}  // namespace weft::net
