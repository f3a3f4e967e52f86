// SPDX-License-Identifier: MIT
#include "weft/serve/web_client/answer_codec.h"

#include <string>

#include "weft/serve/web_client/test_answers.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using test::feed_answers;
using test::SeenAnswers;

// The answer to one GET, whole and byte by byte: "200 body", "interim", "fault", "..." if more must come.
std::string seen(const std::string& stream, const AnswerLimits& limits = {}) {
  AnswerCodec codec(limits);
  codec.begin(false, false, limits.body_max);
  const SeenAnswers whole = feed_answers(codec, as_bytes(stream), [&] { return stream.size(); });
  const SeenAnswers bytes = feed_answers(codec, as_bytes(stream), [] { return std::size_t{1}; });
  EXPECT_EQ(whole, bytes) << stream;
  return whole.text();
}

TEST(AnswerCodec, ABodyEndsByItsLengthOrItsChunks) {
  EXPECT_EQ(seen("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), "200 hello");
  EXPECT_EQ(seen("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), "200 ");
  EXPECT_EQ(seen("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX: y\r\n\r\n"),
            "200 hello");
  EXPECT_EQ(seen("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"), "200 hell...");
  EXPECT_EQ(seen("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), "200 hello...");
  EXPECT_EQ(seen("HTTP/1.1 200 OK\r\n\r\nhello"), "200 hello...");  // to the end of the connection
  EXPECT_EQ(seen("HTTP/1.1 200"), "...");
}

TEST(AnswerCodec, SomeAnswersHaveNoBodyWhateverTheirFieldsSay) {
  AnswerCodec codec;
  codec.begin(true, false, 100);
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
  EXPECT_EQ(feed_answers(codec, as_bytes(head), [&] { return head.size(); }).text(), "200 ");
  EXPECT_EQ(seen("HTTP/1.1 204 No Content\r\n\r\n"), "204 ");
  EXPECT_EQ(seen("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), "304 ");
}

TEST(AnswerCodec, InterimAnswersAreSkippedUpToABound) {
  const std::string interim = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
  const std::string last = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  EXPECT_EQ(seen(interim + "HTTP/1.1 100 Continue\r\n\r\n" + last), "interim interim 200 ok");
  std::string many;
  for (unsigned i = 0; i <= AnswerCodec::kInterimsMax; ++i) {
    many += interim;
  }
  EXPECT_TRUE(seen(many + last).ends_with("fault 3"));
  EXPECT_EQ(seen("HTTP/1.1 101 Switching Protocols\r\n\r\n"), "fault 4");
}

TEST(AnswerCodec, BytesThatAreNotOneAnswerAreRefused) {
  for (const char* stream : {"\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
                             "HTTP/1.1 200 OK\r\nX: y\r\n folded\r\n\r\n", "SSH-2.0-OpenSSH\r\n\r\n",
                             "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                             "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                             "HTTP/1.1 200 OK\r\nX: y\r\rZ: \r\n\r\n"}) {
    EXPECT_EQ(seen(stream), "fault 1") << stream;
  }
  EXPECT_EQ(seen("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\n"), "200 fault 1");
  EXPECT_EQ(seen("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP"), "200 ok fault 2");
}

TEST(AnswerCodec, EachBoundHoldsToTheByte) {
  AnswerLimits limits;
  limits.body_max = 5;
  EXPECT_EQ(seen("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", limits), "200 hello");
  EXPECT_EQ(seen("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", limits), "fault 1");
  EXPECT_EQ(seen("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n", limits), "200 fault 1");
  limits.body_max = 1'000'000;
  const std::string head = "HTTP/1.1 200 OK\r\nX: y\r\nZ: \r\n\r\n";
  limits.head_max = static_cast<std::uint32_t>(head.size());
  limits.fields_max = 2;
  EXPECT_EQ(seen(head + "a", limits), "200 a...");
  limits.head_max -= 1;
  EXPECT_EQ(seen(head, limits), "fault 1");
  limits.head_max += 1;
  limits.fields_max = 1;
  EXPECT_EQ(seen(head, limits), "fault 1");
}

TEST(AnswerCodec, ABodyToTheEndOfTheConnectionHasABound) {
  AnswerCodec codec;
  codec.begin(false, false, 5);
  const std::string stream = "HTTP/1.1 200 OK\r\n\r\nhello";
  EXPECT_EQ(feed_answers(codec, as_bytes(stream), [] { return std::size_t{3}; }).text(), "200 hello...");
  const std::string more = stream + "x";
  EXPECT_EQ(feed_answers(codec, as_bytes(more), [] { return std::size_t{1}; }).text(), "200 hello fault 1");
}

}  // namespace
}  // namespace weft::serve::web
