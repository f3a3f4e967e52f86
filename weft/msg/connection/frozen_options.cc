// SPDX-License-Identifier: MIT
#include "weft/msg/connection/frozen_options.h"

#include <chrono>
#include <cstdint>
#include <utility>

#include "weft/msg/connection/security.h"
#include "weft/msg/message/own_properties.h"

namespace weft::msg {

sys::SocketOptions stream_options(const Options& options) {
  sys::SocketOptions stream;
  stream.send_buffer = options.send_buffer;
  stream.receive_buffer = options.receive_buffer;
  stream.tos = options.type_of_service;
  stream.priority = options.priority;
  stream.busy_poll = options.busy_poll;
  stream.backlog = options.backlog;
  stream.keepalive = options.tcp_keepalive;
  stream.keepalive_count = options.tcp_keepalive_count;
  stream.keepalive_idle = options.tcp_keepalive_idle;
  stream.keepalive_interval = options.tcp_keepalive_interval;
  stream.ipv6 = options.ipv6;
  stream.user_timeout =
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(options.tcp_max_retransmission).count());
  stream.connect_timeout =
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(options.connect_timeout).count());
  stream.device = options.bind_to_device;
  return stream;
}

zmtp::LocalEnd make_local_end(const Options& options, zmtp::WireType type) {
  zmtp::LocalEndConfig config;
  config.socket_type = type;
  config.identity = options.routing_id;
  config.announces_filters = options.announce_filters;
  config.metadata = split_properties(options.metadata);
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

}  // namespace weft::msg
