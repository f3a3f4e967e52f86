// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include "weft/base/bytes.h"
#include "weft/base/time.h"
#include "weft/sys/address.h"

namespace weft::serve {

using SipKey = std::array<std::uint64_t, 2>;

// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash; without the key its result for other bytes is unknown.
[[nodiscard]] std::uint64_t sip_hash(const SipKey& key, Bytes bytes) noexcept;
[[nodiscard]] SipKey random_sip_key();  // throws std::exception: the system has no random numbers

// CookieMaker: the cookie of an address, a keyed hash of the address and of a slot of time. A peer that returns the
// cookie receives the datagrams to its address. A cookie is valid in its slot and in the next one.
// Affinity: immutable. Cost: nothing is kept; a hash of 14 or 26 bytes, and two to check.
class CookieMaker {
 public:
  CookieMaker(const SipKey& key, Duration slot) noexcept : key_(key), slot_(slot) {}

  [[nodiscard]] std::uint64_t make(const sys::SocketAddress& address, Instant now) const noexcept;
  [[nodiscard]] bool valid(std::uint64_t cookie, const sys::SocketAddress& address, Instant now) const noexcept;

 private:
  [[nodiscard]] std::uint64_t of_slot(const sys::SocketAddress& address, std::uint64_t slot) const noexcept;
  [[nodiscard]] std::uint64_t slot_of(Instant now) const noexcept {
    return static_cast<std::uint64_t>(now.time_since_epoch() / slot_);
  }

  SipKey key_;
  Duration slot_;
};

}  // namespace weft::serve
