// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "weft/base/slot_map.h"

namespace weft::serve {

// SessionId: names one session for ever: a number to keep, log and send to others. A value; 0 names no session. Its
// bits locate the session, so no table is shared by all cores:
//   epoch 16 | core 8 | generation 20 | slot 20
// The epoch changes with each start of a server, in this process and in the next one (see next_epoch()). A slot
// is used once for each generation.
struct SessionId {
  static constexpr unsigned kSlotBits = 20;
  static constexpr unsigned kGenerationBits = 20;
  static constexpr unsigned kCoreBits = 8;
  static constexpr std::uint32_t kSlots = std::uint32_t{1} << kSlotBits;  // sessions of a core, at most
  static constexpr unsigned kCores = 1u << kCoreBits;

  std::uint64_t value = 0;

  // Requires a slot below kSlots, from a SlotMap with kGenerationBits.
  [[nodiscard]] static constexpr SessionId make(unsigned core, SlotId slot, std::uint16_t epoch) noexcept {
    return {std::uint64_t{epoch} << 48 | std::uint64_t{core} << 40 | std::uint64_t{slot.generation()} << kSlotBits |
            slot.slot()};
  }
  [[nodiscard]] constexpr unsigned core() const noexcept { return static_cast<unsigned>(value >> 40) & (kCores - 1); }
  [[nodiscard]] constexpr std::uint16_t epoch() const noexcept { return static_cast<std::uint16_t>(value >> 48); }
  [[nodiscard]] constexpr SlotId slot() const noexcept {
    return {(value >> kSlotBits & ((1u << kGenerationBits) - 1)) << 32 | (value & (kSlots - 1))};
  }

  constexpr explicit operator bool() const noexcept { return value != 0; }
  friend constexpr bool operator==(SessionId, SessionId) = default;
};

// Returns the epoch of a server that starts now. Of 65536 starts in a row in this process, no two get the same epoch.
// The epoch counts quarters of a second of the wall clock, so a process that takes over from another one issues no id
// of that process again: no id less than four and a half hours old, and of older ids one in 65536.
[[nodiscard]] std::uint16_t next_epoch() noexcept;

}  // namespace weft::serve

template <>
struct std::hash<weft::serve::SessionId> {
  std::size_t operator()(weft::serve::SessionId id) const noexcept { return std::hash<std::uint64_t>()(id.value); }
};
