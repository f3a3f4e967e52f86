// SPDX-License-Identifier: MIT
#pragma once

#include "weft/base/result.h"
#include "weft/msg/socket.h"

namespace weft {

// Carries whole messages between two sockets, both ways as far as their types go, in the calling thread, until a
// context ends: terminated; closed (a socket was); interrupted (a signal; calling again goes on, nothing is lost).
// Cost: payloads are moved, not copied. A message is taken only when the other side, and `capture`, have room for it,
// so that the high-water marks hold. A message for a peer that is gone is dropped, as the socket itself would.
// `frontend` and `backend` may be the same socket: what comes in goes out again. `capture` gets every message too.
Result<void> proxy(Socket& frontend, Socket& backend, Socket* capture = nullptr);

// The same under orders that come in on `control`, each a message of one part: PAUSE, RESUME, TERMINATE (returns with
// success), and STATISTICS, which is answered with eight parts of 64 bits in the machine's order: of the frontend, then
// of the backend, message parts in, their bytes, parts out, their bytes. If `control` is a REP, every other order is
// answered with an empty message. An unknown order changes nothing.
Result<void> proxy(Socket& frontend, Socket& backend, Socket* capture, Socket& control);

}  // namespace weft
