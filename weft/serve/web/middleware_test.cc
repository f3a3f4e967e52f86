// SPDX-License-Identifier: MIT
#include "weft/serve/web/middleware.h"

#include <chrono>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "weft/net/http/gzip.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web/test_site.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using serve::test::Client;
using test::kHost;
using test::read_reply;
using test::Reply;

class MiddlewareTest : public test::SiteTest {
 protected:
  void add_all_kinds() {
    ASSERT_TRUE(router_.post("/call", [] { return "call"; }));
    ASSERT_TRUE(router_.post("/task", [](const Request&) -> rt::Task<Response> {
      (void)co_await rt::sleep(std::chrono::milliseconds(1));
      co_return Response("task");
    }));
    ASSERT_TRUE(router_.post("/body", [](const Request&, BodyReader& body) -> rt::Task<Result<Response>> {
      const auto rest = co_await body.read_rest(100);
      co_return rest ? Result<Response>(Response(*rest)) : Result<Response>(rest.error());
    }));
  }
  static Reply ask(Client& client, const std::string& path, const std::string& fields, const std::string& body = "") {
    client.write("POST " + path + kHost + fields + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                 body);
    return read_reply(client);
  }
  static bool has(const Reply& reply, const std::string& line) {
    return reply.head.find("\r\n" + line + "\r\n") != std::string::npos;
  }
};

TEST_F(MiddlewareTest, TheFirstOneIsOutermostAroundEachKindOfHandler) {
  ASSERT_TRUE(router_.post("/before", [] { return "before"; }));
  const auto named = [](std::string name) {
    return filter(
        [name](const Request& request) -> std::optional<Response> {
          return request["Refuse"] == name ? std::optional(Response(401, name)) : std::nullopt;
        },
        [name](const Request&, Response& response) { response.body() += " " + name; });
  };
  router_.use(named("outer"));
  router_.use(named("inner"));
  add_all_kinds();
  Client client(listen_web());
  EXPECT_EQ(ask(client, "/before", "Refuse: outer\r\n").body, "before");
  for (const auto& [path, body] :
       {std::pair("/call", "call"), std::pair("/task", "task"), std::pair("/body", "body")}) {
    EXPECT_EQ(ask(client, path, "", "body").body, body + std::string(" inner outer"));
    EXPECT_EQ(ask(client, path, "Refuse: inner\r\n").body, "inner inner outer");
    const Reply refused = ask(client, path, "Refuse: outer\r\n");
    EXPECT_EQ(refused.status, 401);
    EXPECT_EQ(refused.body, "outer outer");
  }
}

TEST_F(MiddlewareTest, FieldsThatMakeABrowserStricterAreSetUnlessTheHandlerSetThem) {
  router_.use(security_fields());
  router_.use(hsts(std::chrono::hours(1)));
  ASSERT_TRUE(router_.post("/call", [] { return Response("x").set("X-Frame-Options", "SAMEORIGIN"); }));
  Client client(listen_web());
  const Reply reply = ask(client, "/call", "");
  EXPECT_TRUE(has(reply, "X-Content-Type-Options: nosniff"));
  EXPECT_TRUE(has(reply, "X-Frame-Options: SAMEORIGIN"));
  EXPECT_TRUE(has(reply, "Content-Security-Policy: default-src 'self'"));
  EXPECT_FALSE(has(reply, "X-Frame-Options: DENY"));
  EXPECT_EQ(reply.head.find("Strict-Transport-Security"), std::string::npos) << "without TLS there is none";
}

