// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/sys/address.h"

namespace weft::net {

// ProxyHeader: the header of the PROXY protocol, version 1 or 2 (HAProxy's proxy-protocol.txt), without I/O: bytes in,
// the client's address out. A proxy writes it before the bytes of a stream.
// Owner: the reader of the stream. Affinity: one thread at a time. Cost: no allocation.
// Invariants:
//   1. It never takes a byte after the header: those belong to the stream.
//   2. The outcome depends on the bytes, never on how they were cut.
//   3. The first fault stays.
class ProxyHeader {
 public:
  static constexpr std::size_t kBytesMax = 536;      // of version 2, with its fields: the smallest segment of TCP
  static constexpr std::size_t kTextBytesMax = 107;  // of version 1, with its end of line

  // The missing bytes that the header has in any case; 0 at the end and after a fault.
  [[nodiscard]] std::size_t wanted() const noexcept;
  void handle_input(Bytes input) noexcept;  // at most wanted()

  [[nodiscard]] bool done() const noexcept { return done_; }
  [[nodiscard]] const std::optional<Error>& fault() const noexcept { return fault_; }
  // After the end: the client's address. Family none: the connection is the proxy's own (LOCAL), or the proxy does not
  // know the client's address (UNKNOWN, an unspecified family, a unix socket without a name).
  [[nodiscard]] const sys::SocketAddress& source() const noexcept { return source_; }

 private:
  enum class Version : std::uint8_t { unknown, text, binary };

  void check() noexcept;
  void check_binary() noexcept;
  void check_text() noexcept;
  void finish_binary() noexcept;
  void check_text_byte(std::size_t at) noexcept;
  void finish_text(std::string_view line, bool ipv4) noexcept;
  void fail(StaticText why) noexcept;
  [[nodiscard]] std::string_view text() const noexcept { return as_text(Bytes(bytes_).first(size_)); }
  [[nodiscard]] std::size_t announced() const noexcept;  // bytes of a binary header, from its first 16

  std::array<std::uint8_t, kBytesMax> bytes_{};
  std::size_t size_ = 0;
  std::size_t checked_ = 0;  // bytes of a text
  Version version_ = Version::unknown;
  std::size_t spaces_ = 0;  // in a text
  bool done_ = false;
  std::optional<Error> fault_;
  sys::SocketAddress source_;
};

}  // namespace weft::net
