// SPDX-License-Identifier: MIT
#include "weft/msg/socket/socket_core.h"

#include <algorithm>
#include <utility>

#include "weft/msg/connection/io_service.h"
#include "weft/msg/connection/security.h"
#include "weft/msg/socket/context_core.h"
#include "weft/sys/clock.h"

namespace weft::msg {

SocketCore::SocketCore(ContextCore& context, const PatternRow& row)
    : ConnectionOwner({row.traits.wire, row.traits.receives, row.traits.takes_subscriptions, row.traits.single_part,
                       row.traits.groups},
                      context.wait_mode()),
      context_(context),
      traits_(row.traits),
      keep_context_(context.shared_from_this()),
      send_timeout_(options_.send_timeout.count()),
      receive_timeout_(options_.receive_timeout.count()),
      pattern_(row.make(row.traits, options_)) {}

SocketCore::~SocketCore() = default;

Error SocketCore::refusal() const noexcept {
  return closed_.load(std::memory_order_relaxed) ? Error(Errc::closed, "the socket is closed")
                                                 : Error(Errc::terminated, "the context was shut down");
}

Duration SocketCore::send_timeout() const noexcept { return Duration(send_timeout_.load(std::memory_order_relaxed)); }
Duration SocketCore::receive_timeout() const noexcept {
  return Duration(receive_timeout_.load(std::memory_order_relaxed));
}

Result<void> SocketCore::set_options(const std::function<Result<void>(Options&)>& change) {
  if (closed()) {
    return refusal();
  }
  {
    const std::scoped_lock lock(receive_mutex_, send_mutex_);
    Options changed = options_;
    WEFT_TRY(change(changed));
    WEFT_TRY(check_security(changed));
    if (changed.router_raw != options_.router_raw && type() == SocketType::router) {
      WEFT_TRY(make_raw(changed.router_raw));
    }
    {
      const std::lock_guard options(options_mutex_);
      options_.wipe_secrets();
      options_ = std::move(changed);
    }
    send_timeout_.store(options_.send_timeout.count(), std::memory_order_relaxed);
    receive_timeout_.store(options_.receive_timeout.count(), std::memory_order_relaxed);
    share_.sends_patiently.store(options_.send_timeout < Duration::zero() || options_.send_timeout >= kAwaitLongest,
                                 std::memory_order_relaxed);
    apply_marks();
  }
  share_.output_parker.wake_with_fence();  // a higher mark gives a waiting sender room
  return {};
}

Options SocketCore::options_copy() const {
  const std::lock_guard lock(options_mutex_);
  return options_;
}

// A raw ROUTER keeps its type and gets the pattern of STREAM.
Result<void> SocketCore::make_raw(bool raw) {
  const std::lock_guard lock(table_mutex_);
  if (!connections_.empty() || !inproc_pipes_.empty()) {
    return Error(Errc::invalid_argument, "router_raw has to be set before anything is connected");
  }
  add_drops(gone_, pattern_->drops());
  pattern_ = find_pattern(raw ? SocketType::stream : SocketType::router)->make(traits_, options_);
  return {};
}

bool SocketCore::raw() const {
  return type() == SocketType::stream || (type() == SocketType::router && options_copy().router_raw);
}

void SocketCore::apply_marks() {
  const std::lock_guard lock(table_mutex_);
  for (const auto& [connection, keep] : connections_) {
    connection->apply_marks(options_);
    connection->receive_side().handle_credit();
  }
  for (const auto& pipe : inproc_pipes_) {
    InprocLink& link = *pipe->link();
    link.set_marks(pipe->link_end(), options_.send_high_water_mark, options_.receive_high_water_mark);
    if (ConnectionOwner* peer = link.owner[1 - pipe->link_end()].load(std::memory_order_acquire); peer != nullptr) {
      peer->share().output_parker.wake_with_fence();
    }
  }
}

Result<void> SocketCore::subscribe(Bytes topic, bool on) {
  const std::lock_guard lock(send_mutex_);
  if (closed_.load(std::memory_order_relaxed) || terminated_.load(std::memory_order_relaxed)) {
    return refusal();
  }
  if (traits_.groups) {
    return Error(Errc::not_supported, "this socket type joins groups");
  }
  return on ? pattern_->subscribe(topic) : pattern_->unsubscribe(topic);
}

Result<void> SocketCore::join(Bytes group, bool on) {
  const std::lock_guard lock(send_mutex_);
  if (closed_.load(std::memory_order_relaxed) || terminated_.load(std::memory_order_relaxed)) {
    return refusal();
  }
  if (!traits_.groups) {
    return Error(Errc::not_supported, "this socket type joins no groups");
  }
  return on ? pattern_->subscribe(group) : pattern_->unsubscribe(group);
}

Result<bool> SocketCore::peer_writable(Bytes routing_id) {
  const std::lock_guard lock(send_mutex_);
  if (closed_.load(std::memory_order_relaxed) || terminated_.load(std::memory_order_relaxed)) {
    return refusal();
  }
  return pattern_->peer_writable(routing_id);
}

zmtp::LocalEnd SocketCore::make_local_end() const {
  const Options options = options_copy();
  zmtp::LocalEndConfig config;
  config.socket_type = traits_.wire;
  config.identity = options.routing_id;
  if (options.max_message_size >= 0) {
    config.limits.frame_bytes_max = static_cast<std::uint64_t>(options.max_message_size);
  }
  config.heartbeat_interval = options.heartbeat_interval;
  config.heartbeat_timeout = options.heartbeat_timeout;
  config.heartbeat_ttl = options.heartbeat_ttl;
  config.handshake_timeout = options.handshake_timeout;
  config.as_server = is_security_server(options);
  config.takes_old_peers = options.security == Security::null && options.zap_domain.empty();
  return {std::move(config), make_mechanism(options)};
}

sys::SocketOptions SocketCore::stream_options() const {
  const Options options = options_copy();
  sys::SocketOptions stream;
  stream.send_buffer = options.send_buffer;
  stream.receive_buffer = options.receive_buffer;
  stream.tos = options.type_of_service;
  stream.backlog = options.backlog;
  stream.keepalive = options.tcp_keepalive;
  stream.keepalive_count = options.tcp_keepalive_count;
  stream.keepalive_idle = options.tcp_keepalive_idle;
  stream.keepalive_interval = options.tcp_keepalive_interval;
  stream.ipv6 = options.ipv6;
  stream.user_timeout =
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(options.tcp_max_retransmission).count());
  stream.device = options.bind_to_device;
  return stream;
}

