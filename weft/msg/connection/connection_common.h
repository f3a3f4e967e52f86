// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/time.h"
#include "weft/msg/connection/connection_owner.h"
#include "weft/msg/connection/frozen_options.h"
#include "weft/msg/message/part.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/net/transport/layering.h"
#include "weft/sync/spin.h"
#include "weft/sys/clock.h"
#include "weft/zmtp/local_end.h"

namespace weft::msg {

class Connection;
class IoService;

// Accepted: a stream from a listener.
struct Accepted {
  std::unique_ptr<net::ByteStream> stream;
  Instant since{};                   // time of the peer's arrival
  std::size_t greeting_written = 0;  // bytes of our greeting that the kernel has already taken
};

// The other end's name for monitor events: `address` with the scheme of `endpoint`. Empty: it has no address, and is
// not an unnamed ipc peer.
[[nodiscard]] inline std::string name_other_end(std::string_view endpoint, std::string_view address) {
  const std::string_view scheme = endpoint.substr(0, endpoint.find("://") + 3);
  return address.empty() && scheme != "ipc://" ? std::string() : std::string(scheme).append(address);
}

// ConnectionCommon: the members that the three parts of a connection share.
// Owner: the connection. Affinity: a member that is not constant, with both batons.
struct ConnectionCommon {
  ConnectionCommon(Connection& self, ConnectionOwner& socket, IoService& service, FrozenOptions frozen, std::string at,
                   std::unique_ptr<net::ByteStream> accepted, std::shared_ptr<const net::Layering> how)
      : connection(self),
        owner(socket),
        share(socket.share()),
        io(service),
        options(std::move(frozen)),
        endpoint(std::move(at)),
        layering(std::move(how)),
        stream(std::move(accepted)),
        local_end(make_local_end(*options, share.traits.wire)) {}

  // The time to spin for the peer: learnt in every mode except eco, because a peer may never read, or dribble.
  [[nodiscard]] std::uint32_t learnt_budget(sync::SpinBudget& spin) const noexcept {
    const bool eco = share.wait_mode == sync::WaitMode::eco;
    return spin.budget_us(eco ? sync::WaitMode::eco : sync::WaitMode::adaptive);
  }
  [[nodiscard]] bool layered() const noexcept { return layering != nullptr; }
  // A layer holds bytes without a writer. Any thread that keeps the stream.
  [[nodiscard]] bool layer_has_unsent() const noexcept { return layered() && stream->state().unsent; }
  // The layer's own reason for a failure of the stream, otherwise `otherwise`.
  [[nodiscard]] Error failure_or(Error otherwise) const noexcept {
    const Error own = layered() ? stream->state().failure : Error();
    return own == Errc::ok ? otherwise : own;
  }
  // The stream failed in TLS. Another attempt may find other certificates, or no man in the middle.
  [[nodiscard]] bool failed_in_tls() const noexcept {
    return layered() && stream != nullptr && stream->state().failed_in_tls;
  }
  static constexpr std::size_t kAwaitedMin = 8 * 1024;  // a wait that received less did not pay

  Connection& connection;
  ConnectionOwner& owner;
  SocketShare& share;  // the owner's
  IoService& io;
  const FrozenOptions options;  // of the bind or connect
  const std::string endpoint;
  const std::shared_ptr<const net::Layering> layering;  // null: streams are sockets, without a state() of their own
  PipeShare* pipe = nullptr;                            // set once, before the connection starts
  std::unique_ptr<net::ByteStream> stream;              // null without a connection
  zmtp::LocalEnd local_end;
};

}  // namespace weft::msg
