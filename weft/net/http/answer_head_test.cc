// SPDX-License-Identifier: MIT
#include "weft/net/http/answer_head.h"

#include <string>

#include "weft/net/http/field.h"
#include <gtest/gtest.h>

namespace weft::net::http {
namespace {

HttpRefusal refusal_of(const std::string& head) {
  AnswerHead into;
  return parse_answer_head(head, into);
}
// Of an answer 200 with these lines.
HttpRefusal refusal_of_lines(const std::string& lines) { return refusal_of("HTTP/1.1 200 OK\r\n" + lines + "\r\n"); }

TEST(HttpAnswerHead, HasAStatusAReasonAndFields) {
  AnswerHead head;
  const std::string text = "HTTP/1.1 404 Not  Found\r\nContent-Length: 12\r\nX: y\r\n\r\n";
  ASSERT_EQ(parse_answer_head(text, head), HttpRefusal::none);
  EXPECT_EQ(head.status, 404);
  EXPECT_EQ(head.reason, "Not  Found");
  EXPECT_EQ(find_field(head.fields, "x"), "y");
  EXPECT_TRUE(head.has_length);
  EXPECT_EQ(head.content_length, 12u);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_FALSE(head.chunked);
}

TEST(HttpAnswerHead, AReasonMayBeMissing) {
  for (const char* line : {"HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.0 200 OK", "HTTP/1.9 200 OK"}) {
    EXPECT_EQ(refusal_of(std::string(line) + "\r\n\r\n"), HttpRefusal::none) << line;
  }
}

TEST(HttpAnswerHead, AStatusLineOfAnotherFormIsRefused) {
  for (const char* line : {"", "HTTP/1.1", "HTTP/1.1 20", "HTTP/1.1 2000", "HTTP/1.1 099 x", "HTTP/1.1 600 x",
                           "HTTP/1.1  200 OK", "http/1.1 200 OK", "GET / HTTP/1.1", "HTTP/1.1 2x0 OK"}) {
    EXPECT_EQ(refusal_of(std::string(line) + "\r\n\r\n"), HttpRefusal::malformed) << line;
  }
  EXPECT_EQ(refusal_of("HTTP/2.0 200 OK\r\n\r\n"), HttpRefusal::version);
}

TEST(HttpAnswerHead, TwoProgramsNeverReadTwoLengths) {
  EXPECT_EQ(refusal_of_lines("Content-Length: 1\r\nContent-Length: 1\r\n"), HttpRefusal::framing);
  EXPECT_EQ(refusal_of_lines("Content-Length: 1, 1\r\n"), HttpRefusal::framing);
  EXPECT_EQ(refusal_of_lines("Content-Length: +1\r\n"), HttpRefusal::framing);
  EXPECT_EQ(refusal_of_lines("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), HttpRefusal::framing);
  EXPECT_EQ(refusal_of_lines("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), HttpRefusal::framing);
  EXPECT_EQ(refusal_of_lines("Transfer-Encoding: gzip, chunked\r\n"), HttpRefusal::coding);
  EXPECT_EQ(refusal_of("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), HttpRefusal::framing);
  EXPECT_EQ(refusal_of_lines("X : y\r\n"), HttpRefusal::malformed);
}

TEST(HttpAnswerHead, AnAnswerWithoutABodyAnnouncesNone) {
  EXPECT_EQ(refusal_of("HTTP/1.1 204 x\r\nContent-Length: 1\r\n\r\n"), HttpRefusal::framing);
  EXPECT_EQ(refusal_of("HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n"), HttpRefusal::framing);
  EXPECT_EQ(refusal_of("HTTP/1.1 100 x\r\nTransfer-Encoding: chunked\r\n\r\n"), HttpRefusal::framing);
  EXPECT_EQ(refusal_of("HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n"), HttpRefusal::none);
  EXPECT_EQ(refusal_of("HTTP/1.1 304 x\r\nContent-Length: 1\r\n\r\n"), HttpRefusal::none);  // of the representation
}

TEST(HttpAnswerHead, AConnectionStaysAsItsAnswerSays) {
  const auto stays = [](const std::string& head) {
    AnswerHead into;
    EXPECT_EQ(parse_answer_head(head, into), HttpRefusal::none);
    return into.keep_alive;
  };
  EXPECT_TRUE(stays("HTTP/1.1 200 OK\r\n\r\n"));
  EXPECT_FALSE(stays("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"));
  EXPECT_FALSE(stays("HTTP/1.0 200 OK\r\n\r\n"));
  EXPECT_TRUE(stays("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n"));
}

}  // namespace
}  // namespace weft::net::http
