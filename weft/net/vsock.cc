// SPDX-License-Identifier: MIT
#include "weft/net/vsock.h"

#include <charconv>

namespace weft::net {
namespace {

constexpr std::uint32_t kAny = sys::SocketAddress::kVsockAny;

// "*" and "-1" are the wildcard, which has a number as well.
Result<std::uint32_t> parse_number(std::string_view text, StaticText rule) {
  if (text == "*" || text == "-1") {
    return kAny;
  }
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return Error(Errc::malformed_endpoint, rule);
  }
  return number;
}

Result<void> parse(std::string_view address, bool for_bind, Endpoint& into) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) {
    return Error(Errc::malformed_endpoint, "a vsock address is CID:PORT");
  }
  const std::string_view machine = address.substr(0, colon);
  const std::uint32_t cid = machine == "@" ? sys::SocketAddress::kVsockHost
                                           : WEFT_TRY(parse_number(machine, "a CID is a number of 32 bits, * or @"));
  const std::uint32_t port =
      WEFT_TRY(parse_number(address.substr(colon + 1), "a vsock port is a number of 32 bits or *"));
  if (!for_bind && cid == kAny) {
    return Error(Errc::malformed_endpoint, "connect needs a CID, not the wildcard");
  }
  if (!for_bind && port == kAny) {
    return Error(Errc::malformed_endpoint, "connect needs a port, not the wildcard");
  }
  into.wildcard = cid == kAny;
  into.cid = into.wildcard ? 0 : cid;
  into.any_port = port == kAny;
  into.vsock_port = into.any_port ? 0 : port;
  return {};
}

sys::SocketAddress address_of(const Endpoint& endpoint) noexcept {
  return sys::SocketAddress::from_vsock(endpoint.wildcard ? kAny : endpoint.cid,
                                        endpoint.any_port ? kAny : endpoint.vsock_port);
}

std::string format(const Endpoint& endpoint) { return address_of(endpoint).to_text(); }

Result<BoundSocket> open_listener(const Endpoint& endpoint, const sys::SocketOptions& options) {
  BoundSocket bound;
  bound.fd = options.adopt_fd >= 0 ? WEFT_TRY(sys::adopt_listener(options.adopt_fd, &sys::SocketAddress::is_vsock))
                                   : WEFT_TRY(sys::open_vsock_listener(address_of(endpoint), options));
  bound.text = "vsock://" + WEFT_TRY(sys::local_address(bound.fd.fd())).to_text();
  return bound;
}

Result<void> tune_accepted(int /*fd*/, const sys::SocketOptions& /*options*/) { return {}; }

Result<std::vector<sys::SocketAddress>> known_addresses(const Endpoint& endpoint) {
  return std::vector{address_of(endpoint)};
}

Result<sys::Connecting> begin_connect(const sys::SocketAddress& to, const Endpoint& /*endpoint*/,
                                      const sys::SocketOptions& options) {
  return sys::open_vsock_connection(to, options);
}

}  // namespace

TransportRow vsock_transport() noexcept {
  return {Transport::vsock, &parse, &format, &open_listener, &tune_accepted, &known_addresses, &begin_connect};
}

}  // namespace weft::net
