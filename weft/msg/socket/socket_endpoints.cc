// SPDX-License-Identifier: MIT
// SocketCore: bind, connect and their opposites.
#include <algorithm>
#include <vector>

#include "weft/msg/connection/io_service.h"
#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/net/acceptor.h"
#include "weft/net/transport/layering.h"
#include "weft/net/transport/transport.h"
#include "weft/sys/address.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {

// "tcp://localhost:5555" -> "tcp://127.0.0.1:5555", "vsock://@:5555" -> "vsock://2:5555"; a text without a numeric form
// stays unchanged. May query the name service.
std::string numeric_form(std::string_view text, bool ipv6) {
  if (const auto bound = net::parse_endpoint(text, true); bound && bound->transport == net::Transport::vsock) {
    return bound->text();
  }
  const auto endpoint = net::parse_endpoint(text, false);
  if (!endpoint || !net::transport_row(endpoint->transport).over_tcp || endpoint->has_source) {
    return std::string(text);
  }
  const auto addresses = sys::resolve(endpoint->host, endpoint->port, ipv6);
  return addresses ? std::string(text.substr(0, text.find("://") + 3)) + addresses->front().to_text() + endpoint->path
                   : std::string(text);
}

// No proxy: the option names none, or the transport is not over tcp.
Result<std::optional<net::Socks5Proxy>> proxy_for(const net::Endpoint& endpoint, const Options& options) {
  if (options.socks_proxy.empty() || !net::transport_row(endpoint.transport).over_tcp) {
    return std::optional<net::Socks5Proxy>();
  }
  return std::optional(
      WEFT_TRY(net::parse_socks5_proxy(options.socks_proxy, options.socks_username, options.socks_password)));
}

// The error for an endpoint that this socket does not know.
Error describe_unknown(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0 || colon + 3 == text.size()) {
    return {Errc::malformed_endpoint, "an endpoint is transport://address"};
  }
  const auto endpoint = net::parse_endpoint(text, true);
  return !endpoint && endpoint.error() == Errc::unknown_transport
             ? endpoint.error()
             : Error(Errc::no_such_endpoint, "not bound or connected there");
}

}  // namespace

Result<std::string> SocketCore::bind(std::string_view text) {
  if (refuses()) {
    return refusal();
  }
  const net::Endpoint endpoint = WEFT_TRY(net::parse_endpoint(text, true));
  if (endpoint.transport == net::Transport::udp) {
    return bind_datagrams(text, endpoint);
  }
  WEFT_TRY(refuse_raw(endpoint));
  WEFT_TRY(refuse_unlike_transport());
  if (endpoint.transport == net::Transport::inproc) {
    return bind_inproc(endpoint);
  }
  const FrozenOptions options = options_.freeze();
  auto layering = make_layering(endpoint, true, *options);
  auto listener = layering ? open_listener(endpoint, *options) : layering.error();
  if (!listener) {
    monitor_.emit(EventKind::bind_failed, text, listener.error());
    return listener.error();
  }
  std::shared_ptr<net::Admission> gate;
  if (net::transport_row(endpoint.transport).over_tcp) {
    gate = WEFT_TRY(bounds_.make_gate(*options));
  }
  WEFT_TRY(context_->start_io());
  const CountedConnection counted(*context_);
  const int fd = (*listener)->fd();
  std::string exact = (*listener)->bound_endpoint();
  // The entry is made first: to move it into the table needs no memory.
  Endpoints::BoundNames bound{
      {exact, make_bound(std::move(*listener), {exact, options, std::move(gate), std::move(*layering)})}};
  const sync::LockGuard lock(table_mutex_);
  if (closed()) {
    return refusal();
  }
  // Under the lock: a thread that closes the socket finds the acceptor, and asks the I/O thread after this.
  context_->io().loop().post(
      [acceptor = bound.begin()->second.acceptor, keep = shared_from_this()] { acceptor->start(); });
  monitor_.emit(EventKind::listening, exact, Error(), fd);
  endpoints_.add_bound(bound);
  return exact;
}

Result<std::unique_ptr<net::Listener>> SocketCore::open_listener(const net::Endpoint& endpoint,
                                                                 const Options& options) {
  auto filter = WEFT_TRY(net::AcceptFilter::parse(options.tcp_accept_filter, options.ipc_filter));
  sys::SocketOptions stream = stream_options(options);
  stream.adopt_fd = options.use_fd;
  auto listener = WEFT_TRY(net::Listener::open(endpoint, stream));
  listener->set_filter(std::move(filter));
  if (options.use_fd >= 0) {
    // The listener owns it; the next bind opens its own.
    options_.change([](Options& current) { current.use_fd = -1; });
  }
  return listener;
}

