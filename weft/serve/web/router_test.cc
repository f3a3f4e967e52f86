// SPDX-License-Identifier: MIT
#include "weft/serve/web/router.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

class WebRouter : public testing::Test {
 protected:
  void add(Method method, const std::string& pattern) {
    EXPECT_TRUE(router_.route(method, pattern, [pattern] { return pattern; })) << pattern;
  }
  // The pattern that takes the path, and the values of its names; or a status.
  std::string find(std::string_view method, std::string_view path) {
    const Router::Match match = router_.find(method, path);
    if (match.handler == nullptr) {
      return std::to_string(match.status);
    }
    const net::http::RequestHead head;
    const auto response = match.handler->call(Request(head, {}, match.params, nullptr));
    std::string found = response->body();
    for (std::size_t i = 0; i < match.params.count; ++i) {
      found.append(" ").append(match.params.params[i].name).append("=").append(match.params.params[i].value);
    }
    return found;
  }

  Router router_;
};

TEST_F(WebRouter, APathFindsItsRouteAndALiteralGoesFirst) {
  for (const char* pattern : {"/", "/users", "/users/", "/users/{id}", "/users/me", "/users/{id}/posts/{post}",
                              "/users/me/posts/first", "/{any}/posts"}) {
    add(Method::get, pattern);
  }
  EXPECT_EQ(find("GET", "/"), "/");
  EXPECT_EQ(find("GET", "/users"), "/users");
  EXPECT_EQ(find("GET", "/users/"), "/users/");
  EXPECT_EQ(find("GET", "/users/me"), "/users/me");
  EXPECT_EQ(find("GET", "/users/you"), "/users/{id} id=you");
  EXPECT_EQ(find("GET", "/users/7/posts/8"), "/users/{id}/posts/{post} id=7 post=8");
  EXPECT_EQ(find("GET", "/users/me/posts/8"), "/users/{id}/posts/{post} id=me post=8");  // the literal leads nowhere
  EXPECT_EQ(find("GET", "/users/me/posts/first"), "/users/me/posts/first");
  EXPECT_EQ(find("GET", "/users/posts"), "/users/{id} id=posts");
  EXPECT_EQ(find("GET", "/x/posts"), "/{any}/posts any=x");
  for (const char* path :
       {"", "*", "/x", "/users/7/", "/users/7/posts", "/users/7/posts/8/9", "//", "//posts", "/Users"}) {
    EXPECT_EQ(find("GET", path), "404") << path;
  }
}

TEST_F(WebRouter, ANameWithDotsIsTheRestOfThePathAndGoesLast) {
  for (const char* pattern : {"/s/{path...}", "/s/{one}", "/s/literal", "/{a}/b/{rest...}", "/{all...}"}) {
    add(Method::get, pattern);
  }
  EXPECT_EQ(find("GET", "/s/"), "/s/{path...} path=");
  EXPECT_EQ(find("GET", "/s/a"), "/s/{one} one=a");
  EXPECT_EQ(find("GET", "/s/literal"), "/s/literal");
  EXPECT_EQ(find("GET", "/s/a/b%2Fc//d/"), "/s/{path...} path=a/b%2Fc//d/");
  EXPECT_EQ(find("GET", "/s/literal/x"), "/s/{path...} path=literal/x");
  EXPECT_EQ(find("GET", "/x/b/c/d"), "/{a}/b/{rest...} a=x rest=c/d");
  EXPECT_EQ(find("GET", "/x/c"), "/{all...} all=x/c");
  EXPECT_EQ(find("GET", "/s"), "/{all...} all=s");
  EXPECT_EQ(find("GET", "/"), "/{all...} all=");
  EXPECT_EQ(find("GET", "*"), "404");
  for (const char* pattern : {"/{a...}/b", "/{a...}b", "/{...a}{b}"}) {
    EXPECT_EQ(router_.get(pattern, [] { return "x"; }).error(), Errc::invalid_argument) << pattern;
  }
  EXPECT_EQ(router_.get("/s/{other...}", [] { return "x"; }).error(), Errc::conflict);
}

TEST_F(WebRouter, APathIsComparedDecoded) {
  add(Method::get, "/a b/{c}");
  EXPECT_EQ(find("GET", "/a%20b/d%2Fe"), "/a b/{c} c=d%2Fe");
  EXPECT_EQ(find("GET", "/%61%20b/x"), "/a b/{c} c=x");
  EXPECT_EQ(find("GET", "/a%20b%2Fx"), "404");  // an encoded '/' parts no segments
  const Router::Match match = router_.find("GET", "/a%20b/d%2Fe");
  EXPECT_EQ(Request({}, {}, match.params, nullptr).param("c"), "d/e");
  EXPECT_EQ(Request({}, {}, match.params, nullptr).param("d"), "");
}

TEST_F(WebRouter, AMethodIsOfItsPath) {
  add(Method::get, "/a");
  add(Method::post, "/a");
  add(Method::del, "/b");
  EXPECT_EQ(find("HEAD", "/a"), "/a");
  EXPECT_EQ(find("POST", "/a"), "/a");
  EXPECT_EQ(find("DELETE", "/b"), "/b");
  EXPECT_EQ(find("PUT", "/a"), "405");
  EXPECT_EQ(find("HEAD", "/b"), "405");
  EXPECT_EQ(find("PUT", "/c"), "404");
  EXPECT_EQ(find("BREW", "/a"), "501");
  EXPECT_EQ(find("get", "/a"), "501");
  EXPECT_EQ(Router::allow_of(router_.find("PUT", "/a").methods), "GET, HEAD, POST");
  EXPECT_EQ(Router::allow_of(router_.find("PUT", "/b").methods), "DELETE");
}

TEST_F(WebRouter, APatternThatIsNoneIsRefused) {
  const auto refused = [this](std::string_view pattern) { return router_.get(pattern, [] { return "x"; }).error(); };
  for (const char* pattern :
       {"", "a", "*", "/{}", "/{a", "/a}", "/{a}b", "/x{a}", "/{{a}}", "/a?b", "/a#b", "/{a}/{a}"}) {
    EXPECT_EQ(refused(pattern), Errc::invalid_argument) << pattern;
  }
  EXPECT_EQ(refused("/{1}/{2}/{3}/{4}/{5}/{6}/{7}/{8}"), Errc::ok);
  EXPECT_EQ(refused("/{1}/{2}/{3}/{4}/{5}/{6}/{7}/{8}/{9}"), Errc::invalid_argument);
  std::string deep;
  for (std::size_t i = 0; i <= Router::kSegmentsMax; ++i) {
    deep += "/a";
  }
  EXPECT_EQ(refused(deep), Errc::invalid_argument);
  EXPECT_EQ(refused(deep.substr(2)), Errc::ok);
  EXPECT_EQ(refused("/{other}/{2}/{3}/{4}/{5}/{6}/{7}/{8}"), Errc::conflict);
  EXPECT_EQ(router_.add(Method::get, "/none", {}).error(), Errc::invalid_argument);
  EXPECT_EQ(find("GET", "/" + std::string(100'000, '/')), "404");
}

}  // namespace
}  // namespace weft::serve::web
