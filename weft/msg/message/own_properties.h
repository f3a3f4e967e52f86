// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "weft/zmtp/local_end.h"

namespace weft::msg {

// The text of the option `metadata`: properties that the handshake sends to every peer, "X-name:value", with a zero
// byte between two. A peer reads them from the messages of this socket: Message::peer_property("X-name").
inline constexpr std::size_t kOwnPropertiesMax = 56;  // a peer takes 64 with those of the protocol

// Whether each property has a name that begins with "X-", of at most 255 bytes, and a value that is not empty, and
// whether there are at most kOwnPropertiesMax of them. Empty: no properties.
[[nodiscard]] bool are_properties(std::string_view text) noexcept;
// Requires are_properties(). The first of a name counts.
[[nodiscard]] zmtp::Metadata split_properties(std::string_view text);

}  // namespace weft::msg
