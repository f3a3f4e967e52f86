// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sys/fd.h"

namespace weft::sys {

// Sends the bytes over a unix stream socket that does not block, with the first of them a descriptor (SCM_RIGHTS; -1:
// none). Waits for room. Errors: timed_out; connection_closed, connection_failed (the peer is gone); of the system.
Result<void> send_with_descriptor(int socket, Bytes bytes, int descriptor, Instant deadline);

// Reads as many bytes as there is room for. `descriptor` gets the descriptor that came with the first of them, with its
// close-on-exec flag; null: none may come. Waits for bytes. Errors: timed_out; connection_closed (the stream ended);
// protocol_error (another descriptor came; it is closed); of the system.
Result<void> receive_with_descriptor(int socket, MutableBytes bytes, Fd* descriptor, Instant deadline);

// A listening unix stream socket at the path, in the place of a socket that is there: connections that wait at
// that one stay there. Errors: malformed_endpoint (the path is too long); of the system.
Result<Fd> open_in_place(const std::string& path);

}  // namespace weft::sys
