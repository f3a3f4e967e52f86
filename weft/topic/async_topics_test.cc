// SPDX-License-Identifier: MIT
#include "weft/topic/async_topics.h"

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/exec/future.h"
#include "weft/serve/frame/length_codec.h"
#include "weft/topic/test_fleets.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class AsyncFleets : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (fleet_.missing() != nullptr) {
      GTEST_SKIP() << fleet_.missing();
    }
    rt::RuntimeOptions options;
    options.cores = 2;
    auto runtime = rt::Runtime::start(options);
    ASSERT_TRUE(runtime);
    runtime_ = *std::move(runtime);
  }
  // Runs the coroutine on a core, and waits for its end.
  void run(unsigned core, rt::Task<Result<void>> task) {
    auto future = rt::spawn(runtime_->core(core), std::move(task));
    ASSERT_TRUE(future);
    const Result<void> result = future->get();
    EXPECT_TRUE(result) << result.error().message();
  }
  rt::Future<void> start(unsigned core, rt::Task<Result<void>> task) {
    return *rt::spawn(runtime_->core(core), std::move(task));
  }

  TestFleet fleet_{GetParam()};
  Context context_;
  Context second_;
  std::unique_ptr<rt::Runtime> runtime_;
};
WEFT_ON_FLEETS(AsyncFleets, kFleets);

constexpr int kMessages = 2000;

rt::Task<Result<void>> count_up(rt::Core* core, Context* context, TopicsOptions options) {
  Result<AsyncTopics> topics = co_await AsyncTopics::open(*core, *context, options);
  if (!topics) {
    co_return topics.error();
  }
  Result<AsyncSubscription> s = topics->subscribe({"a.*"});
  for (int i = 0; i < kMessages; ++i) {
    const Result<TopicMessage> m = co_await s->next();
    if (!m) {
      co_return m.error();
    }
    EXPECT_EQ(m->text(), std::to_string(i));
  }
  const TopicsStatistics all = topics->statistics();
  EXPECT_EQ(all.matched, all.delivered + all.dropped() + all.queued);
  co_return Result<void>();
}

// Keeps the handle until the topic "counted" has a message: messages that wait at the close of a handle have a second
// to leave.
rt::Task<Result<void>> publish_all(rt::Core* core, Context* context, TopicsOptions options) {
  Result<AsyncTopics> topics = co_await AsyncTopics::open(*core, *context, options);
  if (!topics) {
    co_return topics.error();
  }
  Result<AsyncSubscription> counted = topics->subscribe("counted");
  Result<AsyncPublisher> p = topics->publisher("a.b");
  const Result<std::size_t> ready = co_await p->wait_subscribers(1, soon());
  if (!ready) {
    co_return ready.error();
  }
  for (int i = 0; i < kMessages; ++i) {
    Result<Message> body = Message::copy_of(std::to_string(i));
    const Result<void> published = co_await p->publish_wait(*std::move(body));
    if (!published) {
      co_return published;
    }
  }
  const Result<TopicMessage> told = co_await counted->next();
  co_return told ? Result<void>() : Result<void>(told.error());
}

TEST_P(AsyncFleets, OneCorePublishesToAnother) {
  Topics seed = fleet_.open(context_);
  const TopicsOptions options = fleet_.options();
  Context& other = GetParam() == "inproc" ? context_ : second_;
  auto counted = start(0, count_up(&runtime_->core(0), &context_, options));
  auto published = start(1, publish_all(&runtime_->core(1), &other, options));
  const Result<void> result = counted.get();
  EXPECT_TRUE(result) << result.error().message();
  Publisher end = *seed.publisher("counted");
  ASSERT_TRUE(end.wait_subscribers(1, soon()));
  ASSERT_TRUE(end.publish("now"));
  const Result<void> all = published.get();
  EXPECT_TRUE(all) << all.error().message();
}

rt::Task<Result<Message>> echo_later(TopicMessage request) {
  (void)co_await rt::yield();
  co_return Message::copy_of("re:" + std::string(request.text()));
}

rt::Task<Result<void>> serve_until(rt::Core* core, Context* context, TopicsOptions options, std::string last) {
  Result<AsyncTopics> topics = co_await AsyncTopics::open(*core, *context, options);
  if (!topics) {
    co_return topics.error();
  }
  Result<Ongoing> service = topics->serve("svc", {.at_a_time = 8}, echo_later);
  Result<AsyncSubscription> end = topics->subscribe(last);
  const Result<TopicMessage> told = co_await end->next();
  co_return told ? Result<void>() : Result<void>(told.error());
}

TEST_P(AsyncFleets, ACoroutineServesABlockingAsker) {
  Topics seed = fleet_.open(context_);
  auto served = start(0, serve_until(&runtime_->core(0), &second_, fleet_.options(), "end"));
  if (GetParam() == "inproc") {
    served = start(0, serve_until(&runtime_->core(0), &context_, fleet_.options(), "end"));
  }
  Publisher end = *seed.publisher("end");
  ASSERT_TRUE(end.wait_subscribers(1, soon()));
  ASSERT_TRUE(seed.sync(soon()));
  for (int i = 0; i < 100; ++i) {
    const auto reply = seed.request("svc", std::to_string(i), soon());
    ASSERT_TRUE(reply) << reply.error().message();
    EXPECT_EQ(reply->text(), "re:" + std::to_string(i));
  }
  ASSERT_TRUE(end.publish("now"));
  EXPECT_TRUE(served.get());
}

