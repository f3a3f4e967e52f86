// SPDX-License-Identifier: MIT
// HubLink: one connection after the other, and hosting. All of it on the handle's loop.
#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/topic/kept/hub_link.h"

namespace weft::topic {

namespace {
constexpr Duration kPauseFirst = std::chrono::milliseconds(2);
constexpr Duration kPauseMost = std::chrono::milliseconds(250);
constexpr unsigned kDrainMost = 65'536;  // ops of a connection that ended
}  // namespace

void HubLink::post(void (HubLink::*work)()) {
  loop_.post([weak = weak_from_this(), work] {
    if (const auto link = weak.lock()) {
      (link.get()->*work)();
    }
  });
}

bool HubLink::wanted() const noexcept {
  return !closed_ && (!calls_.order.empty() || !channels_.empty() || !declared_.empty());
}

void HubLink::want_connection() {
  if (state_ == Link::idle && !connect_posted_) {
    post(&HubLink::connect);
    connect_posted_ = true;
  }
}

void HubLink::connect() {
  {
    const sync::LockGuard lock(mutex_);
    connect_posted_ = false;
    if (state_ != Link::idle || retry_ || !wanted()) {
      return;
    }
  }
  const auto made = or_no_memory([&]() -> Result<void> {
    Socket socket = WEFT_TRY(settings_.make_socket());
    WEFT_TRY(socket.set(option::linger, Duration(std::chrono::milliseconds(100))));
    WEFT_TRY(socket.set(option::reconnect_interval, Duration(std::chrono::milliseconds(-1))));
    WEFT_TRY(socket.set(option::send_high_water_mark, 0));
    WEFT_TRY(socket.set(option::receive_high_water_mark, 0));
    WEFT_TRY(socket.set(option::max_message_size, static_cast<std::int64_t>(kOpSizeMax)));
    WEFT_TRY(socket.set(option::handshake_timeout, Duration(std::chrono::seconds(2))));
    const std::uint64_t number = ++connections_;
    socket.core()->monitor().set_sink([weak = weak_from_this(), number](const MonitorEvent& event) {
      const bool up = event.kind == EventKind::handshake_succeeded;
      if (!up && event.kind != EventKind::disconnected && event.kind != EventKind::connect_failed &&
          event.kind != EventKind::handshake_failed) {
        return true;
      }
      const auto link = weak.lock();
      if (link == nullptr) {
        return true;
      }
      try {
        link->loop_.post([weak, number, up, reason = event.reason] {
          if (const auto still = weak.lock()) {
            up ? still->connected(number) : still->disconnected(number, reason);
          }
        });
      } catch (const std::bad_alloc&) {
        return false;
      }
      return true;
    });
    const int fd = WEFT_TRY(socket.core()->descriptor());
    connection_.watch = WEFT_TRY(loop_.watch(fd, sys::Interest::readable, false, &connection_));
    connection_.number = number;
    const auto connecting = socket.connect(settings_.endpoint);
    const sync::LockGuard lock(mutex_);
    connection_.socket = std::move(socket);
    state_ = Link::connecting;
    return connecting;
  });
  if (!made) {
    disconnected(connections_, made.error());
  } else if (settings_.direct) {
    connected(connections_);
  }
}

void HubLink::connected(std::uint64_t number) {
  Result<void> resent;
  {
    const sync::LockGuard lock(mutex_);
    if (closed_ || number != connection_.number || state_ != Link::connecting) {
      return;
    }
    state_ = Link::up;
    trouble_ = Error();
    ++counts_.connections;
    hosted_.served = true;
    pause_ = Duration::zero();
    resent = or_no_memory([this] { return in_lock(), resend(); });
  }
  if (!resent) {
    disconnected(number, resent.error());  // the next connection begins anew
    return;
  }
  flush();
}

Result<void> HubLink::resend() {
  for (const auto& [name, declaration] : declared_) {
    (void)send(declaration);
  }
  for (const auto& [id, channel] : channels_) {
    KeptChannel::OpenTexts texts;
    send_settled(*channel, 0);  // before the hub gives the messages again
    const Message opening = WEFT_TRY(encoded(channel->open_op(texts)));
    (void)send(opening);
  }
  List<HubCall> sent;
  while (HubCall* const call = calls_.order.pop_front()) {
    if (call->sent) {
      call->resent = true;
      counts_.resent += call->is_append ? 1 : 0;
    }
    call->sent = send(call->request) || call->sent;
    sent.push_back(*call);
  }
  while (HubCall* const call = sent.pop_front()) {
    calls_.order.push_back(*call);
  }
  return {};
}

void HubLink::disconnected(std::uint64_t number, const Error& reason) {
  bool again = false;
  bool was_up = false;
  {
    const sync::LockGuard lock(mutex_);
    if (closed_ || number != connections_) {
      return;
    }
    was_up = state_ == Link::up;
    // In a local fleet another process becomes the hub: a connection that is missing has no reason of its own.
    if (!was_up && settings_.remote && reason != Errc::ok) {
      trouble_ = reason;
    }
  }
  if (was_up) {
    for (unsigned i = 0; receive() == kReceiveMost && i < kDrainMost / kReceiveMost; ++i) {
    }  // messages before the end
  }
  drop_connection();
  {
    const sync::LockGuard lock(mutex_);
    constexpr Error kGone(Errc::outcome_unknown,
                          "the hub ended before it answered: it may have carried out the request");
    List<HubCall> kept;
    while (HubCall* const call = calls_.order.pop_front()) {
      if (call->sent && call->on_loss == OnLoss::give_up) {
        finish(*call, kGone);
      } else {
        kept.push_back(*call);
      }
    }
    while (HubCall* const call = kept.pop_front()) {
      calls_.order.push_back(*call);
    }
    std::erase_if(channels_, [](const auto& each) { return each.second->closing; });
    for (const auto& [id, channel] : channels_) {
      channel->state = KeptChannel::State::opening;
      channel->credit = 0;
      if (!channel->reads()) {
        channel->drop_queue();  // the next hub gives these messages to any member
        channel->unsent.begins.clear();
      }
    }
    again = wanted();
  }
  if (!again) {
    return;
  }
  if (was_up) {
    connect();  // another process may be the hub already
  } else {
    try_to_host();
  }
}

void HubLink::try_to_host() {
  Result<void> hosting(Errc::would_block);
  if (hosted_.hub != nullptr && hosted_.ended() != Errc::ok) {
    // A hub that served and lost its disk is made again. One that never opened its store reports the reason.
    hosting = hosted_.served ? hosting : Result<void>(hosted_.ended());
    hosted_ = {};
  }
  if (hosted_.hub == nullptr && hosting.error() == Errc::would_block && settings_.host) {
    std::string store;
    {
      const sync::LockGuard lock(mutex_);
      store = fleet_store_;
    }
    auto hosted = settings_.host(store);
    hosting = hosted ? Result<void>() : hosted.error();
    if (hosted) {
      hosted_ = *std::move(hosted);
      const sync::LockGuard lock(mutex_);
      hub_counters_ = hosted_.counters;
      ++counts_.hosted;
    }
  }
  if (hosting) {
    connect();
    return;
  }
  if (hosting.error() != Errc::would_block) {
    const sync::LockGuard lock(mutex_);
    List<HubCall> kept;
    while (HubCall* const call = calls_.order.pop_front()) {
      if (call->sent) {
        kept.push_back(*call);
      } else {
        finish(*call, hosting.error());
      }
    }
    while (HubCall* const call = kept.pop_front()) {
      calls_.order.push_back(*call);
    }
    for (auto at = channels_.begin(); at != channels_.end();) {
      KeptChannel& channel = *(at++)->second;  // end_channel() erases the entry
      if (!channel.opened) {
        end_channel(channel, hosting.error());
      }
    }
    if (!wanted()) {
      return;
    }
  }
  retry_later();
}

void HubLink::retry_later() {
  pause_ = std::clamp(2 * pause_, kPauseFirst, kPauseMost);
  retry_ = loop_.timers().schedule(sys::now() + pause_, {&HubLink::retry_fired, this});
  if (!retry_) {
    post(&HubLink::connect);
  }
}

void HubLink::retry_fired(void* self) {
  auto& link = *static_cast<HubLink*>(self);
  link.retry_ = {};
  link.connect();
}

void HubLink::drop_connection() noexcept {
  loop_.unwatch(std::exchange(connection_.watch, 0));
  Socket socket;
  {
    const sync::LockGuard lock(mutex_);
    state_ = Link::idle;
    socket = std::move(connection_.socket);
  }
  if (socket.core() != nullptr) {
    socket.core()->monitor().set_sink({});
    socket.close();
  }
}

void HubLink::Connection::handle_event(const sys::PollEvent& /*event*/) { link.handle_input(); }

void HubLink::handle_input() {
  while (receive() == kReceiveMost) {
    try {
      post(&HubLink::handle_input);
      return;
    } catch (const std::bad_alloc&) {  // no memory for a later turn: go on in this one
    }
  }
}

unsigned HubLink::receive() {
  const std::shared_ptr<msg::SocketCore> core = connection_.socket.core();
  if (core == nullptr) {
    return 0;
  }
  // The answers that are there enter under one lock: the publisher that the first answer wakes finds all of them, and
  // does not take turns with this loop for the lock.
  constexpr unsigned kRun = 32;
  unsigned count = 0;
  for (unsigned taken = kRun; taken == kRun && count < kReceiveMost; count += taken) {
    std::array<Message, kRun> run;
    for (taken = 0; taken < kRun; ++taken) {
      msg::Inbound part{&run[taken], {}};
      if (!core->recv(part, msg::Timeout::none())) {
        break;
      }
    }
    const sync::LockGuard lock(mutex_);
    for (unsigned i = 0; i < taken; ++i) {
      try {
        handle_op(std::move(run[i]));
      } catch (const std::bad_alloc&) {
        ++counts_.malformed;
      }
    }
  }
  if (core->closed() || core->terminated()) {
    loop_.unwatch(std::exchange(connection_.watch, 0));  // the descriptor would stay readable for ever
  }
  return count;
}

}  // namespace weft::topic