// The lobby writes the opening of our greeting, unless a layer below ZMTP begins the conversation.
std::shared_ptr<Lobby> SocketCore::make_lobby(const Listening& listening) {
  std::vector<std::uint8_t> opening;
  if (listening.layering == nullptr) {
    zmtp::LocalEnd end = make_local_end(*listening.options, traits_.wire);
    end.start(Instant(), zmtp::Opening::signature);
    const Bytes output = end.pending_output();
    opening.assign(output.begin(), output.end());
  }
  return std::make_shared<Lobby>(
      context_->io().loop(), std::move(opening), listening.options->handshake_timeout,
      Lobby::Handlers{[this, listening](Lobby::Pending&& pending) { add_connection(std::move(pending), listening); },
                      [this, endpoint = listening.endpoint] {
                        monitor_.emit(EventKind::accept_failed, endpoint,
                                      Error(Errc::resource_exhausted, "no memory for an accepted connection"));
                      }});
}

Endpoints::Bound SocketCore::make_bound(std::unique_ptr<net::Listener> listener, const Listening& listening) {
  const auto report = [this, endpoint = listening.endpoint](const Error& error) {
    monitor_.emit(EventKind::accept_failed, endpoint, error);
  };
  auto lobby = make_lobby(listening);
  auto acceptor = net::Acceptor::make(context_->io().loop(), std::move(listener),
                                      {[this, listening, lobby](std::unique_ptr<net::ByteStream> stream) {
                                         add_accepted(std::move(stream), listening, *lobby);
                                       },
                                       report, report});
  return {std::move(acceptor), std::move(lobby)};
}

void SocketCore::close_bound(const Endpoints::Bound& bound) noexcept {
  const int fd = bound.acceptor->fd();
  if (fd < 0) {
    return;
  }
  bound.acceptor->close();
  bound.lobby->close();
  monitor_.emit(EventKind::closed, bound.acceptor->endpoint(), Error(), fd);
}

Result<void> SocketCore::connect(std::string_view text) {
  WEFT_TRY(connect_pipe(text));
  return {};
}

Result<std::uint32_t> SocketCore::connect_peer(std::string_view text) {
  if (type() != SocketType::peer) {
    return Error(Errc::not_supported, "only a PEER names whom it connects to");
  }
  if (options_copy().immediate) {
    return Error(Errc::invalid_state, "with the option immediate nobody is named before being there");
  }
  return connect_pipe(text);
}

Result<std::uint32_t> SocketCore::connect_pipe(std::string_view text) {
  if (refuses()) {
    return refusal();
  }
  const net::Endpoint endpoint = WEFT_TRY(net::parse_endpoint(text, false));
  if (endpoint.transport == net::Transport::udp) {
    return connect_datagrams(text, endpoint);
  }
  WEFT_TRY(refuse_raw(endpoint));
  WEFT_TRY(refuse_unlike_transport());
  if (endpoint.transport == net::Transport::inproc) {
    return connect_inproc(endpoint);
  }
  const FrozenOptions options = options_.freeze();
  auto proxy = WEFT_TRY(proxy_for(endpoint, *options));
  auto layering = WEFT_TRY(make_layering(endpoint, false, *options));
  WEFT_TRY(context_->start_io());
  CountedConnection counted(*context_);
  auto connection = std::make_shared<Connection>(shared_from_this(), context_->io(), options, endpoint,
                                                 std::move(proxy), std::move(layering));
  Endpoints::ConnectedNames entry{{std::string(text), connection}};
  std::uint32_t routing_id = 0;
  {
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    if (closed()) {
      return refusal();
    }
    connection->apply_marks(options_.read());
    const sync::LockGuard table(table_mutex_);
    if (traits_.connects_once && endpoints_.knows(entry.begin()->first)) {
      return routing_id;
    }
    make_room_for_end();
    Endpoints::ConnectedPipe& connected = endpoints_.add(*this, connection);
    Pipe& pipe = connected.pipe;
    name_peer(pipe);
    try {
      if (!options->immediate) {
        attach(pipe);
        report_id(pipe);
        routing_id = pipe.notes.origin.routing_id;
      }
      // Under the locks: a thread that closes the socket finds the connection, and asks the I/O thread after this.
      context_->io().loop().post([connection, keep = shared_from_this()] { connection->link().start(); });
    } catch (const std::bad_alloc&) {
      if (pipe.notes.attached) {
        detach(pipe);
      }
      give_name_back(pipe);
      endpoints_.erase(connection.get());
      throw;
    }
    endpoints_.add_name(connected, entry);
    counted.keep();
  }
  share_.output_parker.wake_with_fence();  // a waiting sender can queue at the new pipe
  return routing_id;
}

