// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "bench/server/wire.h"

namespace bench {

// The key of every WebSocket handshake here and its answer: the example of RFC 6455 section 1.3.
constexpr std::string_view kWebSocketKey = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr std::string_view kWebSocketAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

// A special use of HTTP or WebSocket.
enum class WebStyle {
  plain,
  close,    // HTTP: each request has a connection of its own, which the server ends
  file,     // HTTP: the answer is a file of the server
  publish,  // WebSocket: each message of the first connection goes to all of them
};

// The body of the answer to GET /SIZE, and of the file SIZE: the alphabet again and again.
inline std::string letters(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) {
    text[i] = static_cast<char>('a' + i % 26);
  }
  return text;
}

// WebWire: the requests of a load of HTTP or WebSocket, and how their answers are checked. It does not use Weft.
// Affinity: immutable.
class WebWire {
 public:
  struct Answer {
    std::size_t used = 0;         // bytes that are taken; 0: more are needed
    bool whole = false;           // the answer has ended
    const char* fault = nullptr;  // why the answer is wrong
  };

  virtual ~WebWire() = default;
  // The first bytes of a connection; its requests wait for the answer. Empty: there are none.
  [[nodiscard]] virtual std::string_view greeting() const = 0;
  [[nodiscard]] virtual Answer take_greeting(Bytes bytes) const = 0;
  [[nodiscard]] virtual std::size_t request_size() const = 0;
  virtual void encode(std::uint64_t tag, std::uint8_t* to) const = 0;
  // Takes bytes of the answer to the request with that tag. `passed` is 0 at its start, and of the wire afterwards.
  [[nodiscard]] virtual Answer take(Bytes bytes, std::uint64_t tag, std::size_t& passed) const = 0;
  // The last bytes of a connection, and the only answer to them. Both empty: there are none.
  [[nodiscard]] virtual Bytes farewell() const = 0;
  [[nodiscard]] virtual Bytes answer_to_farewell() const = 0;
};

// GET /SIZE on a connection that stays, or of a style: /file/SIZE, or one request of the connection. Status, length and
// every byte of the body are checked. The answers have no number: one that is lost shows as silence, one that comes
// twice as an answer to nothing.
std::unique_ptr<const WebWire> make_http_wire(std::uint32_t size, WebStyle style = WebStyle::plain);
// Binary messages of the bodies of wire.h, each in one masked frame, which come back; with `publish` on /publish.
std::unique_ptr<const WebWire> make_websocket_wire(std::uint32_t size, WebStyle style = WebStyle::plain);

}  // namespace bench
