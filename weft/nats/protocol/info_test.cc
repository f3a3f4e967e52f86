// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/info.h"

#include <string>

#include <gtest/gtest.h>

// A build without nlohmann/json reads no INFO.
#if __has_include(<nlohmann/json.hpp>)

namespace weft::nats {
namespace {

TEST(NatsInfo, ReadsTheFieldsThatAClientUses) {
  const auto info = read_info(
      R"({"server_id":"NA","server_name":"n1","version":"2.9.10","proto":1,"git_commit":null,"go":"go1.19.8",)"
      R"("host":"0.0.0.0","port":4222,"headers":true,"auth_required":true,"tls_required":true,"tls_available":true,)"
      R"("max_payload":65536,"jetstream":true,"client_id":18446744073709551615,"client_ip":"127.0.0.1",)"
      R"("nonce":"abc\u0041","cluster":{"a":[1,2.5,{"nonce":"no"}]},"connect_urls":["10.0.0.1:4222","[::1]:4223"],)"
      R"("ldm":true,"xkey":"X"} )");
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->server_id, "NA");
  EXPECT_EQ(info->server_name, "n1");
  EXPECT_EQ(info->version, "2.9.10");
  EXPECT_EQ(info->proto, 1);
  EXPECT_EQ(info->max_payload, 65536U);
  EXPECT_EQ(info->client_id, ~std::uint64_t{0});
  EXPECT_TRUE(info->headers && info->auth_required && info->tls_required && info->tls_available && info->lame_duck &&
              info->jetstream);
  EXPECT_EQ(info->nonce, "abcA");
  EXPECT_EQ(info->connect_urls, (std::vector<std::string>{"10.0.0.1:4222", "[::1]:4223"}));
}

TEST(NatsInfo, AbsentFieldsHaveDefaults) {
  const auto info = read_info("{}");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->max_payload, kMessageMaxDefault);
  EXPECT_FALSE(info->headers || info->tls_required || info->lame_duck);
  EXPECT_TRUE(info->connect_urls.empty());
}

TEST(NatsInfo, RefusesWhatIsNotInfo) {
  for (const std::string_view text :
       {"", "null", "[]", "\"a\"", "1", "{", "{}{}", "{\"a\":}", R"({"proto":"1"})", R"({"headers":1})",
        R"({"server_id":true})", R"({"server_id":{}})", R"({"connect_urls":"a"})", R"({"nonce":["a"]})",
        R"({"max_payload":-1})", R"({"max_payload":1.5})", R"({"client_id":[1]})"}) {
    EXPECT_EQ(read_info(text).error().code(), Errc::protocol_error) << text;
  }
}

TEST(NatsInfo, EachPartHasABound) {
  const auto nested = [](std::size_t depth) {
    return R"({"x":)" + std::string(depth, '[') + std::string(depth, ']') + '}';
  };
  EXPECT_TRUE(read_info(nested(kInfoDepthMax - 1)));
  EXPECT_EQ(read_info(nested(kInfoDepthMax)).error().code(), Errc::protocol_error);
  const auto nonce = [](std::size_t size) { return R"({"nonce":")" + std::string(size, 'n') + "\"}"; };
  EXPECT_TRUE(read_info(nonce(kNonceMax)));
  EXPECT_EQ(read_info(nonce(kNonceMax + 1)).error().code(), Errc::protocol_error);
  EXPECT_EQ(read_info("{}" + std::string(kInfoMax, ' ')).error().code(), Errc::protocol_error);
  std::string many = R"({"connect_urls":["a")";
  for (std::size_t i = 0; i < kServersMax; ++i) {
    many += ",\"b\"";
  }
  EXPECT_EQ(read_info(many + "]}")->connect_urls.size(), kServersMax);
  EXPECT_EQ(read_info(R"({"max_payload":9000000000000})")->max_payload, kMessageMax);
}

TEST(NatsInfo, ANewerListReplacesTheOneBefore) {
  const auto info = read_info(R"({"connect_urls":["a"],"connect_urls":["b"]})");
  EXPECT_EQ(info->connect_urls, (std::vector<std::string>{"b"}));
}

TEST(NatsConnect, WritesOneObjectOfOneLine) {
  const Secret text =
      write_connect({.name = "a \"b\"\r\n", .echo = false, .tls = true, .user = "me", .password = "pw"});
  EXPECT_EQ(text.text().find('\n'), std::string::npos);
  EXPECT_TRUE(read_info(text.text()).has_value());  // it is JSON
  for (const std::string_view part :
       {R"("verbose":false)", R"("pedantic":false)", R"("protocol":1)", R"("name":"a \"b\"\r\n")", R"("echo":false)",
        R"("tls_required":true)", R"("user":"me")", R"("pass":"pw")", R"("headers":true)", R"("no_responders":true)",
        R"("lang":"weft")", R"("version":"0.)"}) {
    EXPECT_NE(text.text().find(part), std::string::npos) << part << " in " << text.text();
  }
  for (const std::string_view absent : {"jwt", "nkey", "sig", "auth_token"}) {
    EXPECT_EQ(text.text().find(absent), std::string::npos);
  }
}

}  // namespace
}  // namespace weft::nats

#endif
