// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "weft/msg/connection/connection_common.h"
#include "weft/msg/connection/frozen_options.h"
#include "weft/msg/connection/input_source.h"
#include "weft/msg/connection/link.h"
#include "weft/msg/connection/receive_side.h"
#include "weft/msg/connection/send_side.h"
#include "weft/sync/call_list.h"

namespace weft::msg {

// Connection: one connection of a socket, in three parts: the send side, the receive side, and the link that controls
// both.
// Owner: the socket's table of connections, until the connection is finished and its input was taken.
// Affinity: the holder of the write baton runs the send side, the holder of the read baton the receive side. The I/O
// thread runs the link, which holds both batons while there is no connection. Cost: see Pipe.
class Connection final : public std::enable_shared_from_this<Connection>, public InputSource {
 public:
  // Connecting: `endpoint` is dialled, if need be through a proxy, again whenever the connection is lost. Accepted:
  // lives as long as its stream. `layering`: of a transport with a layer, otherwise null.
  Connection(std::shared_ptr<ConnectionOwner> owner, IoService& io, FrozenOptions options,
             const net::Endpoint& endpoint, const std::optional<net::Socks5Proxy>& proxy,
             std::shared_ptr<const net::Layering> layering);
  Connection(std::shared_ptr<ConnectionOwner> owner, IoService& io, FrozenOptions options, Accepted accepted,
             std::string local_endpoint, std::shared_ptr<const net::Layering> layering);

  [[nodiscard]] SendSide& send_side() noexcept { return send_; }
  [[nodiscard]] ReceiveSide& receive_side() noexcept { return receive_; }
  [[nodiscard]] Link& link() noexcept { return link_; }

  // The pipe over this connection: once, before the link starts.
  void attach(PipeShare& pipe) noexcept { common_.pipe = &pipe; }
  [[nodiscard]] PipeShare& pipe() noexcept { return *common_.pipe; }
  [[nodiscard]] const std::string& endpoint() const noexcept { return common_.endpoint; }
  [[nodiscard]] const FrozenOptions& options() const noexcept { return common_.options; }
  [[nodiscard]] bool connecting() const noexcept { return link_.connecting(); }
  [[nodiscard]] int fd() const noexcept { return common_.stream->fd(); }  // while there is a connection
  void apply_marks(const Options& options) noexcept;                      // any thread

  // The I/O service's.
  std::atomic<Connection*> next_armed{nullptr};
  sync::CallList<std::shared_ptr<Connection>>::Entry request_entry;
  std::atomic<unsigned> requests{0};  // IoService::Request, as bits
  static constexpr std::size_t kNotArmed = ~std::size_t{0};
  std::size_t armed_place = kNotArmed;

 private:
  ConnectionCommon common_;
  SendSide send_;
  ReceiveSide receive_;
  Link link_;
};

}  // namespace weft::msg
