// SPDX-License-Identifier: MIT
#include "weft/net/transport/vsock.h"

namespace weft::net {
namespace {

constexpr std::uint32_t kAny = sys::SocketAddress::kVsockAny;

sys::SocketAddress address_of(const Endpoint& endpoint) noexcept {
  return sys::SocketAddress::from_vsock(endpoint.wildcard ? kAny : endpoint.cid,
                                        endpoint.any_port ? kAny : endpoint.vsock_port);
}

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
  return {Transport::vsock, &open_listener, &tune_accepted, &known_addresses, &begin_connect};
}

}  // namespace weft::net
