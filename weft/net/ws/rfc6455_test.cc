// SPDX-License-Identifier: MIT
// RFC 6455 rule by rule, in the groups of the Autobahn test-suite. That suite itself does not apply: its cases expect
// an echo of text without a sub-protocol, and ZWS is binary messages that begin with a byte of flags.
#include "weft/net/stream/test_pipe.h"
#include "weft/net/ws/test_frames.h"
#include "weft/net/ws/ws_stream.h"
#include "weft/zmtp/frame.h"
#include "weft/zmtp/greeting.h"
#include <gtest/gtest.h>

namespace weft::net::ws {
namespace {

using net::test::Pipe;
using net::test::PipeStream;
using net::test::read_all;
using net::test::Status;
using test::frame;
using test::message;

constexpr std::string_view kRequest =
    "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: ZWS2.0/NULL\r\nSec-WebSocket-Version: "
    "13\r\n"
    "\r\n";

// A server: the bytes for its socket, those for the peer, and the end of the stream.
struct Outcome {
  std::string given;
  std::string sent;
  Status last = Status::done;
};

// A server that a client sends `bytes` to, so many of them at a time.
Outcome serve(std::string_view bytes, std::size_t piece) {
  Pipe up;
  Pipe down;
  const auto server = *make_zws_stream(std::make_unique<PipeStream>(up, down, nullptr), {});
  up.bytes = kRequest;
  Outcome outcome;
  EXPECT_EQ(read_all(*server).size(), zmtp::kGreetingSize);
  EXPECT_TRUE(server->state().established);
  EXPECT_EQ(net::test::write(*server, std::string(zmtp::kGreetingSize, 'g')).bytes, zmtp::kGreetingSize);
  server->admit();  // else fragments are bounded more closely
  down.bytes.clear();
  for (; !bytes.empty() && outcome.last != Status::failed && outcome.last != Status::end_of_stream;
       bytes.remove_prefix(std::min(piece, bytes.size()))) {
    up.bytes += bytes.substr(0, piece);
    outcome.given += read_all(*server, &outcome.last);
  }
  outcome.sent = down.bytes;
  return outcome;
}

std::string zmtp_frame(std::string_view body) {
  std::uint8_t header[zmtp::kFrameHeaderSizeMax];
  return std::string(as_text(Bytes(header, zmtp::write_frame_header(header, 0, body.size())))).append(body);
}
std::string closing(std::uint16_t status, std::string_view reason = "") {
  return std::string{static_cast<char>(status >> 8), static_cast<char>(status)}.append(reason);
}
std::string answer(std::uint16_t status) { return frame(false, 0x88, closing(status)); }

struct Case {
  const char* group;
  std::string bytes;
  std::string given;
  std::string sent;
  Status last;
};

void expect(const Case& row) {
  const bool large = row.bytes.size() > 10'000;
  for (const std::size_t piece : large ? std::vector<std::size_t>{997, row.bytes.size()}
                                       : std::vector<std::size_t>{1, 2, 3, 5, row.bytes.size()}) {
    const Outcome outcome = serve(row.bytes, piece);
    EXPECT_TRUE(outcome.given == row.given) << row.group << ", " << piece << " bytes at a time";
    EXPECT_EQ(outcome.sent, row.sent) << row.group << ", " << piece << " bytes at a time";
    EXPECT_EQ(outcome.last, row.last) << row.group << ", " << piece << " bytes at a time";
  }
}

// 1.2 and 9.2: sizes on both sides of each form of the length.
TEST(Rfc6455, BinaryMessagesOfEverySizeArrive) {
  for (const std::size_t size : {0, 1, 123, 124, 125, 126, 127, 65'533, 65'534, 65'535, 65'536, 1'048'576}) {
    const std::string body = net::test::numbered(size);
    expect({"1.2", message(true, 0, body), zmtp_frame(body), "", Status::would_block});
  }
}

// 1.1, 6: text is not a message of ZWS, well formed or not.
TEST(Rfc6455, TextIsRefusedAsAKindThatIsNotTaken) {
  for (const char* const body : {"", "Hello", "\xCE\xBA\xE1\xBD\xB9", "\xED\xA0\x80"}) {
    expect({"1.1", frame(true, 0x81, body), "", answer(1003), Status::failed});
  }
  expect({"6.4", frame(true, 0x01, "Hel") + frame(true, 0x80, "lo"), "", answer(1003), Status::failed});
}

// 2
TEST(Rfc6455, PingsAreAnsweredWithTheirBodiesAndPongsAreNot) {
  const std::string bytes("\x00\xFF\xFE\xFD\xFC\xFB\x00\xFF", 8);
  const std::string longest(125, '\xFE');
  const auto pong = [](std::string_view body) { return frame(false, 0x8A, body); };
  expect({"2.1", frame(true, 0x89, ""), "", pong(""), Status::would_block});
  expect({"2.2", frame(true, 0x89, "Hello, world!"), "", pong("Hello, world!"), Status::would_block});
  expect({"2.3", frame(true, 0x89, bytes), "", pong(bytes), Status::would_block});
  expect({"2.4", frame(true, 0x89, longest), "", pong(longest), Status::would_block});
  expect({"2.5", frame(true, 0x89, longest + "\xFE"), "", answer(1002), Status::failed});
  expect({"2.7", frame(true, 0x8A, ""), "", "", Status::would_block});
  expect({"2.8", frame(true, 0x8A, "unsolicited"), "", "", Status::would_block});
  expect({"2.9", frame(true, 0x8A, "unsolicited") + frame(true, 0x89, "ping"), "", pong("ping"), Status::would_block});
  std::string ten;
  std::string answers;
  for (int i = 0; i < 10; ++i) {
    ten += frame(true, 0x89, "payload-" + std::to_string(i));
    answers += pong("payload-" + std::to_string(i));
  }
  expect({"2.10", ten, "", answers, Status::would_block});
}

// 3: no extension is agreed on, so each reserved bit is an error, in each kind of frame.
TEST(Rfc6455, ReservedBitsEndTheConnection) {
  for (const int bits : {0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70}) {
    for (const int first : {0x82, 0x89, 0x8A, 0x88, 0x02}) {
      const auto byte = static_cast<std::uint8_t>(first | bits);
      expect({"3", message(true, 0, "good") + frame(true, byte, "x") + frame(true, 0x89, "late"), zmtp_frame("good"),
              answer(1002), Status::failed});
    }
  }
}

// 4
TEST(Rfc6455, ReservedOpcodesEndTheConnection) {
  for (const int opcode : {3, 4, 5, 6, 7, 11, 12, 13, 14, 15}) {
    for (const char* const body : {"", "x"}) {
      expect({"4",
              message(true, 0, "good") + frame(true, static_cast<std::uint8_t>(0x80 | opcode), body) +
                  frame(true, 0x89, "late"),
              zmtp_frame("good"), answer(1002), Status::failed});
    }
  }
}

// 5
TEST(Rfc6455, FragmentsAreOneMessageAndControlFramesMayStandBetween) {
  const std::string begin = frame(true, 0x02, std::string("\0frag", 5));
  const std::string more = frame(true, 0x00, "men");
  const std::string end = frame(true, 0x80, "ts");
  const std::string ping = frame(true, 0x89, "p");
  const std::string pong = frame(false, 0x8A, "p");
  expect({"5.1", frame(true, 0x09, "frag") + frame(true, 0x80, "ment"), "", answer(1002), Status::failed});
  expect({"5.2", frame(true, 0x0A, "frag") + frame(true, 0x80, "ment"), "", answer(1002), Status::failed});
  expect({"5.1, of a close", frame(true, 0x08, closing(1000)), "", answer(1002), Status::failed});
  expect({"5.3", begin + end, zmtp_frame("fragts"), "", Status::would_block});
  expect({"5.6", begin + ping + end, zmtp_frame("fragts"), pong, Status::would_block});
  expect({"5.9", frame(true, 0x80, "x") + message(true, 0, "y"), "", answer(1002), Status::failed});
  expect({"5.12", frame(true, 0x00, "x") + message(true, 0, "y"), "", answer(1002), Status::failed});
  expect({"5.15", begin + end + frame(true, 0x00, "x") + end, zmtp_frame("fragts"), answer(1002), Status::failed});
  expect({"5.18", begin + frame(true, 0x82, "x"), "", answer(1002), Status::failed});
  expect({"5.19", begin + more + ping + more + more + ping + end + ping, zmtp_frame("fragmenmenments"),
          pong + pong + pong, Status::would_block});
}

// 7.1, 7.3, 7.5, 7.7, 7.9, 7.13
TEST(Rfc6455, ACloseIsAnsweredOnceAndNothingBehindItIsTaken) {
  const std::string end = frame(true, 0x88, closing(1000));
  expect({"7.1.1", message(true, 0, "last") + end, zmtp_frame("last"), answer(1000), Status::end_of_stream});
  expect({"7.1.2", end + end, "", answer(1000), Status::end_of_stream});
  expect({"7.1.3", end + frame(true, 0x89, "ping"), "", answer(1000), Status::end_of_stream});
  expect({"7.1.4", end + message(true, 0, "late"), "", answer(1000), Status::end_of_stream});
  expect({"7.1.5", frame(true, 0x02, std::string("\0frag", 5)) + end + frame(true, 0x80, "ment"), "", answer(1000),
          Status::end_of_stream});
  expect({"7.3.1", frame(true, 0x88, ""), "", frame(false, 0x88, ""), Status::end_of_stream});
  expect({"7.3.2", frame(true, 0x88, "a"), "", answer(1002), Status::failed});
  expect({"7.3.4", frame(true, 0x88, closing(1000, "Hello")), "", answer(1000), Status::end_of_stream});
  expect({"7.3.5", frame(true, 0x88, closing(1000, std::string(123, '*'))), "", answer(1000), Status::end_of_stream});
  expect({"7.3.6", frame(true, 0x88, closing(1000, std::string(124, '*'))), "", answer(1002), Status::failed});
  expect({"7.5.1", frame(true, 0x88, closing(1000, "\xCE\xBA\xED\xA0\x80")), "", answer(1007), Status::failed});
  for (const std::uint16_t status : std::initializer_list<std::uint16_t>{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010,
                                                                         1011, 3000, 3999, 4000, 4999}) {
    expect({"7.7", frame(true, 0x88, closing(status)), "", answer(status), Status::end_of_stream});
  }
  for (const std::uint16_t status :
       std::initializer_list<std::uint16_t>{0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65'535}) {
    expect({"7.9", frame(true, 0x88, closing(status)), "", answer(1002), Status::failed});
  }
}

// 9.3, 9.4, 9.7: a message in many fragments, and many messages at once.
TEST(Rfc6455, ManyFragmentsAndManyMessagesArrive) {
  std::string bytes = frame(true, 0x02, std::string(1, '\0'));
  std::string whole;
  for (int i = 0; i < 4096; ++i) {
    const std::string part(64, static_cast<char>('a' + i % 26));
    bytes += frame(true, 0x00, part);
    whole += part;
  }
  expect({"9.4", bytes + frame(true, 0x80, ""), zmtp_frame(whole), "", Status::would_block});
  bytes.clear();
  std::string frames;
  for (int i = 0; i < 1000; ++i) {
    const std::string body = net::test::numbered(static_cast<std::size_t>(i) % 300);
    bytes += message(true, 0, body);
    frames += zmtp_frame(body);
  }
  expect({"9.7", bytes, frames, "", Status::would_block});
}

// Section 5.2: a length in its shortest form, and at most 63 bits. Section 5.1: a client masks.
TEST(Rfc6455, LengthsAndMasksAreChecked) {
  const auto header = [](std::string_view bytes) { return std::string(bytes) + std::string(20, '\0'); };
  expect({"5.2", header(std::string_view("\x82\xFE\x00\x7D", 4)), "", answer(1002), Status::failed});
  expect({"5.2", header(std::string_view("\x82\xFF\x00\x00\x00\x00\x00\x00\xFF\xFF", 10)), "", answer(1002),
          Status::failed});
  expect({"5.2", header(std::string_view("\x82\xFF\x80\x00\x00\x00\x00\x00\x00\x00", 10)), "", answer(1002),
          Status::failed});
  expect({"5.1", message(false, 0, "bare"), "", answer(1002), Status::failed});
}

}  // namespace
}  // namespace weft::net::ws
