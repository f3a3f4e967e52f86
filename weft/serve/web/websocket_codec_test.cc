// SPDX-License-Identifier: MIT
// RFC 6455 rule by rule, in the groups of the Autobahn test-suite.
#include "weft/serve/web/websocket_codec.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "weft/serve/web/test_websocket.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using test::client_frame;
using test::close_body;
using test::feed_websocket;
using test::SeenFrame;
using test::SeenFrames;

const std::string kKosme = "\xCE\xBA\xE1\xBD\xB9\xCF\x83\xCE\xBC\xCE\xB5";

WebSocketCodec with_max(std::uint32_t message_max) {
  WebSocketLimits limits;
  limits.message_max = message_max;
  return WebSocketCodec(limits);
}

// Feeds the stream whole and in pieces of several sizes; the outcomes are the same.
SeenFrames feed(const std::string& stream, const WebSocketCodec& codec = {}) {
  SeenFrames whole = feed_websocket(codec, stream);
  for (const std::size_t piece : {1, 2, 3, 7}) {
    SeenFrames seen = feed_websocket(codec, as_bytes(stream), [piece] { return piece; });
    seen.taken = whole.taken;
    EXPECT_EQ(seen, whole) << piece << " bytes at a time";
  }
  return whole;
}

// The status for the peer; 0: the stream is taken.
std::uint16_t refusal_of(const std::string& stream, const WebSocketCodec& codec = {}) {
  const SeenFrames seen = feed(stream, codec);
  EXPECT_EQ(seen.error == Errc::ok, seen.status == 0);
  return seen.status;
}

// 1
TEST(WebSocketCodec, AFrameOfEverySizeArrives) {
  for (const std::size_t size : {0, 1, 125, 126, 127, 65'535, 65'536}) {
    const std::string body(size, 'x');
    for (const auto& [first, kind] : {std::pair(0x81, Opcode::text), std::pair(0x82, Opcode::binary)}) {
      const std::string stream = client_frame(static_cast<std::uint8_t>(first), body);
      const SeenFrames seen = feed_websocket(WebSocketCodec(), stream + stream);
      EXPECT_EQ(seen.frames, (std::vector<SeenFrame>{{kind, kind, true, body}, {kind, kind, true, body}}));
      EXPECT_TRUE(seen.error == Errc::ok);
    }
  }
}

// 2
TEST(WebSocketCodec, AControlFrameIsShortAndWhole) {
  const std::string longest(125, '\xFE');
  for (const int first : {0x89, 0x8A}) {
    const auto byte = static_cast<std::uint8_t>(first);
    EXPECT_EQ(feed(client_frame(byte, longest)).frames.at(0).body, longest);
    EXPECT_EQ(refusal_of(client_frame(byte, longest + "x")), 1002);
    EXPECT_EQ(refusal_of(client_frame(static_cast<std::uint8_t>(first & 0x7F), "x")), 1002);
  }
}

// 3, 4
TEST(WebSocketCodec, ReservedBitsAndOpcodesAreRefused) {
  for (const int bits : {0x10, 0x20, 0x40, 0x70}) {
    for (const int first : {0x81, 0x82, 0x89, 0x88, 0x02}) {
      EXPECT_EQ(refusal_of(client_frame(static_cast<std::uint8_t>(first | bits), "")), 1002);
    }
  }
  for (const int opcode : {3, 7, 11, 15}) {
    EXPECT_EQ(refusal_of(client_frame(static_cast<std::uint8_t>(0x80 | opcode), "x")), 1002);
  }
}

// 5
TEST(WebSocketCodec, FragmentsFollowEachOtherAndControlFramesMayStandBetween) {
  const SeenFrames seen = feed(client_frame(0x01, "a") + client_frame(0x89, "p") + client_frame(0x00, "") +
                               client_frame(0x80, "b") + client_frame(0x82, "c"));
  EXPECT_EQ(seen.frames, (std::vector<SeenFrame>{{Opcode::text, Opcode::text, false, "a"},
                                                 {Opcode::ping, Opcode::ping, true, "p"},
                                                 {Opcode::continuation, Opcode::text, false, ""},
                                                 {Opcode::continuation, Opcode::text, true, "b"},
                                                 {Opcode::binary, Opcode::binary, true, "c"}}));
  EXPECT_EQ(refusal_of(client_frame(0x80, "x")), 1002);
  EXPECT_EQ(refusal_of(client_frame(0x00, "x")), 1002);
  EXPECT_EQ(refusal_of(client_frame(0x01, "a") + client_frame(0x81, "b")), 1002);
  EXPECT_EQ(refusal_of(client_frame(0x02, "a") + client_frame(0x80, "b") + client_frame(0x80, "c")), 1002);
}

