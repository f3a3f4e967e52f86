// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft {

// Headers: the headers of a message, as one block of text in NATS' form: "NATS/1.0\r\nName: value\r\n\r\n". The block
// goes over the wire as it is, and a gate copies it.
// Owner: a value. Affinity: one thread at a time. Cost: one string; find() scans it.
// Invariant: block() is empty, or a whole block of at most kBytesMax bytes.
class Headers {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{64} << 10;

  Headers() = default;
  // Errors: invalid_argument (the name is empty or has a byte outside 0x21..0x7e or a ':', or the value has a line end
  // or a zero byte); message_too_large (the block would exceed kBytesMax). An error leaves the object unchanged.
  Result<void> add(std::string_view name, std::string_view value);
  [[nodiscard]] std::string_view block() const noexcept { return block_; }
  [[nodiscard]] bool empty() const noexcept { return block_.empty(); }

 private:
  std::string block_;
};

// Returns the value of the first header of that name in a block; empty if there is none. The comparison is byte by
// byte. The function takes any bytes: a malformed block has no headers after the fault.
[[nodiscard]] std::string_view find_header(std::string_view block, std::string_view name) noexcept;
// Whether the bytes are a block: its first line, then lines with a colon, then the empty line.
[[nodiscard]] bool is_header_block(std::string_view block) noexcept;

namespace topic {
// The block with one more header in front. Errors: those of Headers::add(); invalid_argument (`headers` is not a
// block). Throws std::bad_alloc.
[[nodiscard]] Result<std::string> with_header(std::string_view headers, std::string_view name, std::string_view value);
}  // namespace topic

}  // namespace weft
