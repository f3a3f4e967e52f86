// SPDX-License-Identifier: MIT
// The cases call every public function of each object of topics that a program can move from.
#include "weft/topic/kept/moved_from.h"

#include <cstddef>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/base/filter.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/exec/future.h"
#include "weft/serve/server/server.h"
#include "weft/topic/async_topics.h"
#include "weft/topic/kept/test_link.h"
#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

template <typename T>
T moved_from(T object) {
  const T to = std::move(object);
  return object;  // NOLINT(bugprone-use-after-move)
}

template <typename... T>
void expect_closed(const Result<T>&... results) {
  std::size_t call = 0;
  const auto check = [&call](const Error& error) {
    ++call;
    EXPECT_EQ(error, Errc::closed) << "call " << call;
  };
  (check(results.error()), ...);
}

TEST(MovedFrom, AHandleAndItsObjectsRefuseEveryCall) {
  Context context;
  TopicsOptions options;
  options.fleet = "inproc:moved";
  Topics live = *Topics::open(context, options);
  const Bytes body = as_bytes("x");

  Publisher p = moved_from(*live.publisher("a"));
  expect_closed(p.publish("x"), p.publish_until(kNever, body), p.try_publish(body), p.wait_subscribers(1, kNever));
  EXPECT_EQ(p.topic(), "");

  Subscription s = moved_from(*live.subscribe("a"));
  expect_closed(s.next(), s.next_until(kNever), s.try_next(), s.descriptor());
  expect_closed(s.add("b"), s.add(*Filter::exact("b")), s.add(Filter::exact("b")));
  expect_closed(s.remove("b"), s.remove(*Filter::exact("b")), s.remove(Filter::exact("b")));
  EXPECT_EQ(s.missed(), 0u);
  s.close();

  Service service = moved_from(*live.serve("served", {}, [](const TopicMessage&) { return Message::copy_of("y"); }));
  expect_closed(service.status());
  service.stop();

  RequestQueue queue = *live.serve("queued");
  std::thread asks([&live] { EXPECT_EQ(live.request("queued", "x", soon()).error(), Errc::job_threw); });
  TakenRequest taken = moved_from(*queue.next_until(soon()));
  asks.join();
  EXPECT_EQ(taken.reply("y").error(), Errc::invalid_state);
  EXPECT_EQ(taken.refuse(Errc::not_found).error(), Errc::invalid_state);
  EXPECT_TRUE(taken.body().empty());
  for (const std::string_view text : {taken.topic(), taken.text(), taken.headers(), taken.header("a")}) {
    EXPECT_EQ(text, "");
  }
  RequestQueue q = moved_from(std::move(queue));
  expect_closed(q.next(), q.next_until(kNever), q.try_next(), q.descriptor(), q.status());
  q.close();

  const Owned owned = moved_from(*live.create("owned", soon()));
  EXPECT_FALSE(owned.here());

  Topics t = moved_from(std::move(live));
  const std::string_view peer = "tcp://127.0.0.1:1";
  expect_closed(t.publisher("a"), t.request("a", "x", kNever), t.serve("a", {}, {}), t.serve("a"),
                t.create("a", kNever), t.list(">"), t.sync(kNever), t.watch_nodes({}, kNever));
  expect_closed(t.subscribe({"a"}), t.subscribe("a"), t.subscribe(*Filter::exact("a")),
                t.subscribe(Filter::exact("a")));
  expect_closed(t.stream({.name = "s"}), t.key_value("b"), t.streams());
  expect_closed(t.add_peer(peer), t.remove_peer(peer), t.route("a", peer));
  EXPECT_FALSE(t.exists("a"));
  EXPECT_FALSE(t.is_local("a"));
  EXPECT_TRUE(t.nodes().empty());
  EXPECT_EQ(t.endpoint(), "");
  EXPECT_EQ(t.instance() + t.pattern_count() + t.statistics().published + t.kept_statistics().appended, 0u);
  EXPECT_TRUE(t.node() == nullptr);
  CounterReadings readings;
  t.counter_source()("t", readings);
  EXPECT_TRUE(readings.empty());
  t.close();
}

class KeptMovedFrom : public KeptTest {};

