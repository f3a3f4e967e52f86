// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>

namespace weft {

// The finaliser of splitmix64 (by Vigna): each bit of the result depends on each bit of the word.
[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t word) noexcept {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

// Random: xoshiro256**, seeded by splitmix64 (both by Blackman and Vigna). Fast and well distributed; not for secrets.
// Affinity: one thread at a time. Cost: 32 bytes, about 1 ns a number. Equal seeds give equal sequences.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      word = mix_bits(seed);
    }
  }

  [[nodiscard]] constexpr std::uint64_t next() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound); 0 for bound 0.
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    if (bound == 0) {
      return 0;
    }
    const std::uint64_t skewed = (0 - bound) % bound;  // 2^64 mod bound: values below it would favour small results
    for (;;) {
      const std::uint64_t value = next();
      if (value >= skewed) {
        return value % bound;
      }
    }
  }

 private:
  std::uint64_t state_[4] = {};
};

}  // namespace weft
