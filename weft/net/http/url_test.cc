// SPDX-License-Identifier: MIT
#include "weft/net/http/url.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::net::http {
namespace {

TEST(HttpUrl, HasASchemeAHostAPortAndATarget) {
  const auto url = parse_url("https://Example.COM:8443/a/b?c=d&e#f");
  ASSERT_TRUE(url) << url.error().message();
  EXPECT_TRUE(url->secure);
  EXPECT_FALSE(url->websocket);
  EXPECT_EQ(url->host, "example.com");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->target, "/a/b?c=d&e");
  EXPECT_EQ(url->authority(), "example.com:8443");
  EXPECT_EQ(url->origin(), "https://example.com:8443");
  EXPECT_EQ(url->text(), "https://example.com:8443/a/b?c=d&e");
}

TEST(HttpUrl, APortIsThatOfItsScheme) {
  const struct {
    const char* text;
    unsigned port;
    const char* authority;
  } urls[] = {{"http://a", 80, "a"},
              {"HTTPS://a/", 443, "a"},
              {"ws://a:443/", 443, "a:443"},
              {"wss://a:443/", 443, "a"},
              {"http://[::1]:81", 81, "[::1]:81"},
              {"http://a:/", 80, "a"}};
  for (const auto& [text, port, authority] : urls) {
    const auto url = parse_url(text);
    ASSERT_TRUE(url) << text;
    EXPECT_EQ(url->port, port) << text;
    EXPECT_EQ(url->authority(), authority) << text;
    EXPECT_TRUE(url->target == "/") << url->target;
  }
}

TEST(HttpUrl, AnythingThatCouldBeReadInTwoWaysIsRefused) {
  for (const char* text : {"",
                           "a",
                           "/a",
                           "ftp://a/",
                           "http:/a",
                           "http://",
                           "http:///a",
                           "http://u@a/",
                           "http://u:p@a/",
                           "http://a:0/",
                           "http://a:65536/",
                           "http://a:1x/",
                           "http://a b/",
                           "http://a/ b",
                           "http://a/\r\nX: y",
                           "http://a/<b>",
                           "http://a/%4",
                           "http://a/?%zz",
                           "http://[::1",
                           "http://a%41/",
                           "http://a\\b/",
                           "http://a/\xC3\xA9"}) {
    EXPECT_EQ(parse_url(text).error(), Errc::invalid_argument) << text;
  }
  EXPECT_EQ(parse_url("http://a/" + std::string(kUrlMax, 'a')).error(), Errc::invalid_argument);
}

TEST(HttpUrl, APathHasNoDots) {
  const struct {
    const char* path;
    const char* target;
  } paths[] = {{"/a/../b", "/b"}, {"/../a", "/a"}, {"/a/.", "/a/"},
               {"/a/..", "/"},    {"/.", "/"},     {"/a/./b/../../c?x/../y", "/c?x/../y"},
               {"/...", "/..."},  {"//a", "//a"}};
  for (const auto& [path, target] : paths) {
    const auto url = parse_url(std::string("http://a") + path);
    ASSERT_TRUE(url) << path;
    EXPECT_EQ(url->target, target) << path;
  }
}

// RFC 3986 section 5.4.
TEST(HttpUrl, AReferenceIsReadFromItsBase) {
  const Url base = *parse_url("http://a/b/c/d;p?q");
  const struct {
    const char* reference;
    const char* text;
  } references[] = {{"g", "http://a/b/c/g"},       {"./g", "http://a/b/c/g"},    {"g/", "http://a/b/c/g/"},
                    {"/g", "http://a/g"},          {"//g", "http://g/"},         {"?y", "http://a/b/c/d;p?y"},
                    {"g?y", "http://a/b/c/g?y"},   {"#s", "http://a/b/c/d;p?q"}, {"", "http://a/b/c/d;p?q"},
                    {"../g", "http://a/b/g"},      {"../../g", "http://a/g"},    {"../../../g", "http://a/g"},
                    {"https://x/y", "https://x/y"}};
  for (const auto& [reference, text] : references) {
    const auto url = resolve_url(base, reference);
    ASSERT_TRUE(url) << reference;
    EXPECT_EQ(url->text(), text) << reference;
  }
  EXPECT_EQ(resolve_url(base, "javascript:alert(1)").error(), Errc::invalid_argument);
  EXPECT_EQ(resolve_url(base, "g h").error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace weft::net::http
