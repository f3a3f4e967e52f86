// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/result.h"

namespace weft::nats {

// The statuses of a header block without a message of a program's.
inline constexpr std::uint16_t kStatusNoResponders = 503;

// HeadersView: the header block of a message: "NATS/1.0", perhaps a status and its text, then lines `name: value`.
// Names are compared byte by byte, as the engine does. A line without a colon is skipped: the engine checks no lines.
// Owner: the message, whose bytes it refers to. Affinity: immutable value. Cost: a call searches the block once.
class HeadersView {
 public:
  struct Field {
    std::string_view name;
    std::string_view value;  // without the blanks around it
  };

  HeadersView() = default;
  explicit HeadersView(Bytes block) noexcept : block_(as_text(block)) {}

  [[nodiscard]] bool empty() const noexcept { return block_.empty(); }
  [[nodiscard]] Bytes block() const noexcept { return as_bytes(block_); }
  [[nodiscard]] std::uint16_t status() const noexcept;          // 0: none
  [[nodiscard]] std::string_view status_text() const noexcept;  // "No Responders", for example
  // The value of the first line of that name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept;
  // Calls visit(field) for each line, in order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    std::string_view rest = lines();
    for (Field field; next(rest, field);) {
      visit(field);
    }
  }

 private:
  [[nodiscard]] std::string_view first_line() const noexcept;  // without the version
  [[nodiscard]] std::string_view lines() const noexcept;
  [[nodiscard]] static bool next(std::string_view& rest, Field& field) noexcept;

  std::string_view block_;
};

// Headers: makes a header block. Owner: the user. Affinity: a value. Cost: a string.
class Headers {
 public:
  // Errors: invalid_argument (the name is empty, or has a byte that is not printable, or a colon; the value has a CR,
  // an LF or a NUL, or begins or ends with a blank); message_too_large (the block would exceed kHeadersMax). After an
  // error the block is unchanged.
  Result<void> add(std::string_view name, std::string_view value);
  void clear() noexcept { block_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return block_.empty(); }
  // The whole block, with its end; empty without a line.
  [[nodiscard]] Bytes block() const noexcept { return as_bytes(block_); }

 private:
  std::string block_;
};

}  // namespace weft::nats
