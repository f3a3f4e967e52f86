// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "weft/net/ws/frame.h"
#include "weft/zmtp/secure_random.h"

namespace weft::net::ws {

// Masks: the masks of a client's frames. They come from a strong source of entropy (RFC 6455 section 5.3): a program
// that makes a client send bodies of its choice cannot choose the bytes on the wire.
// Owner: WsOutbound. Affinity: one thread at a time. Cost: 600 bytes; 128 masks are made at once, so one takes 3 ns.
class Masks {
 public:
  // Throws as SecureRandom::fill() does.
  [[nodiscard]] MaskKey next() {
    if (next_ == keys_.size()) [[unlikely]] {
      random_.fill({reinterpret_cast<std::uint8_t*>(keys_.data()), sizeof keys_});
      next_ = 0;
    }
    return keys_[next_++];
  }

 private:
  static constexpr std::size_t kAtOnce = 128;

  zmtp::SecureRandom random_;
  std::size_t next_ = kAtOnce;
  std::array<MaskKey, kAtOnce> keys_{};
};

}  // namespace weft::net::ws
