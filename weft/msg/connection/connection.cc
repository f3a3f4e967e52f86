// SPDX-License-Identifier: MIT
#include "weft/msg/connection/connection.h"

#include <utility>

#include "weft/sys/clock.h"

namespace weft::msg {

namespace {

std::unique_ptr<Connector> make_connector(const Options& options, const net::Endpoint& endpoint,
                                          const std::optional<net::Socks5Proxy>& proxy, const void* seed) {
  auto connector =
      std::unique_ptr<Connector>(new Connector(endpoint, stream_options(options), options.reconnect_interval,
                                               options.reconnect_interval_max, net::Backoff::seed_for(seed)));
  if (proxy) {
    connector->dialer.set_proxy(*proxy);
  }
  return connector;
}

}  // namespace

Connection::Connection(std::shared_ptr<ConnectionOwner> owner, IoService& io, FrozenOptions options,
                       const net::Endpoint& endpoint, const std::optional<net::Socks5Proxy>& proxy,
                       std::shared_ptr<const net::Layering> layering)
    : common_(*this, *owner, io, std::move(options), endpoint.text(), nullptr, std::move(layering)),
      send_(common_),
      receive_(common_),
      link_(common_, send_, receive_, std::move(owner), make_connector(*common_.options, endpoint, proxy, this),
            proxy.has_value()) {}

Connection::Connection(std::shared_ptr<ConnectionOwner> owner, IoService& io, FrozenOptions options, Accepted accepted,
                       std::string local_endpoint, std::shared_ptr<const net::Layering> layering)
    : common_(*this, *owner, io, std::move(options), std::move(local_endpoint), std::move(accepted.stream),
              std::move(layering)),
      send_(common_),
      receive_(common_),
      link_(common_, send_, receive_, std::move(owner), accepted) {}

void Connection::apply_marks(const Options& options) noexcept {
  send_.channel().set_mark(options.send_high_water_mark);
  receive_.channel().set_mark(options.receive_high_water_mark);
}

}  // namespace weft::msg
