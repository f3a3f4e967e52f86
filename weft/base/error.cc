// SPDX-License-Identifier: MIT
#include "weft/base/error.h"

#include <cstring>

namespace weft {

std::string_view describe(Errc code) noexcept {
  switch (code) {
    case Errc::ok: return "ok";
    case Errc::would_block: return "would block";
    case Errc::timed_out: return "timed out";
    case Errc::interrupted: return "interrupted by a signal";
    case Errc::terminated: return "context was shut down";
    case Errc::closed: return "closed";
    case Errc::invalid_argument: return "invalid argument";
    case Errc::invalid_state: return "not allowed in this state";
    case Errc::not_supported: return "not supported";
    case Errc::unknown_option: return "unknown option";
    case Errc::malformed_endpoint: return "malformed endpoint";
    case Errc::unknown_transport: return "unknown transport";
    case Errc::address_in_use: return "address in use";
    case Errc::address_unavailable: return "address not available";
    case Errc::name_unresolved: return "name not resolved";
    case Errc::no_such_endpoint: return "no such endpoint";
    case Errc::unreachable: return "no such peer";
    case Errc::too_many_sockets: return "too many sockets";
    case Errc::resource_exhausted: return "resource exhausted";
    case Errc::message_too_large: return "message too large";
    case Errc::buffer_too_small: return "buffer too small";
    case Errc::connection_closed: return "connection closed by peer";
    case Errc::connection_failed: return "connection failed";
    case Errc::protocol_error: return "protocol error";
    case Errc::incompatible_peer: return "incompatible peer";
    case Errc::handshake_refused: return "handshake refused";
    case Errc::system: return "system error";
  }
  return "unknown error";
}

std::string Error::message() const {
  std::string out(describe(code_));
  if (text_ != nullptr && *text_ != '\0') {
    out.append(": ").append(text_);
  }
  if (os_errno_ != 0) {
    out.append(" (errno ").append(std::to_string(os_errno_)).append(": ").append(std::strerror(os_errno_)).append(")");
  }
  return out;
}

}  // namespace weft
