// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/message.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::nats::jetstream {
namespace {

Result<DirectMessage> direct(std::string_view block, std::string_view body = "body") {
  return read_direct(HeadersView(as_bytes(block)), as_bytes(body));
}

TEST(JetStreamMessage, ARequestNamesItsMessage) {
  EXPECT_EQ(get_message("S", Which::at(7))->subject, "$JS.API.STREAM.MSG.GET.S");
  EXPECT_EQ(get_message("S", Which::at(7))->body, R"({"seq":7})");
  EXPECT_EQ(get_message("S", Which::last_of("a.b"))->body, R"({"last_by_subj":"a.b"})");
  EXPECT_EQ(get_message("S", Which::next_of("a.>", 0))->body, R"({"seq":1,"next_by_subj":"a.>"})");
  EXPECT_EQ(get_direct("S", Which::next_of("a.>", 5))->subject, "$JS.API.DIRECT.GET.S");
  EXPECT_EQ(get_direct("S", Which::next_of("a.>", 5))->body, R"({"seq":5,"next_by_subj":"a.>"})");
  EXPECT_EQ(delete_message("S", 7, true)->body, R"({"seq":7})");
  EXPECT_EQ(delete_message("S", 7, false)->body, R"({"seq":7,"no_erase":true})");
  EXPECT_EQ(delete_message("S", 7, false)->subject, "$JS.API.STREAM.MSG.DELETE.S");
  EXPECT_FALSE(get_message("S", Which::at(0)));
  EXPECT_FALSE(get_message("S", Which::last_of("a.*")));
  EXPECT_FALSE(get_direct("S", Which::next_of("a..b", 1)));
  EXPECT_FALSE(get_direct("", Which::at(1)));
}

TEST(JetStreamMessage, ADirectAnswerIsTheMessage) {
  const auto message = direct(
      "NATS/1.0\r\nNats-Msg-Id: i1\r\nOwn: x\r\nNats-Stream: S\r\nNats-Subject: s.a\r\nNats-Sequence: 1\r\n"
      "Nats-Time-Stamp: 2026-11-29T11:05:18.76702734Z\r\n\r\n");
  ASSERT_TRUE(message) << message.error().message();
  EXPECT_EQ(message->stream, "S");
  EXPECT_EQ(message->subject, "s.a");
  EXPECT_EQ(message->sequence, 1U);
  EXPECT_EQ(message->time, WallTime(Duration(1'795'950'318'767'027'340)));
  EXPECT_EQ(message->headers.find("Own"), "x");
  EXPECT_EQ(as_text(message->body), "body");
  EXPECT_TRUE(is_direct_header("Nats-Sequence"));
  EXPECT_FALSE(is_direct_header("Nats-Msg-Id"));
}

TEST(JetStreamMessage, APublisherDoesNotForgeWhatTheServerSays) {
  const auto message = direct(
      "NATS/1.0\r\nNats-Sequence: 99\r\nNats-Subject: forged\r\nNats-Stream: forged\r\n"
      "Nats-Time-Stamp: 1970-01-01T00:00:00Z\r\nNats-Stream: S\r\nNats-Subject: s.a\r\nNats-Sequence: 1\r\n"
      "Nats-Time-Stamp: 2026-11-29T11:05:18Z\r\n\r\n");
  ASSERT_TRUE(message);
  EXPECT_EQ(message->stream, "S");
  EXPECT_EQ(message->subject, "s.a");
  EXPECT_EQ(message->sequence, 1U);
  EXPECT_EQ(message->time, WallTime(std::chrono::seconds(1'795'950'318)));
}

TEST(JetStreamMessage, ADirectAnswerMayBeARefusal) {
  EXPECT_EQ(direct("NATS/1.0 404 Message Not Found\r\n\r\n").error().code(), Errc::not_found);
  EXPECT_EQ(direct("NATS/1.0 404 Message Not Found\r\n\r\n").error().fate(), Fate::answered);
  EXPECT_EQ(direct("NATS/1.0 408 Empty Request\r\n\r\n").error().code(), Errc::invalid_argument);
  EXPECT_EQ(direct("NATS/1.0 429 Too Many Requests\r\n\r\n").error().code(), Errc::resource_exhausted);
  EXPECT_EQ(direct("NATS/1.0 503\r\nNats-Subject: $JS.API.DIRECT.GET.NO\r\n\r\n").error().code(), Errc::unreachable);
  EXPECT_EQ(direct("NATS/1.0 500 disk\r\n\r\n").error().code(), Errc::system);
  for (const std::string_view block :
       {"", "NATS/1.0\r\n\r\n", "NATS/1.0\r\nNats-Stream: S\r\nNats-Subject: s\r\nNats-Sequence: 1\r\n\r\n",
        "NATS/1.0\r\nNats-Stream: S\r\nNats-Subject: s\r\nNats-Sequence: x\r\nNats-Time-Stamp: "
        "2026-11-29T11:05:18Z\r\n\r\n"}) {
    EXPECT_EQ(direct(block).error().code(), Errc::protocol_error) << block;
  }
}

#if __has_include(<nlohmann/json.hpp>)  // else no answer can be read

TEST(JetStreamMessage, AStoredMessageComesInBase64) {
  const auto message =
      read_message(R"({"type":"io.nats.jetstream.api.v1.stream_msg_get_response","message":{"subject":"s.a","seq":1,)"
                   R"("hdrs":"TkFUUy8xLjANCk5hdHMtTXNnLUlkOiBpMQ0KT3duOiB4DQoNCg==","data":"b25l",)"
                   R"("time":"2026-11-29T11:05:18.76702734Z"}})");
  ASSERT_TRUE(message) << message.error().message();
  EXPECT_EQ(message->value.subject, "s.a");
  EXPECT_EQ(message->value.sequence, 1U);
  EXPECT_EQ(message->value.headers().find("Own"), "x");
  EXPECT_EQ(as_text(message->value.body()), "one");
  const auto empty = read_message(R"({"message":{"subject":"s","seq":2,"time":"2026-11-29T11:05:18Z"}})");
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->value.headers().empty() && empty->value.body().empty());
  const auto none =
      read_message(R"({"type":"io.nats.jetstream.api.v1.stream_msg_get_response","error":{"code":404,"err_code":10037,)"
                   R"("description":"no message found"}})");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->failure.number, kNoMessageFound);
  EXPECT_EQ(none->failure.error().code(), Errc::not_found);
}

TEST(JetStreamMessage, AStoredMessageMayBeLong) {
  const std::string large =
      R"({"message":{"subject":"s","seq":1,"data":")" + std::string(std::size_t{4} << 20, 'A') + "\"}}";
  const auto message = read_message(large);
  ASSERT_TRUE(message) << message.error().message();
  EXPECT_EQ(message->value.body().size(), std::size_t{3} << 20);
}

TEST(JetStreamMessage, OtherTextsAreNoMessage) {
  for (const std::string_view json :
       {"{}", R"({"message":{}})", R"({"message":{"subject":"s"}})", R"({"message":{"seq":1}})",
        R"({"message":{"subject":"s","seq":1,"data":"b25"}})", R"({"message":{"subject":"s","seq":1,"hdrs":"?"}})",
        R"({"message":{"subject":"s","seq":1,"data":7}})"}) {
    EXPECT_EQ(read_message(json).error().code(), Errc::protocol_error) << json;
  }
}

#endif

}  // namespace
}  // namespace weft::nats::jetstream
