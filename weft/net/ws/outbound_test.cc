// SPDX-License-Identifier: MIT
#include "weft/net/ws/outbound.h"

#include <memory>
#include <set>
#include <string>

#include "weft/net/ws/inbound.h"
#include "weft/net/ws/test_frames.h"
#include "weft/zmtp/command.h"
#include <gtest/gtest.h>

namespace weft::net::ws {
namespace {

std::string zmtp_frame(std::uint8_t flags, std::string_view body) {
  std::uint8_t header[zmtp::kFrameHeaderSizeMax];
  return std::string(as_text(Bytes(header, zmtp::write_frame_header(header, flags, body.size())))).append(body);
}

std::string ready(std::string_view identity) {
  std::vector<std::uint8_t> body;
  zmtp::append_command_name(body, "READY");
  zmtp::append_property(body, "Socket-Type", as_bytes("DEALER"));
  zmtp::append_property(body, "Identity", as_bytes(identity));
  return zmtp_frame(zmtp::kCommand, as_text(body));
}

const std::string kGreeting(zmtp::kGreetingSize, 'g');

// Translates `input` in pieces, into room of `room` bytes at a time; sends large bodies itself where it may.
std::string run(bool masks, bool bare, std::string_view input, std::size_t piece, std::size_t room) {
  WsOutbound out;
  out.start(masks ? std::make_unique<Masks>() : nullptr, bare);
  std::string made;
  std::vector<std::uint8_t> output(room);
  for (std::size_t taken = 0; taken < input.size();) {
    const std::string_view next = input.substr(taken, piece);
    if (out.may_lend(next.size())) {
      const std::size_t size = std::min<std::size_t>(next.size(), out.body_rest());
      made += next.substr(0, size);
      out.pass(size);
      taken += size;
      continue;
    }
    const auto moved = out.translate(as_bytes(next), output);
    made += as_text(Bytes(output).first(moved.made));
    taken += moved.taken;
  }
  return made;
}

// The frames of a client, as a server reads them.
std::string unmask(std::string_view bytes) {
  std::string plain;
  while (!bytes.empty()) {
    WsFrameHeader header;
    if (parse_header(as_bytes(bytes), true, header).status != ParseStatus::complete) {
      return plain + "?";
    }
    std::string body(bytes.substr(header.header_size, header.body_size));
    auto* const data = reinterpret_cast<std::uint8_t*>(body.data());
    copy_masked(data, Bytes(data, body.size()), *header.mask, 0);
    plain += test::frame(false, static_cast<std::uint8_t>(bytes[0]), body);
    bytes.remove_prefix(header.header_size + body.size());
  }
  return plain;
}

// The bytes of the server; of a client the frames after their masks, which differ in each run.
std::string run_every_way(bool masks, bool bare, std::string_view input) {
  const auto plain = [&](const std::string& bytes) { return masks ? unmask(bytes) : bytes; };
  const std::string whole = run(masks, bare, input, input.size(), 1 << 20);
  for (const std::size_t piece : {std::size_t{input.size() > 2000 ? 11u : 1u}, std::size_t{64}, std::size_t{40'000}}) {
    for (const std::size_t room : {WsOutbound::kRoomMin, WsOutbound::kRoomMin + 1, std::size_t{10'000}}) {
      EXPECT_EQ(plain(run(masks, bare, input, piece, room)), plain(whole));
    }
  }
  return whole;
}

TEST(WsOutbound, AFrameBecomesAMessageAndTheGreetingNothing) {
  const std::string large(70'000, 'x');
  const std::string input = kGreeting + zmtp_frame(zmtp::kCommand, "\5READY") + zmtp_frame(zmtp::kMore, "a") +
                            zmtp_frame(0, "") + zmtp_frame(0, std::string(300, 'b')) + zmtp_frame(0, large) +
                            zmtp_frame(0, "end");
  const std::string expected = test::message(false, kCommandFlag, "\5READY") + test::message(false, kMoreFlag, "a") +
                               test::message(false, 0, "") + test::message(false, 0, std::string(300, 'b')) +
                               test::message(false, 0, large) + test::message(false, 0, "end");
  EXPECT_EQ(run_every_way(false, false, input), expected);
  const std::string masked = run_every_way(true, false, input);
  EXPECT_EQ(unmask(masked), expected);
  EXPECT_EQ(masked.size(), expected.size() + 6 * sizeof(MaskKey));
}

TEST(WsOutbound, TheBareProtocolSendsTheIdentityInsteadOfReady) {
  EXPECT_EQ(run_every_way(false, true, kGreeting + ready("me") + zmtp_frame(0, "x")),
            test::message(false, 0, "me") + test::message(false, 0, "x"));
  EXPECT_EQ(unmask(run_every_way(true, true, kGreeting + ready("") + zmtp_frame(zmtp::kCommand, "\4JOINg"))),
            test::message(false, 0, "") + test::message(false, kCommandFlag, "\4JOINg"));
  std::vector<std::uint8_t> error;
  zmtp::append_error_frame(error, "no");
  EXPECT_EQ(run_every_way(false, true, kGreeting + std::string(as_text(error))), "");
}

TEST(WsOutbound, EachFrameHasAMaskOfItsOwnThatNoOtherConnectionHas) {
  std::string input = kGreeting;
  for (int i = 0; i < 300; ++i) {
    input += zmtp_frame(0, "");
  }
  std::set<std::string> masks;
  for (const std::string& bytes : {run(true, false, input, input.size(), 10'000), run(true, false, input, 99, 999)}) {
    ASSERT_EQ(bytes.size(), 300u * 7);
    for (std::size_t at = 0; at < bytes.size(); at += 7) {
      masks.insert(bytes.substr(at + 2, 4));
    }
  }
  EXPECT_GE(masks.size(), 598u);  // three pairs of 600 numbers of 32 bits are equal once in 10^14 runs
}

TEST(WsOutbound, ControlFramesStandBetweenFrames) {
  WsOutbound out;
  out.start(nullptr, false);
  std::vector<std::uint8_t> output(1000);
  EXPECT_FALSE(out.between_frames());
  (void)out.translate(as_bytes(kGreeting), output);
  EXPECT_TRUE(out.between_frames());
  (void)out.translate(as_bytes(std::string("\0\3a", 3)), output);
  EXPECT_FALSE(out.between_frames());
  (void)out.translate(as_bytes("bc"), output);
  EXPECT_TRUE(out.between_frames());
  const std::size_t size = out.write_control(output.data(), Opcode::pong, as_bytes("pay"));
  EXPECT_EQ(as_text(Bytes(output).first(size)), test::frame(false, 0x8A, "pay"));
}

TEST(WsOutbound, InboundReadsItBack) {
  const std::string frames = zmtp_frame(zmtp::kCommand, "\5READY") + zmtp_frame(zmtp::kMore, std::string(1000, 'a')) +
                             zmtp_frame(0, std::string(80'000, 'b'));
  for (const bool masks : {false, true}) {
    const std::string wire = run_every_way(masks, false, kGreeting + frames);
    WsInbound in;
    in.start({.masked = masks, .mechanism = "NULL"});
    std::vector<std::uint8_t> output(wire.size() + 1000);
    const auto moved = in.translate(as_bytes(wire), output);
    EXPECT_EQ(moved.taken, wire.size());
    EXPECT_EQ(as_text(Bytes(output).first(moved.made)).substr(zmtp::kGreetingSize), frames);
  }
}

}  // namespace
}  // namespace weft::net::ws
