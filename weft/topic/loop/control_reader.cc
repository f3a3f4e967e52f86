// SPDX-License-Identifier: MIT
#include "weft/topic/loop/control_reader.h"

#include "weft/msg/socket/socket_core.h"

namespace weft::topic {

Result<void> ControlReader::begin() {
  const int fd = WEFT_TRY(out_.core()->descriptor());
  watch_ = WEFT_TRY(loop_.loop().watch(fd, sys::Interest::readable, false, this));
  return {};
}

void ControlReader::end() noexcept { loop_.loop().unwatch(std::exchange(watch_, 0)); }

void ControlReader::handle_event(const sys::PollEvent& /*event*/) { read(); }

void ControlReader::read() {
  msg::SocketCore& out = *out_.core();
  unsigned count = 0;
  for (; count < kMost && held_.empty(); ++count) {
    Message message;
    msg::Inbound part{&message, {}};
    if (!out.recv(part, msg::Timeout::none())) {
      break;
    }
    const Bytes bytes = message.bytes();
    if (!part.more && (bytes.empty() || bytes.front() <= 1)) {
      continue;  // a peer subscribed, or took it back
    }
    if (!take_(message)) {  // the peer may never repeat it
      held_ = std::move(message);
      tries_ = 0;
      end();
      loop_.request(NodeLoop::kRepair);
      break;
    }
  }
  done_();
  if (out.closed() || out.terminated()) {
    end();
  } else if (count == kMost) {
    loop_.request(NodeLoop::kReadOut);
  }
}

bool ControlReader::retry() noexcept {
  if (held_.empty()) {
    return true;
  }
  const bool taken = take_(held_);
  if (!taken && ++tries_ < kTriesMax) {
    loop_.request(NodeLoop::kRepair);
    return true;
  }
  held_ = Message();
  if (!begin()) {
    watch_ = 0;
  }
  loop_.request(NodeLoop::kReadOut);  // a cleared descriptor has no sign of those after it
  return taken;
}

}  // namespace weft::topic