TEST_F(KeptMovedFrom, AStreamABucketAndTheirObjectsRefuseEveryCall) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_);
  Stream live = link.stream({.name = "s"});
  PendingPublish pending = moved_from(*live.publish_later("a", "x"));
  expect_closed(pending.wait(), pending.wait_until(kNever), pending.try_result(), pending.descriptor());

  Consumer consumer = *live.consumer("c");
  ASSERT_TRUE(live.publish("a", "x"));
  Delivery delivery = moved_from(*consumer.next_until(soon()));
  EXPECT_EQ(delivery.ack_confirmed().error(), Errc::invalid_state);
  delivery.working();
  delivery.retry();
  delivery.retry(Duration(1));
  delivery.reject("no");
  delivery.ack();
  EXPECT_TRUE(delivery.body().empty());
  for (const std::string_view text : {delivery.topic(), delivery.text(), delivery.headers(), delivery.id()}) {
    EXPECT_EQ(text, "");
  }
  Consumer c = moved_from(std::move(consumer));
  expect_closed(c.next(), c.next_until(kNever), c.try_next(), c.descriptor());
  c.close();

  Reader r = moved_from(*live.read());
  expect_closed(r.next(), r.next_until(kNever), r.try_next(), r.next_stored(), r.descriptor());
  EXPECT_FALSE(r.live());
  r.close();

  KeyValue bucket = *KeyValue::declare(link.link(), "b", {});
  KeyValueWatch w = moved_from(*bucket.watch());
  expect_closed(w.next(), w.next_until(kNever), w.try_next(), w.next_stored(), w.descriptor());
  EXPECT_FALSE(w.live());
  w.close();

  const KeyValueEntry seen{};
  KeyValue b = moved_from(std::move(bucket));
  expect_closed(b.put("k", "v"), b.create("k", "v"), b.update("k", "v", 1), b.update("k", "v", seen), b.erase("k"),
                b.erase("k", seen), b.value("k"), b.keys(), b.watch());
  EXPECT_EQ(b.name(), "");
  EXPECT_TRUE(b.core() == nullptr);

  Stream s = moved_from(std::move(live));
  expect_closed(s.publish("a", "x"), s.publish("a", "x", {.order = Order::strict}), s.publish_later("a", "x"),
                s.publish_all({}), s.consumer("c"), s.read(), s.message(1), s.newest("a"), s.info(), s.purge(1),
                s.purge_topic("a"), s.remove(), s.remove_consumer("c"));
  EXPECT_EQ(s.survives(), Survives::nothing);
  EXPECT_EQ(s.name(), "");
  EXPECT_TRUE(s.core() == nullptr);
}

// Tasks of objects that were moved from. None of them refers to its object.
using Refusals = std::vector<rt::Task<Result<void>>>;

template <typename T>
rt::Task<Result<void>> refusal_of(rt::Task<Result<T>> call) {
  const Result<T> result = co_await std::move(call);
  co_return result.error();
}

template <typename... T>
void add_refusals(Refusals& refusals, rt::Task<Result<T>>... calls) {
  (refusals.push_back(refusal_of(std::move(calls))), ...);
}

void expect_refusals(AsyncPublisher p, Refusals& refusals) {
  expect_closed(p.publish("x"));
  EXPECT_EQ(p.topic(), "");
  add_refusals(refusals, p.publish_wait(Message()), p.wait_subscribers(1, kNever));
}

void expect_refusals(AsyncSubscription s, Refusals& refusals) {
  expect_closed(s.try_next(), s.add("b"), s.add(*Filter::exact("b")), s.add(Filter::exact("b")));
  expect_closed(s.remove("b"), s.remove(*Filter::exact("b")), s.remove(Filter::exact("b")));
  EXPECT_EQ(s.missed(), 0u);
  s.close();
  add_refusals(refusals, s.next());
}

void expect_refusals(AsyncRequestQueue q, Refusals& refusals) {
  expect_closed(q.try_next(), q.status());
  q.close();
  add_refusals(refusals, q.next());
}

void expect_refusals(Ongoing ongoing) {
  expect_closed(ongoing.status());
  ongoing.stop();
}

void expect_refusals(SessionTopics sessions) {
  expect_closed(sessions.add("a", {}), sessions.status());
  EXPECT_EQ(sessions.remove("a", {}).error(), Errc::invalid_argument);
  sessions.remove_all({});
  EXPECT_EQ(sessions.topic_of({}), "");
  EXPECT_EQ(sessions.topics(), 0u);
  sessions.stop();
}

void expect_refusals(AsyncTopics t, serve::Server& server, Refusals& refusals) {
  const std::string_view peer = "tcp://127.0.0.1:1";
  expect_closed(t.publisher("a"), t.serve("a", {}, {}), t.serve("a"), t.forward("a", server, {}, {}),
                t.session_topics(server, {}), t.list(">"));
  expect_closed(t.subscribe({"a"}), t.subscribe("a"), t.subscribe(Filter::exact("a")));
  expect_closed(t.add_peer(peer), t.remove_peer(peer), t.route("a", peer));
  EXPECT_FALSE(t.exists("a"));
  EXPECT_FALSE(t.is_local("a"));
  EXPECT_TRUE(t.nodes().empty());
  EXPECT_EQ(t.endpoint(), "");
  EXPECT_EQ(t.instance() + t.pattern_count() + t.statistics().published + t.kept_statistics().appended, 0u);
  CounterReadings readings;
  t.counter_source()("t", readings);
  EXPECT_TRUE(readings.empty());
  t.close();
  add_refusals(refusals, t.request("a", Message(), kNever), t.create("a", kNever), t.sync(kNever),
               t.watch_nodes({}, kNever), t.stream({.name = "s"}), t.key_value("b"), t.streams());
}

void expect_refusals(AsyncPendingPublish pending, Refusals& refusals) {
  expect_closed(pending.try_result());
  add_refusals(refusals, pending.wait());
}

