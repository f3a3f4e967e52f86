// SPDX-License-Identifier: MIT
#include "weft/msg/message/monitor.h"

#include <new>
#include <utility>

#include "weft/sync/condition.h"
#include "weft/sync/kept_text.h"
#include "weft/sys/clock.h"

namespace weft {

std::string_view event_name(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::listening: return "listening";
    case EventKind::bind_failed: return "bind failed";
    case EventKind::accepted: return "accepted";
    case EventKind::accept_failed: return "accept failed";
    case EventKind::connected: return "connected";
    case EventKind::connect_delayed: return "connect delayed";
    case EventKind::connect_failed: return "connect failed";
    case EventKind::connect_retried: return "connect retried";
    case EventKind::handshake_succeeded: return "handshake succeeded";
    case EventKind::handshake_failed: return "handshake failed";
    case EventKind::disconnected: return "disconnected";
    case EventKind::closed: return "closed";
    case EventKind::pipe_statistics: return "pipe statistics";
    case EventKind::bound_exceeded: return "bound exceeded";
    case EventKind::stopped: return "stopped";
  }
  return "unknown event";
}

namespace {
// Returns false if the sink had no room, or no memory.
bool give(const Monitor::Sink& sink, const MonitorEvent& event) noexcept {
  try {
    return sink(event);
  } catch (const std::bad_alloc&) {
    return false;
  }
}
}  // namespace

void Monitor::count_lost(EventKind kind) noexcept {
  counts_[static_cast<std::size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
  dropped_.fetch_add(watched() ? 1 : 0, std::memory_order_relaxed);
  if (has_sink_.load(std::memory_order_relaxed)) {
    const sync::LockGuard lock(sink_mutex_);
    if (sink_) {
      (void)give(sink_, {kind, {}});  // without its endpoint: a sink that follows connections looks anew
    }
  }
}

void Monitor::emit(EventKind kind, std::string_view endpoint, const Error& reason, int fd) noexcept {
  emit_made(kind, [&] { return MonitorEvent{kind, std::string(endpoint), reason, {}, fd}; });
}

void Monitor::set_sink(Sink sink) noexcept {
  const sync::LockGuard lock(sink_mutex_);
  if (sink_ && !give(sink_, {EventKind::stopped, {}})) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
  sink_ = std::move(sink);
  has_sink_.store(sink_ != nullptr, std::memory_order_relaxed);  // a hint: emit() checks sink_ under the lock
}

void Monitor::note_trouble(const MonitorEvent& event) noexcept {
  const bool failed = event.kind == EventKind::connect_failed || event.kind == EventKind::handshake_failed;
  if (!failed && (event.kind != EventKind::handshake_succeeded || !troubled_.load(std::memory_order_relaxed))) {
    return;
  }
  const sync::LockGuard lock(mutex_);
  const bool same = event.endpoint == troubled_endpoint_;
  if (!failed) {
    trouble_ = same ? Error() : trouble_;
    troubled_.store(!(trouble_ == Errc::ok), std::memory_order_relaxed);
    return;
  }
  try {
    if (!same) {
      troubled_endpoint_ = event.endpoint;
    }
    if (!same || !(trouble_ == event.reason) || std::string_view(trouble_.text()) != event.reason.text()) {
      timed_out_ = Error();
    }
    trouble_ = event.reason;
    troubled_.store(true, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the text has an older reason
  }
}

Error Monitor::timed_out() noexcept {
  if (!troubled_.load(std::memory_order_relaxed)) {
    return Errc::timed_out;
  }
  const sync::LockGuard lock(mutex_);
  if (trouble_ == Errc::ok) {
    return Errc::timed_out;
  }
  if (timed_out_ == Errc::ok) {
    const std::string_view text = trouble_.text();
    timed_out_ = Error(
        Errc::timed_out,
        sync::keep_text(
            {"last: ", troubled_endpoint_, ": ", weft::describe(trouble_.code()), text.empty() ? "" : ": ", text}, ""));
  }
  return timed_out_;
}

void Monitor::emit(MonitorEvent event) noexcept {
  counts_[static_cast<std::size_t>(event.kind)].fetch_add(1, std::memory_order_relaxed);  // the count stands alone
  note_trouble(event);
  if (has_sink_.load(std::memory_order_relaxed)) {
    const sync::LockGuard lock(sink_mutex_);
    if (sink_ && !give(sink_, event)) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (!enabled_.load(std::memory_order_relaxed)) {
    return;
  }
  {
    const sync::LockGuard lock(mutex_);
    if (events_.size() >= kEventsMax) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    try {
      events_.push_back(std::move(event));
    } catch (const std::bad_alloc&) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  arrived_.notify_one();
}

void Monitor::end(Errc reason) {
  {
    const sync::LockGuard lock(mutex_);
    ended_ = reason;
  }
  arrived_.notify_all();
}

Result<MonitorEvent> Monitor::receive(Duration timeout) {
  enable();
  sync::UniqueLock lock(mutex_);
  const Instant deadline = deadline_after(sys::now(), timeout);
  while (events_.empty() && ended_ == Errc::ok) {
    if (!sync::sleep_until(arrived_, lock, deadline)) {
      return Errc::timed_out;
    }
  }
  if (events_.empty()) {
    return ended_;
  }
  MonitorEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

}  // namespace weft
