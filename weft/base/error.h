// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace weft {

// The causes of an Error, in Weft's own vocabulary. Codes are stable: new ones are added at the end.
enum class Errc : std::uint16_t {
  ok = 0,
  would_block,          // nothing can be done without waiting, and waiting was not allowed
  timed_out,            // the deadline passed first
  interrupted,          // a signal ended a wait
  terminated,           // the context or the executor was shut down
  closed,               // the object was closed, or was moved from
  invalid_argument,     // an argument is outside its documented range
  invalid_state,        // the call is not allowed now (a second REQ send before its reply, for example)
  not_supported,        // this socket type, transport or platform cannot do it
  unknown_option,       // no such option for this socket type
  malformed_endpoint,   // the endpoint text does not parse
  unknown_transport,    // the endpoint names a transport that this build does not have
  address_in_use,       // another listener already has the address
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
  other,                // an error of another domain; see domain and value
  cancelled,            // a job's stop token was set before it began, or a waiting task was cancelled
  job_threw,            // a job or a task ended by an exception; Future::exception() has a job's
  not_found,            // there is no such stream, key, consumer or message
  conflict,             // the state differs from what the caller expected, or the name is taken by another
  not_permitted,        // the rights of the caller do not allow it
  outcome_unknown,      // the request was sent, its answer was lost: it was carried out, or it was not
  corrupt,              // stored data fails its checksum, or has no valid form
};

// ErrorDomain: the library that numbered an error. Weft's own domain is the default. Another library names
// its own domain once and keeps the name: `constexpr weft::ErrorDomain kGame("game");`. The number is a hash
// of the name (15 bits), so that no registry of numbers is needed. Two names in one program collide with a
// probability of 1 in 32768.
class ErrorDomain {
 public:
  constexpr ErrorDomain() noexcept = default;
  explicit constexpr ErrorDomain(std::string_view name) noexcept : number_(hash(name)) {}
  explicit constexpr ErrorDomain(std::uint16_t number) noexcept : number_(number) {}

  [[nodiscard]] constexpr std::uint16_t number() const noexcept { return number_; }
  friend constexpr bool operator==(ErrorDomain a, ErrorDomain b) noexcept = default;

 private:
  // FNV-1a of 32 bits, folded. The highest bit is always set, so that no name hashes to Weft's 0.
  static constexpr std::uint16_t hash(std::string_view name) noexcept {
    std::uint32_t state = 2166136261U;
    for (const char c : name) {
      state = (state ^ static_cast<unsigned char>(c)) * 16777619U;
    }
    return static_cast<std::uint16_t>(((state >> 16U) ^ state) | 0x8000U);
  }

  std::uint16_t number_ = 0;
};

// Error: a refusal by the world, as a value.
// Affinity: immutable value. Cost: 16 trivially copyable bytes; only message() allocates.
// Invariants:
// 1. `text` is static storage or null. It adds the particulars that the code alone does not say.
// 2. Two errors are equal when domain, value and errno are equal; the text is for people.
// 3. In an ok error domain, value and errno are all 0, so that one comparison finds it.
class [[nodiscard]] Error {
 public:
  // The same 16 bytes by name. Result stores them in the place of its value.
  struct Parts {
    const char* text;
    std::uint64_t number;  // errno * 2^32 + domain * 65536 + value, one word that moves in one register; 0: ok
  };

  constexpr Error() noexcept = default;
  constexpr Error(Errc code, const char* text = nullptr,
                  int os_errno = 0) noexcept  // NOLINT(google-explicit-constructor)
      : parts_{text, number_of(0, static_cast<std::uint16_t>(code), os_errno)} {}
  // An error that another library numbered. In Weft's own domain `value` is an Errc.
  constexpr Error(ErrorDomain domain, std::uint16_t value, const char* text = nullptr, int os_errno = 0) noexcept
      : parts_{text, number_of(domain.number(), value, os_errno)} {}
  explicit constexpr Error(const Parts& parts) noexcept : parts_(parts) {}

  // Errc::other for an error of another domain.
  [[nodiscard]] constexpr Errc code() const noexcept {
    return domain_and_value() <= 0xFFFFU ? static_cast<Errc>(parts_.number) : Errc::other;
  }
  [[nodiscard]] constexpr ErrorDomain domain() const noexcept {
    return ErrorDomain(static_cast<std::uint16_t>(parts_.number >> 16U));
  }
  [[nodiscard]] constexpr std::uint16_t value() const noexcept { return static_cast<std::uint16_t>(parts_.number); }
  [[nodiscard]] constexpr int os_errno() const noexcept { return static_cast<std::int32_t>(parts_.number >> 32U); }
  [[nodiscard]] constexpr const char* text() const noexcept { return parts_.text != nullptr ? parts_.text : ""; }
  [[nodiscard]] constexpr Parts parts() const noexcept { return parts_; }
  // domain * 65536 + value; 0 is ok.
  [[nodiscard]] constexpr std::uint32_t domain_and_value() const noexcept {
    return static_cast<std::uint32_t>(parts_.number);
  }

  [[nodiscard]] std::string message() const;  // "address in use: <text> (errno 98: Address already in use)"
  // Writes the same text into the caller's buffer, cut at the buffer's end, without a terminating null. Every
  // message of Weft's fits into 256 bytes. Keeps errno.
  std::string_view write_message(std::span<char> buffer) const noexcept;

  friend constexpr bool operator==(const Error& a, const Error& b) noexcept {
    return a.parts_.number == b.parts_.number;
  }
  // True for Errc::other and any error of another domain.
  friend constexpr bool operator==(const Error& a, Errc code) noexcept {
    return code == Errc::other ? a.code() == code : a.domain_and_value() == static_cast<std::uint32_t>(code);
  }

 private:
  static constexpr std::uint64_t number_of(std::uint16_t domain, std::uint16_t value, int os_errno) noexcept {
    const std::uint64_t number = std::uint64_t{domain} << 16U | value;
    return number == 0 ? 0 : std::uint64_t{static_cast<std::uint32_t>(os_errno)} << 32U | number;
  }

  Parts parts_{};
};
static_assert(sizeof(Error) == 16 && std::is_trivially_copyable_v<Error>);

// The text of a code: the comment in the enumeration, in a few words.
[[nodiscard]] std::string_view describe(Errc code) noexcept;

// The code that fits an errno of the operating system; Errc::system when none does, also for 0.
[[nodiscard]] Errc errc_of(int os_errno) noexcept;

}  // namespace weft
