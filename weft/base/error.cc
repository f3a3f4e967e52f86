// SPDX-License-Identifier: MIT
#include "weft/base/error.h"

#include <algorithm>
#include <array>
#include <charconv>
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
    case Errc::other: return "error of another domain";
    case Errc::cancelled: return "cancelled";
    case Errc::job_threw: return "an exception ended the job or the task";
    case Errc::not_found: return "not found";
    case Errc::conflict: return "conflict";
    case Errc::not_permitted: return "not permitted";
    case Errc::outcome_unknown: return "outcome unknown";
    case Errc::corrupt: return "stored data is corrupt";
  }
  return "unknown error";
}

Errc errc_of(int os_errno) noexcept {
  switch (os_errno) {
    case EAGAIN:
    case EINPROGRESS:
    case EALREADY: return Errc::would_block;
    case EINTR: return Errc::interrupted;
    case EINVAL:
    case EDOM: return Errc::invalid_argument;
    case EADDRINUSE: return Errc::address_in_use;
    case EADDRNOTAVAIL:
    case ENODEV:
    case ENOENT: return Errc::address_unavailable;
    case ENAMETOOLONG: return Errc::malformed_endpoint;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ENOTCONN:
    case EPIPE:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case ENETRESET: return Errc::connection_failed;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC: return Errc::resource_exhausted;
    case EMSGSIZE: return Errc::message_too_large;
    case EEXIST: return Errc::invalid_state;
    case EACCES:
    case EPERM: return Errc::not_permitted;
    case ENOSYS:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
    case EPROTOTYPE:
    case ENOPROTOOPT:
    case EOPNOTSUPP: return Errc::not_supported;
    default: return Errc::system;
  }
}

namespace {

// Appends to a caller's buffer and also counts the characters that did not fit.
class Writer {
 public:
  explicit Writer(std::span<char> buffer) noexcept : buffer_(buffer) {}

  Writer& operator<<(std::string_view text) noexcept {
    if (size_ < buffer_.size()) {
      std::memcpy(buffer_.data() + size_, text.data(), std::min(text.size(), buffer_.size() - size_));
    }
    size_ += text.size();
    return *this;
  }
  Writer& operator<<(int number) noexcept {
    std::array<char, 12> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return *this << std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data()));
  }

  [[nodiscard]] std::size_t wanted() const noexcept { return size_; }
  [[nodiscard]] std::string_view written() const noexcept { return {buffer_.data(), std::min(size_, buffer_.size())}; }

 private:
  std::span<char> buffer_;
  std::size_t size_ = 0;
};

// strerror_r is one of two functions: glibc's returns the text; POSIX's fills the buffer and returns a
// status.
[[maybe_unused]] std::string_view text_of(const char* text, const char* /*buffer*/) noexcept { return text; }
[[maybe_unused]] std::string_view text_of(int status, const char* buffer) noexcept {
  return status == 0 ? buffer : "unknown";
}

void write(Writer& out, const Error& error) noexcept {
  out << describe(error.code());
  if (error.domain() != ErrorDomain()) {
    out << " (" << int{error.value()} << ")";
  }
  if (*error.text() != '\0') {
    out << ": " << error.text();
  }
  if (error.os_errno() != 0) {
    std::array<char, 128> buffer;
    out << " (errno " << error.os_errno() << ": "
        << text_of(strerror_r(error.os_errno(), buffer.data(), buffer.size()), buffer.data()) << ")";
  }
  if (error.fate() == Fate::not_sent) {
    out << "; not sent";
  } else if (error.fate() == Fate::outcome_unknown) {
    out << "; sent, outcome unknown";
  }
}

}  // namespace

std::string_view Error::write_message(std::span<char> buffer) const noexcept {
  Writer out(buffer);
  write(out, *this);
  return out.written();
}

std::string Error::message() const {
  Writer counted({});
  write(counted, *this);
  std::string text(counted.wanted(), '\0');
  (void)write_message(text);
  return text;
}

}  // namespace weft