bool SocketCore::conflates() const { return traits_.conflates && options_copy().conflate; }

// Options disconnect_message and hiccup_message.
std::string SocketCore::farewell(bool outgoing) const {
  if (outgoing) {
    return traits_.takes_hiccup ? options_copy().hiccup_message : std::string();
  }
  return traits_.takes_goodbye ? options_copy().disconnect_message : std::string();
}

// Option connect_routing_id names the peer of the next connect, once.
void SocketCore::name_peer(Pipe& pipe) {
  const std::lock_guard lock(options_mutex_);
  pipe.notes.names_peer = !options_.connect_routing_id.empty();
  if (pipe.notes.names_peer) {
    pipe.notes.routing_id = std::exchange(options_.connect_routing_id, {});
  }
}

// --- the end ---

void SocketCore::terminate() {
  terminated_.store(true, std::memory_order_release);
  monitor_.end(Errc::terminated);
  share_.input_parker.wake_with_fence();
  share_.output_parker.wake_with_fence();
}

void SocketCore::close() {
  if (closed_.exchange(true) || context_.inherited()) {
    return;
  }
  const auto keep = shared_from_this();
  flush_batches();
  unbind_all();
  const Duration linger = options_copy().linger;
  close_pipes(linger < Duration::zero() ? kNever : deadline_after(sys::now(), linger));
  share_.input_parker.wake_with_fence();
  share_.output_parker.wake_with_fence();
  monitor_.end(Errc::closed);
  end_feed_if_quiet();
  context_.forget(*this);
}

void SocketCore::close_pipes(Instant deadline) {
  std::vector<std::shared_ptr<Connection>> connections;
  std::vector<std::unique_ptr<Pipe>> inproc;
  {
    const std::scoped_lock lock(receive_mutex_, send_mutex_);
    collect_signals();
    const std::lock_guard table(table_mutex_);
    for (auto& [connection, connected] : connections_) {
      connections.push_back(connected.connection);
      if (connected.pipe.notes.attached) {
        pattern_->detach(connected.pipe);
        pattern_->deactivate(connected.pipe);
        connected.pipe.notes.attached = false;
      }
    }
    for (const auto& pipe : inproc_pipes_) {
      if (pipe->notes.attached) {
        pattern_->detach(*pipe);
        pattern_->deactivate(*pipe);
        pipe->notes.attached = false;
      }
      remember(*pipe);
    }
    inproc.swap(inproc_pipes_);
    for (const Pipe* pipe : ended_) {
      if (pipe->connection() != nullptr) {
        remember(*pipe);
        connections_.erase(pipe->connection());  // the connection has finished: the table kept only its input
      }
    }
    ended_.clear();
    connected_.clear();
    connected_inproc_.clear();
    pipes_closed_ = true;
  }
  for (const auto& pipe : inproc) {
    close_inproc(*pipe, deadline);
  }
  for (const auto& connection : connections) {
    context_.io().loop().post([connection, deadline] { connection->link().close(deadline); });
  }
}

}  // namespace weft::msg
