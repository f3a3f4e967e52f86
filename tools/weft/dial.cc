// SPDX-License-Identifier: MIT
#include "tools/weft/dial.h"

#include <algorithm>
#include <array>

#include "tools/weft/console.h"
#include "weft/net/transport/transport.h"
#include "weft/sys/clock.h"

namespace weft::cli {

net::Endpoint byte_endpoint(const std::string& text, bool for_bind, const std::string& what) {
  auto endpoint = net::parse_endpoint(text, for_bind);
  if (!endpoint) {
    throw Usage(what + " " + printable(text) + ": " + endpoint.error().message());
  }
  if (endpoint->transport != net::Transport::tcp && endpoint->transport != net::Transport::ipc) {
    throw Usage(what + " is a tcp:// or an ipc:// endpoint, not " + printable(text));
  }
  return std::move(*endpoint);
}

Result<sys::Connecting> begin_dial(const net::Endpoint& to) {
  const net::TransportRow& row = net::transport_row(to.transport);
  std::vector<sys::SocketAddress> addresses = WEFT_TRY(row.known_addresses(to));
  if (addresses.empty()) {
    addresses = WEFT_TRY(sys::resolve(to.host, to.port, false));
  }
  return row.begin_connect(addresses.front(), to, {});
}

bool wait_ready(int fd, sys::Interest want, Instant end) {
  for (;;) {
    throw_if_stopped();
    std::array<sys::PollFd, 2> fds;
    fds[0].fd = fd;
    fds[0].want = want;
    fds[1].fd = stop_fd();
    fds[1].want = sys::Interest::readable;
    const auto ready = sys::poll_fds(fds, time_left(end, sys::now()));
    if (!ready && ready.error() != Errc::interrupted) {
      throw Failure(ready.error().message());
    }
    throw_if_stopped();
    if (fds[0].got != sys::Interest::none || fds[0].failed) {
      return true;
    }
    if (sys::now() >= end) {
      return false;
    }
  }
}

sys::Fd dial(const net::Endpoint& to, const std::string& text, Instant end) {
  const std::string what = "connect " + printable(text);
  sys::Connecting begun = need(begin_dial(to), what);
  if (!begun.connected) {
    if (!wait_ready(begun.fd.fd(), sys::Interest::writable, end)) {
      throw Failure(what + ": no connection in time");
    }
    need(sys::finish_connect(begun.fd.fd()), what);
  }
  return std::move(begun.fd);
}

}  // namespace weft::cli