void expect_refusals(AsyncConsumer c, Refusals& refusals) {
  expect_closed(c.try_next(), c.descriptor());
  c.close();
  add_refusals(refusals, c.next());
}

void expect_refusals(AsyncReader r, Refusals& refusals) {
  expect_closed(r.try_next(), r.descriptor());
  EXPECT_FALSE(r.live());
  r.close();
  add_refusals(refusals, r.next(), r.next_stored());
}

void expect_refusals(AsyncStream s, Refusals& refusals) {
  EXPECT_EQ(s.survives(), Survives::nothing);
  EXPECT_EQ(s.name(), "");
  add_refusals(refusals, s.publish("a", "x"), s.publish("a", "x", {.order = Order::strict}), s.publish_later("a", "x"),
               s.publish_all({}), s.consumer("c", {}), s.read({}), s.message(1), s.newest("a"), s.info(), s.purge(1),
               s.purge_topic("a"), s.remove(), s.remove_consumer("c"));
}

void expect_refusals(AsyncKeyValueWatch w, Refusals& refusals) {
  expect_closed(w.try_next());
  EXPECT_FALSE(w.live());
  w.close();
  add_refusals(refusals, w.next(), w.next_stored());
}

void expect_refusals(AsyncKeyValue b, Refusals& refusals) {
  const KeyValueEntry seen{};
  EXPECT_EQ(b.name(), "");
  add_refusals(refusals, b.put("k", "v"), b.create("k", "v"), b.update("k", "v", 1), b.update("k", "v", seen),
               b.erase("k"), b.erase("k", seen), b.value("k"), b.keys(), b.watch());
}

rt::Task<Result<void>> move_from_all(rt::Core* core, Context* context, TopicsOptions options, serve::Server* server) {
  WEFT_CO_TRY(AsyncTopics topics, co_await AsyncTopics::open(*core, *context, options));
  WEFT_CO_TRY(AsyncPublisher publisher, topics.publisher("a"));
  WEFT_CO_TRY(AsyncSubscription subscription, topics.subscribe("a"));
  WEFT_CO_TRY(AsyncRequestQueue queue, topics.serve("queued"));
  WEFT_CO_TRY(Ongoing ongoing, topics.serve("served", {}, {}));
  WEFT_CO_TRY(SessionTopics sessions, topics.session_topics(*server, {}));
  const StreamOptions declared{.name = "s"};
  WEFT_CO_TRY(AsyncStream stream, co_await topics.stream(declared));
  WEFT_CO_TRY(AsyncPendingPublish pending, co_await stream.publish_later("a", "x"));
  const ConsumerOptions shared;
  WEFT_CO_TRY(AsyncConsumer consumer, co_await stream.consumer("c", shared));
  WEFT_CO_TRY(AsyncDelivery taken, co_await consumer.next());
  const ReadOptions all;
  WEFT_CO_TRY(AsyncReader reader, co_await stream.read(all));
  WEFT_CO_TRY(AsyncKeyValue bucket, co_await topics.key_value("b"));
  WEFT_CO_TRY(AsyncKeyValueWatch watch, co_await bucket.watch());

  AsyncDelivery delivery = moved_from(std::move(taken));
  const Result<void> acknowledged = co_await delivery.ack_confirmed();
  EXPECT_EQ(acknowledged.error(), Errc::invalid_state);
  Refusals refusals;
  expect_refusals(moved_from(std::move(publisher)), refusals);
  expect_refusals(moved_from(std::move(subscription)), refusals);
  expect_refusals(moved_from(std::move(queue)), refusals);
  expect_refusals(moved_from(std::move(ongoing)));
  expect_refusals(moved_from(std::move(sessions)));
  expect_refusals(moved_from(std::move(watch)), refusals);
  expect_refusals(moved_from(std::move(bucket)), refusals);
  expect_refusals(moved_from(std::move(reader)), refusals);
  expect_refusals(moved_from(std::move(consumer)), refusals);
  expect_refusals(moved_from(std::move(pending)), refusals);
  expect_refusals(moved_from(std::move(stream)), refusals);
  expect_refusals(moved_from(std::move(topics)), *server, refusals);
  for (std::size_t i = 0; i < refusals.size(); ++i) {
    const Result<void> refusal = co_await std::move(refusals[i]);
    EXPECT_EQ(refusal.error(), Errc::closed) << "task " << i;
  }
  co_return Result<void>();
}

TEST(MovedFrom, AHandleOfALoopAndItsObjectsRefuseEveryCall) {
  TestFleet fleet("local");
  Context context;
  rt::RuntimeOptions options;
  options.cores = 1;
  const auto runtime = rt::Runtime::start(options);
  ASSERT_TRUE(runtime);
  rt::Core& core = (*runtime)->core(0);
  const auto server = serve::Server::make(**runtime);
  ASSERT_TRUE(server);
  auto future = rt::spawn(core, move_from_all(&core, &context, fleet.options(), server->get()));
  ASSERT_TRUE(future);
  const Result<void> result = future->get();
  EXPECT_TRUE(result) << result.error().message();
}

}  // namespace
}  // namespace weft::topic
