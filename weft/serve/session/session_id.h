// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "weft/base/slot_map.h"

namespace weft::serve {

// SessionId: names one session, for ever: a number to keep, log and send around. Its bits say where the session is, so
// that it is found without a table that all cores share. A value; 0 names none.
//   epoch 16 | core 8 | generation 20 | slot 20
// The epoch changes with each start of a server, in this process and in the next one (see next_epoch()); a slot is used
// once for each generation.
struct SessionId {
  static constexpr unsigned kSlotBits = 20;
  static constexpr unsigned kGenerationBits = 20;
  static constexpr unsigned kCoreBits = 8;
  static constexpr std::uint32_t kSlots = std::uint32_t{1} << kSlotBits;  // sessions of a core, at most
  static constexpr unsigned kCores = 1u << kCoreBits;

  std::uint64_t value = 0;

  // Requires that the slot is one of kSlots, of a pool with kGenerationBits.
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

// The epoch of a server that starts now. No two starts in this process get the same one (of 65536 in a row). It counts
// quarters of a second since the epoch of the wall clock, so that a process which takes over from another one does not
// meet that one's ids either: none that is less than four and a half hours old, and of older ones one in 65536.
[[nodiscard]] std::uint16_t next_epoch() noexcept;

}  // namespace weft::serve

template <>
struct std::hash<weft::serve::SessionId> {
  std::size_t operator()(weft::serve::SessionId id) const noexcept { return std::hash<std::uint64_t>()(id.value); }
};
