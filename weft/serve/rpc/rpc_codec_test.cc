// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/rpc_codec.h"

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "weft/serve/frame/test_codec.h"
#include <gtest/gtest.h>

namespace weft::serve::rpc {
namespace {

using test::Buffer;
using test::operator+;
using namespace std::chrono_literals;

Buffer bytes_of(const Header& header, std::string_view body = {}, const Codec& codec = Codec()) {
  return test::wire(codec, header, test::bytes(body));
}
Header request_of(std::string_view method, std::uint64_t id = 7) {
  Header header;
  header.id = id;
  header.method = method;
  return header;
}
Header numbered(std::uint32_t number) {
  Header header;
  header.id = 7;
  header.number = number;
  return header;
}
Header answer_of(Status status, std::uint32_t code = 0) {
  Header header;
  header.type = FrameType::answer;
  header.id = 7;
  header.status = status;
  header.number = code;
  return header;
}
Header traced(std::string_view state) {
  Header header = request_of("calc.add");
  header.traced = header.sampled = true;
  header.trace = {0x0123456789abcdef, 0xfedcba9876543210};
  header.span = {0x1122334455667788};
  header.state = state;
  header.time_us = 1'500'000;
  return header;
}

Header stream_frame(FrameType type, std::uint32_t number = 0) {
  Header header;
  header.type = type;
  header.id = 7;
  header.number = number;
  return header;
}

// Decodes the whole frame and compares it with its parts.
void expect_round_trip(const Header& header, std::string_view body) {
  const Buffer wire = bytes_of(header, body);
  const auto decoded = Codec().decode(wire);
  ASSERT_TRUE(decoded.complete()) << decoded.error.message();
  EXPECT_EQ(decoded.size, wire.size());
  EXPECT_EQ(decoded.frame.header, header);
  EXPECT_EQ(as_text(decoded.frame.body), body);
}

TEST(RpcCodec, EachFrameThatIsEncodedIsDecodedWithAllItsFields) {
  expect_round_trip(request_of("calc.add"), "body");
  expect_round_trip(request_of("a", std::numeric_limits<std::uint64_t>::max()), "");
  expect_round_trip(request_of(std::string(kNameMax, 'n')), "x");
  expect_round_trip(numbered(1), "by number");
  expect_round_trip(numbered(0xFFFFFFFF), "");
  expect_round_trip(traced(""), "traced");
  expect_round_trip(traced("vendor=1,other=two"), "traced");
  expect_round_trip(traced(std::string(kStateMax, 's')), "");
  expect_round_trip(answer_of(Status::ok), "response");
  expect_round_trip(answer_of(Status::refused, 0xFFFF), "sold out");
  expect_round_trip(answer_of(static_cast<Status>(999)), "of a later version");
  expect_round_trip(stream_frame(FrameType::data), "message");
  expect_round_trip(stream_frame(FrameType::data), "");
  expect_round_trip(stream_frame(FrameType::end), "");
  expect_round_trip(stream_frame(FrameType::credit, 1), "");
  expect_round_trip(stream_frame(FrameType::credit, kGrantMax), "");
  expect_round_trip(Codec::Correlation::withdrawal(request_of("calc.add", 9)), "");
}

// The format is fixed: peers are other versions of this library.
TEST(RpcCodec, ARequestHasTheseBytes) {
  Header header = traced("a=b");
  header.id = 0x0102030405060708;
  header.time_us = 0x11;
  header.method = "f.g";
  const Buffer expected =
      test::bytes({4, 1, 3, 3, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0, 0, 0, 2}) +
      test::bytes({0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10}) +
      test::bytes({0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88}) + test::bytes("a=bf.ghi");
  EXPECT_EQ(bytes_of(header, "hi"), expected);
}
TEST(RpcCodec, AnAnswerAndACancelHaveTheseBytes) {
  EXPECT_EQ(bytes_of(answer_of(Status::refused, 0x1234), "no"),
            test::bytes({4, 2, 0, 0, 0, 1, 0, 0, 0, 0,    0,    0, 0, 0, 0, 7,   0,
                         0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0, 0, 0, 2, 'n', 'o'}));
  EXPECT_EQ(
      bytes_of(Codec::Correlation::withdrawal(request_of("x"))),
      test::bytes({4, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(RpcCodec, TheOutcomeDoesNotDependOnTheCutsOfTheStream) {
  const Buffer stream = bytes_of(traced("a=b"), "one") + bytes_of(answer_of(Status::ok), "two") +
                        bytes_of(numbered(5), std::string(300, 'b')) +
                        bytes_of(Codec::Correlation::withdrawal(request_of("x")));
  for (std::size_t piece = 1; piece < 70; ++piece) {
    std::vector<std::string> bodies;
    const test::Outcome outcome = test::feed(Codec(), stream, [piece] { return piece; });
    ASSERT_EQ(outcome.frames.size(), 4u) << piece;
    EXPECT_EQ(outcome.error, Error());
    EXPECT_EQ(outcome.frames[0].body, test::bytes("one"));
    EXPECT_EQ(outcome.frames[2].body, test::bytes(std::string(300, 'b')));
  }
}

// A header with one field changed.
Buffer with(Buffer wire, std::size_t at, int value) {
  wire[at] = static_cast<std::uint8_t>(value);
  return wire;
}
Errc refusal_of_bytes(const Buffer& wire, const Codec& codec = Codec()) {
  const auto decoded = codec.decode(wire);
  EXPECT_TRUE(decoded.failed());
  return decoded.error.code();
}
TEST(RpcCodec, AHeaderThatNoPeerSendsIsRefused) {
  const Buffer request = bytes_of(request_of("calc.add"), "body");
  const Buffer answer = bytes_of(answer_of(Status::refused, 5), "body");
  const Buffer cancel = bytes_of(Codec::Correlation::withdrawal(request_of("x")));
  const Buffer data = bytes_of(stream_frame(FrameType::data), "body");
  const Buffer credit = bytes_of(stream_frame(FrameType::credit, 5));
  const std::pair<const char*, Buffer> wrong[] = {
      {"another version", with(request, 0, 3)},
      {"no type", with(request, 1, 0)},
      {"an unknown type", with(request, 1, 7)},
      {"a message with a name", with(data, 3, 1)},
      {"a message with a number", with(data, 27, 1)},
      {"a message with a status", with(data, 5, 1)},
      {"an end with a body", with(data, 1, 5)},
      {"a credit of nothing", with(credit, 27, 0)},
      {"a credit of 2^31 bytes", with(credit, 24, 0x80)},
      {"a credit with a body", with(credit, 31, 1)},
      {"an unknown flag", with(request, 2, 4)},
      {"sampled, but not traced", with(request, 2, 2)},
      {"a tracestate without a trace", with(request, 7, 1)},
      {"a tracestate above the bound", with(with(request, 2, 1), 6, 3)},
      {"a name above the bound", with(request, 3, 129)},
      {"neither a name nor a number", with(request, 3, 0)},
      {"a name and a number", with(request, 27, 1)},
      {"a request with a status", with(request, 5, 1)},
      {"id 0", with(request, 15, 0)},
      {"an answer with a flag", with(answer, 2, 1)},
      {"an answer with a name", with(answer, 3, 1)},
      {"an answer with a tracestate", with(answer, 7, 1)},
      {"an answer with a time", with(answer, 23, 1)},
      {"a code of more than 16 bits", with(answer, 25, 1)},
      {"a code without a refusal", with(answer, 5, 4)},
      {"a cancel with a status", with(cancel, 5, 1)},
      {"a cancel with a number", with(cancel, 27, 1)},
      {"a cancel with a body", with(cancel, 31, 1)},
  };
  for (const auto& [what, wire] : wrong) {
    SCOPED_TRACE(what);
    EXPECT_EQ(refusal_of_bytes(wire), Errc::protocol_error);
    // The fixed header alone suffices for a refusal.
    EXPECT_EQ(refusal_of_bytes(Buffer(wire.begin(), wire.begin() + Codec::kHeaderSize)), Errc::protocol_error);
  }
  EXPECT_EQ(refusal_of_bytes(test::bytes({9})), Errc::protocol_error) << "a wrong version at its first byte";
}

TEST(RpcCodec, ABodyAboveTheBoundIsRefusedBeforeItHasCome) {
  const Codec narrow(8);
  const Buffer wire = bytes_of(request_of("f"), "123456789");
  EXPECT_EQ(refusal_of_bytes(Buffer(wire.begin(), wire.begin() + Codec::kHeaderSize), narrow), Errc::message_too_large);
  EXPECT_TRUE(narrow.decode(bytes_of(request_of("f"), "12345678")).complete());
  std::array<std::uint8_t, Codec::kHeaderMax> room;
  EXPECT_EQ(narrow.encode_header(request_of("f"), test::bytes("123456789"), room).error(), Errc::message_too_large);
  EXPECT_EQ(Codec(std::numeric_limits<std::size_t>::max()).body_max(), kBodyMax);
  EXPECT_EQ(Codec().body_max(), kRequestMax);
}

TEST(RpcCodec, AHeaderThatCannotBeSentIsRefused) {
  std::array<std::uint8_t, Codec::kHeaderMax> room;
  const auto refused = [&](const Header& header) { return Codec().encode_header(header, {}, room).error().code(); };
  Header header;
  EXPECT_EQ(refused(header), Errc::invalid_argument) << "no id";
  header.id = 1;
  EXPECT_EQ(refused(header), Errc::invalid_argument) << "no method";
  const std::string long_name(kNameMax + 1, 'n');
  EXPECT_EQ(refused(request_of(long_name)), Errc::invalid_argument);
  const std::string long_state(kStateMax + 1, 's');
  EXPECT_EQ(refused(traced(long_state)), Errc::invalid_argument);
  EXPECT_EQ(refused(answer_of(Status::refused, 0x10000)), Errc::invalid_argument);
  EXPECT_EQ(refused(answer_of(Status::ok, 1)), Errc::invalid_argument);
}

TEST(RpcCodec, ATimeIsRoundedUpAndNeverBecomesNone) {
  EXPECT_EQ(time_us_of(Duration(-1)), 0u);
  EXPECT_EQ(time_us_of(Duration(0)), 1u);
  EXPECT_EQ(time_us_of(1ns), 1u);
  EXPECT_EQ(time_us_of(1001ns), 2u);
  EXPECT_EQ(time_us_of(3s), 3'000'000u);
  EXPECT_GT(time_us_of(Duration::max()), 0u);
  EXPECT_LT(duration_of(0), Duration::zero());
  EXPECT_EQ(duration_of(2), Duration(2us));
  EXPECT_GT(duration_of(kTimeMax), Duration::zero());
  EXPECT_LT(duration_of(kTimeMax + 1), Duration::zero());
  EXPECT_LT(duration_of(std::numeric_limits<std::uint64_t>::max()), Duration::zero());
}

TEST(RpcCodec, OnlyAnAnswerToANumberOfThisClientIsAResponse) {
  Header answer = answer_of(Status::ok);
  EXPECT_TRUE(Codec::Correlation::is_response(answer));
  answer.id = std::uint64_t{1} << 32U | 7;
  EXPECT_FALSE(Codec::Correlation::is_response(answer)) << "the lower half alone is that of a request";
  EXPECT_FALSE(Codec::Correlation::is_response(request_of("f")));
  EXPECT_FALSE(Codec::Correlation::is_response(Codec::Correlation::withdrawal(answer)));
}

}  // namespace
}  // namespace weft::serve::rpc
