// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/api.h"

#include <string>

#include <gtest/gtest.h>

#if __has_include(<nlohmann/json.hpp>)  // else no answer can be read

namespace weft::nats::jetstream {
namespace {

Error meaning(std::uint32_t code, std::uint32_t number, std::string description = {}) {
  return ApiError{code, number, std::move(description)}.error();
}

TEST(JetStreamApi, AnErrorHasItsMeaning) {
  const auto reply =
      read_done(R"({"type":"io.nats.jetstream.api.v1.stream_delete_response","error":{"code":404,"err_code":10059,)"
                R"("description":"stream not found"}})");
  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_FALSE(reply->ok());
  EXPECT_EQ(reply->failure.code, 404U);
  EXPECT_EQ(reply->failure.number, kStreamNotFound);
  EXPECT_EQ(reply->failure.description, "stream not found");
  EXPECT_EQ(reply->failure.error().code(), Errc::not_found);
  EXPECT_EQ(reply->failure.error().fate(), Fate::answered);
  EXPECT_FALSE(reply->failure.is_temporary());
}

TEST(JetStreamApi, EachNumberHasACode) {
  EXPECT_EQ(meaning(0, 0), Error());
  EXPECT_EQ(meaning(400, kWrongLastSequence).code(), Errc::conflict);
  EXPECT_EQ(meaning(400, kWrongLastSequenceConstant).code(), Errc::conflict);
  EXPECT_EQ(meaning(400, kWrongLastMessageId).code(), Errc::conflict);
  EXPECT_EQ(meaning(400, kStreamNameInUse).code(), Errc::conflict);
  EXPECT_EQ(meaning(400, 10065).code(), Errc::invalid_argument);
  EXPECT_EQ(meaning(400, 10100).code(), Errc::invalid_argument);
  EXPECT_EQ(meaning(404, kConsumerNotFound).code(), Errc::not_found);
  EXPECT_EQ(meaning(404, kNoMessageFound).code(), Errc::not_found);
  for (const std::uint32_t full : {10047U, kStoreFailed, 10023U, 10028U}) {
    EXPECT_EQ(meaning(503, full).code(), Errc::resource_exhausted) << full;
  }
  EXPECT_EQ(meaning(400, 10054).code(), Errc::message_too_large);
  for (const std::uint32_t missing : {kNotEnabledForAccount, 10076U, 10074U}) {
    EXPECT_EQ(meaning(503, missing).code(), Errc::not_supported) << missing;
  }
  EXPECT_EQ(meaning(500, 10057, "no message found").code(), Errc::not_found);
  EXPECT_EQ(meaning(500, 10057, "disk").code(), Errc::system);
  EXPECT_EQ(meaning(404, 1).code(), Errc::not_found);
  EXPECT_EQ(meaning(400, 1).code(), Errc::invalid_argument);
}

TEST(JetStreamApi, WithoutALeaderTheSameRequestMaySucceedLater) {
  for (const ApiError& failure :
       {ApiError{503, 10008, {}}, ApiError{500, 10009, {}}, ApiError{500, 10118, {}}, ApiError{503, 1, {}}}) {
    EXPECT_TRUE(failure.is_temporary()) << failure.number;
    EXPECT_EQ(failure.error().code(), Errc::unreachable);
  }
  EXPECT_FALSE((ApiError{503, kStoreFailed, {}}).is_temporary());
  EXPECT_FALSE((ApiError{503, kNotEnabledForAccount, {}}).is_temporary());
}

TEST(JetStreamApi, ADeletionIsDoneOrSaysWhyNot) {
  const auto done = read_done(R"({"type":"io.nats.jetstream.api.v1.consumer_delete_response","success":true})");
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->ok());
  for (const std::string_view wrong :
       {"", "{}", "[]", "null", "1", R"({"success":false})", R"({"success":1})", R"({"success":true)",
        R"({"success":true} x)", R"({"error":7})", R"({"error":{"code":-1}})", R"({"error":[]})"}) {
    EXPECT_EQ(read_done(wrong).error().code(), Errc::protocol_error) << wrong;
  }
}

TEST(JetStreamApi, AnswersKeepToTheirBounds) {
  const std::string open = R"({"success":true,"x":")";
  EXPECT_TRUE(read_done(open + std::string(kJsonMax - open.size() - 2, 'x') + "\"}"));
  EXPECT_EQ(read_done(open + std::string(kJsonMax - open.size() - 1, 'x') + "\"}").error().code(),
            Errc::protocol_error);
  const auto nested = [](std::size_t depth) {
    return R"({"success":true,"x":)" + std::string(depth, '[') + std::string(depth, ']') + '}';
  };
  EXPECT_TRUE(read_done(nested(kJsonDepthMax - 1)));
  EXPECT_FALSE(read_done(nested(kJsonDepthMax)));
  EXPECT_FALSE(read_done(nested(100'000)));
  const auto reply = read_done(R"({"error":{"code":500,"description":")" + std::string(kTextMax + 1, 'd') + "\"}}");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->failure.description.size(), kTextMax);
}

TEST(JetStreamApi, AnAccountHasItsBounds) {
  EXPECT_EQ(account_info().subject, "$JS.API.INFO");
  // Of nats-server 2.15.2.
  const auto info = read_account_info(
      R"({"type":"io.nats.jetstream.api.v1.account_info_response","memory":1,"storage":2,"reserved_memory":0,)"
      R"("reserved_storage":0,"streams":3,"consumers":4,"limits":{"max_memory":-1,"max_storage":1000,)"
      R"("max_streams":-1,"max_consumers":-1,"max_ack_pending":-1,"memory_max_stream_bytes":-1,)"
      R"("storage_max_stream_bytes":-1,"max_bytes_required":false},"api":{"level":5,"total":0,"errors":0}})");
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->value.memory, 1U);
  EXPECT_EQ(info->value.storage, 2U);
  EXPECT_EQ(info->value.streams, 3U);
  EXPECT_EQ(info->value.consumers, 4U);
  EXPECT_EQ(info->value.memory_max, -1);
  EXPECT_EQ(info->value.storage_max, 1000);
  EXPECT_EQ(info->value.api_level, 5U);
  EXPECT_FALSE(read_account_info(R"({"type":"another"})"));
}

}  // namespace
}  // namespace weft::nats::jetstream

#endif
