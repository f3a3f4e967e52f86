// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/stream.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::nats::jetstream {
namespace {

TEST(JetStreamStream, ARequestHasWhatDiffersFromTheDefaults) {
  StreamConfig config;
  config.name = "S";
  config.subjects = {"a.>", "b"};
  const auto least = create_stream(config);
  ASSERT_TRUE(least);
  EXPECT_EQ(least->subject, "$JS.API.STREAM.CREATE.S");
  EXPECT_EQ(least->body, R"({"name":"S","subjects":["a.>","b"],"retention":"limits","storage":"file",)"
                         R"("discard":"old","num_replicas":1})");
  config.retention = Retention::work_queue;
  config.storage = Storage::memory;
  config.discard = DiscardPolicy::refuse;
  config.discard_refuse_per_subject = true;
  config.messages_max = 0;
  config.bytes_max = 1000;
  config.messages_per_subject_max = 1;
  config.message_size_max = 10;
  config.consumers_max = 2;
  config.age_max = std::chrono::seconds(3);
  config.duplicate_window = std::chrono::seconds(2);
  config.replicas = 3;
  config.allow_direct = config.allow_rollup = config.deny_delete = true;
  config.metadata = {{"a\"b", "c\n"}};
  const auto more = update_stream(config);
  ASSERT_TRUE(more);
  EXPECT_EQ(more->subject, "$JS.API.STREAM.UPDATE.S");
  EXPECT_EQ(more->body,
            R"({"name":"S","subjects":["a.>","b"],"retention":"workqueue","storage":"memory","discard":"new",)"
            R"("num_replicas":3,"max_consumers":2,"max_msgs":0,"max_bytes":1000,"max_msgs_per_subject":1,)"
            R"("max_msg_size":10,"max_age":3000000000,"duplicate_window":2000000000,)"
            R"("discard_new_per_subject":true,"allow_direct":true,"allow_rollup_hdrs":true,"deny_delete":true,)"
            R"("metadata":{"a\"b":"c\n"}})");
}

TEST(JetStreamStream, TheOtherRequestsNameTheirStream) {
  EXPECT_EQ(stream_info("S")->subject, "$JS.API.STREAM.INFO.S");
  EXPECT_EQ(delete_stream("S")->subject, "$JS.API.STREAM.DELETE.S");
  EXPECT_EQ(stream_names().subject, "$JS.API.STREAM.NAMES");
  EXPECT_EQ(stream_names(1024, "a.b").body, R"({"offset":1024,"subject":"a.b"})");
  EXPECT_EQ(stream_list(256).body, R"({"offset":256})");
  EXPECT_EQ(purge_stream("S")->subject, "$JS.API.STREAM.PURGE.S");
  EXPECT_EQ(purge_stream("S")->body, "{}");
  EXPECT_EQ(purge_stream("S", {.filter = "a.*", .before = 7})->body, R"({"filter":"a.*","seq":7})");
  EXPECT_EQ(purge_stream("S", {.keep = 1})->body, R"({"keep":1})");
}

TEST(JetStreamStream, ANameOrASubjectThatNoServerTakesIsRefused) {
  for (const std::string_view name : {"", "a.b", "a b", "*", ">"}) {
    StreamConfig config;
    config.name = name;
    EXPECT_EQ(create_stream(config).error().code(), Errc::invalid_argument) << name;
    EXPECT_EQ(stream_info(name).error().code(), Errc::invalid_argument) << name;
  }
  StreamConfig config;
  config.name = "S";
  config.subjects = {"a", "a..b"};
  EXPECT_FALSE(create_stream(config));
  EXPECT_FALSE(purge_stream("S", {.filter = "a..b"}));
  EXPECT_FALSE(purge_stream("S", {.before = 1, .keep = 1}));
}

#if __has_include(<nlohmann/json.hpp>)  // else no answer can be read

// The answers to {"name":"S","subjects":["s.>"],"allow_direct":true,"allow_rollup_hdrs":true,"max_bytes":1000000}.
constexpr std::string_view kStreamOfOldServer =
    R"({"type":"io.nats.jetstream.api.v1.stream_create_response","config":{"name":"S","subjects":["s.\u003e"],)"
    R"("retention":"limits","max_consumers":-1,"max_msgs":-1,"max_bytes":1000000,"max_age":0,)"
    R"("max_msgs_per_subject":-1,"max_msg_size":-1,"discard":"old","storage":"file","num_replicas":1,)"
    R"("duplicate_window":120000000000,"allow_direct":true,"mirror_direct":false,"sealed":false,)"
    R"("deny_delete":false,"deny_purge":false,"allow_rollup_hdrs":true},"created":"2026-11-29T11:05:12.68738056Z",)"
    R"("state":{"messages":0,"bytes":0,"first_seq":0,"first_ts":"0001-01-01T00:00:00Z","last_seq":0,)"
    R"("last_ts":"0001-01-01T00:00:00Z","consumer_count":0},"did_create":true})";
