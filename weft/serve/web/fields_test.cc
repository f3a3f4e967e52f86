// SPDX-License-Identifier: MIT
#include "weft/serve/web/fields.h"

#include <string>

#include "weft/serve/web/response.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

TEST(WebFields, FieldsAreLinesAndAreFoundWithoutCase) {
  Fields fields;
  ASSERT_TRUE(fields.add("Set-Cookie", "a=1"));
  ASSERT_TRUE(fields.add("set-cookie", "b=2"));
  ASSERT_TRUE(fields.set("X", "1"));
  ASSERT_TRUE(fields.set("x", "2"));
  EXPECT_EQ(fields.lines(), "Set-Cookie: a=1\r\nset-cookie: b=2\r\nx: 2\r\n");
  EXPECT_EQ(fields.find("X"), "2");
  EXPECT_EQ(fields.find("SET-COOKIE"), "a=1");
  fields.remove("Set-Cookie");
  EXPECT_EQ(fields.lines(), "x: 2\r\n");
  EXPECT_EQ(fields.find("set-cookie"), std::nullopt);
}

TEST(WebFields, NoTextBeginsAnotherLineOrAnotherAnswer) {
  Fields fields;
  ASSERT_TRUE(fields.set("X", "kept"));
  for (const char* value :
       {"a\r\nY: b", "a\nY: b", "a\rb", "a\r\n\r\nHTTP/1.1 200 OK", "\r\n", " a", "a ", "a\x01", "a\x7F"}) {
    EXPECT_EQ(fields.set("X", value).error(), Errc::invalid_argument) << value;
    EXPECT_EQ(fields.add("X", value).error(), Errc::invalid_argument) << value;
  }
  EXPECT_EQ(fields.set("X", std::string_view("a\0b", 3)).error(), Errc::invalid_argument);
  for (const char* name : {"", "X Y", "X:", "X\r\nY", "X\n", "\xC3\xA9", "X\x01"}) {
    EXPECT_EQ(fields.set(name, "a").error(), Errc::invalid_argument) << name;
  }
  EXPECT_EQ(fields.lines(), "X: kept\r\n");
}

TEST(WebFields, TheServerAloneSaysWhereABodyEnds) {
  Fields fields;
  for (const char* name :
       {"Content-Length", "transfer-encoding", "CONNECTION", "Date", "Trailer", "Upgrade", "Keep-Alive"}) {
    EXPECT_EQ(fields.set(name, "1").error(), Errc::invalid_argument) << name;
  }
}

TEST(WebFields, TheirBytesAreBounded) {
  Fields fields;
  EXPECT_EQ(fields.add("X", std::string(Fields::kBytesMax - 4, 'x')).error(), Errc::message_too_large);
  ASSERT_TRUE(fields.add("X", std::string(Fields::kBytesMax - 5, 'x')));
  EXPECT_EQ(fields.add("Y", "").error(), Errc::message_too_large);
  EXPECT_TRUE(fields.set("X", "small"));
  EXPECT_TRUE(fields.add("Y", ""));
}

TEST(WebResponse, RemembersItsFirstMistake) {
  EXPECT_EQ(Response("x").error(), Errc::ok);
  EXPECT_EQ(Response("x").set("X", "a\nb").set("X", "good").error(), Errc::invalid_argument);
  EXPECT_EQ(Response("<p>", "text/html\r\nX: y").error(), Errc::invalid_argument);
  EXPECT_EQ(Response(101).error(), Errc::invalid_argument);
  EXPECT_EQ(Response(600).error(), Errc::invalid_argument);
  EXPECT_EQ(Response(204).error(), Errc::ok);
}

}  // namespace
}  // namespace weft::serve::web
