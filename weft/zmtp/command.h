// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/filter.h"
#include "weft/zmtp/frame.h"

namespace weft::zmtp {

// Parsers and writers of command bodies. Pure functions. Parsers return views into their input and never
// allocate.

// A command body: one byte of name length (1..255), the name, data. Names are compared exactly.
struct Command {
  std::string_view name;
  Bytes data;
};
[[nodiscard]] ParseStatus parse_command(Bytes body, Command& out) noexcept;  // complete or malformed

// One metadata property: 1-byte name length (1..255), name, 4-byte value length, value. Names ignore ASCII case.
struct Property {
  std::string_view name;
  Bytes value;
};
// Takes one property off the front of `metadata`, which is not empty. Returns complete or malformed.
[[nodiscard]] ParseStatus take_property(Bytes& metadata, Property& out) noexcept;
[[nodiscard]] bool same_name(std::string_view a, std::string_view b) noexcept;

inline constexpr std::size_t kPingContextMax = 16;
struct Ping {
  std::uint16_t ttl_deciseconds = 0;
  Bytes context;
};
// These take Command::data and return complete or malformed.
[[nodiscard]] ParseStatus parse_ping(Bytes data, Ping& out) noexcept;
[[nodiscard]] ParseStatus parse_pong(Bytes data, Bytes& context) noexcept;
[[nodiscard]] ParseStatus parse_error(Bytes data, std::string_view& reason) noexcept;

// These write whole frames into the caller's buffer and return the number of bytes written. For a 3.1 peer
// (`peer_minor` >= 1) a subscription is a SUBSCRIBE or CANCEL command, for a 3.0 peer a message of 01 or 00
// and the topic.
[[nodiscard]] std::size_t subscribe_frame_size(bool subscribe, std::size_t topic_size, int peer_minor) noexcept;
std::size_t write_subscribe(std::uint8_t* to, bool subscribe, Bytes topic, int peer_minor) noexcept;
// FILTER and UNFILTER, for a peer that announced filters: a byte with the FilterKind, and the filter's text.
inline constexpr std::string_view kFilterProperty = "X-Weft-Filter";
[[nodiscard]] std::size_t filter_frame_size(bool on, std::size_t text_size) noexcept;
std::size_t write_filter(std::uint8_t* to, bool on, const FilterView& filter) noexcept;
// The text is a view into `data`. malformed: Filter::make() refuses the kind or the text.
[[nodiscard]] ParseStatus parse_filter(Bytes data, FilterView& out) noexcept;
// JOIN and LEAVE are commands for every peer (RFC 37).
inline constexpr std::size_t kGroupMax = 255;
[[nodiscard]] std::size_t join_frame_size(bool join, std::size_t group_size) noexcept;
std::size_t write_join(std::uint8_t* to, bool join, Bytes group) noexcept;

inline constexpr std::size_t kPingFrameMax = kFrameHeaderSizeMin + 1 + 4 + 2 + kPingContextMax;
inline constexpr std::size_t kPongFrameMax = kPingFrameMax - 2;
std::size_t write_ping(std::uint8_t* to, std::uint16_t ttl_deciseconds, Bytes context) noexcept;
std::size_t write_pong(std::uint8_t* to, Bytes context) noexcept;

// Handshake writers: they append to `to` and may allocate.
void append_command_name(std::vector<std::uint8_t>& to, std::string_view name);
void append_property(std::vector<std::uint8_t>& to, std::string_view name, Bytes value);
void append_command_frame(std::vector<std::uint8_t>& to, Bytes body);
void append_error_frame(std::vector<std::uint8_t>& to, std::string_view reason);  // reason: at most 255 bytes

}  // namespace weft::zmtp
