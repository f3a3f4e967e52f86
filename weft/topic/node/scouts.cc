// SPDX-License-Identifier: MIT
#include "weft/topic/node/scouts.h"

#include <algorithm>

#include "weft/base/no_memory.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/topic/wire/control.h"

namespace weft::topic {

Result<void> Scouts::reconcile(const std::vector<std::string>& wanted) {
  for (auto at = scouts_.begin(); at != scouts_.end();) {
    Scout& scout = *(at++)->second;
    if (std::find(wanted.begin(), wanted.end(), scout.endpoint) == wanted.end()) {
      end(scout);
    } else if (scout.connected->load() && !scout.timer) {
      rt::Loop& loop = loop_.loop();
      scout.timer = loop.timers().schedule(loop.now() + kPatience, {&Scout::give_up, &scout});
      if (!scout.timer) {
        return msg::kNoMemoryToSend;
      }
    }
  }
  for (const std::string& endpoint : wanted) {
    if (const Result<void> begun = begin(endpoint); !begun && begun.error() == Errc::resource_exhausted) {
      return begun;
    }
  }
  return {};
}

void Scouts::end_all() noexcept {
  while (!scouts_.empty()) {
    end(*scouts_.begin()->second);
  }
}

Result<void> Scouts::begin(const std::string& endpoint) {
  if (scouts_.contains(endpoint)) {
    return {};
  }
  auto made = std::make_unique<Scout>(*this, endpoint);
  Scout& scout = *made;
  scouts_.emplace(endpoint, std::move(made));
  Result<void> begun = or_no_memory([&] { return send(scout); });
  if (!begun) {
    end(scout);
  }
  return begun;
}

Result<void> Scouts::send(Scout& scout) {
  scout.socket = WEFT_TRY(sockets_.make_scout());
  // The monitor calls on the I/O thread.
  scout.socket.core()->monitor().set_sink(
      [weak = loop_.owner(), loop = &loop_, connected = scout.connected](const MonitorEvent& event) {
        const auto owner = weak.lock();
        if (event.kind == EventKind::handshake_succeeded && owner != nullptr) {
          connected->store(true);
          loop->request(NodeLoop::kScouts);
        }
        return true;
      });
  const int fd = WEFT_TRY(scout.socket.core()->descriptor());
  scout.watch = WEFT_TRY(loop_.loop().watch(fd, sys::Interest::readable, false, &scout));
  return scout.socket.connect(scout.endpoint);
}

Scouts::Table::node_type Scouts::end(Scout& scout) noexcept {
  if (scout.socket.core() != nullptr) {
    scout.socket.core()->monitor().set_sink({});
  }
  loop_.loop().unwatch(scout.watch);
  if (scout.timer) {
    loop_.loop().timers().cancel(scout.timer);
  }
  scout.socket.close();
  return scouts_.extract(scout.endpoint);
}

void Scouts::handle_found(Scout& scout, std::uint64_t instance) {
  const Table::node_type ended = end(scout);
  found_(ended.key(), instance);
}

void Scouts::Scout::handle_event(const sys::PollEvent& /*event*/) {
  Message message;
  msg::Inbound part{&message, {}};
  if (!socket.core()->recv(part, msg::Timeout::none())) {
    return;
  }
  const auto instance = or_no_memory([&]() -> Result<std::uint64_t> {
    const auto welcome = decode_control(message.bytes());
    return welcome ? welcome->from : 0;
  });
  if (instance) {
    scouts.handle_found(*this, *instance);  // destroys the scout
    return;
  }
  Scouts& owner = scouts;
  owner.end(*this);
  owner.loop_.request(NodeLoop::kRepair);  // another scout
}

void Scouts::Scout::give_up(void* self) {
  Scout& scout = *static_cast<Scout*>(self);
  scout.timer = {};
  scout.scouts.handle_found(scout, 0);
}

}  // namespace weft::topic
