// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/result.h"

namespace weft::nats {

// The kind of a key: the number whose base32 begins the text: 'U' for a user.
enum class KeyKind : std::uint8_t {
  server = 13 << 3,
  cluster = 2 << 3,
  operators = 14 << 3,
  account = 0,
  user = 20 << 3
};

// NKey: an Ed25519 key in the text form of the engine: base32 without padding of a kind, 32 bytes and a CRC-16.
// Owner: the user. Affinity: a value that only moves. The destructor overwrites the seed. Cost: 65 bytes; sign() takes
// about 20 us.
// In a build without libsodium each maker fails with not_supported.
class NKey {
 public:
  static constexpr std::size_t kSeedSize = 32;

  // Reads a seed ("SU..."), whose blanks at both ends do not count. Errors: invalid_argument (not a seed; its
  // checksum is wrong).
  [[nodiscard]] static Result<NKey> from_seed(std::string_view text);
  // A key of these 32 random bytes.
  [[nodiscard]] static Result<NKey> from_bytes(KeyKind kind, std::span<const std::uint8_t, kSeedSize> seed);
  NKey(NKey&& other) noexcept;
  NKey& operator=(NKey&& other) noexcept;
  NKey(const NKey&) = delete;
  NKey& operator=(const NKey&) = delete;
  ~NKey();

  [[nodiscard]] KeyKind kind() const noexcept { return kind_; }
  [[nodiscard]] std::string public_key() const;  // "UA..."
  [[nodiscard]] std::string seed() const;        // "SU..."; the caller wipes it
  // The Ed25519 signature of the bytes, as base64 of URLs without padding: 86 characters.
  [[nodiscard]] std::string sign(Bytes bytes) const;

 private:
  NKey() = default;
  void wipe_seed() noexcept;

  KeyKind kind_ = KeyKind::user;
  std::array<std::uint8_t, kSeedSize> public_{};
  std::array<std::uint8_t, 2 * kSeedSize> secret_{};  // the seed, then the public key
};

// Whether the text is the public key of that kind, with the right checksum.
[[nodiscard]] bool is_public_key(KeyKind kind, std::string_view text) noexcept;

// Base64 of URLs (RFC 4648, section 5) without padding.
[[nodiscard]] std::string base64_url(Bytes bytes);

}  // namespace weft::nats
