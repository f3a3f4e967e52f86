// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/bytes.h"

namespace weft::zmtp {

// BoxKey: the boxes of one direction of a CURVE connection: libsodium's crypto_box, byte for byte. All their
// nonces begin with the same sixteen bytes, so derive() derives once the key that crypto_box derives for
// every box. One call makes the keystream and the authenticator's key, which crypto_box makes in two.
// Owner: the mechanism. Affinity: one thread at a time.
// Cost: no allocation; in place; one libsodium call for the keystream and one for the authenticator. Only in
// a build with libsodium.
class BoxKey {
 public:
  static constexpr std::size_t kMac = 16;
  using Shared = std::array<std::uint8_t, 32>;

  BoxKey() = default;
  BoxKey(const BoxKey&) = delete;
  BoxKey& operator=(const BoxKey&) = delete;
  ~BoxKey();

  // `prefix`: the first sixteen bytes of the nonces. `number` below is the rest of a nonce.
  void derive(const Shared& shared, std::string_view prefix) noexcept;
  void seal(std::uint8_t* mac, MutableBytes plain, std::uint64_t number) const noexcept;
  // Returns false if another party made or changed the box, and the call changed nothing.
  [[nodiscard]] bool open(const std::uint8_t* mac, MutableBytes box, std::uint64_t number) const noexcept;

 private:
  class Keystream;

  std::array<std::uint8_t, 32> key_{};
};

}  // namespace weft::zmtp