constexpr std::string_view kStreamOfNewServer =
    R"({"type":"io.nats.jetstream.api.v1.stream_create_response","config":{"name":"S","subjects":["s.\u003e"],)"
    R"("retention":"limits","max_consumers":-1,"max_msgs":-1,"max_bytes":1000000,"max_age":0,)"
    R"("max_msgs_per_subject":-1,"max_msg_size":-1,"discard":"old","storage":"file","num_replicas":1,)"
    R"("duplicate_window":120000000000,"compression":"none","allow_direct":true,"mirror_direct":false,)"
    R"("sealed":false,"deny_delete":false,"deny_purge":false,"allow_rollup_hdrs":true,"consumer_limits":{},)"
    R"("allow_msg_ttl":false,"metadata":{"_nats.level":"5","_nats.req.level":"0","_nats.ver":"2.15.2"}},)"
    R"("created":"2026-11-29T11:05:18.764445695Z","state":{"messages":0,"bytes":0,"first_seq":0,)"
    R"("first_ts":"0001-01-01T00:00:00Z","last_seq":0,"last_ts":"0001-01-01T00:00:00Z","consumer_count":0},)"
    R"("ts":"2026-11-29T11:05:18.765489742Z","did_create":true})";

TEST(JetStreamStream, ServersOfTwoAgesSayTheSameOfAStream) {
  StreamConfig asked;
  asked.name = "S";
  asked.subjects = {"s.>"};
  asked.bytes_max = 1'000'000;
  asked.allow_direct = true;
  asked.allow_rollup = true;
  asked.duplicate_window = std::chrono::minutes(2);
  for (const std::string_view json : {kStreamOfOldServer, kStreamOfNewServer}) {
    const auto info = read_stream_info(json);
    ASSERT_TRUE(info) << info.error().message();
    ASSERT_TRUE(info->ok());
    EXPECT_EQ(info->value.config, asked);
    EXPECT_TRUE(info->value.did_create);
    EXPECT_EQ(info->value.state.first_time, WallTime::min());
    EXPECT_EQ(info->value.cluster.leader, "");
  }
}

TEST(JetStreamStream, AStreamOfAClusterHasItsStateAndItsReplicas) {
  const auto info = read_stream_info(
      R"({"type":"io.nats.jetstream.api.v1.stream_info_response","total":0,"offset":0,"limit":0,)"
      R"("config":{"name":"S","num_replicas":3,"retention":"workqueue","storage":"memory","discard":"new"},)"
      R"("state":{"messages":3,"bytes":148,"first_seq":2,"first_ts":"2026-11-29T11:05:18.76702734Z","last_seq":9,)"
      R"("last_ts":"2026-11-29T11:05:18.768317477Z","num_subjects":2,"num_deleted":5,"consumer_count":2},)"
      R"("cluster":{"name":"C","leader":"n1","replicas":[)"
      R"({"name":"n2","current":true,"active":123456,"peer":"x"},)"
      R"({"name":"n3","current":false,"offline":true,"active":0,"lag":7}]}})");
  ASSERT_TRUE(info) << info.error().message();
  const StreamReport& stream = info->value;
  EXPECT_EQ(stream.config.retention, Retention::work_queue);
  EXPECT_EQ(stream.config.storage, Storage::memory);
  EXPECT_EQ(stream.config.discard, DiscardPolicy::refuse);
  EXPECT_EQ(stream.state.messages, 3U);
  EXPECT_EQ(stream.state.first_sequence, 2U);
  EXPECT_EQ(stream.state.last_sequence, 9U);
  EXPECT_EQ(stream.state.subjects, 2U);
  EXPECT_EQ(stream.state.deleted, 5U);
  EXPECT_EQ(stream.cluster.name, "C");
  EXPECT_EQ(stream.cluster.leader, "n1");
  ASSERT_EQ(stream.cluster.replicas.size(), 2U);
  EXPECT_EQ(stream.cluster.replicas[0].name, "n2");
  EXPECT_TRUE(stream.cluster.replicas[0].current);
  EXPECT_EQ(stream.cluster.replicas[0].active, Duration(123'456));
  EXPECT_TRUE(stream.cluster.replicas[1].offline);
  EXPECT_EQ(stream.cluster.replicas[1].lag, 7U);
}

TEST(JetStreamStream, WhatAnUpdateWouldEraseIsNamed) {
  const auto info = read_stream_info(
      R"({"config":{"name":"S","mirror":{"name":"O"},"sources":null,"republish":{},"placement":{"tags":["a"]},)"
      R"("compression":"s2","template_owner":"","consumer_limits":{"inactive_threshold":0},"first_seq":5,)"
      R"("persist_mode":"async","metadata":{"own":"1","_nats.ver":"2.15.2"},"last":[[],{}]},"domain":"hub"})");
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->value.config.others, (std::vector<std::string>{"mirror", "placement", "compression"}));
  EXPECT_EQ(info->value.config.metadata, (std::vector<std::pair<std::string, std::string>>{{"own", "1"}}));
  EXPECT_EQ(info->value.config.first_sequence, 5U);
  EXPECT_TRUE(info->value.config.async_persist);
}

TEST(JetStreamStream, MembersOfAnotherTypeAreRefused) {
  for (const std::string_view config :
       {R"("name":1)", R"("name":"S","subjects":"a")", R"("name":"S","subjects":[1])",
        R"("name":"S","subjects":[["a"]])", R"("name":"S","max_age":"1s")", R"("name":"S","max_age":1.5)",
        R"("name":"S","max_age":9223372036854775808)", R"("name":"S","num_replicas":-1)",
        R"("name":"S","num_replicas":4294967296)", R"("name":"S","sealed":1)", R"("name":"S","metadata":[])",
        R"("name":"S","metadata":{"a":{}})", R"("name":"S","metadata":{"a":1})", R"("name":"S","metadata":{"a":["b"]})",
        R"("name":"a.b")", R"("name":"")", R"("name":{"a":"S"})", R"("subjects":[])"}) {
    const std::string json = R"({"config":{)" + std::string(config) + "}}";
    EXPECT_EQ(read_stream_info(json).error().code(), Errc::protocol_error) << json;
  }
  EXPECT_FALSE(read_stream_info(R"({"config":"S"})").has_value());
  EXPECT_FALSE(read_stream_info(R"({"config":{"name":"S"},"created":"yesterday"})").has_value());
}

TEST(JetStreamStream, AValueOfANewerServerIsReadAndNotAskedFor) {
  const auto info = read_stream_info(
      R"({"config":{"name":"S","retention":"later","storage":"later","discard":"later","persist_mode":"later"}})");
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->value.config.retention, Retention::other);
  EXPECT_EQ(info->value.config.storage, Storage::other);
  EXPECT_EQ(info->value.config.discard, DiscardPolicy::other);
  EXPECT_FALSE(info->value.config.async_persist);
  EXPECT_EQ(update_stream(info->value.config).error().code(), Errc::invalid_argument);
}

