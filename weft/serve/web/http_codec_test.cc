// SPDX-License-Identifier: MIT
#include "weft/serve/web/http_codec.h"

#include <cstddef>
#include <string>
#include <utility>

#include "weft/serve/web/test_http.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using test::feed_http;
using test::SeenRequest;
using test::SeenRequests;

SeenRequests decode(const std::string& stream, const HttpLimits& limits = {}) {
  const HttpCodec codec(limits);
  const SeenRequests whole = feed_http(codec, as_bytes(stream));
  EXPECT_EQ(whole, feed_http(codec, as_bytes(stream), [] { return 1; })) << stream;
  EXPECT_EQ(whole, feed_http(codec, as_bytes(stream), [] { return 7; })) << stream;
  return whole;
}
// The refusal of the only request in the stream.
unsigned refusal(const std::string& stream, const HttpLimits& limits = {}) {
  const SeenRequests seen = decode(stream, limits);
  EXPECT_EQ(seen.requests.size(), 1u) << stream;
  return seen.requests.empty() ? 1 : seen.requests.back().refusal;
}
std::string encode(const ResponseHead& header, std::string_view body) {
  std::string out(HttpCodec::kHeaderMax + body.size(), '\0');
  const auto size = encode_frame(HttpCodec(), header, as_bytes(body),
                                 MutableBytes(reinterpret_cast<std::uint8_t*>(out.data()), out.size()));
  return size ? out.substr(0, *size) : size.error().message();
}

TEST(HttpCodec, RequestsFollowEachOtherWithTheirBodies) {
  const SeenRequests seen = decode(
      "POST /a HTTP/1.1\r\nhOsT:x\r\nContent-Length: 5\r\n\r\nGET /"
      "\r\nHEAD http://there:80/b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
      "PUT /c?d HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3;x\r\ndef\r\n0\r\nA: b\r\n\r\n"
      "OPTIONS * HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n");
  ASSERT_EQ(seen.requests.size(), 4u);
  EXPECT_EQ(seen.requests[0], (SeenRequest{"POST", "/a", "/a", "GET /", true, 0, Part::whole}));
  EXPECT_EQ(seen.requests[1], (SeenRequest{"HEAD", "http://there:80/b", "/b", "", true, 0, Part::whole}));
  EXPECT_EQ(seen.requests[2], (SeenRequest{"PUT", "/c?d", "/c", "abcdef", true, 0, Part::whole}));
  EXPECT_EQ(seen.requests[3], (SeenRequest{"OPTIONS", "*", "*", "", false, 0, Part::whole}));
  EXPECT_EQ(seen.error, Errc::ok);
}

TEST(HttpCodec, ARequestThatExpects100ContinueIsTwoFrames) {
  const SeenRequests seen = decode(
      "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab"
      "POST /b HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n"
      "GET /d HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_EQ(seen.requests.size(), 5u);
  EXPECT_EQ(seen.requests[0], (SeenRequest{"POST", "/a", "/a", "", true, 0, Part::head}));
  EXPECT_EQ(seen.requests[1], (SeenRequest{"", "", "", "ab", true, 0, Part::body}));
  EXPECT_EQ(seen.requests[2], (SeenRequest{"POST", "/b", "/b", "", true, 0, Part::head}));
  EXPECT_EQ(seen.requests[3], (SeenRequest{"", "", "", "c", true, 0, Part::body}));
  EXPECT_EQ(seen.requests[4], (SeenRequest{"GET", "/d", "/d", "", true, 0, Part::whole}));  // waits for nothing
}

// "method path content" of each request whose body is handed over as it comes, or its refusal.
std::string decode_pieces(const std::string& stream, std::size_t piece, const HttpLimits& limits) {
  HttpCodec codec(limits);
  codec.set_streams([](const void*, const net::http::RequestHead& head) noexcept { return head.path != "/whole"; },
                    nullptr);
  std::string seen;
  std::string held;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    held += stream.substr(at, piece);
    const DecodeResult result = decode_all(codec, as_bytes(held), [&seen](const HttpFrame& frame) {
      const HttpRequest& request = frame.header;
      if (request.refusal != net::http::HttpRefusal::none) {
        seen += " refused " + std::to_string(net::http::status_of(request.refusal));
      } else if (request.part == Part::piece) {
        seen.append(as_text(frame.body)).append(request.last ? ";" : "");
      } else {
        seen.append(request.head.path).append(request.part == Part::begin ? " " : "!").append(as_text(frame.body));
      }
      return true;
    });
    if (!(result.error == Errc::ok)) {
      return seen + " end";
    }
    held.erase(0, result.consumed);
  }
  return seen;
}

TEST(HttpCodec, ABodyThatIsTakenAsItComesIsTheSameHoweverItIsCut) {
  HttpLimits limits;
  limits.body_max = 3;
  limits.streamed_max = 20;
  limits.framing_max = 30;
  const std::string chunked = "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string length = "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ";
  const std::pair<std::string, std::string> cases[] = {
      {length + "5\r\n\r\nhello" + chunked + "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: z\r\n\r\n" +
           "GET /c HTTP/1.1\r\nHost: x\r\n\r\nPOST /whole HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
       "/a hello;/b abcde;/c!/whole!abc"},
      {length + "20\r\n\r\n" + std::string(20, 'x'), "/a " + std::string(20, 'x') + ";"},
      {length + "21\r\n\r\nx", " refused 413 end"},
      {chunked + "A\r\n0123456789\r\nB\r\n", "/b 0123456789 refused 413"},
      {chunked + "1;" + std::string(31, 'x'), "/b  refused 413"},
      {chunked + "1\r\nx\r\n0\r\n" + std::string(40, 'T'), "/b x refused 413"},
      {chunked + "2\r\nabc", "/b ab refused 400"},
      {chunked + "0x1\r\n", "/b  refused 400"},
      {chunked + "0\r\n\r\n", "/b ;"},
  };
  for (const auto& [stream, seen] : cases) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{7}, stream.size()}) {
      const std::string got = decode_pieces(stream, piece, limits);
      EXPECT_EQ(got.substr(0, got.find(" end")), seen.substr(0, seen.find(" end"))) << stream << " by " << piece;
    }
  }
}