// 6
TEST(WebSocketCodec, ATextIsUtf8OverItsFragments) {
  for (std::size_t cut = 0; cut <= kKosme.size(); ++cut) {
    EXPECT_EQ(refusal_of(client_frame(0x01, kKosme.substr(0, cut)) + client_frame(0x89, "\xFF") +
                         client_frame(0x80, kKosme.substr(cut))),
              0);
  }
  EXPECT_EQ(refusal_of(client_frame(0x81, "\xED\xA0\x80")), 1007);
  EXPECT_EQ(refusal_of(client_frame(0x81, "\xCE")), 1007);
  EXPECT_EQ(refusal_of(client_frame(0x01, "\xCE") + client_frame(0x80, "")), 1007);
  EXPECT_EQ(refusal_of(client_frame(0x82, "\xCE")), 0);
  EXPECT_EQ(refusal_of(client_frame(0x81, kKosme) + client_frame(0x81, kKosme)), 0);
}

// 6.4: the rest of the frame, and of the message, need not come.
TEST(WebSocketCodec, AFaultOfATextShowsAtItsByte) {
  const std::string good = client_frame(0x01, kKosme);
  const std::string bad = client_frame(0x80, "\xF4\x90\x80\x80 and more");
  const SeenFrames seen = feed_websocket(WebSocketCodec(), as_bytes(good + bad), [] { return std::size_t{1}; });
  EXPECT_EQ(seen.status, 1007);
  EXPECT_EQ(seen.taken, good.size() + 6 + 2);  // the header, and the byte that makes it no character
  const std::string large = client_frame(0x81, std::string(100'000, 'x') + "\xFF" + std::string(400'000, 'x'));
  const SeenFrames stepped = feed_websocket(WebSocketCodec(), as_bytes(large), [] { return std::size_t{100}; });
  EXPECT_EQ(stepped.status, 1007);
  EXPECT_LT(stepped.taken, 100'000 + WebSocketCodec::kScanStep + 200);
}

// 7
TEST(WebSocketCodec, ACloseHasAStatusThatMayBeSentAndAReasonOfText) {
  const std::string end = client_frame(0x88, close_body(1000, "bye"));
  EXPECT_EQ(feed(end).frames.at(0).body, close_body(1000, "bye"));
  EXPECT_EQ(refusal_of(client_frame(0x88, "")), 0);
  EXPECT_EQ(refusal_of(client_frame(0x88, "a")), 1002);
  EXPECT_EQ(refusal_of(client_frame(0x88, close_body(1000, kKosme + "\xED"))), 1007);
  EXPECT_EQ(refusal_of(client_frame(0x88, close_body(1000, std::string(123, '*')))), 0);
  EXPECT_EQ(refusal_of(client_frame(0x88, close_body(1000, std::string(124, '*')))), 1002);
  for (const std::uint16_t status : std::initializer_list<std::uint16_t>{1000, 1003, 1007, 1014, 3000, 4999}) {
    EXPECT_EQ(refusal_of(client_frame(0x88, close_body(status))), 0) << status;
  }
  for (const std::uint16_t status :
       std::initializer_list<std::uint16_t>{0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 65'535}) {
    EXPECT_EQ(refusal_of(client_frame(0x88, close_body(status))), 1002) << status;
  }
  const SeenFrames seen = feed_websocket(WebSocketCodec(), end + client_frame(0x82, "late"));
  EXPECT_EQ(seen.frames.size(), 1u);
  EXPECT_TRUE(seen.error == Errc::protocol_error);
}

// 9, section 10.4
TEST(WebSocketCodec, AMessageIsBoundedBeforeItComes) {
  const WebSocketCodec codec = with_max(300);
  EXPECT_EQ(refusal_of(client_frame(0x82, std::string(300, 'x')), codec), 0);
  const SeenFrames seen = feed_websocket(codec, client_frame(0x82, std::string(301, 'x')).substr(0, 8));
  EXPECT_EQ(seen.status, 1009);
  EXPECT_TRUE(seen.error == Errc::message_too_large);
  EXPECT_EQ(refusal_of(client_frame(0x02, std::string(200, 'x')) + client_frame(0x80, std::string(101, 'x')), codec),
            1009);
  EXPECT_EQ(refusal_of(client_frame(0x02, std::string(200, 'x')) + client_frame(0x80, std::string(100, 'x')) +
                           client_frame(0x82, std::string(300, 'x')),
                       codec),
            0);
}

// Sections 5.1, 5.2
TEST(WebSocketCodec, AClientMasksAndWritesALengthInItsShortestForm) {
  EXPECT_EQ(refusal_of(test::server_frame(0x82, "bare")), 1002);
  EXPECT_EQ(refusal_of(std::string("\x82\xFE\x00\x7D", 4)), 1002);
  EXPECT_EQ(refusal_of(std::string("\x82\xFF\x00\x00\x00\x00\x00\x00\xFF\xFF", 10)), 1002);
  EXPECT_EQ(refusal_of(std::string("\x82\xFF\x80\x00\x00\x00\x00\x00\x00\x00", 10)), 1002);
}

std::string encode(Opcode opcode, std::string_view body, const WebSocketCodec& codec = WebSocketCodec()) {
  std::string out(body.size() + WebSocketCodec::kHeaderMax, '\0');
  const auto size = encode_frame(codec, opcode, as_bytes(body),
                                 MutableBytes(reinterpret_cast<std::uint8_t*>(out.data()), out.size()));
  return size ? out.substr(0, *size) : "refused: " + std::string(size.error().text());
}

TEST(WebSocketCodec, WhatIsSentIsWholeUnmaskedAndValid) {
  EXPECT_EQ(encode(Opcode::text, kKosme), test::server_frame(0x81, kKosme));
  EXPECT_EQ(encode(Opcode::binary, std::string(70'000, '\xFF')), test::server_frame(0x82, std::string(70'000, '\xFF')));
  EXPECT_EQ(encode(Opcode::ping, "p"), test::server_frame(0x89, "p"));
  for (const auto& [opcode, body] :
       {std::pair(Opcode::text, std::string("\xED\xA0\x80")), std::pair(Opcode::continuation, std::string("x")),
        std::pair(Opcode::ping, std::string(126, 'x'))}) {
    EXPECT_TRUE(encode(opcode, body).starts_with("refused: ")) << static_cast<int>(opcode);
  }
}

TEST(WebSocketCodec, OnlyTheFrameThatReplacesTheFarewellMayCloseAndItsBodyIsValid) {
  WebSocketCodec codec;
  EXPECT_TRUE(encode(Opcode::close, close_body(1000), codec).starts_with("refused: "));
  codec.set_close_sent(true);
  EXPECT_EQ(encode(Opcode::close, close_body(1000), codec), test::server_frame(0x88, close_body(1000)));
  for (const std::string& body : {close_body(1005), std::string("x")}) {
    EXPECT_TRUE(encode(Opcode::close, body, codec).starts_with("refused: "));
  }
}

TEST(WebSocketCodec, AReasonIsCutBetweenTwoCharacters) {
  std::uint8_t body[net::ws::kControlBodyMax];
  const std::string letters(122, 'x');
  EXPECT_EQ(write_close_body(body, 4000, letters + "\xCE\xBA"), 2 + letters.size());
  EXPECT_EQ(write_close_body(body, 4000, letters + "yz"), sizeof body);
  EXPECT_EQ(write_close_body(body, 4000, "\xFF"), 2u);
  EXPECT_EQ(write_close_body(body, 0, "none"), 0u);
}

TEST(WebSocketCodec, TheFarewellSaysWhyAndIsSaidOnce) {
  const std::pair<EndCause, std::uint16_t> cases[] = {{EndCause::closed, 1000},
                                                      {EndCause::refused, 1009},
                                                      {EndCause::late, 1008},
                                                      {EndCause::quiet, 1001},
                                                      {EndCause::stopped, 1001}};
  std::array<std::uint8_t, kFarewellMax> out;
  for (const auto& [why, status] : cases) {
    WebSocketCodec codec;
    const std::size_t size = codec.farewell(why, out);
    EXPECT_EQ(as_text(Bytes(out).first(size)), test::server_frame(0x88, close_body(status)));
    EXPECT_EQ(codec.farewell(why, out), 0u);
  }
  WebSocketCodec chosen;
  chosen.set_close_status(4001);
  EXPECT_EQ(as_text(Bytes(out).first(chosen.farewell(EndCause::closed, out))),
            test::server_frame(0x88, close_body(4001)));
}

}  // namespace
}  // namespace weft::serve::web
