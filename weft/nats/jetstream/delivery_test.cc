// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/delivery.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::nats::jetstream {
namespace {

PullStatus status_of(std::string_view block) { return read_pull_status(HeadersView(as_bytes(block))); }

TEST(JetStreamDelivery, TheReplySubjectHasTheCounts) {
  const auto read = read_delivery("$JS.ACK.S.c.2.17.19.1795950318767027340.5");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->domain, "");
  EXPECT_EQ(read->stream, "S");
  EXPECT_EQ(read->consumer, "c");
  EXPECT_EQ(read->deliveries, 2U);
  EXPECT_EQ(read->stream_sequence, 17U);
  EXPECT_EQ(read->consumer_sequence, 19U);
  EXPECT_EQ(read->time, WallTime(Duration(1'795'950'318'767'027'340)));
  EXPECT_EQ(read->pending, 5U);
}

TEST(JetStreamDelivery, TheLongFormHasADomain) {
  for (const std::string_view text : {"$JS.ACK.hub.ABCdef12.S.c.2.17.19.1795950318767027340.5",
                                      "$JS.ACK.hub.ABCdef12.S.c.2.17.19.1795950318767027340.5.r4nd0m",
                                      "$JS.ACK.hub.ABCdef12.S.c.2.17.19.1795950318767027340.5.r4nd0m.later"}) {
    const auto read = read_delivery(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->domain, "hub");
    EXPECT_EQ(read->stream, "S");
    EXPECT_EQ(read->consumer, "c");
    EXPECT_EQ(read->deliveries, 2U);
    EXPECT_EQ(read->stream_sequence, 17U);
    EXPECT_EQ(read->consumer_sequence, 19U);
    EXPECT_EQ(read->pending, 5U);
  }
  EXPECT_EQ(read_delivery("$JS.ACK._.ABCdef12.S.c.1.1.1.1.0")->domain, "");
}

TEST(JetStreamDelivery, OtherSubjectsAreNoDelivery) {
  for (const std::string_view text :
       {"", "_INBOX.a.1", "$JS.ACK.", "$JS.ACK.S.c.1.1.1.1", "$JS.ACK.S.c.1.1.1.1.0.x", "$JS.ACK.S.c.1.1.1.1.",
        "$JS.ACK..c.1.1.1.1.0", "$JS.ACK.S..1.1.1.1.0", "$JS.ACK.S.c.-1.1.1.1.0", "$JS.ACK.S.c.1.x.1.1.0",
        "$JS.ACK.S.c.1.1.18446744073709551616.1.0", "$JS.ACK.S.c.1.1.1.9223372036854775808.0", "$JS.ACK.S.c.1.1.1.1. 0",
        "$JS.API.S.c.1.1.1.1.0"}) {
    EXPECT_EQ(read_delivery(text).error().code(), Errc::protocol_error) << text;
  }
}

TEST(JetStreamDelivery, AStatusSaysHowARequestWentOn) {
  using Kind = PullStatus::Kind;
  struct Case {
    std::string_view block;
    Kind kind;
    bool ends;
  };
  for (const Case& each : {
           Case{"NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n", Kind::message, false},
           Case{"", Kind::message, false},
           Case{"NATS/1.0 100 Idle Heartbeat\r\n\r\n", Kind::heartbeat, false},
           Case{"NATS/1.0 100 FlowControl Request\r\n\r\n", Kind::flow_control, false},
           Case{"NATS/1.0 404 No Messages\r\n\r\n", Kind::no_messages, true},
           Case{"NATS/1.0 408 Request Timeout\r\n\r\n", Kind::expired, true},
           Case{"NATS/1.0 408 Interest Expired\r\n\r\n", Kind::expired, true},
           Case{"NATS/1.0 409 Batch Completed\r\n\r\n", Kind::completed, true},
           Case{"NATS/1.0 409 Message Size Exceeds MaxBytes\r\n\r\n", Kind::too_large, true},
           Case{"NATS/1.0 409 Exceeded MaxWaiting\r\n\r\n", Kind::limit_exceeded, true},
           Case{"NATS/1.0 409 Exceeded MaxRequestBatch of 3\r\n\r\n", Kind::limit_exceeded, true},
           Case{"NATS/1.0 409 Leadership Change\r\n\r\n", Kind::leadership_change, true},
           Case{"NATS/1.0 409 Server Shutdown\r\n\r\n", Kind::leadership_change, true},
           Case{"NATS/1.0 409 Consumer Deleted\r\n\r\n", Kind::consumer_deleted, true},
           Case{"NATS/1.0 409 Consumer is push based\r\n\r\n", Kind::refused, true},
           Case{"NATS/1.0 423 Nats-Wrong-Pin-Id\r\n\r\n", Kind::wrong_pin, true},
           Case{"NATS/1.0 503\r\nNats-Subject: $JS.API.CONSUMER.MSG.NEXT.S.none\r\n\r\n", Kind::no_responders, true},
           Case{"NATS/1.0 400 Bad Request - heartbeat value too large\r\n\r\n", Kind::refused, true},
           Case{"NATS/1.0 412 Required Api Level\r\n\r\n", Kind::refused, true},
       }) {
    const PullStatus status = status_of(each.block);
    EXPECT_EQ(status.kind, each.kind) << each.block;
    EXPECT_EQ(status.ends(), each.ends) << each.block;
  }
}

TEST(JetStreamDelivery, AStatusHasItsCounts) {
  const PullStatus expired =
      status_of("NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 3\r\nNats-Pending-Bytes: 4096\r\n\r\n");
  EXPECT_EQ(expired.code, 408);
  EXPECT_EQ(expired.pending_messages, 3U);
  EXPECT_EQ(expired.pending_bytes, 4096U);
  const PullStatus idle =
      status_of("NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 4\r\nNats-Last-Stream: 5\r\n\r\n");
  EXPECT_EQ(idle.last_consumer_sequence, 4U);
  EXPECT_EQ(idle.last_stream_sequence, 5U);
  EXPECT_EQ(status_of("NATS/1.0 408 T\r\nNats-Pending-Messages: -3\r\n\r\n").pending_messages, 0U);
}

TEST(JetStreamDelivery, TheWordsThatGoBack) {
  std::string out;
  append_nak(std::chrono::seconds(2), out);
  EXPECT_EQ(out, "-NAK {\"delay\":2000000000}");
  out.clear();
  append_nak(Duration(-1), out);
  EXPECT_EQ(out, kNak);
  out.clear();
  append_terminate("no such\r\nuser", out);
  EXPECT_EQ(out, "+TERM no such  user");
  out.clear();
  append_terminate("", out);
  EXPECT_EQ(out, kTerminate);
}

}  // namespace
}  // namespace weft::nats::jetstream
