// SPDX-License-Identifier: MIT
#include "weft/zmtp/secure_random.h"

#include <bit>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace weft::zmtp {
namespace {

std::string draw(SecureRandom& random, std::size_t size) {
  std::string bytes(size, '\0');
  random.fill({reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()});
  return bytes;
}

TEST(SecureRandom, NeitherTwoOfThemNorTwoCallsGiveTheSameBytes) {
  SecureRandom one;
  SecureRandom other;
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(seen.insert(draw(one, 16)).second);
    EXPECT_TRUE(seen.insert(draw(other, 16)).second);
  }
}

// 32,768 bits: a mean beyond 2,000 from the half is 22 standard deviations away.
TEST(SecureRandom, EveryByteOfACallIsFilled) {
  for (const std::size_t size : {1u, 3u, 4u, 63u, 64u, 65u, 511u, 4096u}) {
    SecureRandom random;
    std::string together(size, '\0');
    for (int i = 0; i < 64; ++i) {
      const std::string bytes = draw(random, size);
      for (std::size_t at = 0; at < size; ++at) {
        together[at] = static_cast<char>(together[at] | bytes[at]);
      }
    }
    EXPECT_EQ(together, std::string(size, '\xFF'));  // a bit is 0 in all of 64 calls once in 2^64
  }
  SecureRandom random;
  int ones = 0;
  for (const char byte : draw(random, 4096)) {
    ones += std::popcount(static_cast<unsigned char>(byte));
  }
  EXPECT_NEAR(ones, 16'384, 2'000);
}

}  // namespace
}  // namespace weft::zmtp
