// SPDX-License-Identifier: MIT
#include "weft/serve/server/http_codec.h"

#include <string>

#include "weft/serve/server/test_http.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::feed_http;
using test::SeenRequest;
using test::SeenRequests;

class HttpCodecTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HttpCodec::supported()) {
      GTEST_SKIP() << "this build has no HTTP parser";
    }
  }
  static SeenRequests decode(const std::string& stream, const HttpCodec& codec = HttpCodec()) {
    const SeenRequests whole = feed_http(codec, as_bytes(stream));
    EXPECT_EQ(whole, feed_http(codec, as_bytes(stream), [] { return 1; })) << stream;
    EXPECT_EQ(whole, feed_http(codec, as_bytes(stream), [] { return 7; })) << stream;
    return whole;
  }
  // The refusal of the only request in the stream.
  static int refusal(const std::string& stream, const HttpCodec& codec = HttpCodec()) {
    const SeenRequests seen = decode(stream, codec);
    EXPECT_EQ(seen.requests.size(), 1u) << stream;
    return seen.requests.empty() ? -1 : seen.requests.back().refusal;
  }
  static std::string encode(const HttpResponse& header, std::string_view body) {
    std::string out(HttpCodec::kHeaderMax + body.size(), '\0');
    const auto size = encode_frame(HttpCodec(), header, as_bytes(body),
                                   MutableBytes(reinterpret_cast<std::uint8_t*>(out.data()), out.size()));
    return size ? out.substr(0, *size) : size.error().message();
  }
};

TEST_F(HttpCodecTest, ARequestIsReadHoweverItIsCut) {
  const SeenRequests seen = decode("GET /metrics?name=x HTTP/1.1\r\nHost: localhost\r\nX: \r\n\r\n");
  ASSERT_EQ(seen.requests.size(), 1u);
  EXPECT_EQ(seen.requests[0], (SeenRequest{"GET", "/metrics?name=x", "/metrics", "", true, 0}));
  EXPECT_EQ(seen.error, Errc::ok);
}

TEST_F(HttpCodecTest, RequestsFollowEachOtherWithTheirBodies) {
  const SeenRequests seen = decode(
      "POST /a HTTP/1.1\r\nhOsT:x\r\nContent-Length: 5\r\n\r\nGET /"
      "\r\n\r\nHEAD http://there:80/b HTTP/1.0\r\n\r\n"
      "GET * HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n");
  ASSERT_EQ(seen.requests.size(), 3u);
  EXPECT_EQ(seen.requests[0], (SeenRequest{"POST", "/a", "/a", "GET /", true, 0}));
  EXPECT_EQ(seen.requests[1], (SeenRequest{"HEAD", "http://there:80/b", "/b", "", false, 0}));
  EXPECT_FALSE(seen.requests[2].keep_alive);
  EXPECT_EQ(seen.requests[2].refusal, 0);
}

TEST_F(HttpCodecTest, BytesThatAreNoRequestAreOneWithAStatus) {
  EXPECT_EQ(refusal("\x16\x03\x01\x02"), 400);
  EXPECT_EQ(refusal("GET\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\n\r\n"), 400);  // no host
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), 411);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n", HttpCodec(1000, 100)), 413);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n"), 413);
}

TEST_F(HttpCodecTest, AHeadIsBounded) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const auto size = static_cast<std::uint32_t>(head.size());
  EXPECT_EQ(refusal(head, HttpCodec(size, 0)), 0);
  EXPECT_EQ(refusal(head, HttpCodec(size - 1, 0)), 431);
  EXPECT_EQ(refusal("GET /" + std::string(9000, 'a')), 431);
  EXPECT_EQ(refusal(std::string(9000, '\n')), 431);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\n" + std::string(9000, 'a')), 431);
}

TEST_F(HttpCodecTest, NothingComesBehindARefusal) {
  const SeenRequests seen = decode("nonsense\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(seen.requests.size(), 1u);
  EXPECT_EQ(seen.requests[0].refusal, 400);
  EXPECT_EQ(seen.error, Errc::protocol_error);
}

TEST_F(HttpCodecTest, AnAnswerSaysHowLongItsBodyIsAlsoWhereThatIsNotSent) {
  EXPECT_EQ(encode({}, "hello"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n"
            "Connection: keep-alive\r\n\r\nhello");
  HttpResponse head;
  head.status = 405;
  head.keep_alive = false;
  head.allow = "GET, HEAD";
  head.content_length = 12345;
  EXPECT_EQ(encode(head, ""),
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 12345\r\n"
            "Allow: GET, HEAD\r\nConnection: close\r\n\r\n");
}

TEST_F(HttpCodecTest, NoTextMakesAHeadLargerThanItsRoomOrEndsALine) {
  HttpResponse header;
  const std::string longest(HttpCodec::kTextMax, 'x');
  header.content_type = longest;
  header.allow = longest;
  header.status = 511;  // the status with the longest reason
  header.content_length = HttpResponse::kOfBody - 1;
  EXPECT_TRUE(encode(header, "").starts_with("HTTP/1.1 511 Network Authentication Required\r\n"));
  const std::string longer(HttpCodec::kTextMax + 1, 'x');
  header.content_type = longer;
  EXPECT_TRUE(encode(header, "").starts_with("invalid argument"));
  header.content_type = "text\r\nX: y";
  EXPECT_TRUE(encode(header, "").starts_with("invalid argument"));
}

TEST(HttpCodec, ABuildWithoutAParserSaysSo) {
  HttpCodec codec;
  if (!HttpCodec::supported()) {
    EXPECT_EQ(codec.decode(as_bytes("GET / HTTP/1.1\r\n")).error, Errc::not_supported);
  }
}

}  // namespace
}  // namespace weft::serve
