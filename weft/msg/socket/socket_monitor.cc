// SPDX-License-Identifier: MIT
// SocketCore: its events as messages.
#include <utility>

#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"

namespace weft::msg {

Result<void> SocketCore::start_feed(std::string_view text, SocketType type, MonitorFeed::Encode encode) {
  return or_no_memory([&] { return begin_feed(text, type, std::move(encode)); });
}

Result<void> SocketCore::begin_feed(std::string_view text, SocketType type, MonitorFeed::Encode encode) {
  const std::lock_guard lock(feed_mutex_);
  if (closed() || terminated()) {
    return refusal();
  }
  const net::Endpoint endpoint = WEFT_TRY(net::parse_endpoint(text, true));
  if (endpoint.transport != net::Transport::inproc) {
    return Error(Errc::unknown_transport, "events go out over inproc only");
  }
  end_feed();
  feed_ = WEFT_TRY(MonitorFeed::open(context_, text, type, std::move(encode)));
  try {
    monitor_.set_sink([feed = feed_](const MonitorEvent& event) { return feed->take(event); });
  } catch (const std::bad_alloc&) {
    end_feed();
    throw;
  }
  return {};
}

Result<void> SocketCore::stop_feed() {
  const std::lock_guard lock(feed_mutex_);
  if (closed()) {
    return refusal();
  }
  end_feed();
  return {};
}

Result<void> SocketCore::report_pipes() {
  const std::scoped_lock lock(receive_mutex_, send_mutex_);
  if (closed() || terminated()) {
    return refusal();
  }
  bool any = false;
  const auto report = [&](const Pipe& pipe, std::string_view endpoint, bool outgoing) {
    if (!pipe.notes.attached) {
      return;
    }
    any = true;
    monitor_.emit_made(EventKind::pipe_statistics, [&] {
      MonitorEvent event{EventKind::pipe_statistics, std::string(endpoint)};
      event.other = pipe.notes.other_end;
      event.outgoing = outgoing;
      event.queued_out = pipe.queued_out();
      event.queued_in = pipe.queued_in();
      return event;
    });
  };
  const std::lock_guard table(table_mutex_);
  for (const auto& [connection, connected] : connections_) {
    report(connected.pipe, connection->endpoint(), connection->connecting());
  }
  for (const auto& [pipe, keep] : inproc_pipes_) {
    report(*pipe, "inproc", pipe->link_end() == 0);
  }
  return any ? Result<void>() : Errc::would_block;
}

void SocketCore::end_feed() noexcept {
  monitor_.set_sink(nullptr);
  if (feed_ != nullptr) {
    feed_->close();
    feed_.reset();
  }
}

// The connections of a closed socket still emit events; the last of them ends the feed.
void SocketCore::end_feed_if_quiet() noexcept {
  {
    const std::lock_guard lock(table_mutex_);
    if (!pipes_closed_ || !connections_.empty()) {
      return;
    }
  }
  const std::lock_guard lock(feed_mutex_);
  end_feed();
}

}  // namespace weft::msg
