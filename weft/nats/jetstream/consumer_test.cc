// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/consumer.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::nats::jetstream {
namespace {

TEST(JetStreamConsumer, ADurableConsumerHasItsNameTwice) {
  ConsumerConfig config;
  config.name = "c";
  config.durable = true;
  config.filters = {"s.>"};
  config.ack_wait = std::chrono::seconds(1);
  config.ack_pending_max = 10;
  config.deliver_max = 3;
  config.backoff = {Duration(5), Duration(7)};
  const auto request = create_consumer("S", config, ConsumerAction::create);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->subject, "$JS.API.CONSUMER.CREATE.S.c");
  EXPECT_EQ(request->body,
            R"({"stream_name":"S","config":{"name":"c","durable_name":"c","deliver_policy":"all",)"
            R"("ack_policy":"explicit","filter_subject":"s.>","max_deliver":3,"backoff":[5,7],"ack_wait":1000000000,)"
            R"("max_ack_pending":10},"action":"create"})");
}

TEST(JetStreamConsumer, AnEphemeralConsumerBeginsWhereItIsAsked) {
  ConsumerConfig config;
  config.ack_policy = AckPolicy::none;
  config.deliver = Deliver::by_start_time;
  config.start_time = WallTime(std::chrono::seconds(1'795'950'312));
  config.memory_storage = true;
  config.headers_only = true;
  config.replicas = 1;
  config.filters = {"a", "b.*"};
  const auto by_time = create_consumer("S", config);
  ASSERT_TRUE(by_time);
  EXPECT_EQ(by_time->subject, "$JS.API.CONSUMER.CREATE.S");
  EXPECT_EQ(by_time->body,
            R"({"stream_name":"S","config":{"deliver_policy":"by_start_time","ack_policy":"none",)"
            R"("opt_start_time":"2026-11-29T11:05:12.000000000Z","filter_subjects":["a","b.*"],"num_replicas":1,)"
            R"("mem_storage":true,"headers_only":true}})");
  config = {};
  config.deliver = Deliver::by_start_sequence;
  config.start_sequence = 7;
  EXPECT_EQ(create_consumer("S", config)->body,
            R"({"stream_name":"S","config":{"deliver_policy":"by_start_sequence","ack_policy":"explicit",)"
            R"("opt_start_seq":7}})");
}

TEST(JetStreamConsumer, TheOtherRequestsNameTheirConsumer) {
  EXPECT_EQ(consumer_info("S", "c")->subject, "$JS.API.CONSUMER.INFO.S.c");
  EXPECT_EQ(delete_consumer("S", "c")->subject, "$JS.API.CONSUMER.DELETE.S.c");
  EXPECT_EQ(reset_consumer("S", "c", 7)->subject, "$JS.API.CONSUMER.RESET.S.c");
  EXPECT_EQ(reset_consumer("S", "c", 7)->body, R"({"seq":7})");
  EXPECT_EQ(reset_consumer("S", "c", 0)->body, "{}");
  EXPECT_EQ(consumer_names("S", 7)->subject, "$JS.API.CONSUMER.NAMES.S");
  EXPECT_EQ(consumer_names("S", 7)->body, R"({"offset":7})");
  EXPECT_EQ(consumer_list("S")->subject, "$JS.API.CONSUMER.LIST.S");
  EXPECT_EQ(pull("S", "c", {})->subject, "$JS.API.CONSUMER.MSG.NEXT.S.c");
  EXPECT_EQ(pull("S", "c", {})->body, R"({"batch":1})");
  EXPECT_EQ(pull("S", "c", {.batch = 5, .no_wait = true})->body, R"({"batch":5,"no_wait":true})");
  std::string body = "before ";
  append_pull({.batch = 256,
               .bytes_max = 4096,
               .expires = std::chrono::seconds(30),
               .idle_heartbeat = std::chrono::seconds(5),
               .group = "g\"",
               .priority = 9},
              body);
  EXPECT_EQ(body, R"(before {"batch":256,"max_bytes":4096,"expires":30000000000,"idle_heartbeat":5000000000,)"
                  R"("group":"g\"","priority":9})");
}

TEST(JetStreamConsumer, ANameThatNoServerTakesIsRefused) {
  ConsumerConfig config;
  config.durable = true;
  EXPECT_EQ(create_consumer("S", config).error().code(), Errc::invalid_argument);
  EXPECT_FALSE(create_consumer("S", {}, ConsumerAction::update));
  config.name = "a.b";
  EXPECT_FALSE(create_consumer("S", config));
  config.name = "c";
  EXPECT_FALSE(create_consumer("S.T", config));
  config.filters = {"a..b"};
  EXPECT_FALSE(create_consumer("S", config));
  EXPECT_FALSE(consumer_info("S", ""));
  EXPECT_FALSE(pull("S", "*", {}));
}

#if __has_include(<nlohmann/json.hpp>)  // else no answer can be read

constexpr std::string_view kConsumerOfOldServer =
    R"({"type":"io.nats.jetstream.api.v1.consumer_create_response","stream_name":"S","name":"c",)"
    R"("created":"2026-11-29T11:06:10.648072903Z","config":{"durable_name":"c","name":"c","deliver_policy":"all",)"
    R"("ack_policy":"explicit","ack_wait":1000000000,"max_deliver":-1,"filter_subject":"s.\u003e",)"
    R"("replay_policy":"instant","max_waiting":512,"max_ack_pending":1000,"num_replicas":0},)"
    R"("delivered":{"consumer_seq":0,"stream_seq":0},"ack_floor":{"consumer_seq":0,"stream_seq":0},)"
    R"("num_ack_pending":0,"num_redelivered":0,"num_waiting":0,"num_pending":4})";
constexpr std::string_view kConsumerOfNewServer =
    R"({"type":"io.nats.jetstream.api.v1.consumer_create_response","stream_name":"S","name":"c",)"
    R"("created":"2026-11-29T11:05:18.773871586Z","config":{"durable_name":"c","name":"c","deliver_policy":"all",)"
    R"("ack_policy":"explicit","ack_wait":1000000000,"max_deliver":-1,"filter_subject":"s.\u003e",)"
    R"("replay_policy":"instant","max_waiting":512,"max_ack_pending":1000,"num_replicas":0,)"
    R"("metadata":{"_nats.level":"5","_nats.req.level":"0","_nats.ver":"2.15.2"}},)"
    R"("delivered":{"consumer_seq":0,"stream_seq":0},"ack_floor":{"consumer_seq":0,"stream_seq":0},)"
    R"("num_ack_pending":0,"num_redelivered":0,"num_waiting":0,"num_pending":4,"ts":"2026-11-29T11:05:18.774525857Z"})";

TEST(JetStreamConsumer, ServersOfTwoAgesSayTheSameOfAConsumer) {
  ConsumerConfig asked;
  asked.name = "c";
  asked.durable = true;
  asked.filters = {"s.>"};
  asked.ack_wait = std::chrono::seconds(1);
  asked.ack_pending_max = 1000;
  asked.pulls_waiting_max = 512;
  for (const std::string_view json : {kConsumerOfOldServer, kConsumerOfNewServer}) {
    const auto info = read_consumer_info(json);
    ASSERT_TRUE(info) << info.error().message();
    ASSERT_TRUE(info->ok());
    EXPECT_EQ(info->value.stream, "S");
    EXPECT_EQ(info->value.name, "c");
    EXPECT_EQ(info->value.config, asked);
    EXPECT_EQ(info->value.pending, 4U);
  }
}

TEST(JetStreamConsumer, AnEphemeralConsumerHasTheNameOfTheServer) {
  // Of nats-server 2.9.10.
  const auto info = read_consumer_info(
      R"({"type":"io.nats.jetstream.api.v1.consumer_create_response","stream_name":"S","name":"yVLh5mXP",)"
      R"("created":"2026-11-29T11:05:36.904240128Z","config":{"deliver_policy":"by_start_time",)"
      R"("opt_start_time":"2022-01-01T00:00:00Z","ack_policy":"none","max_deliver":-1,"replay_policy":"instant",)"
      R"("max_waiting":512,"inactive_threshold":5000000000,"num_replicas":1,"mem_storage":true},)"
      R"("delivered":{"consumer_seq":3,"stream_seq":9,"last_active":"2026-11-29T11:05:18.791618644Z"},)"
      R"("ack_floor":{"consumer_seq":1,"stream_seq":2},"num_ack_pending":2,"num_redelivered":1,"num_waiting":1,)"
      R"("num_pending":18446744073709551615,"cluster":{"leader":"n1","replicas":[{"name":"n2"},{"name":"n3"}]}})");
  ASSERT_TRUE(info) << info.error().message();
  const ConsumerInfo& consumer = info->value;
  EXPECT_EQ(consumer.config.name, "yVLh5mXP");
  EXPECT_FALSE(consumer.config.durable);
  EXPECT_EQ(consumer.config.deliver, Deliver::by_start_time);
  EXPECT_EQ(consumer.config.start_time, WallTime(std::chrono::seconds(1'640'995'200)));
  EXPECT_EQ(consumer.config.ack_policy, AckPolicy::none);
  EXPECT_EQ(consumer.config.inactive_threshold, std::chrono::seconds(5));
  EXPECT_TRUE(consumer.config.memory_storage);
  EXPECT_EQ(consumer.delivered.consumer, 3U);
  EXPECT_EQ(consumer.delivered.stream, 9U);
  EXPECT_EQ(consumer.ack_floor.stream, 2U);
  EXPECT_EQ(consumer.ack_pending, 2U);
  EXPECT_EQ(consumer.redelivered, 1U);
  EXPECT_EQ(consumer.pulls_waiting, 1U);
  EXPECT_EQ(consumer.pending, UINT64_MAX);
  EXPECT_EQ(consumer.cluster.replicas.size(), 2U);
}

TEST(JetStreamConsumer, APushConsumerIsNotTakenForAPullConsumer) {
  const auto info = read_consumer_info(
      R"({"stream_name":"S","name":"p","config":{"deliver_subject":"x","replay_policy":"original",)"
      R"("flow_control":true,"sample_freq":"","filter_subjects":["a","b"],"backoff":[1,2],"priority_groups":["g"],)"
      R"("priority_policy":"overflow"}})");
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->value.config.others, (std::vector<std::string>{"deliver_subject", "replay_policy", "flow_control"}));
  EXPECT_EQ(info->value.config.filters, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(info->value.config.backoff, (std::vector<Duration>{Duration(1), Duration(2)}));
  EXPECT_EQ(info->value.config.priority_policy, "overflow");
}

TEST(JetStreamConsumer, ListsHavePages) {
  const auto names = read_consumer_names(
      R"({"type":"io.nats.jetstream.api.v1.consumer_names_response","total":2,"offset":0,"limit":1024,)"
      R"("consumers":["c","l1r6QIoO"]})");
  ASSERT_TRUE(names);
  EXPECT_EQ(names->value.items, (std::vector<std::string>{"c", "l1r6QIoO"}));
  const auto list = read_consumer_list(
      R"({"type":"io.nats.jetstream.api.v1.consumer_list_response","total":2,"offset":0,"limit":256,"consumers":[)"
      R"({"stream_name":"S","name":"c","config":{"durable_name":"c","filter_subject":"a","backoff":[1]},)"
      R"("num_pending":4},{"stream_name":"S","name":"e","config":{"ack_policy":"none"}}]})");
  ASSERT_TRUE(list) << list.error().message();
  ASSERT_EQ(list->value.items.size(), 2U);
  EXPECT_TRUE(list->value.items[0].config.durable);
  EXPECT_EQ(list->value.items[0].config.filters, (std::vector<std::string>{"a"}));
  EXPECT_EQ(list->value.items[1].name, "e");
  EXPECT_FALSE(list->value.items[1].config.durable);
  EXPECT_TRUE(list->value.items[1].config.filters.empty());
  EXPECT_TRUE(list->value.items[1].config.backoff.empty());
  EXPECT_EQ(list->value.items[1].pending, 0U);
}

TEST(JetStreamConsumer, AValueOfANewerServerIsReadAndNotAskedFor) {
  const auto info = read_consumer_info(
      R"({"stream_name":"S","name":"c","config":{"deliver_policy":"later","ack_policy":"flow_control"}})");
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->value.config.deliver, Deliver::other);
  EXPECT_EQ(info->value.config.ack_policy, AckPolicy::other);
  EXPECT_EQ(create_consumer("S", info->value.config).error().code(), Errc::invalid_argument);
}

TEST(JetStreamConsumer, AnAnswerWithoutAConsumerIsRefused) {
  for (const std::string_view json :
       {"{}", R"({"stream_name":"S"})", R"({"name":"c"})", R"({"stream_name":"S","name":"c","num_pending":-1})",
        R"({"stream_name":"S","name":"c","config":{"deliver_policy":1}})",
        R"({"stream_name":"S","name":"c","config":{"backoff":["1s"]}})",
        R"({"stream_name":"S","name":"c","config":{"backoff":1}})", R"({"type":"x","consumers":[]})"}) {
    EXPECT_EQ(read_consumer_info(json).error().code(), Errc::protocol_error) << json;
  }
  EXPECT_FALSE(read_consumer_list(R"({"type":"x","consumers":[]})"));
  EXPECT_FALSE(read_consumer_names("{}"));
}

#endif

}  // namespace
}  // namespace weft::nats::jetstream
