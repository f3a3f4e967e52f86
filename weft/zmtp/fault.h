// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/error.h"

namespace weft::zmtp {

// The rule of a handshake that a peer broke. The numbers are those of libzmq's monitor events.
enum class Breach : std::uint32_t {
  none = 0,
  unspecified = 0x10000000,
  unexpected_command = 0x10000001,
  invalid_sequence = 0x10000002,
  key_exchange = 0x10000003,
  malformed_command = 0x10000011,
  malformed_message = 0x10000012,
  malformed_hello = 0x10000013,
  malformed_initiate = 0x10000014,
  malformed_error = 0x10000015,
  malformed_ready = 0x10000016,
  malformed_welcome = 0x10000017,
  invalid_metadata = 0x10000018,
  cryptographic = 0x11000001,
  mechanism_mismatch = 0x11000002,
  websocket = 0x30000000,  // of the upgrade or the frames below ZMTP
};

// The reason why a connection must end. A value; `text` is static and names the peer's fault.
// Codes: protocol_error, incompatible_peer, handshake_refused, message_too_large, timed_out.
struct Fault {
  Errc code = Errc::protocol_error;
  StaticText text = "";
  std::uint32_t detail = 0;  // a Breach; or 300, 400, 500: the status of a refused login; 0: unknown
};

}  // namespace weft::zmtp
