// SPDX-License-Identifier: MIT
// The client's end of WebSocketCodec.
#include <array>
#include <set>
#include <string>

#include "weft/serve/web/test_websocket.h"
#include "weft/serve/web/websocket_codec.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using test::feed_websocket;
using test::SeenFrames;

// The bytes of a frame, as SessionOf::send() makes them.
std::string send_packed(WebSocketCodec& codec, Opcode opcode, const std::string& body) {
  EXPECT_TRUE(codec.packs(opcode, as_bytes(body)));
  const auto packed = codec.pack(opcode, as_bytes(body));
  if (!packed) {
    return "refused: " + std::string(packed.error().text());
  }
  std::string out(packed->size() + WebSocketCodec::kHeaderMax, '\0');
  const auto size =
      encode_frame(codec, opcode, *packed, MutableBytes(reinterpret_cast<std::uint8_t*>(out.data()), out.size()));
  codec.end_pack(size.has_value());
  return size ? out.substr(0, *size) : "refused: " + std::string(size.error().text());
}

TEST(WebSocketMasker, AFrameOfTheClientIsOneThatTheServerTakes) {
  WebSocketMasker masker;
  WebSocketCodec client;
  client.set_masker(&masker);
  for (const std::size_t size : {0u, 1u, 125u, 126u, 70'000u}) {
    const std::string body(size, 'x');
    const SeenFrames seen = feed_websocket(WebSocketCodec(), send_packed(client, Opcode::text, body));
    ASSERT_EQ(seen.frames.size(), 1u) << size;
    EXPECT_EQ(seen.frames[0].body, body);
    EXPECT_EQ(seen.frames[0].opcode, Opcode::text);
  }
  EXPECT_EQ(feed_websocket(WebSocketCodec(), send_packed(client, Opcode::ping, "p")).frames[0].body, "p");
}

TEST(WebSocketMasker, EachFrameHasAnotherMask) {
  WebSocketMasker masker;
  WebSocketCodec client;
  client.set_masker(&masker);
  std::set<std::string> masked;
  for (int i = 0; i < 300; ++i) {
    masked.insert(send_packed(client, Opcode::binary, std::string(8, '\0')));
  }
  EXPECT_GE(masked.size(), 299u);  // two of 300 are equal once in 100,000 runs
}

TEST(WebSocketMasker, WhatBreaksARuleIsNotSent) {
  WebSocketMasker masker;
  WebSocketCodec client;
  client.set_masker(&masker);
  EXPECT_TRUE(send_packed(client, Opcode::text, "\xFF").starts_with("refused: "));
  EXPECT_TRUE(send_packed(client, Opcode::continuation, "x").starts_with("refused: "));
  EXPECT_TRUE(send_packed(client, Opcode::ping, std::string(126, 'x')).starts_with("refused: "));
  EXPECT_TRUE(send_packed(client, Opcode::close, test::close_body(1000)).starts_with("refused: "));
}

TEST(WebSocketMasker, AServersFrameHasNoMask) {
  WebSocketMasker masker;
  WebSocketCodec client;
  client.set_masker(&masker);
  const SeenFrames seen =
      feed_websocket(client, test::server_frame(0x81, "he\xC3\xA9") + test::server_frame(0x82, "b"));
  ASSERT_EQ(seen.frames.size(), 2u);
  EXPECT_EQ(seen.frames[0].body, "he\xC3\xA9");
  EXPECT_EQ(seen.frames[1].body, "b");
  EXPECT_EQ(feed_websocket(client, test::server_frame(0x81, "\xFF")).status, 1007);
  EXPECT_EQ(feed_websocket(client, test::client_frame(0x81, "masked")).status, 1002);
  EXPECT_EQ(feed_websocket(client, test::server_frame(0x88, test::close_body(999))).status, 1002);
}

TEST(WebSocketMasker, TheFarewellOfAClientIsMasked) {
  WebSocketMasker masker;
  WebSocketCodec client;
  client.set_masker(&masker);
  std::array<std::uint8_t, kFarewellMax> out;
  const std::size_t size = client.farewell(EndCause::closed, out);
  const SeenFrames seen = feed_websocket(WebSocketCodec(), as_text(Bytes(out).first(size)));
  ASSERT_EQ(seen.frames.size(), 1u);
  EXPECT_EQ(seen.frames[0].opcode, Opcode::close);
  EXPECT_EQ(seen.frames[0].body, test::close_body(1000));
}

}  // namespace
}  // namespace weft::serve::web
