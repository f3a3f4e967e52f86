// SPDX-License-Identifier: MIT
// SocketCore: udp endpoints. One is a connection whose stream is a UDP socket, from bind or connect to unbind or
// disconnect. It has no peers, and so no handshake, no reconnecting and no end by itself.

#include "weft/msg/connection/io_service.h"
#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/msg/wire/datagram_stream.h"
#include "weft/net/transport/udp.h"

namespace weft::msg {

namespace {

// Datagrams prove nothing about their sender, and are not encrypted.
Result<void> refuse_security(const Options& options) noexcept {
  if (options.security != Security::null || !options.zap_domain.empty()) {
    return Error(Errc::incompatible_peer, "udp cannot authenticate or encrypt, as the options demand");
  }
  return {};
}

net::MulticastOptions udp_options(const Options& options) noexcept {
  return {options.multicast_hops, options.multicast_loop};
}

}  // namespace

Result<void> SocketCore::refuse_unlike_transport() const {
  return type() == SocketType::dgram ? Result<void>(Error(Errc::incompatible_peer, "DGRAM has udp only"))
                                     : Result<void>();
}

Result<void> SocketCore::refuse_second_datagrams() const {
  return type() == SocketType::dgram && endpoints_.is_connected()
             ? Result<void>(Error(Errc::incompatible_peer, "a DGRAM has one endpoint, and this one is bound already"))
             : Result<void>();
}

Result<std::string> SocketCore::bind_datagrams(std::string_view text, const net::Endpoint& endpoint) {
  if (type() != SocketType::dish && type() != SocketType::dgram) {
    return Error(Errc::incompatible_peer, "only DISH and DGRAM bind udp");
  }
  auto bound = open_datagrams(text, endpoint, true);
  if (!bound) {
    monitor_.emit(EventKind::bind_failed, text, bound.error());
  }
  return bound;
}

Result<std::uint32_t> SocketCore::connect_datagrams(std::string_view text, const net::Endpoint& endpoint) {
  if (type() != SocketType::radio) {
    return Error(Errc::incompatible_peer, "only RADIO connects over udp");
  }
  WEFT_TRY(open_datagrams(text, endpoint, false));
  return std::uint32_t{0};
}

Result<std::string> SocketCore::open_datagrams(std::string_view text, const net::Endpoint& endpoint, bool binds) {
  const FrozenOptions options = options_.freeze();
  WEFT_TRY(refuse_security(*options));
  {
    const sync::LockGuard table(table_mutex_);
    WEFT_TRY(refuse_second_datagrams());
  }
  net::UdpSocket udp = WEFT_TRY(net::open_udp(endpoint, binds, udp_options(*options), stream_options(*options)));
  WEFT_TRY(context_->start_io());
  CountedConnection counted(*context_);
  const int fd = udp.fd.fd();
  const auto form = type() == SocketType::dgram ? DatagramStream::Form::addressed : DatagramStream::Form::grouped;
  const std::uint64_t part_max =
      options->max_message_size < 0 ? zmtp::kFrameBodySizeMax : static_cast<std::uint64_t>(options->max_message_size);
  auto stream = std::make_unique<DatagramStream>(std::move(udp.fd), form, binds ? sys::SocketAddress() : udp.to,
                                                 part_max, share_.drops);
  auto connection = std::make_shared<Connection>(shared_from_this(), context_->io(), options,
                                                 Accepted{std::move(stream)}, udp.text, nullptr);
  // The entries are made first: to move them into the tables needs no memory.
  Endpoints::ConnectedNames entry{{binds ? udp.text : std::string(text), connection}};
  {
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    if (closed()) {
      return refusal();
    }
    connection->apply_marks(options_.read());
    const sync::LockGuard table(table_mutex_);
    WEFT_TRY(refuse_second_datagrams());  // of another thread, since the check above
    make_room_for_end();
    Endpoints::ConnectedPipe& connected = endpoints_.add(*this, connection);
    connected.pipe.notes.datagrams = true;
    try {
      attach(connected.pipe);
    } catch (const std::bad_alloc&) {
      endpoints_.erase(connection.get());
      throw;
    }
    endpoints_.add_name(connected, entry);
    counted.keep();
  }
  monitor_.emit(binds ? EventKind::listening : EventKind::connected, udp.text, Error(), fd);
  context_->io().run([&] { connection->link().start(); });
  share_.output_parker.wake_with_fence();  // a waiting sender can send through the new pipe
  return udp.text;
}

// The application can still take the datagrams that the system has received. The port is free afterwards, unless
// messages wait for room in the kernel, or another thread is in the middle of a call.
bool SocketCore::unbind_datagrams(const std::string& name) {
  constexpr std::string_view kPrefix = "udp://";
  if (!name.starts_with(kPrefix)) {
    return false;
  }
  Endpoints::Disconnected ended;
  const Instant deadline = linger_end();
  {
    // Together, so that a DGRAM that looks free in the table is free for the pattern, too.
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    if (!take_connected(name, ended)) {
      return false;
    }
    for (const auto& connection : ended.connections) {
      if (Pipe& pipe = pipe_of(*connection); pipe.notes.attached && !pipe.notes.ended) {
        pattern_->detach(pipe);
      }
    }
  }
  context_->io().run([&] {
    for (const auto& connection : ended.connections) {
      connection->link().handle_requests(IoService::read_held);
      connection->link().close(deadline);
    }
  });
  share_.output_parker.wake_with_fence();  // a sender that waits for room retries, and fails
  if (!ended.connections.empty()) {
    context_->connection_ended();
  }
  return true;
}

}  // namespace weft::msg
