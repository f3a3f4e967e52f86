// SPDX-License-Identifier: MIT
#include "weft/net/http/request_head.h"

#include <algorithm>
#include <string>

#include "weft/net/http/field.h"
#include "weft/net/http/head_scanner.h"
#include "weft/net/http/status.h"
#include <gtest/gtest.h>

namespace weft::net::http {
namespace {

struct Read {
  HttpRefusal refusal = HttpRefusal::none;
  bool whole = false;
  RequestHead head;
};

// Scans and parses, with the scanner fed in pieces of that size.
Read read_head(const std::string& text, std::size_t piece, const HeadLimits& limits) {
  HeadScanner scanner;
  Read read;
  for (std::size_t size = 0; size < text.size();) {
    size = std::min(size + piece, text.size());
    const auto found = scanner.scan(as_bytes(std::string_view(text).substr(0, size)), limits);
    if (found == HeadScanner::Found::refusal) {
      read.refusal = scanner.refusal();
      return read;
    }
    if (found == HeadScanner::Found::head) {
      read.whole = true;
      const std::size_t begin = scanner.begin();
      read.refusal =
          parse_request_head(std::string_view(text).substr(begin, scanner.size() - begin), limits, read.head);
      return read;
    }
  }
  return read;
}

// The head of a text that outlives it, read whole; the same in every piece.
Read read_head(const std::string& text, const HeadLimits& limits = {}) {
  const Read whole = read_head(text, text.size(), limits);
  for (const std::size_t piece : {1u, 2u, 3u, 7u}) {
    const Read pieces = read_head(text, piece, limits);
    EXPECT_EQ(pieces.refusal, whole.refusal) << text;
    EXPECT_EQ(pieces.whole, whole.whole) << text;
    EXPECT_EQ(pieces.head.fields, whole.head.fields) << text;
  }
  return whole;
}
HttpRefusal refusal(const std::string& text, const HeadLimits& limits = {}) { return read_head(text, limits).refusal; }
// Of a request with these lines beside its Host.
HttpRefusal refusal_of_fields(const std::string& lines) {
  return refusal("GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n");
}

TEST(HttpHead, ARequestIsReadHoweverItIsCut) {
  const std::string text =
      "GET /a%20b/c?d=e&f HTTP/1.1\r\nHost: there:80\r\nX-Empty:\r\nx-text: \t two  words \t\r\n\r\nmore";
  const Read read = read_head(text);
  ASSERT_TRUE(read.whole);
  EXPECT_EQ(read.refusal, HttpRefusal::none);
  EXPECT_EQ(read.head.method, "GET");
  EXPECT_EQ(read.head.target, "/a%20b/c?d=e&f");
  EXPECT_EQ(read.head.path, "/a%20b/c");
  EXPECT_EQ(read.head.query, "d=e&f");
  EXPECT_EQ(read.head.host, "there:80");
  EXPECT_EQ(find_field(read.head.fields, "X-TEXT"), "two  words");
  EXPECT_EQ(find_field(read.head.fields, "x-empty"), "");
  EXPECT_EQ(find_field(read.head.fields, "x-none"), std::nullopt);
  EXPECT_TRUE(read.head.keep_alive);
  EXPECT_FALSE(read.head.has_body());
}

TEST(HttpHead, OneEmptyLineBeforeTheRequestIsSkipped) {
  EXPECT_EQ(refusal("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), HttpRefusal::none);
  EXPECT_EQ(refusal("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), HttpRefusal::malformed);
  EXPECT_EQ(refusal("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), HttpRefusal::malformed);
}

TEST(HttpHead, ARequestLineHasThreePartsAndTwoSpaces) {
  for (const char* line : {"GET",
                           "GET /",
                           "GET / ",
                           "GET  / HTTP/1.1",
                           "GET /  HTTP/1.1",
                           "GET / HTTP/1.1 ",
                           " GET / HTTP/1.1",
                           "GET /\tHTTP/1.1",
                           "GET\t/ HTTP/1.1",
                           "GET / / HTTP/1.1",
                           "G(T / HTTP/1.1",
                           "GET / HTTP/1",
                           "GET / HTTP/1.10",
                           "GET / HTTP/11",
                           "GET / http/1.1",
                           "GET / HTTP/ 1.1",
                           "GET / HTTP/1,1",
                           "GET / FTP/1.1",
                           "/ HTTP/1.1",
                           "GET HTTP/1.1",
                           "\"GET\" / HTTP/1.1",
                           "GET /a\x80 HTTP/1.1",
                           "GET /\x01 HTTP/1.1",
                           "GET / HTTP/1.1\x7F",
                           "AMETHODOFMORETHANTHIRTYTWOCHARACTERS / HTTP/1.1"}) {
    EXPECT_EQ(refusal(std::string(line) + "\r\nHost: a\r\n\r\n"), HttpRefusal::malformed) << line;
  }
}

TEST(HttpHead, AnotherMajorVersionIsRefusedAndALargerMinorOneIsNot) {
  EXPECT_EQ(refusal("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), HttpRefusal::version);
  EXPECT_EQ(refusal("PRI * HTTP/2.0\r\n\r\n"), HttpRefusal::version);
  EXPECT_EQ(refusal("GET / HTTP/0.9\r\nHost: a\r\n\r\n"), HttpRefusal::version);
  const Read read = read_head("GET / HTTP/1.7\r\nHost: a\r\n\r\n");
  EXPECT_EQ(read.refusal, HttpRefusal::none);
  EXPECT_EQ(read.head.minor, 1);
}

TEST(HttpHead, ATargetHasOneOfFourForms) {
  const struct {
    const char* line;
    const char* path;
    const char* host;
  } taken[] = {
      {"GET / HTTP/1.1", "/", "a"},
      {"GET //x//?? HTTP/1.1", "//x//", "a"},
      {"GET /-._~!$&'()*+,;=:@%41?/?[]{}|^`\\ HTTP/1.1", "/-._~!$&'()*+,;=:@%41", "a"},
      {"GET http://other:80/b?c HTTP/1.1", "/b", "other:80"},
      {"GET HTTPS://other HTTP/1.1", "/", "other"},
      {"GET http://[::1]:8080?c HTTP/1.1", "/", "[::1]:8080"},
      {"OPTIONS * HTTP/1.1", "*", "a"},
  };
  for (const auto& [line, path, host] : taken) {
    const std::string text = std::string(line) + "\r\nHost: a\r\n\r\n";
    const Read read = read_head(text);
    EXPECT_EQ(read.refusal, HttpRefusal::none) << line;
    EXPECT_EQ(read.head.path, path) << line;
    EXPECT_EQ(read.head.host, host) << line;
    EXPECT_EQ(read.head.secure_target, std::string_view(line).starts_with("GET HTTPS:")) << line;
  }
  for (const char* line : {"GET * HTTP/1.1", "GET a HTTP/1.1", "GET http HTTP/1.1", "GET https: HTTP/1.1",
                           "GET ftp://a/ HTTP/1.1", "GET http:/a HTTP/1.1", "GET /a#b HTTP/1.1", "GET /<a> HTTP/1.1",
                           "GET /a\"b HTTP/1.1", "GET /%4 HTTP/1.1", "GET /%zz HTTP/1.1", "GET /?%4g HTTP/1.1",
                           "GET /a|b HTTP/1.1", "GET ?a HTTP/1.1", "CONNECT / HTTP/1.1", "GET \\ HTTP/1.1"}) {
    EXPECT_EQ(refusal(std::string(line) + "\r\nHost: a\r\n\r\n"), HttpRefusal::malformed) << line;
  }
  EXPECT_EQ(refusal("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n"), HttpRefusal::method_unknown);
}

TEST(HttpHead, APathStaysBelowItsRootAndHasNoByteZero) {
  for (const char* path : {"/..", "/../a", "/a/..", "/a/../b", "/.", "/./a", "/%2e%2E/a", "/.%2e", "/%2e", "/a%00"}) {
    EXPECT_EQ(refusal("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n"), HttpRefusal::malformed) << path;
  }
  for (const char* path : {"/...", "/.a", "/a..b", "/..a", "/a?/../b"}) {
    EXPECT_EQ(refusal("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n"), HttpRefusal::none) << path;
  }
}

TEST(HttpHead, ARequestOf11HasOneHostThatIsOne) {
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\n\r\n"), HttpRefusal::host);
  EXPECT_EQ(refusal("GET / HTTP/1.0\r\n\r\n"), HttpRefusal::none);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n"), HttpRefusal::host);
  EXPECT_EQ(refusal("GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n"), HttpRefusal::host);
  EXPECT_EQ(refusal("GET http://a/ HTTP/1.1\r\n\r\n"), HttpRefusal::host);
  for (const char* host : {"", "a", "a.b-c_d:1", "127.0.0.1:65535", "[::ffff:1.2.3.4]:1", "a:"}) {
    EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n"), HttpRefusal::none) << host;
  }
  for (const char* host : {"a b", "a/b", "u@a", "a:b", "a:123456", "[::1", "[]", "[g]", "[::1]x", "a\xC3\xA9", "a?b"}) {
    EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n"), HttpRefusal::host) << host;
  }
  EXPECT_EQ(refusal("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n"), HttpRefusal::host);
  EXPECT_EQ(refusal("GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n"), HttpRefusal::host);
}

TEST(HttpHead, LinesEndWithCrlfAndNothingElse) {
  EXPECT_EQ(refusal("GET / HTTP/1.1\nHost: a\r\n\r\n"), HttpRefusal::malformed);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: a\n\r\n"), HttpRefusal::malformed);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: a\r\n\n"), HttpRefusal::malformed);
  EXPECT_EQ(refusal("GET / HTTP/1.1\rHost: a\r\n\r\n"), HttpRefusal::malformed);
  EXPECT_EQ(refusal_of_fields("X: a\rb\r\n"), HttpRefusal::malformed);
  EXPECT_EQ(refusal_of_fields("X: a\nY: b\r\n"), HttpRefusal::malformed);
  EXPECT_EQ(refusal_of_fields("X: a\r\r\n"), HttpRefusal::malformed);
}

TEST(HttpHead, AFieldIsANameAColonAndPrintableText) {
  EXPECT_EQ(refusal_of_fields("X: a\r\n folded\r\n"), HttpRefusal::malformed);
  EXPECT_EQ(refusal_of_fields("X: a\r\n\tfolded\r\n"), HttpRefusal::malformed);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), HttpRefusal::malformed);
  for (const char* line : {"X : a", "X\t: a", ": a", "X", "X Y: a", "(X): a", "X\xC3\xA9: a", "X: a\x7F", "X: \x01",
                           "X[1]: a", "\"X\": a", "X,Y: a"}) {
    EXPECT_EQ(refusal_of_fields(std::string(line) + "\r\n"), HttpRefusal::malformed) << line;
  }
  EXPECT_EQ(refusal_of_fields(std::string("X: a\0b\r\n", 8)), HttpRefusal::malformed);
  EXPECT_EQ(refusal_of_fields("!#$%&'*+-.^_`|~09aZ:\xC3\xA9 \t:,\r\n"), HttpRefusal::none);
}

TEST(HttpHead, ALengthIsOneNumber) {
  for (const char* value : {"", "-1", "+1", "1 ", " 1", "1,1", "1, 1", "0x1", "1.0", "1e3", "a", "1a", "\"1\""}) {
    const bool taken = std::string_view(value) == "1 " || std::string_view(value) == " 1";  // spaces around
    EXPECT_EQ(refusal_of_fields("Content-Length: " + std::string(value) + "\r\n"),
              taken ? HttpRefusal::none : HttpRefusal::framing)
        << value;
  }
  EXPECT_EQ(refusal_of_fields("Content-Length: 1\r\nContent-Length: 1\r\n"), HttpRefusal::framing);
  EXPECT_EQ(refusal_of_fields("Content-Length: 1\r\ncontent-length: 2\r\n"), HttpRefusal::framing);
  EXPECT_EQ(refusal_of_fields("Content-Length: 99999999999999999999\r\n"), HttpRefusal::body_large);
  const std::string text = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0042\r\n\r\n";
  EXPECT_EQ(read_head(text).head.content_length, 42u);
}

TEST(HttpHead, ChunkedIsTheOnlyCodingAndStandsAlone) {
  const std::string text = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n";
  EXPECT_TRUE(read_head(text).head.chunked);
  EXPECT_EQ(refusal_of_fields("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"), HttpRefusal::framing);
  EXPECT_EQ(refusal_of_fields("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), HttpRefusal::framing);
  EXPECT_EQ(refusal_of_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), HttpRefusal::framing);
  for (const char* value :
       {"", "chunked, chunked", "chunked, gzip", "identity", "xchunked", "chunked;a=b", "\"chunked\"", "chun ked"}) {
    EXPECT_EQ(refusal_of_fields("Transfer-Encoding: " + std::string(value) + "\r\n"), HttpRefusal::framing) << value;
  }
  EXPECT_EQ(refusal_of_fields("Transfer-Encoding: chunked\x0B\r\n"), HttpRefusal::malformed);
  EXPECT_EQ(refusal_of_fields("Transfer-Encoding : chunked\r\n"), HttpRefusal::malformed);
  EXPECT_EQ(refusal_of_fields("Transfer-Encoding: gzip, chunked\r\n"), HttpRefusal::coding);
  EXPECT_EQ(refusal("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), HttpRefusal::framing);
}

TEST(HttpHead, AConnectionStaysAsItsRequestSays) {
  const auto stays = [](const std::string& version, const std::string& field) {
    return read_head("GET / HTTP/" + version + "\r\nHost: a\r\n" + field + "\r\n").head.keep_alive;
  };
  EXPECT_TRUE(stays("1.1", ""));
  EXPECT_FALSE(stays("1.1", "Connection: close\r\n"));
  EXPECT_FALSE(stays("1.1", "Connection: keep-alive, CLOSE\r\n"));
  EXPECT_FALSE(stays("1.1", "Connection: x\r\nConnection: close\r\n"));
  EXPECT_FALSE(stays("1.1", "Connection: , ,\t,close,\r\n"));
  EXPECT_TRUE(stays("1.1", "Connection: closed\r\n"));
  EXPECT_FALSE(stays("1.0", ""));
  EXPECT_TRUE(stays("1.0", "Connection: Keep-Alive\r\n"));
  EXPECT_FALSE(stays("1.0", "Connection: keep-alive\r\nConnection: close\r\n"));
}

TEST(HttpHead, TheOnlyExpectationIs100Continue) {
  const std::string text = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n";
  EXPECT_TRUE(read_head(text).head.expects_continue);
  EXPECT_EQ(refusal_of_fields("Expect: 200-ok\r\n"), HttpRefusal::expectation);
  EXPECT_EQ(refusal_of_fields("Expect: 100-continue\r\nExpect: x\r\n"), HttpRefusal::expectation);
  const std::string old = "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n";
  EXPECT_FALSE(read_head(old).head.expects_continue);
}

TEST(HttpHead, EachBoundHoldsToTheByte) {
  const std::string text = "GET /target HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
  HeadLimits exact;
  exact.head_max = static_cast<std::uint32_t>(text.size());
  exact.target_max = 7;
  exact.fields_max = 2;
  EXPECT_EQ(refusal(text, exact), HttpRefusal::none);
  HeadLimits less = exact;
  less.head_max -= 1;
  EXPECT_EQ(refusal(text, less), HttpRefusal::head_large);
  less = exact;
  less.target_max = 6;
  EXPECT_EQ(refusal(text, less), HttpRefusal::target_long);
  less = exact;
  less.fields_max = 1;
  EXPECT_EQ(refusal(text, less), HttpRefusal::many_fields);
  EXPECT_EQ(refusal("GET /" + std::string(10'000, 'a')), HttpRefusal::target_long);  // long before its end
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'a')), HttpRefusal::head_large);
}

TEST(HttpHead, BytesOfAnotherProtocolAreRefusedAtTheFirstOne) {
  EXPECT_EQ(refusal("\x16\x03\x01"), HttpRefusal::malformed);
  EXPECT_EQ(refusal(" "), HttpRefusal::malformed);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: a\r\n\t"), HttpRefusal::malformed);  // a folded line
  EXPECT_EQ(refusal("GET\xFF"), HttpRefusal::none);  // its line is judged when it has ended
  EXPECT_FALSE(read_head("GET / HTTP/1.1\r\nHost: a\r\n").whole);
}

TEST(HttpStatusLine, HasAVersionAndThreeDigits) {
  EXPECT_EQ(parse_status_line("HTTP/1.1 101 Switching Protocols").status, 101u);
  EXPECT_EQ(parse_status_line("HTTP/1.0 404").status, 404u);
  EXPECT_EQ(parse_status_line("HTTP/1.0 404").minor, 0);
  EXPECT_EQ(parse_status_line("HTTP/1.1 200 ").status, 200u);
  for (const char* line : {"", "HTTP/1.1", "HTTP/1.1 20", "HTTP/1.1 2000", "HTTP/1.1 20x", "HTTP/2.0 200 OK",
                           "HTTP/1.1  200", "HTTP/1.1 099", "SSH-2.0-OpenSSH", "http/1.1 200 OK"}) {
    EXPECT_EQ(parse_status_line(line).status, 0u) << line;
  }
}

TEST(HttpStatus, HasAPhraseForEachRefusal) {
  for (std::size_t i = 1; i < kRefusals; ++i) {
    EXPECT_FALSE(reason_phrase(status_of(static_cast<HttpRefusal>(i))).empty()) << i;
  }
  EXPECT_EQ(reason_phrase(404), "Not Found");
  EXPECT_EQ(reason_phrase(299), "");
}

}  // namespace
}  // namespace weft::net::http