TEST(HttpCodec, ABodyIsBoundedBeforeItComes) {
  HttpLimits limits;
  limits.body_max = 100;
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n", limits), 413u);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551617\r\n\r\n"), 413u);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n", limits), 413u);
  EXPECT_EQ(decode("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n" + std::string(100, 'x'), limits)
                .requests[0]
                .body.size(),
            100u);
}

TEST(HttpCodec, NothingComesBehindARefusal) {
  for (const char* bad : {"nonsense\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
                          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
                          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    const SeenRequests seen = decode(std::string(bad) + "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_EQ(seen.requests.size(), 1u) << bad;
    EXPECT_GE(seen.requests[0].refusal, 400u) << bad;
    EXPECT_FALSE(seen.requests[0].keep_alive);
    EXPECT_EQ(seen.error, Errc::protocol_error);
  }
}

TEST(HttpCodec, NothingComesBehindTheLastRequestOfAConnection) {
  const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  SeenRequests seen = decode("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + get);
  ASSERT_EQ(seen.requests.size(), 1u);
  EXPECT_EQ(seen.error, Errc::protocol_error);
  HttpLimits limits;
  limits.requests_max = 2;
  seen = decode(get + get + get, limits);
  ASSERT_EQ(seen.requests.size(), 2u);
  EXPECT_TRUE(seen.requests[0].keep_alive);
  EXPECT_FALSE(seen.requests[1].keep_alive);
}

TEST(HttpCodec, AnAnswerSaysHowLongItsBodyIsAlsoWhereThatIsNotSent) {
  Fields fields;
  ASSERT_TRUE(fields.set("Content-Type", "text/plain"));
  ResponseHead head;
  head.fields = &fields;
  head.date = "Sun, 06 Nov 1994 08:49:37 GMT";
  EXPECT_EQ(encode(head, "hello"),
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\n"
            "Content-Length: 5\r\n\r\nhello");
  head.date = {};
  head.status = 405;
  head.keep_alive = false;
  head.content_length = 12345;
  EXPECT_EQ(encode(head, ""),
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\nContent-Length: 12345\r\n"
            "Connection: close\r\n\r\n");
}

TEST(HttpCodec, AnAnswerToHttp10SaysThatTheConnectionStays) {
  ResponseHead head;
  head.http_1_0 = true;
  EXPECT_EQ(encode(head, ""), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n");
}

TEST(HttpCodec, ABodyInChunksHasAHeadChunksAndAnEnd) {
  ResponseHead head;
  head.part = ResponsePart::head;
  head.chunked = true;
  EXPECT_EQ(encode(head, ""), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  ResponseHead chunk;
  chunk.part = ResponsePart::chunk;
  EXPECT_EQ(encode(chunk, "hello"), "5\r\nhello");
  chunk.after_chunk = true;
  EXPECT_EQ(encode(chunk, std::string(256, 'x')), "\r\n100\r\n" + std::string(256, 'x'));
  EXPECT_TRUE(encode(chunk, "").starts_with("invalid argument"));
  ResponseHead end;
  end.part = ResponsePart::end;
  EXPECT_EQ(encode(end, ""), "0\r\n\r\n");
  end.after_chunk = true;
  EXPECT_EQ(encode(end, ""), "\r\n0\r\n\r\n");
  EXPECT_TRUE(encode(end, "x").starts_with("invalid argument"));
  ResponseHead length;
  length.part = ResponsePart::head;
  length.content_length = 7;
  EXPECT_EQ(encode(length, ""), "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n");
  length.content_length = ResponseHead::kOfBody;
  EXPECT_EQ(encode(length, ""), "HTTP/1.1 200 OK\r\n\r\n");
}

TEST(HttpCodec, AnAnswerWithoutABodySaysNoLength) {
  ResponseHead head;
  head.status = 204;
  EXPECT_EQ(encode(head, ""), "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_TRUE(encode(head, "x").starts_with("invalid argument"));
  head.status = 304;
  EXPECT_EQ(encode(head, ""), "HTTP/1.1 304 Not Modified\r\n\r\n");
  for (const unsigned status : {0u, 100u, 101u, 199u, 600u, 65535u}) {
    head.status = static_cast<std::uint16_t>(status);
    EXPECT_TRUE(encode(head, "").starts_with("invalid argument")) << status;
  }
}

TEST(HttpCodec, AnAnswerWithoutAPhraseKeepsItsSpace) {
  ResponseHead head;
  head.status = 299;
  EXPECT_EQ(encode(head, ""), "HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n");
}

TEST(HttpCodec, TheLargestHeadFitsItsRoom) {
  Fields fields;
  ASSERT_TRUE(fields.set("X", std::string(Fields::kBytesMax - 5, 'x')));
  EXPECT_EQ(fields.lines().size(), Fields::kBytesMax);
  ResponseHead head;
  head.status = 511;  // the status with the longest phrase
  head.fields = &fields;
  head.date = "Sun, 06 Nov 1994 08:49:37 GMT";
  head.content_length = ResponseHead::kOfBody - 1;
  head.keep_alive = false;
  EXPECT_TRUE(encode(head, "").ends_with("Connection: close\r\n\r\n"));
}

}  // namespace
}  // namespace weft::serve::web