TEST_F(MiddlewareTest, TextsAreCompressedForClientsThatTakeIt) {
  if (!net::http::gzip_available()) {
    GTEST_SKIP() << "this build has no zlib";
  }
  router_.use(compress());
  const std::string text(10'000, 'x');
  ASSERT_TRUE(router_.post("/text", [text] { return Response(text).set("ETag", "\"1\""); }));
  ASSERT_TRUE(router_.get("/text", [text] { return Response(text); }));
  ASSERT_TRUE(router_.post("/json", [text] { return Response(200, text, "application/json; charset=utf-8"); }));
  ASSERT_TRUE(router_.post("/image", [text] { return Response(200, text, "image/png"); }));
  ASSERT_TRUE(router_.post("/done", [text] { return Response(text).set("Content-Encoding", "br"); }));
  ASSERT_TRUE(router_.post("/part", [text] { return Response(206, text); }));
  ASSERT_TRUE(router_.post("/short", [] { return Response(std::string(1000, 'x')); }));
  ASSERT_TRUE(router_.post("/long", [] { return Response(std::string(1024 * 1024 + 1, 'x')); }));
  Client client(listen_web());
  const Reply plain = ask(client, "/text", "");
  EXPECT_EQ(plain.body, text);
  EXPECT_TRUE(has(plain, "Vary: Accept-Encoding"));
  EXPECT_TRUE(has(plain, "ETag: \"1\""));
  EXPECT_EQ(ask(client, "/text", "Accept-Encoding: gzip;q=0\r\n").body, text);
  const Reply packed = ask(client, "/text", "Accept-Encoding: br, gzip\r\n");
  EXPECT_TRUE(packed.body.starts_with("\x1F\x8B")) << packed.head;
  EXPECT_TRUE(has(packed, "Content-Encoding: gzip"));
  EXPECT_TRUE(has(packed, "Vary: Accept-Encoding"));
  EXPECT_TRUE(has(packed, "ETag: W/\"1\""));
  EXPECT_TRUE(has(ask(client, "/json", "Accept-Encoding: gzip\r\n"), "Content-Encoding: gzip"));
  for (const char* path : {"/image", "/done", "/part", "/short", "/long"}) {
    const Reply reply = ask(client, path, "Accept-Encoding: gzip\r\n");
    EXPECT_FALSE(has(reply, "Content-Encoding: gzip")) << path;
    EXPECT_EQ(reply.body.substr(0, 5), "xxxxx") << path;
  }
  const auto length = [](const Reply& reply) {
    const std::size_t at = reply.head.find("Content-Length: ");
    return reply.head.substr(at, reply.head.find("\r\n", at) - at);
  };
  client.write("GET /text" + kHost + "Accept-Encoding: gzip\r\n\r\n");
  const Reply whole = read_reply(client);
  client.write("HEAD /text" + kHost + "Accept-Encoding: gzip\r\n\r\n");
  EXPECT_EQ(length(read_reply(client, false)), length(whole));
}

TEST_F(MiddlewareTest, OriginsThatAreTakenAreToldSoAndOthersChangeNothing) {
  CorsOptions options;
  options.origins = {"https://example.com"};
  options.credentials = true;
  options.fields = "X-Token";
  router_.use(cors(options));
  add_all_kinds();
  ASSERT_TRUE(router_.get("/get", [] { return "get"; }));
  ASSERT_TRUE(router_.options("/call", preflight(options)));
  Client client(listen_web());
  for (const auto& [origin, status, told] :
       {std::tuple("https://example.com", 200, true), std::tuple("http://x", 200, false),
        std::tuple("https://X", 200, false), std::tuple("https://evil.com", 403, false), std::tuple("null", 403, false),
        std::tuple("https://x.evil.com", 403, false)}) {
    const std::string field = "Origin: " + std::string(origin) + "\r\n";
    const Reply reply = ask(client, "/call", field);
    EXPECT_EQ(reply.status, status) << origin;
    EXPECT_EQ(has(reply, "Access-Control-Allow-Origin: https://example.com"), told) << origin;
    EXPECT_TRUE(has(reply, "Vary: Origin"));
    client.write("GET /get" + kHost + field + "\r\n");
    EXPECT_EQ(read_reply(client).status, 200);
    client.write("OPTIONS /call" + kHost + field + "Access-Control-Request-Method: POST\r\n\r\n");
    const Reply asked = read_reply(client, false);
    EXPECT_EQ(asked.status, 204);
    EXPECT_EQ(has(asked, "Access-Control-Allow-Methods: GET, HEAD, POST"), told);
    EXPECT_EQ(has(asked, "Access-Control-Allow-Headers: X-Token"), told);
  }
  EXPECT_EQ(ask(client, "/call", "").status, 200);  // no browser
}

TEST_F(MiddlewareTest, EveryOriginIsTakenWithoutItsCookies) {
  CorsOptions options;
  options.origins = {"*"};
  options.credentials = true;
  router_.use(cors(options));
  add_all_kinds();
  Client client(listen_web());
  const Reply reply = ask(client, "/call", "Origin: https://any.com\r\n");
  EXPECT_TRUE(has(reply, "Access-Control-Allow-Origin: *"));
  EXPECT_EQ(reply.head.find("Allow-Credentials"), std::string::npos);
}

}  // namespace
}  // namespace weft::serve::web