rt::Task<Result<void>> watch_another(rt::Core* core, Context* context, TopicsOptions options,
                                     std::promise<void>* seen) {
  Result<AsyncTopics> topics = co_await AsyncTopics::open(*core, *context, options);
  if (!topics) {
    co_return topics.error();
  }
  const Result<std::vector<NodeInfo>> one = co_await topics->watch_nodes({}, soon());
  seen->set_value();
  if (!one) {
    co_return one.error();
  }
  EXPECT_EQ(one->size(), 1u);
  EXPECT_EQ(one->front().node, "other");
  const Result<std::vector<NodeInfo>> none = co_await topics->watch_nodes(*one, soon());
  if (!none) {
    co_return none.error();
  }
  EXPECT_TRUE(none->empty());
  const Result<std::vector<NodeInfo>> same = co_await topics->watch_nodes({}, sys::now() + 10ms);
  EXPECT_EQ(same.error(), Errc::timed_out);
  co_return Result<void>();
}

// Takes three requests before it answers the first one.
rt::Task<Result<void>> answer_from_a_queue(rt::Core* core, Context* context, TopicsOptions options,
                                           std::promise<CounterSource>* counters) {
  Result<AsyncTopics> topics = co_await AsyncTopics::open(*core, *context, options);
  if (!topics) {
    counters->set_value({});
    co_return topics.error();
  }
  counters->set_value(topics->counter_source());
  EXPECT_EQ(topics->serve("svc", {.queue_max = 0}).error(), Errc::invalid_argument);
  Result<AsyncRequestQueue> queue = topics->serve("svc");
  if (!queue) {
    co_return queue.error();
  }
  EXPECT_EQ(queue->try_next().error(), Errc::would_block);
  std::vector<TakenRequest> taken;
  while (taken.size() < 3) {
    Result<TakenRequest> request = co_await queue->next();
    if (!request) {
      co_return request.error();
    }
    taken.push_back(*std::move(request));
  }
  for (TakenRequest& each : taken) {
    Headers headers;
    EXPECT_TRUE(headers.add("X", "y"));
    const std::string text(each.text());
    EXPECT_TRUE(text == "bad" ? each.refuse(Errc::conflict) : each.reply("got " + text, headers));
    EXPECT_EQ(each.reply("again").error(), Errc::invalid_state);
  }
  queue->close();
  EXPECT_EQ((co_await queue->next()).error(), Errc::closed);
  co_return Result<void>();
}

TEST_P(AsyncFleets, AQueueOfRequestsIsAnsweredWhenTheProgramLikes) {
  Topics topics = fleet_.open(context_);
  std::promise<CounterSource> counters;
  Context& mine = GetParam() == "inproc" ? context_ : second_;
  auto served = start(0, answer_from_a_queue(&runtime_->core(0), &mine, fleet_.options(), &counters));
  const CounterSource source = counters.get_future().get();
  CounterReadings readings;
  source("served", readings);
  ASSERT_EQ(readings.size(), 1u);
  EXPECT_EQ(readings[0].table, &kTopicsTable);
  std::vector<std::future<Result<TopicMessage>>> asked;
  for (const char* body : {"a", "bad", "c"}) {
    asked.push_back(std::async(std::launch::async, [&topics, body]() -> Result<TopicMessage> {
      const Instant deadline = soon();
      for (;;) {  // until the service is known
        Result<TopicMessage> reply = topics.request("svc", body, deadline);
        if (reply || reply.error() != Errc::unreachable) {
          return reply;
        }
        std::this_thread::yield();
      }
    }));
  }
  const Result<TopicMessage> first = asked[0].get();
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(first->text(), "got a");
  EXPECT_EQ(first->header("X"), "y");
  EXPECT_EQ(asked[1].get().error(), Errc::conflict);
  EXPECT_EQ(asked[2].get()->text(), "got c");
  EXPECT_TRUE(served.get());
  readings.clear();
  source("served", readings);
  EXPECT_TRUE(readings.empty()) << "the handle has gone";
}

TEST_P(AsyncFleets, WatchNodesTellsWhoComesAndWhoLeaves) {
  Topics seed = fleet_.open(context_);
  std::promise<void> seen;
  Context& watcher = GetParam() == "inproc" ? context_ : second_;
  auto watched = start(0, watch_another(&runtime_->core(0), &watcher, fleet_.options(), &seen));
  {
    TopicsOptions options = fleet_.options();
    options.node = "other";
    options.presence = 10s;
    const Topics other = fleet_.open(context_, options);
    seen.get_future().wait();
  }
  const Result<void> result = watched.get();
  EXPECT_TRUE(result) << result.error().message();
}

}  // namespace
}  // namespace weft::topic
