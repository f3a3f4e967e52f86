// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "weft/base/bytes.h"

namespace weft::net {

// HelloBound: the sizes that the messages of a TLS client claim in the clear: its hello, and a second one. OpenSSL
// takes 128 KiB as soon as four bytes claim them. A pure function of bytes. Records of other kinds are passed over: an
// alert may stand between the two, and an encrypted record of TLS 1.3 has a kind of its own.
// Owner: the stream of a server. Affinity: one thread at a time. Cost: some steps for each record and message.
// Invariant: the outcome depends on the bytes, never on how they were cut.
class HelloBound {
 public:
  static constexpr std::size_t kHelloMax = 16 * 1024;

  // Returns false if a message claims more than kHelloMax. OpenSSL refuses other records than those of a handshake.
  [[nodiscard]] bool check(Bytes records) noexcept;

 private:
  [[nodiscard]] bool check_messages(Bytes part) noexcept;

  std::array<std::uint8_t, 5> record_{};   // its header: kind, version, size
  std::array<std::uint8_t, 4> message_{};  // its header: kind, size
  std::size_t record_have_ = 0;
  std::size_t message_have_ = 0;
  std::size_t record_rest_ = 0;
  std::size_t message_rest_ = 0;
};

}  // namespace weft::net
