// SPDX-License-Identifier: MIT
#include "weft/net/http/chunks.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace weft::net::http {
namespace {

// "content" after its size, "refused 400", or "more".
std::string read_chunks(const std::string& text, std::size_t piece, const BodyLimits& limits) {
  ChunkScanner scanner;
  for (std::size_t size = 0; size < text.size();) {
    size = std::min(size + piece, text.size());
    const Bytes input = as_bytes(std::string_view(text).substr(0, size));
    switch (scanner.scan(input, limits)) {
      case ChunkScanner::Found::nothing: EXPECT_GT(scanner.least(), size); break;
      case ChunkScanner::Found::refusal: return "refused " + std::to_string(status_of(scanner.refusal()));
      case ChunkScanner::Found::end: {
        std::string content(scanner.content_size(), '\0');
        EXPECT_EQ(copy_chunks(input.first(scanner.size()), reinterpret_cast<std::uint8_t*>(content.data())),
                  content.size());
        return std::to_string(scanner.size()) + " " + content;
      }
    }
  }
  return "more";
}
std::string read_chunks(const std::string& text, const BodyLimits& limits = {}) {
  const std::string whole = read_chunks(text, text.size(), limits);
  for (const std::size_t piece : {1u, 2u, 5u}) {
    EXPECT_EQ(read_chunks(text, piece, limits), whole) << text;
  }
  return whole;
}

TEST(HttpChunks, ABodyIsItsChunksHoweverItIsCut) {
  EXPECT_EQ(read_chunks("5\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\n\r\nGET"), "36 hello 0123456789");
  EXPECT_EQ(read_chunks("0\r\n\r\n"), "5 ");
  EXPECT_EQ(read_chunks("00000002\r\nab\r\n00\r\n\r\n"), "20 ab");
  EXPECT_EQ(read_chunks("2\r\n\r\n\r\n0\r\n\r\n"), "12 \r\n");
  EXPECT_EQ(read_chunks("5\r\nhel"), "more");
  EXPECT_EQ(read_chunks("5\r\nhello\r\n0\r\n"), "more");
}

TEST(HttpChunks, ExtensionsAndTrailersAreCheckedAndIgnored) {
  EXPECT_EQ(read_chunks("2;a=b; c=\"d e\"\r\nab\r\n0;x\r\n\r\n"), "27 ab");
  EXPECT_EQ(read_chunks("1\r\na\r\n0\r\nX: y\r\nZ:\r\n\r\n"), "21 a");
  for (const char* trailer : {"X y", " X: y", "X : y", ":y", "X: \x01"}) {
    EXPECT_EQ(read_chunks("0\r\n" + std::string(trailer) + "\r\n\r\n"), "refused 400") << trailer;
  }
  EXPECT_EQ(read_chunks("1;\x01\r\na\r\n0\r\n\r\n"), "refused 400");
  EXPECT_EQ(read_chunks("1;a\nb\r\na\r\n0\r\n\r\n"), "refused 400");
}

TEST(HttpChunks, ASizeIsHexadecimalDigitsAlone) {
  for (const char* size : {"", "-1", "+1", "0x1", " 1", "1 ", "1 ;a", "g", "1g", "\t1", "1\t", "0000000001", "1,1",
                           "FFFFFFFFFFFFFFFFF", "1\r"}) {
    EXPECT_EQ(read_chunks(std::string(size) + "\r\na\r\n0\r\n\r\n"), "refused 400") << size;
  }
  EXPECT_EQ(read_chunks("\r\n\r\n"), "refused 400");
  EXPECT_EQ(read_chunks(";a\r\n\r\n"), "refused 400");
  EXPECT_EQ(read_chunks("FFFFFFFF\r\n"), "refused 413");
}

TEST(HttpChunks, LinesEndWithCrlfAndContentEndsWhereItsSizeSays) {
  EXPECT_EQ(read_chunks("1\na\r\n0\r\n\r\n"), "refused 400");
  EXPECT_EQ(read_chunks("1\r\na\n0\r\n\r\n"), "refused 400");
  EXPECT_EQ(read_chunks("1\r\nab\r\n0\r\n\r\n"), "refused 400");
  EXPECT_EQ(read_chunks("1\r\nab\n0\r\n\r\n"), "refused 400");
  EXPECT_EQ(read_chunks("2\r\na\r\n0\r\n\r\n"), "refused 400");
  EXPECT_EQ(read_chunks("1\r\na\r0\r\n\r\n"), "refused 400");
  EXPECT_EQ(read_chunks("0\r\n\n"), "refused 400");
}

TEST(HttpChunks, EachBoundHoldsToTheByte) {
  const std::string body = "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n";
  BodyLimits limits;
  limits.body_max = 6;
  limits.framing_max = 15;
  EXPECT_EQ(read_chunks(body, limits), "21 abcdef");
  limits.body_max = 5;
  EXPECT_EQ(read_chunks(body, limits), "refused 413");
  limits.body_max = 6;
  limits.framing_max = 14;
  EXPECT_EQ(read_chunks(body, limits), "refused 413");
  EXPECT_EQ(read_chunks("1;" + std::string(BodyLimits::kLineMax, 'a')), "refused 413");
  EXPECT_EQ(read_chunks("0\r\nX: " + std::string(BodyLimits::kLineMax, 'a')), "refused 413");
  std::string small;
  for (int i = 0; i < 20'000; ++i) {
    small += "1\r\na\r\n";
  }
  EXPECT_EQ(read_chunks(small, small.size(), {}), "refused 413");  // as much framing as that is not an honest body
}

}  // namespace
}  // namespace weft::net::http
