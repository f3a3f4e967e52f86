// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/filter.h"
#include "weft/base/result.h"
#include "weft/msg/message/message.h"
#include "weft/topic/wire/headers.h"

// The forms of a message: the frames of ZeroMQ, and the topic, body and headers of a fleet. No I/O.
namespace weft::bridge {

// Names: the topics of one section. The fleet's topic is `prefix`, then the ZeroMQ topic with `separator` and '.'
// swapped, so that each name has one name on the other side.
// Affinity: a value.
class Names {
 public:
  Names(std::string prefix, char separator) : prefix_(std::move(prefix)), separator_(separator) {}

  [[nodiscard]] std::string to_fleet(std::string_view topic) const;
  // Nothing: the topic does not begin with the prefix.
  [[nodiscard]] std::optional<std::string> to_zmtp(std::string_view topic) const;
  // The filter of a ZeroMQ subscription, which is a prefix. Errors: those of Filter::prefix().
  [[nodiscard]] Result<Filter> filter(std::string_view subscription) const;

 private:
  std::string prefix_;
  char separator_;
};

inline constexpr std::size_t kPartsMax = 64;   // frames after the body
inline constexpr std::size_t kHopsMax = 16;    // entries of a way
inline constexpr std::size_t kEntryMax = 129;  // bytes of an entry: two names and a '/'
inline constexpr const char* kPartsHeader = "Weft-Parts";
inline constexpr const char* kViaHeader = "Weft-Via";

// The frames after the body as the value of Weft-Parts: "2;aGk=,": their number, then base64 with a comma between two.
[[nodiscard]] std::string encode_parts(std::span<const Message> parts);
// Nothing: the value is not one of encode_parts(), or has more than kPartsMax frames.
[[nodiscard]] std::optional<std::vector<std::string>> decode_parts(std::string_view value);

// Via: the bridges and networks that a message has passed, oldest first: the value of Weft-Via.
// Affinity: a value.
class Via {
 public:
  Via() = default;
  explicit Via(std::string_view value) : text_(value) {}

  [[nodiscard]] bool has(std::string_view entry) const noexcept;
  [[nodiscard]] bool passed(std::string_view bridge) const noexcept;  // through any section of it: "bridge/section"
  [[nodiscard]] bool full() const noexcept;  // a message with so many hops is taken for one in a loop
  void add(std::string_view entry);          // not twice; not an empty one
  void add_all(std::string_view entries);
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

// The headers of the block that may cross to the other side: not those by which Weft and NATS steer. Returns nothing if
// the block is malformed or too large.
[[nodiscard]] std::optional<Headers> passing_headers(std::string_view block);

}  // namespace weft::bridge
