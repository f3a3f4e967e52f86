// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include "weft/base/bytes.h"

namespace weft::zmtp {

// SecureRandom: random bytes. An observer of some of them cannot foresee another: ChaCha20 under a random key of the
// system's. In a build without libsodium each byte is the system's own.
// Owner: the object that needs them. Affinity: one thread at a time.
// Cost: 40 bytes; 512 bytes in a call take about 250 ns. Without libsodium a byte takes as long as 512.
class SecureRandom {
 public:
  SecureRandom();  // throws std::exception: the system has no random numbers
  SecureRandom(const SecureRandom&) = delete;
  SecureRandom& operator=(const SecureRandom&) = delete;
  ~SecureRandom();

  void fill(MutableBytes bytes);  // throws std::bad_alloc: without libsodium, the system has no random numbers any more

 private:
  std::array<std::uint8_t, 32> key_{};
  std::uint64_t calls_ = 0;
};

}  // namespace weft::zmtp
