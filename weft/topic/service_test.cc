// SPDX-License-Identifier: MIT
// Handles in the loop of another library: descriptors of readers, consumers, watches and services, and services without
// threads.
#include <array>
#include <string>
#include <thread>

#include "weft/topic/test_fleets.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class EventLoop : public testing::Test {
 protected:
  // Waits until the descriptor is readable, at most until soon().
  [[nodiscard]] static bool is_readable(int fd, Duration wait = 20s) {
    std::array<sys::PollFd, 1> fds{{{fd, sys::Interest::readable}}};
    const auto ready = sys::poll_fds(fds, wait);
    return ready && *ready == 1;
  }
  // Takes the next message as a program with a loop does: it waits only for the descriptor.
  template <typename Source>
  [[nodiscard]] static auto next_by_descriptor(Source& source) -> decltype(source.try_next()) {
    const int fd = *source.descriptor();
    auto next = source.try_next();
    while (!next && next.error() == Errc::would_block && is_readable(fd)) {
      next = source.try_next();
    }
    return next;
  }
  // Every message was taken: the descriptor is not readable after a try_next() that finds nothing.
  template <typename Source>
  static void expect_quiet(Source& source) {
    const auto none = source.try_next();
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error(), Errc::would_block);
  }

  Context context_;
};

TEST_F(EventLoop, AReaderAConsumerAndAWatchAnnounceTheirMessages) {
  TestFleet fleet("local");
  Topics topics = fleet.open(context_);
  auto stream = topics.stream({.name = "s", .topics = {"s.>"}});
  if (!stream && stream.error() == Errc::not_supported) {
    GTEST_SKIP() << "this build has no SQLite";
  }
  ASSERT_TRUE(stream) << stream.error().message();
  KeyValue bucket = *topics.key_value("b");
  Reader reader = *stream->read();
  Consumer consumer = *stream->consumer("c");
  Consumer counted = *stream->consumer("counted", {.tries_max = 3});
  KeyValueWatch watch = *bucket.watch();
  for (int i = 0; i < 300; ++i) {  // more than the window of a channel: the credits leave, too
    const std::string text = std::to_string(i);
    ASSERT_TRUE(stream->publish("s.a", text));
    ASSERT_TRUE(bucket.put("key", text));
    EXPECT_EQ(next_by_descriptor(reader)->text(), text);
    EXPECT_EQ(next_by_descriptor(watch)->text(), text);
    for (Consumer* const each : {&consumer, &counted}) {
      auto delivery = next_by_descriptor(*each);
      ASSERT_TRUE(delivery) << delivery.error().message();
      EXPECT_EQ(delivery->text(), text);
      delivery->ack();
    }
  }
  expect_quiet(reader);
  expect_quiet(watch);
  expect_quiet(consumer);
  EXPECT_EQ(*reader.descriptor(), *reader.descriptor());
  topics.close();
  EXPECT_TRUE(is_readable(*reader.descriptor())) << "the end is news";
  EXPECT_EQ(reader.try_next().error(), Errc::closed);
  EXPECT_EQ(watch.try_next().error(), Errc::closed);
}

TEST_F(EventLoop, ADescriptorIsNotReadableWhileNothingIsNew) {
  TestFleet fleet("local");
  Topics topics = fleet.open(context_);
  auto stream = topics.stream({.name = "s", .topics = {"s.>"}});
  if (!stream && stream.error() == Errc::not_supported) {
    GTEST_SKIP() << "this build has no SQLite";
  }
  ASSERT_TRUE(stream) << stream.error().message();
  ASSERT_TRUE(stream->publish("s.a", "x"));
  Reader reader = *stream->read();
  EXPECT_EQ(next_by_descriptor(reader)->text(), "x");
  while (!reader.live()) {  // the hub reports the end of the stored messages once
    ASSERT_TRUE(is_readable(*reader.descriptor()));
    expect_quiet(reader);
  }
  expect_quiet(reader);
  EXPECT_FALSE(is_readable(*reader.descriptor(), 0s));
}

TEST_F(EventLoop, AQueueOfRequestsHasNoThreads) {
  TestFleet fleet("inproc");
  Topics asker = fleet.open(context_);
  Topics server = fleet.open(context_);
  auto queue = server.serve("svc.add", {.group = "g"});
  ASSERT_TRUE(queue) << queue.error().message();
  ASSERT_TRUE(asker.sync(soon()));
  Result<TopicMessage> reply = Errc::would_block;
  std::thread asking([&] { reply = asker.request("svc.add", "1+1", soon()); });
  auto request = next_by_descriptor(*queue);
  ASSERT_TRUE(request) << request.error().message();
  EXPECT_EQ(request->topic(), "svc.add");
  EXPECT_EQ(request->text(), "1+1");
  Headers headers;
  ASSERT_TRUE(headers.add("By", "queue"));
  EXPECT_TRUE(request->reply("2", headers));
  asking.join();
  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(reply->text(), "2");
  EXPECT_EQ(reply->header("By"), "queue");
  EXPECT_EQ(request->reply("3").error(), Errc::invalid_state);
  EXPECT_EQ(request->refuse(Errc::conflict).error(), Errc::invalid_state);
}

TEST_F(EventLoop, ARequestFailsByItsRefusalItsEndOrTheEndOfItsQueue) {
  TestFleet fleet("inproc");
  Topics topics = fleet.open(context_);
  auto queue = topics.serve("svc.a");
  ASSERT_TRUE(queue);
  const auto ask = [&](auto&& treat) {
    Result<TopicMessage> reply = Errc::would_block;
    std::thread asking([&] { reply = topics.request("svc.a", "x", soon()); });
    treat(*queue->next_until(soon()));
    asking.join();
    return reply.error();
  };
  EXPECT_EQ(ask([](TakenRequest request) { EXPECT_TRUE(request.refuse(Errc::not_permitted)); }), Errc::not_permitted);
  EXPECT_EQ(ask([](TakenRequest request) { const TakenRequest dropped = std::move(request); }), Errc::job_threw);
  EXPECT_EQ(ask([&](TakenRequest request) {
              std::thread second([&] { EXPECT_EQ(topics.request("svc.a", "y", soon()).error(), Errc::unreachable); });
              queue->close();
              second.join();
              EXPECT_EQ(queue->try_next().error(), Errc::closed);
              EXPECT_TRUE(request.refuse(Errc::conflict)) << "a taken request may still be answered";
            }),
            Errc::conflict);
  EXPECT_EQ(topics.serve("svc.a", {.queue_max = 0}).error(), Errc::invalid_argument);
  EXPECT_EQ(topics.serve("svc.a", {.queue_max = (std::size_t{1} << 20) + 1}).error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace weft::topic
