// SPDX-License-Identifier: MIT
// SocketCore: bind, connect and their opposites.
#include "weft/msg/connection/io_service.h"
#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/net/acceptor.h"
#include "weft/net/layering.h"
#include "weft/net/transport.h"
#include "weft/sys/address.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {

// Counted: one connection of a context (ContextCore::start_io()), until keep().
// Owner: a call, on its stack.
class Counted {
 public:
  explicit Counted(ContextCore& context) noexcept : context_(&context) {}
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() {
    if (context_ != nullptr) {
      context_->connection_ended();
    }
  }
  void keep() noexcept { context_ = nullptr; }

 private:
  ContextCore* context_;
};

// "tcp://localhost:5555" -> "tcp://127.0.0.1:5555"; a text without a numeric form stays unchanged. May query the name
// service.
std::string numeric_form(std::string_view text, bool ipv6) {
  const auto endpoint = net::parse_endpoint(text, false);
  if (!endpoint || !net::transport_row(endpoint->transport).over_tcp || endpoint->has_source) {
    return std::string(text);
  }
  const auto addresses = sys::resolve(endpoint->host, endpoint->port, ipv6);
  return addresses ? std::string(text.substr(0, text.find("://") + 3)) + addresses->front().to_text() + endpoint->path
                   : std::string(text);
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

Result<std::string> SocketCore::bind_endpoint(std::string_view text) {
  if (closed_.load(std::memory_order_relaxed) || terminated_.load(std::memory_order_relaxed)) {
    return refusal();
  }
  const net::Endpoint endpoint = WEFT_TRY(net::parse_endpoint(text, true));
  WEFT_TRY(refuse_raw(endpoint));
  if (endpoint.transport == net::Transport::inproc) {
    return bind_inproc(endpoint);
  }
  auto layering = make_layering(endpoint, true, options_copy());
  auto listener = layering ? open_listener(endpoint) : layering.error();
  if (!listener) {
    monitor_.emit(EventKind::bind_failed, text, listener.error());
    return listener.error();
  }
  std::shared_ptr<net::Admission> gate;
  if (net::transport_row(endpoint.transport).over_tcp) {
    gate = WEFT_TRY(bounds_.make_gate(options_copy()));
  }
  WEFT_TRY(context_.start_io());
  const Counted counted(context_);
  const int fd = (*listener)->fd();
  auto acceptor = make_acceptor(std::move(*listener), std::move(gate), std::move(*layering));
  std::string exact = acceptor->endpoint();
  // The entries are made first: to move them into the tables needs no memory.
  decltype(bound_) bound{{exact, acceptor}};
  decltype(bound_aliases_) alias{{std::string(text), exact}};
  const std::lock_guard lock(table_mutex_);
  if (closed()) {
    return refusal();
  }
  // Under the lock: a thread that closes the socket finds the acceptor, and asks the I/O thread after this.
  context_.io().loop().post([acceptor, keep = shared_from_this()] { acceptor->start(); });
  monitor_.emit(EventKind::listening, exact, Error(), fd);
  bound_.merge(bound);
  bound_aliases_.erase(alias.begin()->first);
  bound_aliases_.merge(alias);
  return exact;
}

Result<std::unique_ptr<net::Listener>> SocketCore::open_listener(const net::Endpoint& endpoint) {
  const Options options = options_copy();
  auto filter = WEFT_TRY(net::AcceptFilter::parse(options.tcp_accept_filter, options.ipc_filter));
  sys::SocketOptions stream = stream_options();
  stream.adopt_fd = options.use_fd;
  auto listener = WEFT_TRY(net::Listener::open(endpoint, stream));
  listener->set_filter(std::move(filter));
  if (options.use_fd >= 0) {
    const std::lock_guard lock(options_mutex_);
    options_.use_fd = -1;  // the listener owns it; the next bind opens its own
  }
  return listener;
}

std::shared_ptr<net::Acceptor> SocketCore::make_acceptor(std::unique_ptr<net::Listener> listener,
                                                         std::shared_ptr<net::Admission> gate,
                                                         std::shared_ptr<const net::Layering> layering) {
  const std::string endpoint = listener->bound_endpoint();
  const auto report = [this, endpoint](const Error& error) {
    monitor_.emit(EventKind::accept_failed, endpoint, error);
  };
  return net::Acceptor::make(
      context_.io().loop(), std::move(listener),
      {[this, endpoint, gate = std::move(gate), layering = std::move(layering)](std::unique_ptr<net::Stream> stream) {
         add_accepted(std::move(stream), endpoint, gate, layering);
       },
       report, report});
}

void SocketCore::close_acceptor(net::Acceptor& acceptor) noexcept {
  const int fd = acceptor.fd();
  if (fd < 0) {
    return;
  }
  acceptor.close();
  monitor_.emit(EventKind::closed, acceptor.endpoint(), Error(), fd);
}

Result<std::optional<net::Socks5Proxy>> SocketCore::proxy_for(const net::Endpoint& endpoint) const {
  const Options options = options_copy();
  if (options.socks_proxy.empty() || !net::transport_row(endpoint.transport).over_tcp) {
    return std::optional<net::Socks5Proxy>();
  }
  return std::optional(
      WEFT_TRY(net::parse_socks5_proxy(options.socks_proxy, options.socks_username, options.socks_password)));
}

Result<void> SocketCore::connect_endpoint(std::string_view text) {
  WEFT_TRY(connect_pipe(text));
  return {};
}

Result<std::uint32_t> SocketCore::connect_named(std::string_view text) {
  if (type() != SocketType::peer) {
    return Error(Errc::not_supported, "only a PEER names whom it connects to");
  }
  if (options_copy().immediate) {
    return Error(Errc::invalid_state, "with the option immediate nobody is named before being there");
  }
  return connect_pipe(text);
}

Result<std::uint32_t> SocketCore::connect_pipe(std::string_view text) {
  if (closed_.load(std::memory_order_relaxed) || terminated_.load(std::memory_order_relaxed)) {
    return refusal();
  }
  const net::Endpoint endpoint = WEFT_TRY(net::parse_endpoint(text, false));
  WEFT_TRY(refuse_raw(endpoint));
  if (endpoint.transport == net::Transport::inproc) {
    return connect_inproc(endpoint);
  }
  auto proxy = WEFT_TRY(proxy_for(endpoint));
  auto layering = WEFT_TRY(make_layering(endpoint, false, options_copy()));
  WEFT_TRY(context_.start_io());
  Counted counted(context_);
  auto connection =
      std::make_shared<Connection>(shared_from_this(), context_.io(), endpoint, std::move(proxy), std::move(layering));
  decltype(connected_) entry{{std::string(text), connection}};
  std::uint32_t routing_id = 0;
  {
    const std::scoped_lock lock(receive_mutex_, send_mutex_);
    if (closed()) {
      return refusal();
    }
    connection->apply_marks(options_);
    const std::lock_guard table(table_mutex_);
    make_room_for_end();
    ConnectedPipe& connected = connections_.try_emplace(connection.get(), *this, connection).first->second;
    Pipe& pipe = connected.pipe;
    name_peer(pipe);
    try {
      if (!options_.immediate) {
        attach(pipe);
        report_id(pipe);
        routing_id = pipe.notes.origin.routing_id;
      }
      // Under the locks: a thread that closes the socket finds the connection, and asks the I/O thread after this.
      context_.io().loop().post([connection, keep = shared_from_this()] { connection->link().start(); });
    } catch (const std::bad_alloc&) {
      if (pipe.notes.attached) {
        detach(pipe);
      }
      give_name_back(pipe);
      connections_.erase(connection.get());
      throw;
    }
    connected.connected = entry.begin();  // stays valid
    connected_.merge(entry);
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
    const std::lock_guard lock(options_mutex_);
    options_.routing_id = pipe.notes.routing_id;
  }
}

Result<void> SocketCore::unbind_endpoint(std::string_view text) {
  if (closed_.load(std::memory_order_relaxed)) {
    return refusal();
  }
  std::shared_ptr<net::Acceptor> acceptor = take_bound(std::string(text));
  if (acceptor == nullptr) {
    if (context_.unbind_inproc(std::string(text), *this)) {
      monitor_.emit(EventKind::closed, text);
      return {};
    }
    acceptor = take_bound(numeric_form(text, options_copy().ipv6));
  }
  if (acceptor == nullptr) {
    return describe_unknown(text);
  }
  const Counted counted(context_);
  context_.io().run([&] { close_acceptor(*acceptor); });
  close_accepted(acceptor->endpoint());
  return {};
}

// Takes the acceptor out of the table; null: `name` is not bound. With an acceptor the caller owes the context a
// connection_ended().
std::shared_ptr<net::Acceptor> SocketCore::take_bound(std::string name) {
  const std::lock_guard lock(table_mutex_);
  if (const auto alias = bound_aliases_.find(name); alias != bound_aliases_.end()) {
    name = alias->second;
  }
  const auto found = bound_.find(name);
  if (found == bound_.end()) {
    return nullptr;
  }
  std::shared_ptr<net::Acceptor> acceptor = found->second;
  context_.connection_started();  // under the lock, before close() passes: the I/O thread stays
  bound_.erase(found);
  std::erase_if(bound_aliases_, [&](const auto& entry) { return entry.second == name; });
  return acceptor;
}

// Closes the connections accepted at `endpoint`. The application can still take their input, also the bytes that the
// kernel holds: the I/O thread reads before it closes.
void SocketCore::close_accepted(const std::string& endpoint) noexcept {
  const Instant deadline = linger_end();
  {
    const std::scoped_lock lock(receive_mutex_, send_mutex_);
    const std::lock_guard table(table_mutex_);
    for (auto& [connection, connected] : connections_) {
      if (!connection->connecting() && connection->endpoint() == endpoint) {
        if (connected.pipe.notes.attached && !connected.pipe.notes.ended) {
          pattern_->detach(connected.pipe);
        }
        context_.io().request(connected.connection, IoService::read_held);
        connection->link().request_close(deadline);
      }
    }
  }
  share_.output_parker.wake_with_fence();  // a sender that waits for one of them retries, and fails
}

void SocketCore::stop_sending_to(Pipe& pipe) noexcept {
  bool unswept = false;
  {
    const std::scoped_lock lock(receive_mutex_, send_mutex_);
    if (pipe.notes.attached && !pipe.notes.ended) {
      pattern_->detach(pipe);
      unswept = pattern_->sweep();
    }
  }
  if (unswept) {
    start_sweep();
  }
}

void SocketCore::unbind_all() noexcept {
  std::map<std::string, std::shared_ptr<net::Acceptor>> bound;
  {
    const std::lock_guard lock(table_mutex_);
    bound.swap(bound_);
    bound_aliases_.clear();
  }
  if (!bound.empty()) {
    context_.io().run([&] {
      for (const auto& [name, acceptor] : bound) {
        close_acceptor(*acceptor);
      }
    });
  }
  context_.unbind_all_inproc(*this);
}

Result<void> SocketCore::disconnect_endpoint(std::string_view text) {
  if (closed_.load(std::memory_order_relaxed)) {
    return refusal();
  }
  Connections ended;
  if (!take_connected(std::string(text), ended) && !take_connected(numeric_form(text, options_copy().ipv6), ended)) {
    return describe_unknown(text);
  }
  const Instant deadline = linger_end();
  for (const auto& connection : ended.connections) {
    stop_sending_to(pipe_of(*connection));
    connection->link().request_close(deadline);
  }
  share_.output_parker.wake_with_fence();  // a sender that waits for this very peer retries, and fails
  for (const auto& link : ended.links) {
    disconnect_inproc(*link, 0);
  }
  if (!ended.connections.empty()) {
    context_.connection_ended();
  }
  return {};
}

// Takes every connection and inproc link of this name out of the table; false: there is none. With a connection among
// them the caller owes the context a connection_ended().
bool SocketCore::take_connected(const std::string& name, Connections& into) {
  const std::lock_guard table(table_mutex_);
  const auto [first, last] = connected_.equal_range(name);
  const auto [first_link, last_link] = connected_inproc_.equal_range(name);
  const bool any = first != last || first_link != last_link;
  for (auto it = first; it != last; ++it) {
    if (it->second != nullptr) {  // null: the connection gave up
      connections_.find(it->second.get())->second.connected.reset();
      into.connections.push_back(it->second);
    }
  }
  for (auto it = first_link; it != last_link; ++it) {
    if (const auto owned = inproc_pipes_.find(it->second->pipe[0]); owned != inproc_pipes_.end()) {
      owned->second.connected.reset();
    }
    into.links.push_back(it->second);
  }
  if (!into.connections.empty()) {
    context_.connection_started();  // as in take_bound()
  }
  connected_.erase(first, last);
  connected_inproc_.erase(first_link, last_link);
  return any;
}

}  // namespace weft::msg
