// SPDX-License-Identifier: MIT
#include "weft/serve/frame/error_frame.h"

#include <string>

#include "weft/serve/frame/test_codec.h"
#include <gtest/gtest.h>

#ifdef WEFT_HAVE_SCHEMAS
#include "weft/serve/schemas/error_response_generated.h"
#endif

namespace weft::serve {
namespace {

using test::Buffer;
using test::bytes;

Buffer body_of(const ErrorResponse& response) {
  std::array<std::uint8_t, kErrorBodyMax> out;
  out.fill(0xEE);
  const Bytes body = write_error_body(response, out);
  return {body.begin(), body.end()};
}

TEST(ErrorFrame, TheBodyIsLaidOutAsDocumented) {
  EXPECT_EQ(body_of({ErrorCode::refused, 0x1234, "no!"}),
            bytes({20, 0, 0, 0, 'A', 'E', 'R', 'R', 10, 0, 12,   0,    8, 0, 4, 0, 10,  0,   0,   0,
                   12, 0, 0, 0, 8,   0,   0,   0,   4,  0, 0x34, 0x12, 3, 0, 0, 0, 'n', 'o', '!', 0}));
}

TEST(ErrorFrame, ParsingGivesBackWhatWasWritten) {
  for (const std::size_t size : {0u, 1u, 3u, 4u, 100u, 219u}) {
    const std::string text(size, 't');
    const ErrorResponse response{ErrorCode::handler_failed, 65535, text};
    EXPECT_EQ(parse_error_body(body_of(response)).value(), response);
    EXPECT_EQ(body_of(response).size() % 4, 0u);
  }
}

TEST(ErrorFrame, ALongTextIsCut) {
  const std::string text(1000, 't');
  EXPECT_EQ(body_of({ErrorCode::refused, 0, text}).size(), kErrorBodyMax);
  EXPECT_EQ(parse_error_body(body_of({ErrorCode::refused, 0, text})).value().text.size(), kErrorTextMax);
}

TEST(ErrorFrame, ABodyThatIsCutOffOrPointsOutsideIsRefused) {
  const Buffer good = body_of({ErrorCode::refused, 7, "text"});
  for (std::size_t size = 0; size < good.size() - 4; ++size) {
    EXPECT_EQ(parse_error_body(Bytes(good).first(size)).error(), Errc::protocol_error) << size;
  }
  for (const std::size_t place : {0u, 4u, 20u, 24u, 32u}) {
    Buffer bad = good;
    bad[place + 3] = 0x7F;
    EXPECT_EQ(parse_error_body(bad).error(), Errc::protocol_error) << place;
  }
}

TEST(ErrorFrame, AHandlersErrorIsRefusedWithItsValueUnlessItChoseTheCode) {
  EXPECT_EQ(response_of(Error(Errc::timed_out, "the database")),
            (ErrorResponse{ErrorCode::refused, static_cast<std::uint16_t>(Errc::timed_out), "the database"}));
  EXPECT_EQ(response_of(Error(ErrorDomain("game"), 4711)).service_code, 4711);
  EXPECT_EQ(response_of(frame_error(ErrorCode::invalid_body, "short")),
            (ErrorResponse{ErrorCode::invalid_body, 0, "short"}));
}

#ifdef WEFT_HAVE_SCHEMAS
TEST(ErrorFrame, FlatBuffersReadsWhatWeWriteAndWeReadWhatFlatBuffersWrites) {
  const Buffer ours = body_of({ErrorCode::refused, 513, "no such room"});
  flatbuffers::Verifier verifier(ours.data(), ours.size());
  ASSERT_TRUE(schema::VerifyErrorResponseBuffer(verifier));
  const auto* read = schema::GetErrorResponse(ours.data());
  EXPECT_EQ(read->code(), 4);
  EXPECT_EQ(read->service_error_code(), 513);
  EXPECT_EQ(read->message()->str(), "no such room");

  flatbuffers::FlatBufferBuilder builder;
  for (const auto& [code, text] : {std::pair(0, ""), std::pair(3, "the handler failed")}) {
    builder.Clear();
    const auto message = *text != '\0' ? builder.CreateString(text) : flatbuffers::Offset<flatbuffers::String>();
    schema::FinishErrorResponseBuffer(
        builder, schema::CreateErrorResponse(builder, static_cast<std::uint16_t>(code), message, 0));
    EXPECT_EQ(parse_error_body({builder.GetBufferPointer(), builder.GetSize()}).value(),
              (ErrorResponse{static_cast<ErrorCode>(code), 0, text}));
  }
}
#endif

}  // namespace
}  // namespace weft::serve
