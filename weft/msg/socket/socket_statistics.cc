// SPDX-License-Identifier: MIT
// SocketCore: its counters.
#include <algorithm>

#include "weft/msg/message/statistics.h"
#include "weft/msg/socket/socket_core.h"

namespace weft::msg {

Statistics SocketCore::statistics() {
  Statistics all;
  {
    const sync::ScopedLock lock(receive_mutex_, send_mutex_);
    const sync::LockGuard table(table_mutex_);
    all = ended_.gone();
    add_drops(all, share_.drops);
    add_drops(all, pattern_->drops());
    pattern_->add_counts(all);
    all.sent += share_.sent_late.load();
    all.queued_out += share_.left_behind.load();
    const auto add = [&all](const Pipe& pipe) {
      pipe.add_counts(all);
      all.peers += pipe.notes.ready ? 1 : 0;
    };
    for (const auto& [connection, connected] : endpoints_.connections()) {
      add(connected.pipe);
    }
    for (const auto& [pipe, keep] : endpoints_.inproc_pipes()) {
      add(*pipe);
    }
  }
  // The writer of a datagram takes it for sent, whatever becomes of it. The reader has not seen those of the overflow.
  all.sent -= std::min(all.sent, all.dropped_too_long + all.dropped_refused);
  all.arrived += all.dropped_overflow;
  sum_drops(all);
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
  all.bounds_exceeded = monitor_.count(EventKind::bound_exceeded);
  all.events_dropped = monitor_.dropped();
  return all;
}

}  // namespace weft::msg
