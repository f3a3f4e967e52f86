// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/zmtp/command.h"
#include "weft/zmtp/fault.h"

namespace weft::zmtp {

// The question that a server asks its owner before it admits a client: the credentials, in the order of ZAP
// (RFC 27). PLAIN: name and password. CURVE: the client's public key. NULL: none.
struct Question {
  std::vector<std::string> credentials;
};

// The statuses of ZAP, which the owner answers.
inline constexpr int kAdmitted = 200;
inline constexpr int kRefusedForNow = 300;  // the client gets no answer, and may try again
inline constexpr int kRefused = 400;
inline constexpr int kCannotTell = 500;

// A sealed frame's body is this much longer than its content. open() decrypts in place, and the content
// begins at this offset.
inline constexpr std::size_t kSealOverhead = 33;

// Mechanism: one side of a security handshake, without I/O, and the encryption of the traffic after it.
// NullMechanism, PlainClient, PlainServer, CurveClient and CurveServer implement it; another one is another
// file.
// Owner: the LocalEnd. Affinity: the LocalEnd's. seal() and open() share no state, so two threads may call
// one each.
// Cost: virtual calls and allocations during the handshake; seal() and open() allocate nothing.
// Life cycle: start, then poll_command and handle_command until `ready` or `failed`. start begins again from
// nothing.
// 1. No other call comes before the peer's greeting named the same mechanism. Only NULL is started without
//    knowing that.
// 2. After start and after each handle_command that did not fail, the LocalEnd takes commands until
//    poll_command returns false.
// 3. `ready` comes once, with the peer's metadata. The LocalEnd may still refuse it, and then polls no more.
//    So a server whose last command grants entry leaves that command to the poll that follows `ready`.
// 4. ERROR is the same in every mechanism. The LocalEnd handles it, and a Mechanism never sees it.
// 5. While question() is not null the only call is admit(), which answers it with yes; a no ends the
//    handshake.
// 6. seal() and open() come after `ready`, until the next start, if encrypts().
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

  // Read after start and after each handle_command that needs more. Not null: the handshake waits.
  [[nodiscard]] virtual const Question* question() const noexcept { return nullptr; }
  [[nodiscard]] virtual Step admit() { return {}; }

  [[nodiscard]] virtual bool encrypts() const noexcept { return false; }
  // `to` has room for body.size() + kSealOverhead; `flags` are kMore, kCommand or 0.
  virtual void seal(std::uint8_t* /*to*/, std::uint8_t /*flags*/, Bytes /*body*/) noexcept {}
  // Decrypts in place: the body then begins at kSealOverhead. On failure returns the breach and changes
  // nothing.
  [[nodiscard]] virtual Breach open(MutableBytes /*sealed*/, std::uint8_t& /*flags*/) noexcept {
    return Breach::unspecified;
  }
};

}  // namespace weft::zmtp
