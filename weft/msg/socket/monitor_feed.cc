// SPDX-License-Identifier: MIT
#include "weft/msg/socket/monitor_feed.h"

#include <utility>

#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"

namespace weft::msg {

MonitorFeed::MonitorFeed(std::shared_ptr<SocketCore> core, Encode encode, bool waits_for_reader)
    : core_(std::move(core)), encode_(std::move(encode)), has_reader_(!waits_for_reader) {}

Result<std::shared_ptr<MonitorFeed>> MonitorFeed::open(ContextCore& context, std::string_view endpoint, SocketType type,
                                                       Encode encode) {
  if (type != SocketType::pair && type != SocketType::push && type != SocketType::pub) {
    return Error(Errc::invalid_argument, "events go out through pair, push or pub");
  }
  auto core = WEFT_TRY(context.make_socket(type));
  auto feed = set_up([&] { return open_over(core, endpoint, type, std::move(encode)); });
  if (!feed) {
    core->close();
  }
  return feed;
}

Result<std::shared_ptr<MonitorFeed>> MonitorFeed::open_over(const std::shared_ptr<SocketCore>& core,
                                                            std::string_view endpoint, SocketType type, Encode encode) {
  WEFT_TRY(core->set_options([](Options& options) {
    options.linger = Duration::zero();  // unread events keep no context alive
    return Result<void>();
  }));
  std::shared_ptr<MonitorFeed> feed(new MonitorFeed(core, std::move(encode), type != SocketType::pub));
  core->on_inproc_peer([weak = feed->weak_from_this()] {
    if (const auto self = weak.lock(); self != nullptr) {
      self->handle_reader();
    }
  });
  WEFT_TRY(core->bind(endpoint));
  return feed;
}

bool MonitorFeed::take(const MonitorEvent& event) {
  const sync::LockGuard lock(mutex_);
  if (!has_reader_) {
    if (backlog_.size() >= kBacklogMax) {
      return false;
    }
    backlog_.push_back(event);
    return true;
  }
  dropped_ = false;
  encode_(event, *this);
  return !dropped_;
}

void MonitorFeed::handle_reader() {
  const sync::LockGuard lock(mutex_);
  has_reader_ = true;
  while (!backlog_.empty()) {
    try {
      encode_(backlog_.front(), *this);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the event is dropped
    }
    backlog_.pop_front();
  }
}

void MonitorFeed::send(std::span<const Bytes> parts) {
  sync::assume_locked(mutex_);  // take() and handle_reader() call Encode
  Outbound end;
  if (torn_ && !core_->send(end, Timeout::none())) {
    dropped_ = true;
    return;
  }
  torn_ = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Outbound part{parts[i], nullptr, i + 1 < parts.size()};
    if (core_->send(part, Timeout::none())) {
      continue;
    }
    dropped_ = true;
    if (i == 0) {
      return;
    }
    // A later part fails only for lack of memory. An empty part ends the message, now or before the next one.
    torn_ = !core_->send(end, Timeout::none());
    return;
  }
}

void MonitorFeed::close() { core_->close(); }

}  // namespace weft::msg
