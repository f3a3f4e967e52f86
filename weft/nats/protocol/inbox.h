// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/version.h"

namespace weft::nats {

// Inbox: the subjects of answers to one client: "_INBOX.<id>.<number>", under one subscription "_INBOX.<id>.*".
// Owner: a client. Affinity: a value. Cost: subject() allocates nothing.
// Invariant: the id is 132 bits of the caller's random bytes, so that no other client foresees a subject.
class Inbox {
 public:
  static constexpr std::size_t kRandomSize = 22;
  using Subject = std::array<char, 256>;

  // `prefix`: a subject of at most 200 bytes. `random`: from a secure source.
  Inbox(std::string_view prefix, std::span<const std::uint8_t, kRandomSize> random);

  [[nodiscard]] std::string filter() const { return front_ + '*'; }
  // Writes into `place`.
  [[nodiscard]] std::string_view subject(std::uint32_t number, Subject& place) const noexcept;
  // The number of a subject of this inbox; null: it is not one.
  [[nodiscard]] std::optional<std::uint32_t> number_of(std::string_view subject) const noexcept;

 private:
  std::string front_;  // with the last dot
};

}  // namespace weft::nats
