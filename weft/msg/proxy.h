// SPDX-License-Identifier: MIT
#pragma once

#include "weft/base/result.h"
#include "weft/msg/socket.h"

namespace weft {

// Carries whole messages between two sockets, in each direction that their types allow. Runs in the calling thread
// until an error: terminated (a context ended), closed (a socket was closed), interrupted (a signal). After a signal
// the caller may call again without losing a message.
// Cost: payloads are moved, not copied. The proxy takes a message only when the other side and `capture` have room for
// it, so the high-water marks hold. Like the socket itself, it drops a message for a peer that has gone. `frontend` and
// `backend` may be the same socket: the proxy then sends each message back out. `capture` gets every message, too.
Result<void> proxy(Socket& frontend, Socket& backend, Socket* capture = nullptr);

// The same, and executes the commands that `control` receives, each a message of one part: PAUSE, RESUME, TERMINATE
// (returns with success) and STATISTICS. The reply to STATISTICS has eight parts of 64 bits in the machine's byte
// order. Four are of the frontend, then four of the backend: message parts in, their bytes, parts out, their bytes. If
// `control` is a REP, it replies to every other command with an empty message. An unknown command has no effect.
Result<void> proxy(Socket& frontend, Socket& backend, Socket* capture, Socket& control);

}  // namespace weft
