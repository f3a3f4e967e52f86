// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace weft {

// What went wrong, in Weft's own vocabulary. Codes are stable: new ones are added at the end.
enum class Errc : std::uint16_t {
  ok = 0,
  would_block,          // nothing can be done without waiting, and waiting was not allowed
  timed_out,            // the deadline passed first
  interrupted,          // a signal ended a wait
  terminated,           // the context was shut down
  closed,               // the object was closed, or was moved from
  invalid_argument,     // an argument is outside its documented range
  invalid_state,        // the call is not allowed now (a second REQ send before its reply, for example)
  not_supported,        // this socket type, transport or platform cannot do it
  unknown_option,       // no such option for this socket type
  malformed_endpoint,   // the endpoint text does not parse
  unknown_transport,    // the endpoint names a transport that this build does not have
  address_in_use,       // somebody already listens there
  address_unavailable,  // the address is not on this machine
  name_unresolved,      // the host name has no address
  no_such_endpoint,     // unbind or disconnect of an endpoint that is not there
  unreachable,          // no connected peer has this routing id
  too_many_sockets,     // the context's socket limit is reached
  resource_exhausted,   // descriptors, memory or a configured bound ran out
  message_too_large,    // the message exceeds a configured bound
  buffer_too_small,     // the caller's buffer cannot hold the result
  connection_closed,    // the peer closed the stream
  connection_failed,    // the stream failed: refused, reset, unreachable
  protocol_error,       // the peer broke the protocol; `text` says how
  incompatible_peer,    // the peer's socket type cannot talk to ours
  handshake_refused,    // the peer answered the handshake with ERROR
  system,               // any other operating-system error; see os_errno
};

// Error: a refusal by the world, as a value.
// Affinity: immutable value. Cost: 16 trivially copyable bytes, no allocation ever.
// `text` is static storage or null; it adds the particulars that the code alone does not say.
class [[nodiscard]] Error {
 public:
  constexpr Error() noexcept = default;
  constexpr Error(Errc code, const char* text = nullptr,
                  int os_errno = 0) noexcept  // NOLINT(google-explicit-constructor)
      : text_(text), os_errno_(os_errno), code_(code) {}

  [[nodiscard]] constexpr Errc code() const noexcept { return code_; }
  [[nodiscard]] constexpr int os_errno() const noexcept { return os_errno_; }
  [[nodiscard]] constexpr const char* text() const noexcept { return text_ != nullptr ? text_ : ""; }
  [[nodiscard]] std::string message() const;  // "address in use: <text> (errno 98: Address already in use)"

  friend constexpr bool operator==(const Error& a, const Error& b) noexcept {
    return a.code_ == b.code_ && a.os_errno_ == b.os_errno_;
  }
  friend constexpr bool operator==(const Error& a, Errc code) noexcept { return a.code_ == code; }

 private:
  const char* text_ = nullptr;
  std::int32_t os_errno_ = 0;
  Errc code_ = Errc::ok;
};
static_assert(sizeof(Error) == 16 && std::is_trivially_copyable_v<Error>);

[[nodiscard]] std::string_view describe(Errc code) noexcept;

}  // namespace weft
