// SPDX-License-Identifier: MIT
// The checks of answers of HTTP and WebSocket: a wrong answer has a fault.
#include "bench/server/web_wire.h"

#include <vector>

#include <gtest/gtest.h>

namespace bench {
namespace {

Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

// The fault of an answer to GET /5; "": it is whole, "more": it is not.
std::string verdict_on(std::string_view answer) {
  std::size_t passed = 0;
  const WebWire::Answer taken = make_http_wire(5)->take(bytes_of(answer), 0, passed);
  return taken.fault != nullptr ? taken.fault : taken.whole && taken.used == answer.size() ? "" : "more";
}

TEST(HttpWire, BelievesTheRightAnswerOnly) {
  EXPECT_EQ(verdict_on("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcde"), "");
  EXPECT_EQ(verdict_on("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"), "more");
  EXPECT_EQ(verdict_on("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"), "more");
  EXPECT_NE(verdict_on("HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nabcde").find("status"), std::string::npos);
  EXPECT_NE(verdict_on("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef").find("length"), std::string::npos);
  EXPECT_NE(verdict_on("HTTP/1.1 200 OK\r\n\r\nabcde").find("length"), std::string::npos);
  EXPECT_NE(verdict_on("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n").find("two"),
            std::string::npos);
  EXPECT_NE(verdict_on("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcdx").find("damaged"), std::string::npos);
  EXPECT_NE(verdict_on(std::string(4096, 'x')).find("no end"), std::string::npos);
}

TEST(HttpWire, ChecksABodyThatComesInPieces) {
  const auto wire = make_http_wire(5);
  std::size_t passed = 0;
  EXPECT_FALSE(wire->take(bytes_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"), 0, passed).whole);
  const WebWire::Answer rest = wire->take(bytes_of("cdeHTTP"), 0, passed);
  EXPECT_TRUE(rest.whole);
  EXPECT_EQ(rest.used, 3U);
}

// The request of that tag as a server sends it back.
std::vector<std::uint8_t> echo_of(const WebWire& wire, std::uint64_t tag, std::size_t head) {
  std::vector<std::uint8_t> frame(wire.request_size());
  wire.encode(tag, frame.data());
  EXPECT_EQ(frame[1] & 0x80, 0x80);
  for (std::size_t i = head + 4; i < frame.size(); ++i) {
    frame[i] ^= frame[head + (i - head) % 4];
  }
  frame.erase(frame.begin() + static_cast<std::ptrdiff_t>(head), frame.begin() + static_cast<std::ptrdiff_t>(head) + 4);
  frame[1] &= 0x7f;
  return frame;
}

TEST(WebSocketWire, BelievesTheSameMessageOnly) {
  for (const auto& [size, head] : {std::pair{64U, 2U}, std::pair{16'384U, 4U}, std::pair{65'536U, 10U}}) {
    const auto wire = make_websocket_wire(size);
    std::size_t passed = 0;
    std::vector<std::uint8_t> echo = echo_of(*wire, 7, head);
    const WebWire::Answer right = wire->take(echo, 7, passed);
    EXPECT_TRUE(right.whole && right.fault == nullptr && right.used == echo.size()) << size;
    EXPECT_NE(wire->take(echo, 8, passed).fault, nullptr);
    EXPECT_EQ(wire->take(Bytes(echo).first(echo.size() - 1), 7, passed).used, 0U);
    echo.back() ^= 1;
    EXPECT_NE(wire->take(echo, 7, passed).fault, nullptr);
    echo.back() ^= 1;
    echo[0] = 0x81;
    EXPECT_NE(wire->take(echo, 7, passed).fault, nullptr);
  }
}

TEST(WebSocketWire, BelievesTheRightUpgradeOnly) {
  const auto wire = make_websocket_wire(64);
  const std::string right =
      "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
  EXPECT_TRUE(wire->take_greeting(bytes_of(right + "\r\n")).whole);
  EXPECT_EQ(wire->take_greeting(bytes_of(right + "\r\n")).fault, nullptr);
  EXPECT_EQ(wire->take_greeting(bytes_of(right)).used, 0U);
  EXPECT_NE(wire->take_greeting(bytes_of(right + "Sec-WebSocket-Extensions: x\r\n\r\n")).fault, nullptr);
  EXPECT_NE(wire->take_greeting(bytes_of("HTTP/1.1 101 X\r\nSec-WebSocket-Accept: s3\r\n\r\n")).fault, nullptr);
  EXPECT_NE(wire->take_greeting(bytes_of("HTTP/1.1 400 Bad Request\r\n\r\n")).fault, nullptr);
}

}  // namespace
}  // namespace bench
