// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::net::ws {

// permessage-deflate (RFC 7692): the extension by which messages are compressed.

inline constexpr int kWindowBitsMin = 9;  // zlib has no window of 2^8 bytes without its own frame
inline constexpr int kWindowBitsMax = 15;

// The wish of a server, or of a client, for its connections.
struct DeflateWish {
  bool server_keeps = false;         // its messages may refer to earlier ones: it then keeps a window
  bool client_keeps = false;         // the same of the client's: this end keeps the window to expand them
  int window_bits = kWindowBitsMax;  // of each window, kWindowBitsMin to kWindowBitsMax
};

// The terms that both ends agreed on. A window of the client that has no bound has 15 bits.
struct DeflateTerms {
  bool server_keeps = false;
  bool client_keeps = false;
  std::uint8_t server_bits = kWindowBitsMax;
  std::uint8_t client_bits = kWindowBitsMax;
};

struct DeflateAnswer {
  DeflateTerms terms;
  std::string text;  // the value of the server's Sec-WebSocket-Extensions
};

// The answer to the first offer of permessage-deflate in the client's Sec-WebSocket-Extensions that a server can take.
// None: there is no such offer. An offer with an unknown, a doubled or a wrong parameter, or with a window of the
// server that zlib does not have (8 bits), is not taken. Cost: linear in the text.
[[nodiscard]] std::optional<DeflateAnswer> answer_deflate(std::string_view offers, const DeflateWish& wish);

// A client's Sec-WebSocket-Extensions. The wish is the client's: `server_keeps` permits the server to refer to earlier
// messages, `window_bits` bounds both windows.
[[nodiscard]] std::string offer_deflate(const DeflateWish& wish);
// The terms of the server's answer to that offer. None: it is not one to the offer; the connection then fails.
[[nodiscard]] std::optional<DeflateTerms> accept_deflate(std::string_view answer, const DeflateWish& wish);

}  // namespace weft::net::ws
