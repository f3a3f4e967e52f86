// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/zmtp/command.h"
#include "weft/zmtp/fault.h"

namespace weft::zmtp {

// Mechanism: one side of a security handshake, without I/O. Implemented by NullMechanism; another one is another file.
// Owner: the Peer. Affinity: that of the Peer. Cost: virtual calls and allocations during the handshake only.
// Life cycle: start, then poll_command and handle_command until `ready` or `failed`; start begins again from nothing.
//   1. Nothing is called before the peer's greeting named the same mechanism.
//   2. After start and after each handle_command that did not fail, the Peer takes commands until poll_command says no.
//   3. `ready` comes once, with the peer's metadata. The Peer may still refuse it, and then polls no more: a server
//      whose last command grants entry therefore leaves that command to the poll that follows `ready`.
//   4. ERROR is the same in every mechanism; the Peer handles it, and a Mechanism never sees it.
class Mechanism {
 public:
  struct Step {
    enum class Kind : std::uint8_t { wants_more, ready, failed };
    Kind kind = Kind::wants_more;
    Bytes metadata;  // ready: the peer's encoded properties, valid until the command's bytes change or the next call
    Fault fault;     // failed
  };

  virtual ~Mechanism() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;  // as in the greeting, 1..20 characters, static
  virtual void start(Bytes our_metadata) = 0;                        // encoded properties, valid until the next start
  [[nodiscard]] virtual bool poll_command(std::vector<std::uint8_t>& body) = 0;  // true: appended one command body
  [[nodiscard]] virtual Step handle_command(const Command& command) = 0;
};

}  // namespace weft::zmtp
