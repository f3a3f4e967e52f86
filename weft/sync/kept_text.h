// SPDX-License-Identifier: MIT
#pragma once

#include <initializer_list>
#include <string_view>

#include "weft/base/error.h"

// Texts that are made at run time and never freed: an Error's text is static storage. For errors that name an object:
// an endpoint, a core, the text of a peer.
// Affinity: any thread. Cost: a lock and a comparison with each kept text; no allocation. A caller stores the returned
// text in its object, and never keeps one text per message.
// Invariants:
//   1. A kept text never changes. The same text is kept once.
//   2. Each of the two tables has at most kKeptTexts texts of less than kKeptTextSize bytes; a longer text is cut. A
//      text that finds its table full is `otherwise`, which is static storage. So peers cannot take the room of the
//      program's own texts, and neither can take more memory than the tables.
//   3. A kept text has no control characters: each is a '?'.
namespace weft::sync {

inline constexpr unsigned kKeptTexts = 512;
inline constexpr unsigned kKeptTextSize = 160;

// Joins the parts.
[[nodiscard]] StaticText keep_text(std::initializer_list<std::string_view> parts, StaticText otherwise) noexcept;
// The same for a text from a peer: in a table of its own.
[[nodiscard]] StaticText keep_peer_text(std::initializer_list<std::string_view> parts, StaticText otherwise) noexcept;

}  // namespace weft::sync
