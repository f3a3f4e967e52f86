// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/bytes.h"

namespace weft::zmtp {

// BoxKey: the boxes of one direction of a CURVE connection: crypto_box of libsodium, byte for byte. All their nonces
// begin with the same sixteen bytes, so what crypto_box derives from those for every box is derived here once; and the
// key of the authenticator comes out of the same call as the keystream, which crypto_box makes in two.
// Owner: the mechanism. Affinity: one thread at a time. Cost: no allocation; in place; one call for the keystream and
// one for the authenticator, of libsodium. Only in a build with libsodium.
class BoxKey {
 public:
  static constexpr std::size_t kMac = 16;
  using Shared = std::array<std::uint8_t, 32>;

  BoxKey() = default;
  BoxKey(const BoxKey&) = delete;
  BoxKey& operator=(const BoxKey&) = delete;
  ~BoxKey();

  // `prefix`: the first sixteen bytes of the nonces; `number` below is the rest of one.
  void derive(const Shared& shared, std::string_view prefix) noexcept;
  void seal(std::uint8_t* mac, MutableBytes plain, std::uint64_t number) const noexcept;
  // False: somebody else made or changed it, and nothing has changed here.
  [[nodiscard]] bool open(const std::uint8_t* mac, MutableBytes box, std::uint64_t number) const noexcept;

 private:
  class Keystream;

  std::array<std::uint8_t, 32> key_{};
};

}  // namespace weft::zmtp
