// SPDX-License-Identifier: MIT
#pragma once

#include "weft/base/error.h"

namespace weft::zmtp {

// Why a connection cannot go on. A value; `text` is static and says what the peer did.
// Codes: protocol_error, incompatible_peer, handshake_refused, message_too_large, timed_out.
struct Fault {
  Errc code = Errc::protocol_error;
  const char* text = "";
};

}  // namespace weft::zmtp
