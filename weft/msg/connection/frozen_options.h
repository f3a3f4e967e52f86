// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/msg/message/options.h"
#include "weft/sys/socket.h"
#include "weft/zmtp/local_end.h"
#include "weft/zmtp/wire_type.h"

namespace weft::msg {

// FrozenOptions: the options of a socket at the time of a bind or a connect. Its connections read these and no newer
// ones, so a later change of an option never opens an endpoint to peers that the bind refuses.
// Owner: the socket until its options change, the acceptor, and each connection; the last owner wipes the secrets.
// Affinity: immutable. Cost: binds and connects between two changes of the options share one copy.
using FrozenOptions = std::shared_ptr<const Options>;

[[nodiscard]] sys::SocketOptions stream_options(const Options& options);
// Our end of the protocol. Requires check_security().
[[nodiscard]] zmtp::LocalEnd make_local_end(const Options& options, zmtp::WireType type);

}  // namespace weft::msg
