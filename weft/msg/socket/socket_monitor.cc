// SPDX-License-Identifier: MIT
// SocketCore: its events as messages.
#include <algorithm>
#include <utility>
#include <vector>

#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"

namespace weft::msg {

Result<void> SocketCore::start_feed(std::string_view text, SocketType type, MonitorFeed::Encode encode) {
  const sync::LockGuard lock(feed_.mutex);
  if (closed() || terminated()) {
    return refusal();
  }
  const net::Endpoint endpoint = WEFT_TRY(net::parse_endpoint(text, true));
  if (endpoint.transport != net::Transport::inproc) {
    return Error(Errc::unknown_transport, "events go out over inproc only");
  }
  end_feed();
  feed_.active = WEFT_TRY(MonitorFeed::open(*context_, text, type, std::move(encode)));
  try {
    monitor_.set_sink([feed = feed_.active](const MonitorEvent& event) {
      const bool is_lost = event.endpoint.empty() && event.kind != EventKind::stopped;  // and counted
      return is_lost || feed->take(event);
    });
  } catch (const std::bad_alloc&) {
    end_feed();
    throw;
  }
  return {};
}

Result<void> SocketCore::stop_feed() {
  const sync::LockGuard lock(feed_.mutex);
  if (closed()) {
    return refusal();
  }
  end_feed();
  return {};
}

Result<void> SocketCore::report_pipes() {
  return or_no_memory([&] { return emit_pipes(); });
}

Result<void> SocketCore::emit_pipes() {
  const sync::ScopedLock lock(receive_mutex_, send_mutex_);
  if (closed() || terminated()) {
    return refusal();
  }
  const sync::LockGuard table(table_mutex_);
  std::vector<const Pipe*> pipes;
  const auto add = [&pipes](const Pipe& pipe) {
    if (pipe.notes.attached) {
      pipes.push_back(&pipe);
    }
  };
  for (const auto& [connection, connected] : endpoints_.connections()) {
    add(connected.pipe);
  }
  for (const auto& [pipe, keep] : endpoints_.inproc_pipes()) {
    add(*pipe);
  }
  std::sort(pipes.begin(), pipes.end(), [](const Pipe* a, const Pipe* b) { return a->notes.order < b->notes.order; });
  for (const Pipe* pipe : pipes) {
    const Connection* const connection = pipe->connection();
    monitor_.emit_made(EventKind::pipe_statistics, [&] {
      MonitorEvent event{EventKind::pipe_statistics, connection != nullptr ? connection->endpoint() : "inproc"};
      event.other = pipe->notes.other_end;
      event.outgoing = connection != nullptr ? connection->connecting() : pipe->link_end() == 0;
      event.queued_out = pipe->queued_out();
      event.queued_in = pipe->queued_in();
      return event;
    });
  }
  return pipes.empty() ? Errc::would_block : Result<void>();
}

void SocketCore::end_feed() noexcept {
  monitor_.set_sink(nullptr);
  if (feed_.active != nullptr) {
    feed_.active->close();
    feed_.active.reset();
  }
}

// The connections of a closed socket still emit events; the last of them ends the feed.
void SocketCore::end_feed_if_quiet() noexcept {
  {
    const sync::LockGuard lock(table_mutex_);
    if (!endpoints_.is_quiet()) {
      return;
    }
  }
  const sync::LockGuard lock(feed_.mutex);
  end_feed();
}

}  // namespace weft::msg
