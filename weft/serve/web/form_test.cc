// SPDX-License-Identifier: MIT
#include "weft/serve/web/form.h"

#include <chrono>
#include <string>
#include <vector>

#include "weft/serve/web/request.h"
#include "weft/serve/web/response.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

TEST(WebForm, TextIsDecodedAndWhatIsNoCodeStays) {
  EXPECT_EQ(percent_decode("a%20b+%2f%2F"), "a b+//");
  EXPECT_EQ(form_decode("a%20b+%2B"), "a b +");
  EXPECT_EQ(percent_decode("%"), "%");
  EXPECT_EQ(percent_decode("%4"), "%4");
  EXPECT_EQ(percent_decode("%4g%41"), "%4gA");
  EXPECT_EQ(percent_decode("%25%34%31"), "%41");  // once
  EXPECT_EQ(percent_decode("%00"), std::string(1, '\0'));
}

TEST(WebForm, PairsAreFoundByTheirDecodedNames) {
  const std::string_view text = "a=1&b=two+words&c&&=e&a=2&%66=%3D&g=h=i";
  EXPECT_EQ(find_pair(text, "a"), "1");
  EXPECT_EQ(find_pair(text, "b"), "two words");
  EXPECT_EQ(find_pair(text, "c"), "");
  EXPECT_EQ(find_pair(text, ""), "e");
  EXPECT_EQ(find_pair(text, "f"), "=");
  EXPECT_EQ(find_pair(text, "g"), "h=i");
  EXPECT_EQ(find_pair(text, "h"), std::nullopt);
  EXPECT_EQ(find_pair("", ""), std::nullopt);
  std::vector<std::string> names;
  EXPECT_FALSE(any_pair(text, [&](const FormPair& pair) {
    names.emplace_back(pair.name);
    return false;
  }));
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c", "", "a", "%66", "g"}));
}

TEST(WebCookie, ACookieIsFoundByItsName) {
  const std::string_view text = "a=1; ab=2;b=\"3\" ;\tc=d=e; flag; =nameless; a=4; A=5;";
  EXPECT_EQ(find_cookie(text, "a"), "1");
  EXPECT_EQ(find_cookie(text, "ab"), "2");
  EXPECT_EQ(find_cookie(text, "b"), "\"3\"");
  EXPECT_EQ(find_cookie(text, "c"), "d=e");
  EXPECT_EQ(find_cookie(text, "A"), "5");
  EXPECT_EQ(find_cookie(text, ""), "nameless");
  EXPECT_EQ(find_cookie(text, "flag"), std::nullopt);
  EXPECT_EQ(find_cookie(text, "d"), std::nullopt);
  EXPECT_EQ(find_cookie("", "a"), std::nullopt);
  EXPECT_EQ(find_cookie(";;", ""), std::nullopt);
}

TEST(WebCookie, ARequestMayHaveSeveralFieldsOfCookies) {
  net::http::RequestHead head;
  head.fields = "Cookie: a=1; b=2\r\nX: c=3\r\ncookie: c=4; a=5\r\n";
  const Request request(head, {}, {}, nullptr);
  EXPECT_EQ(request.cookie("a"), "1");
  EXPECT_EQ(request.cookie("b"), "2");
  EXPECT_EQ(request.cookie("c"), "4");
  EXPECT_EQ(request.cookie("d"), std::nullopt);
}

TEST(WebCookie, IsSetWithCarefulAttributes) {
  EXPECT_EQ(*(Cookie{.name = "id", .value = "7"}.text()), "id=7; Path=/; Secure; HttpOnly; SameSite=Lax");
  Cookie other{.name = "id", .value = ""};
  other.path = "/shop";
  other.domain = "example.com";
  other.max_age = std::chrono::hours(1);
  other.secure = other.http_only = false;
  other.same_site = SameSite::strict;
  EXPECT_EQ(*other.text(), "id=; Path=/shop; Domain=example.com; Max-Age=3600; SameSite=Strict");
  other.max_age = std::chrono::seconds(-1);
  other.path.clear();
  other.secure = true;
  other.same_site = SameSite::none;
  EXPECT_EQ(*other.text(), "id=; Domain=example.com; Max-Age=0; Secure; SameSite=None");
}

TEST(WebCookie, HoldsNoOtherAttributeCookieOrField) {
  for (const char* value : {"a b", "a;b", "a,b", "a\"b", "a\\b", "a\r\nb", "a\x7F", "\xC3\xA9"}) {
    EXPECT_EQ((Cookie{.name = "id", .value = value}.text().error()), Errc::invalid_argument) << value;
    Response response;
    response.set_cookie({.name = "id", .value = value});
    EXPECT_EQ(response.error(), Errc::invalid_argument) << value;
    EXPECT_EQ(response.fields().lines(), "");
  }
  for (const char* name : {"", "a b", "a=b", "a;", "(a)"}) {
    EXPECT_EQ((Cookie{.name = name, .value = "1"}.text().error()), Errc::invalid_argument) << name;
  }
  Cookie cookie{.name = "id", .value = "1"};
  cookie.path = "/; Domain=evil.com";
  EXPECT_EQ(cookie.text().error(), Errc::invalid_argument);
  cookie.path = "/";
  cookie.domain = "a\r\nX: y";
  EXPECT_EQ(cookie.text().error(), Errc::invalid_argument);
  cookie.domain.clear();
  cookie.same_site = SameSite::none;
  cookie.secure = false;
  EXPECT_EQ(cookie.text().error(), Errc::invalid_argument);
}

TEST(WebCookie, AnAnswerMaySetSeveral) {
  Response response;
  response.set_cookie({.name = "a", .value = "1"}).set_cookie({.name = "b", .value = "2"});
  EXPECT_EQ(response.error(), Errc::ok);
  EXPECT_EQ(response.fields().lines(),
            "Set-Cookie: a=1; Path=/; Secure; HttpOnly; SameSite=Lax\r\n"
            "Set-Cookie: b=2; Path=/; Secure; HttpOnly; SameSite=Lax\r\n");
}

}  // namespace
}  // namespace weft::serve::web
