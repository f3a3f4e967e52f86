// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/codec.h"

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "weft/nats/protocol/test_pieces.h"
#include <gtest/gtest.h>

namespace weft::nats {
namespace {

using test::decode_in_pieces;
using test::decode_whole;
using test::Operation;
using test::Story;

// The bytes of nats-server 2.9.10 in one connection.
constexpr std::string_view kTranscript =
    "INFO {\"server_id\":\"NAVNVH7Y4VXIMB4LKHGNXEMDJJWET2V4VC2L73HFUZZQ6A5BVHWTOITK\",\"version\":\"2.9.10\","
    "\"proto\":1,\"go\":\"go1.19.8\",\"host\":\"127.0.0.1\",\"port\":33789,\"headers\":true,\"max_payload\":1048576,"
    "\"client_id\":4,\"client_ip\":\"127.0.0.1\"} \r\n"
    "+OK\r\nPONG\r\n+OK\r\n"
    "MSG a.b 1 5\r\nhello\r\nMSG a.b 2 5\r\nhello\r\n"
    "MSG a.b 1 re.ply 0\r\n\r\n"
    "HMSG a.c 1 25 30\r\nNATS/1.0\r\nName: value\r\n\r\nhello\r\n"
    "HMSG _INBOX.x.7 3 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
    "PING\r\n-ERR 'Unknown Protocol Operation'\r\n";

std::vector<Operation> transcript_operations() {
  const std::size_t info = kTranscript.find("} \r\n") + 1;
  return {
      {.op = Op::info, .body = std::string(kTranscript.substr(5, info - 5))},
      {.op = Op::ok},
      {.op = Op::pong},
      {.op = Op::ok},
      {.op = Op::message, .subject = "a.b", .sid = 1, .body = "hello"},
      {.op = Op::message, .subject = "a.b", .sid = 2, .body = "hello"},
      {.op = Op::message, .subject = "a.b", .reply = "re.ply", .sid = 1},
      {.op = Op::message,
       .subject = "a.c",
       .sid = 1,
       .headers_size = 25,
       .body = "NATS/1.0\r\nName: value\r\n\r\nhello"},
      {.op = Op::message, .subject = "_INBOX.x.7", .sid = 3, .headers_size = 16, .body = "NATS/1.0 503\r\n\r\n"},
      {.op = Op::ping},
      {.op = Op::error, .body = "'Unknown Protocol Operation'"},
  };
}

Story told(std::string_view stream) { return decode_whole(Codec(), stream); }

TEST(NatsCodec, ReadsTheTranscriptOfAServer) {
  const Story story = told(kTranscript);
  EXPECT_EQ(story.error, "");
  EXPECT_EQ(story.rest, 0U);
  std::vector<Operation> wanted = transcript_operations();
  wanted.front().body = story.operations.front().body;  // with or without the blank at its end
  EXPECT_EQ(story.operations, wanted);
  EXPECT_EQ(story.operations.front().body.find('{'), 0U);
  EXPECT_NE(story.operations.front().body.find("\"client_ip\":\"127.0.0.1\"}"), std::string::npos);
}

TEST(NatsCodec, ReadsTheTranscriptUnderEverySplit) {
  const Story whole = told(kTranscript);
  for (std::size_t first = 1; first < kTranscript.size(); ++first) {
    bool cut = false;
    const Story split = decode_in_pieces(Codec(), kTranscript, [&] {
      const std::size_t size = cut ? kTranscript.size() : first;
      cut = true;
      return size;
    });
    ASSERT_EQ(split, whole) << "cut at " << first;
  }
  for (std::size_t size = 1; size < 40; ++size) {
    ASSERT_EQ(decode_in_pieces(Codec(), kTranscript, [size] { return size; }), whole) << "pieces of " << size;
  }
}

TEST(NatsCodec, EachTruncatedTranscriptIsABeginning) {
  const Story whole = told(kTranscript);
  for (std::size_t size = 0; size < kTranscript.size(); ++size) {
    const Story part = told(kTranscript.substr(0, size));
    ASSERT_EQ(part.error, "");
    ASSERT_TRUE(std::equal(part.operations.begin(), part.operations.end(), whole.operations.begin()));
    ASSERT_LT(part.operations.size(), whole.operations.size());
  }
}

TEST(NatsCodec, WordsHaveEitherCaseAndAnyBlanks) {
  const Story story = told("msg  a.b\t7   2 \r\nok\r\nping\r\n+ok\r\n");
  EXPECT_EQ(story.error, "");
  ASSERT_EQ(story.operations.size(), 3U);
  EXPECT_EQ(story.operations.front(), (Operation{.op = Op::message, .subject = "a.b", .sid = 7, .body = "ok"}));
}

// decode() reads a line in upper case in one walk, and any other line word by word.
TEST(NatsCodec, BothWaysThroughALineFindTheSame) {
  for (const std::string_view rest :
       {" a.b 1 2\r\nok\r\n", " a.b 1 re.ply 2\r\nok\r\n", " a 1 7 2\r\nok\r\n", " a 1 2 \r\nok\r\n",
        "  a 1 2\r\nok\r\n", " a 1\t2\r\nok\r\n", " a\r 1 2\r\nok\r\n", " a 1 r\x01 2\r\nok\r\n",
        " a 18446744073709551615 2\r\nok\r\n", " a 18446744073709551616 2\r\nok\r\n",
        " a 1 00000000000000000000002\r\nok\r\n", " a 1 9999999999999999999\r\n", " a 1 r 2 3\r\nok\r\n",
        " a  2\r\nok\r\n", " a 1 2\nok\r\n", " a 1 2\r\rok\r\n", " a 1 2x\r\nok\r\n", " 1 2\r\nok\r\n"}) {
    EXPECT_EQ(told("MSG" + std::string(rest)), told("msg" + std::string(rest))) << rest;
  }
  const std::string longest = " " + std::string(kControlLineMax - 10, 'a') + " 1 2\r\nok\r\n";
  for (const std::string& rest : {longest, " a" + longest.substr(1), longest.substr(0, 1) + longest.substr(2)}) {
    EXPECT_EQ(told("MSG" + rest), told("msg" + rest)) << rest.size();
  }
}

TEST(NatsCodec, RefusesWhatIsNotOfTheProtocol) {
  const std::string_view malformed[] = {
      "HELLO\r\n",
      "\r\n",
      "PING\n",
      "MSG a 1\r\n",
      "MSG a x 2\r\nok\r\n",
      "MSG a 1 -2\r\nok\r\n",
      "MSG a 1 r s 2\r\nok\r\n",
      "MSG a 1 9999999999999999999999\r\n",
      "MSG a 1 2\r\nokXX",
      "HMSG a 1 20 10\r\n",
      "HMSG a 1 2 4\r\nokok\r\n",
      "HMSG a 1 12 12\r\nNATS/2.0\r\n\r\n\r\n",
      "HMSG a 1 12 14\r\nNATS/1.0\r\nab\r\n\r\n",
      "HMSG a 1 99999 99999\r\n",
      "PUB a 2\r\nok\r\n",
  };
  for (const std::string_view text : malformed) {
    Codec codec;
    const auto decoded = codec.decode(as_bytes(text));
    EXPECT_TRUE(decoded.failed()) << text;
    EXPECT_EQ(decoded.error.code(), Errc::protocol_error) << text;
  }
}

TEST(NatsCodec, ALineHasABound) {
  Codec codec;
  const std::string line(kControlLineMax, 'A');
  EXPECT_FALSE(codec.decode(as_bytes(line).first(kControlLineMax - 1)).failed());
  EXPECT_EQ(codec.decode(as_bytes(line)).error.code(), Errc::protocol_error);
  Codec of_info;
  const std::string info = "INFO " + std::string(kInfoMax - 5, 'A');
  EXPECT_FALSE(of_info.decode(as_bytes(info).first(kInfoMax - 1)).failed());
  EXPECT_EQ(of_info.decode(as_bytes(info)).error.code(), Errc::protocol_error);
}

TEST(NatsCodec, AMessageBeyondItsBoundIsRefusedByItsLine) {
  Codec codec(5);
  EXPECT_EQ(codec.decode(as_bytes("MSG a 1 6\r\n")).error.code(), Errc::message_too_large);
  Codec fits(6);
  const auto decoded = fits.decode(as_bytes("MSG a 1 6\r\n"));
  EXPECT_FALSE(decoded.failed());
  EXPECT_EQ(decoded.least, 11U + 6U + 2U);
  EXPECT_EQ(Codec(~std::size_t{0}).body_max(), kMessageMax);
}

Result<std::string> written(const Head& head, std::string_view body = {}) {
  const Codec codec(100);
  std::array<std::uint8_t, Codec::kHeaderMax> front;
  const std::size_t size = WEFT_TRY(codec.encode_header(head, as_bytes(body), std::span(front)));
  return std::string(as_text(Bytes(front).first(size))).append(body).append(as_text(codec.trailer()));
}

TEST(NatsCodec, WritesEachOperation) {
  EXPECT_EQ(written({.op = Op::ping}).value(), "PING\r\n");
  EXPECT_EQ(written({.op = Op::pong}).value(), "PONG\r\n");
  EXPECT_EQ(written({.op = Op::connect}, "{}").value(), "CONNECT {}\r\n");
  EXPECT_EQ(written({.op = Op::publish, .subject = "a.b"}, "hi").value(), "PUB a.b 2\r\nhi\r\n");
  EXPECT_EQ(written({.op = Op::publish, .subject = "a.b", .reply = "r"}).value(), "PUB a.b r 0\r\n\r\n");
  EXPECT_EQ(written({.op = Op::publish, .subject = "a", .headers_size = 12}, "NATS/1.0\r\n\r\nhi").value(),
            "HPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n");
  EXPECT_EQ(written({.op = Op::subscribe, .subject = "a.*", .sid = 12}).value(), "SUB a.* 12\r\n");
  EXPECT_EQ(written({.op = Op::subscribe, .subject = "a.>", .reply = "g", .sid = 12}).value(), "SUB a.> g 12\r\n");
  EXPECT_EQ(written({.op = Op::unsubscribe, .sid = 12}).value(), "UNSUB 12\r\n");
  EXPECT_EQ(written({.op = Op::unsubscribe, .sid = 12, .count = 3}).value(), "UNSUB 12 3\r\n");
}

TEST(NatsCodec, NoTextBecomesASecondOperation) {
  for (const std::string_view text :
       std::initializer_list<std::string_view>{"", "a b", "a\r\nPING", "a\n", "\ta", std::string_view("a\0b", 3)}) {
    EXPECT_EQ(written({.op = Op::publish, .subject = text}, "hi").error().code(), Errc::invalid_argument) << text;
    EXPECT_EQ(written({.op = Op::subscribe, .subject = text, .sid = 1}).error().code(), Errc::invalid_argument);
  }
  EXPECT_EQ(written({.op = Op::publish, .subject = "a", .reply = "b c"}).error().code(), Errc::invalid_argument);
  EXPECT_EQ(written({.op = Op::connect}, "{}\nPING").error().code(), Errc::invalid_argument);
  EXPECT_EQ(written({.op = Op::ping}, "PONG").error().code(), Errc::invalid_argument);
  EXPECT_EQ(written({.op = Op::info}, "{}").error().code(), Errc::invalid_argument);
  const std::string long_subject(kSubjectMax + 1, 'a');
  EXPECT_EQ(written({.op = Op::publish, .subject = long_subject}).error().code(), Errc::invalid_argument);
  EXPECT_EQ(written({.op = Op::publish, .subject = "a", .headers_size = 3}, "abcdef").error().code(),
            Errc::invalid_argument);
  EXPECT_EQ(written({.op = Op::publish, .subject = "a", .headers_size = 9}, "abc").error().code(),
            Errc::invalid_argument);
  const std::string large(101, 'x');
  EXPECT_EQ(written({.op = Op::publish, .subject = "a"}, large).error().code(), Errc::message_too_large);
}

TEST(NatsCodec, TheLongestFrontFits) {
  const std::string subject(kSubjectMax, 's');
  const std::string reply(kReplyMax, 'r');
  const auto text =
      written({.op = Op::publish, .subject = subject, .reply = reply, .headers_size = 12}, "NATS/1.0\r\n\r\n");
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "HPUB " + subject + ' ' + reply + " 12 12\r\nNATS/1.0\r\n\r\n\r\n");
}

}  // namespace
}  // namespace weft::nats
