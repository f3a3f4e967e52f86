// SPDX-License-Identifier: MIT
// SocketCore: its counters.
#include "weft/msg/message/statistics.h"
#include "weft/msg/socket/socket_core.h"

namespace weft::msg {

Statistics SocketCore::statistics() {
  Statistics all;
  all.dropped = dropped();
  {
    const std::lock_guard lock(send_mutex_);
    const std::lock_guard table(table_mutex_);
    const auto add = [&all](const Pipe& pipe) {
      all.queued_out += pipe.queued_out();
      all.queued_in += pipe.queued_in();
      all.peers += pipe.notes.ready ? 1 : 0;
    };
    for (const auto& [connection, connected] : connections_) {
      add(connected.pipe);
    }
    for (const auto& [pipe, keep] : inproc_pipes_) {
      add(*pipe);
    }
  }
  all.binds = monitor_.count(EventKind::listening);
  all.binds_failed = monitor_.count(EventKind::bind_failed);
  all.accepted = monitor_.count(EventKind::accepted);
  all.accepts_failed = monitor_.count(EventKind::accept_failed);
  bounds_.report(all);
  all.connected = monitor_.count(EventKind::connected);
  all.connects_failed = monitor_.count(EventKind::connect_failed);
  all.reconnects = monitor_.count(EventKind::connect_retried);
  all.handshakes = monitor_.count(EventKind::handshake_succeeded);
  all.handshakes_failed = monitor_.count(EventKind::handshake_failed);
  all.disconnected = monitor_.count(EventKind::disconnected);
  all.events_dropped = monitor_.dropped();
  return all;
}

}  // namespace weft::msg