// A raw socket carries a stream of bytes, and some transports have none: inproc, and ws with its messages.
Result<void> SocketCore::refuse_raw(const net::Endpoint& endpoint) const {
  const bool has_bytes = endpoint.transport != net::Transport::inproc && !net::is_websocket(endpoint.transport);
  return raw() && !has_bytes ? Result<void>(Error(Errc::incompatible_peer, "raw sockets have no inproc and no ws"))
                             : Result<void>();
}

// STREAM: the caller of connect reads the peer's name in the option routing_id, unless the caller chose the name.
void SocketCore::report_id(const Pipe& pipe) {
  if (type() == SocketType::stream && !pipe.notes.names_peer) {
    options_.change([&pipe](Options& options) { options.routing_id = pipe.notes.routing_id; });
  }
}

Result<void> SocketCore::unbind(std::string_view text) {
  if (closed()) {
    return refusal();
  }
  Endpoints::Bound bound = take_bound(std::string(text));
  if (bound.acceptor == nullptr) {
    if (unbind_datagrams(std::string(text))) {
      return {};
    }
    if (context_->unbind_inproc(std::string(text), *this)) {
      monitor_.emit(EventKind::closed, text);
      return {};
    }
    bound = take_bound(numeric_form(text, options_copy().ipv6));
  }
  if (bound.acceptor == nullptr) {
    return describe_unknown(text);
  }
  const CountedConnection counted(*context_);
  context_->io().run([&] { close_bound(bound); });
  close_accepted(bound.acceptor->endpoint());
  return {};
}

// Takes the endpoint out of the table; without an acceptor: `name` is not bound. With one the caller owes the context a
// connection_ended().
Endpoints::Bound SocketCore::take_bound(const std::string& name) {
  const sync::LockGuard lock(table_mutex_);
  Endpoints::Bound bound = endpoints_.take_bound(name);
  if (bound.acceptor != nullptr) {
    context_->connection_started();  // under the lock, before close() passes: the I/O thread stays
  }
  return bound;
}

// Closes the connections accepted at `endpoint`. The application can still take their input, also the bytes that the
// kernel holds: the I/O thread reads before it closes.
void SocketCore::close_accepted(const std::string& endpoint) noexcept {
  const Instant deadline = linger_end();
  {
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    const sync::LockGuard table(table_mutex_);
    for (auto& [connection, connected] : endpoints_.connections()) {
      if (!connection->connecting() && connection->endpoint() == endpoint) {
        if (connected.pipe.notes.attached && !connected.pipe.notes.ended) {
          pattern_->detach(connected.pipe);
        }
        connected.pipe.notes.left = true;
        context_->io().request(connected.connection, IoService::read_held);
        connection->link().request_close(deadline);
      }
    }
  }
  context_->io().run([] {});  // the I/O thread has begun: a message that a peer sends from now on comes too late
  share_.output_parker.wake_with_fence();  // a sender that waits for one of them retries, and fails
}

void SocketCore::unbind_all() noexcept {
  Endpoints::BoundNames bound;
  {
    const sync::LockGuard lock(table_mutex_);
    bound = endpoints_.take_all_bound();
  }
  if (!bound.empty()) {
    context_->io().run([&] {
      for (const auto& [name, endpoint] : bound) {
        close_bound(endpoint);
      }
    });
  }
  context_->unbind_all_inproc(*this);
}

Result<void> SocketCore::disconnect(std::string_view text) {
  if (closed()) {
    return refusal();
  }
  Endpoints::Disconnected ended;
  if (!take_connected(std::string(text), ended) && !take_connected(numeric_form(text, options_copy().ipv6), ended)) {
    return describe_unknown(text);
  }
  const Instant deadline = linger_end();
  for (const auto& connection : ended.connections) {
    leave(connection, deadline);
  }
  share_.output_parker.wake_with_fence();  // a sender that waits for this very peer retries, and fails
  for (const auto& link : ended.links) {
    disconnect_inproc(*link, 0);
  }
  if (!ended.connections.empty()) {
    context_->connection_ended();
  }
  return {};
}

// Takes every connection and inproc link of this name out of the table; false: there is none. With a connection among
// them the caller owes the context a connection_ended().
bool SocketCore::take_connected(const std::string& name, Endpoints::Disconnected& into) {
  const sync::LockGuard table(table_mutex_);
  const bool any = endpoints_.disconnect(name, into);
  if (!into.connections.empty()) {
    context_->connection_started();  // as in take_bound()
  }
  return any;
}

}  // namespace weft::msg
