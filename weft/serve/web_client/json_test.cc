// SPDX-License-Identifier: MIT
#include "weft/serve/web/json.h"

#if __has_include(<nlohmann/json.hpp>)

#include <string>

#include "weft/serve/web_client/test_web_client.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using test::open_http;
using test::outcome_text;

class JsonTest : public test::HttpClientFixture {};

rt::Task<void> send_json(std::string url) {
  const auto http = open_http();
  ClientRequest request("POST", url + "/users");
  request.json(nlohmann::json{{"name", "Ada"}, {"age", 36}});
  const auto made = co_await http->request(request);
  EXPECT_EQ(outcome_text(made), R"(201 {"id":7,"name":"Ada"})");
  if (made) {
    EXPECT_EQ((*made)["Content-Type"], "application/json");
    const auto value = made->json();
    EXPECT_TRUE(value && value->at("id") == 7);
  }
  for (const char* body : {"", "{", "{}x", "\"\xFF\"", "{\"name\":}"}) {
    const auto refused = co_await http->post(url + "/users", body, "application/json");
    EXPECT_TRUE(refused && refused->status() == 400u) << body;
  }
  const auto text = co_await http->get(url + "/text");
  EXPECT_TRUE(text) << outcome_text(text);
  if (text) {
    EXPECT_EQ(text->json().error(), Errc::invalid_argument);
  }
}
TEST_F(JsonTest, ValuesAreBodiesInBothDirections) {
  ASSERT_TRUE(router_.post("/users", [](const Request& request) -> Result<Response> {
    const auto user = WEFT_TRY(request.json());
    return Response(201).json(nlohmann::json{{"id", 7}, {"name", user.value("name", "")}});
  }));
  ASSERT_TRUE(router_.get("/text", [] { return "no JSON"; }));
  run(send_json(serve_site()));
}

TEST_F(JsonTest, ATextThatNestsTooDeepIsRefused) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(JsonSupport::parse(nested(JsonSupport::kDepthMax)));
  EXPECT_EQ(JsonSupport::parse(nested(JsonSupport::kDepthMax + 2)).error(), Errc::invalid_argument);
  EXPECT_EQ(JsonSupport::parse(nested(500'000)).error(), Errc::invalid_argument);
}

TEST_F(JsonTest, TextThatIsNotUtf8IsReplaced) {
  EXPECT_EQ(Response().json(std::string("a\xFF")).body(), "\"a\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace weft::serve::web

#endif
