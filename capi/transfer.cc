// SPDX-License-Identifier: MIT
#include "capi/transfer.h"

namespace weft::capi {

bool send_part_slowly(SocketHandle& handle, msg::Outbound& part, int flags) {
  const Instant deadline = (flags & ZMQ_DONTWAIT) != 0 ? msg::SocketCore::kNoWait : handle.core->send_deadline();
  const auto sent = handle.core->send(part, deadline);
  return sent || fail(sent.error()) == 0;
}

bool receive_part_slowly(SocketHandle& handle, msg::Inbound& part, int flags) {
  const Instant deadline = (flags & ZMQ_DONTWAIT) != 0 ? msg::SocketCore::kNoWait : handle.core->receive_deadline();
  const auto received = handle.core->receive(part, deadline);
  return received || fail(received.error()) == 0;
}

}  // namespace weft::capi
