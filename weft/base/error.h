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
  conflict,             // the state differs from the caller's expectation, or the name is taken by another
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

// StaticText: a text that is never freed, or null. The compiler accepts a string literal, and refuses a text that is
// made at run time: `s.c_str()` would dangle in an Error. sync::keep_text() keeps such a text for ever and returns one
// of these. Affinity: immutable value. Cost: a pointer.
class StaticText {
 public:
  constexpr StaticText() noexcept = default;
  consteval StaticText(const char* literal) noexcept : text_(literal) {}  // NOLINT(google-explicit-constructor)
  // The caller guarantees that the text is never freed and never changes.
  [[nodiscard]] static constexpr StaticText of_immortal(const char* text) noexcept {
    StaticText made;
    made.text_ = text;
    return made;
  }
  [[nodiscard]] constexpr const char* c_str() const noexcept { return text_; }
  constexpr operator const char*() const noexcept { return text_; }  // NOLINT(google-explicit-constructor)

 private:
  const char* text_ = nullptr;
};

// Fate: how far a request came before its Error. It decides whether the request may be sent again.
enum class Fate : std::uint8_t {
  unsaid = 0,       // the error is not of a request, or its maker cannot determine the fate
  not_sent,         // the peer received no part of it: it may be sent again
  outcome_unknown,  // it was sent and no answer came: the peer executed it, or did not
  answered,         // the peer answered, with this error
};

// Error: a refusal by the world, as a value.
// Affinity: immutable value. Cost: 16 trivially copyable bytes; only message() allocates.
// Invariants:
// 1. `text` is static storage or null. It adds the particulars that the code alone does not have.
// 2. Two errors are equal if domain, value and errno are equal; text and fate do not count.
// 3. In an ok error domain, value, errno and fate are all 0, so that one comparison finds it.
class [[nodiscard]] Error {
 public:
  // The same 16 bytes by name. Result stores them in the place of its value.
  struct Parts {
    const char* text;
    // fate * 2^62 + errno * 2^32 + domain * 65536 + value, one word that moves in one register; 0: ok
    std::uint64_t number;
  };

  constexpr Error() noexcept = default;
  constexpr Error(Errc code, StaticText text = {},
                  int os_errno = 0) noexcept  // NOLINT(google-explicit-constructor)
      : parts_{text, number_of(0, static_cast<std::uint16_t>(code), os_errno)} {}
  // An error that another library numbered. In Weft's own domain `value` is an Errc.
  constexpr Error(ErrorDomain domain, std::uint16_t value, StaticText text = {}, int os_errno = 0) noexcept
      : parts_{text, number_of(domain.number(), value, os_errno)} {}
  explicit constexpr Error(const Parts& parts) noexcept : parts_(parts) {}

  // Errc::other if the error is of another domain.
  [[nodiscard]] constexpr Errc code() const noexcept {
    return domain_and_value() <= 0xFFFFU ? static_cast<Errc>(parts_.number) : Errc::other;
  }
  [[nodiscard]] constexpr ErrorDomain domain() const noexcept {
    return ErrorDomain(static_cast<std::uint16_t>(parts_.number >> 16U));
  }
  [[nodiscard]] constexpr std::uint16_t value() const noexcept { return static_cast<std::uint16_t>(parts_.number); }
  [[nodiscard]] constexpr int os_errno() const noexcept {
    return static_cast<std::int32_t>(parts_.number >> 30U) >> 2;  // of 30 bits, with their sign
  }
  [[nodiscard]] constexpr Fate fate() const noexcept { return static_cast<Fate>(parts_.number >> kFateShift); }
  // The same error with that fate of its request. An ok stays ok.
  [[nodiscard]] constexpr Error with_fate(Fate fate) const noexcept {
    const std::uint64_t number = parts_.number & ~kFateMask;
    return Error(Parts{parts_.text, number == 0 ? 0 : number | static_cast<std::uint64_t>(fate) << kFateShift});
  }
  [[nodiscard]] constexpr const char* text() const noexcept { return parts_.text != nullptr ? parts_.text : ""; }
  // The same, for another Error.
  [[nodiscard]] constexpr StaticText static_text() const noexcept { return StaticText::of_immortal(parts_.text); }
  [[nodiscard]] constexpr Parts parts() const noexcept { return parts_; }
  // domain * 65536 + value; 0 is ok.
  [[nodiscard]] constexpr std::uint32_t domain_and_value() const noexcept {
    return static_cast<std::uint32_t>(parts_.number);
  }

  // "address in use: <text> (errno 98: Address already in use)"; after it "; not sent" or "; sent, outcome unknown".
  [[nodiscard]] std::string message() const;
  // Writes the same text into the caller's buffer, cut at the buffer's end, without a terminating null. Every
  // message of Weft's fits into 256 bytes. Keeps errno.
  std::string_view write_message(std::span<char> buffer) const noexcept;

  friend constexpr bool operator==(const Error& a, const Error& b) noexcept {
    return ((a.parts_.number ^ b.parts_.number) & ~kFateMask) == 0;
  }
  // Whether it is Errc::other or any error of another domain.
  friend constexpr bool operator==(const Error& a, Errc code) noexcept {
    return code == Errc::other ? a.code() == code : a.domain_and_value() == static_cast<std::uint32_t>(code);
  }

 private:
  static constexpr std::uint64_t number_of(std::uint16_t domain, std::uint16_t value, int os_errno) noexcept {
    const std::uint64_t number = std::uint64_t{domain} << 16U | value;
    const std::uint64_t shifted = std::uint64_t{static_cast<std::uint32_t>(os_errno)} << 32U;
    return number == 0 ? 0 : (shifted & ~kFateMask) | number;
  }

  static constexpr unsigned kFateShift = 62;
  static constexpr std::uint64_t kFateMask = std::uint64_t{3} << kFateShift;

  Parts parts_{};
};
static_assert(sizeof(Error) == 16 && std::is_trivially_copyable_v<Error>);

// The text of a code: the comment in the enumeration, in a few words.
[[nodiscard]] std::string_view describe(Errc code) noexcept;

// The code for an errno of the operating system; Errc::system if there is none, also for 0.
[[nodiscard]] Errc errc_of(int os_errno) noexcept;

}  // namespace weft