TEST(JetStreamStream, ListsHavePages) {
  const auto names =
      read_stream_names(R"({"type":"io.nats.jetstream.api.v1.stream_names_response","total":3,"offset":1,"limit":1024,)"
                        R"("streams":["S","KV_b"]})");
  ASSERT_TRUE(names) << names.error().message();
  EXPECT_EQ(names->value.total, 3U);
  EXPECT_EQ(names->value.offset, 1U);
  EXPECT_EQ(names->value.items, (std::vector<std::string>{"S", "KV_b"}));
  const auto none = read_stream_names(
      R"({"type":"io.nats.jetstream.api.v1.stream_names_response","total":0,"offset":0,"limit":1024,"streams":null})");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->value.items.empty());
  const auto list = read_stream_list(
      R"({"type":"io.nats.jetstream.api.v1.stream_list_response","total":2,"offset":0,"limit":256,)"
      R"("missing":["L"],"streams":[)"
      R"({"config":{"name":"S","subjects":["a","b"],"sealed":true,"mirror":{"name":"O"}},"state":{"messages":3},)"
      R"("cluster":{"leader":"n1","replicas":[{"name":"n2"}]}},{"config":{"name":"T"},"state":{}}]})");
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->value.missing, (std::vector<std::string>{"L"}));
  ASSERT_EQ(list->value.items.size(), 2U);
  EXPECT_EQ(list->value.items[0].config.subjects, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(list->value.items[0].config.others, (std::vector<std::string>{"mirror"}));
  EXPECT_EQ(list->value.items[0].state.messages, 3U);
  EXPECT_EQ(list->value.items[0].cluster.replicas.size(), 1U);
  // Nothing of an item stays for the next one.
  StreamConfig bare;
  bare.name = "T";
  EXPECT_EQ(list->value.items[1].config, bare);
  EXPECT_EQ(list->value.items[1].state.messages, 0U);
  EXPECT_TRUE(list->value.items[1].cluster.replicas.empty());
  EXPECT_FALSE(read_stream_names("{}"));
  EXPECT_FALSE(read_stream_list(
      R"({"type":"io.nats.jetstream.api.v1.stream_list_response","streams":[{"config":{"name":""}}]})"));
}

TEST(JetStreamStream, AListHasABound) {
  const auto list = [](std::size_t count) {
    std::string json = R"({"type":"io.nats.jetstream.api.v1.stream_names_response","streams":[)";
    for (std::size_t i = 0; i < count; ++i) {
      json += i == 0 ? R"("S")" : R"(,"S")";
    }
    return json + "]}";
  };
  EXPECT_TRUE(read_stream_names(list(kItemsMax)));
  EXPECT_EQ(read_stream_names(list(kItemsMax + 1)).error().code(), Errc::protocol_error);
}

TEST(JetStreamStream, APurgeSaysHowManyMessagesWent) {
  const auto purged =
      read_purged(R"({"type":"io.nats.jetstream.api.v1.stream_purge_response","success":true,"purged":2})");
  ASSERT_TRUE(purged);
  EXPECT_EQ(purged->value, 2U);
  EXPECT_FALSE(read_purged(R"({"purged":2})"));
}

#endif

}  // namespace
}  // namespace weft::nats::jetstream
