// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::zmtp {

class Mechanism;

// CURVE (RFC 25, 26): both sides have each other's long-term keys or prove their own. All traffic after the handshake
// is encrypted with keys that last as long as the connection.
//   client: HELLO            INITIATE (cookie, vouch, metadata)
//   server:       WELCOME (cookie)                             READY (metadata), or ERROR; then MESSAGE both ways
// libsodium does the cryptography. The comment of each function has its result in a build without libsodium.

inline constexpr std::size_t kCurveKeySize = 32;
using CurveKey = std::array<std::uint8_t, kCurveKeySize>;

struct CurveKeyPair {
  CurveKey public_key{};
  CurveKey secret_key{};
};

[[nodiscard]] bool curve_available() noexcept;
// Fails with not_supported without libsodium.
[[nodiscard]] Result<CurveKeyPair> make_curve_key_pair() noexcept;
[[nodiscard]] Result<CurveKey> curve_public_key(const CurveKey& secret_key) noexcept;

// Makes a text that proves, inside of an encrypted connection, that its sender has the secret key: 64 hexadecimal
// digits of a keyed hash of the purpose. Fails with not_supported without libsodium.
[[nodiscard]] Result<std::string> curve_proof(const CurveKey& secret_key, std::string_view purpose);

// Returns null without libsodium.
[[nodiscard]] std::unique_ptr<Mechanism> make_curve_client(const CurveKeyPair& ours, const CurveKey& server);
[[nodiscard]] std::unique_ptr<Mechanism> make_curve_server(const CurveKey& secret_key);

}  // namespace weft::zmtp
