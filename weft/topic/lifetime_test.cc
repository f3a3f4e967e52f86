// SPDX-License-Identifier: MIT
// A waiting call outlives its object. AddressSanitizer reports the use of a destroyed object.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "weft/topic/kept/test_link.h"
#include "weft/topic/key_value.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

// Returns true if the thread waits in the kernel.
bool sleeps(const std::string& thread) {
  std::ifstream file("/proc/" + thread + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.substr(name_end, 3) == ") S";
}

// The error of `call`, on a thread of its own. `destroy` runs when that thread sleeps in the call, or has left it.
Error error_when_destroyed(const std::function<Error()>& call, const std::function<void()>& destroy) {
  std::string id;
  std::atomic<bool> begun{false};
  std::atomic<bool> ended{false};
  Error error;
  std::thread waits([&] {
    id = std::filesystem::read_symlink("/proc/thread-self").string();
    begun = true;
    error = call();
    ended = true;
  });
  while (!ended && (!begun || !sleeps(id))) {
    std::this_thread::yield();
  }
  destroy();
  waits.join();
  return error;
}

TEST(Destroyed, AHandleWakesTheCallsThatWaitInIt) {
  using Call = Error (*)(Topics&);
  const Call calls[] = {
      [](Topics& t) { return t.request("svc", "x", kNever).error(); },
      [](Topics& t) { return t.sync(kNever).error(); },
      [](Topics& t) { return t.watch_nodes({}, kNever).error(); },
  };
  for (const Call call : calls) {
    Context context;
    TopicsOptions options;
    options.fleet = "tcp://127.0.0.1:1";  // without a listener
    options.listen = "tcp://127.0.0.1:0";
    auto topics = std::make_unique<Topics>(*Topics::open(context, options));
    Topics& raw = *topics;
    const Error error = error_when_destroyed([&] { return call(raw); }, [&] { topics.reset(); });
    EXPECT_TRUE(error == Errc::closed || error == Errc::unreachable) << error.message();
  }
}

TEST(Destroyed, ASubscriptionAndItsHandleWakeTheCallsThatWaitInThem) {
  Context context;
  TopicsOptions options;
  options.fleet = "inproc:destroyed";
  auto topics = std::make_unique<Topics>(*Topics::open(context, options));
  auto subscription = std::make_unique<Subscription>(*topics->subscribe("a"));
  Subscription& waits = *subscription;
  EXPECT_EQ(error_when_destroyed([&] { return waits.next().error(); }, [&] { subscription.reset(); }), Errc::closed);

  Publisher publisher = *topics->publisher("a");
  EXPECT_EQ(
      error_when_destroyed([&] { return publisher.wait_subscribers(1, kNever).error(); }, [&] { topics.reset(); }),
      Errc::closed);
}

class KeptDestroyed : public KeptTest {};

TEST_F(KeptDestroyed, AConsumerAReaderAndAWatchWakeTheCallsThatWaitInThem) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_);
  Stream stream = link.stream({.name = "s"});
  auto consumer = std::make_unique<Consumer>(*stream.consumer("c"));
  Consumer& takes = *consumer;
  EXPECT_EQ(error_when_destroyed([&] { return takes.next().error(); }, [&] { consumer.reset(); }), Errc::closed);

  auto reader = std::make_unique<Reader>(*stream.read());
  Reader& reads = *reader;
  EXPECT_EQ(error_when_destroyed([&] { return reads.next().error(); }, [&] { reader.reset(); }), Errc::closed);

  KeyValue bucket = *KeyValue::declare(link.link(), "b", {});
  auto watch = std::make_unique<KeyValueWatch>(*bucket.watch());
  KeyValueWatch& watches = *watch;
  EXPECT_EQ(error_when_destroyed([&] { return watches.next().error(); }, [&] { watch.reset(); }), Errc::closed);
}

TEST_F(KeptDestroyed, AConsumerThatIsDestroyedAtADeliveryHandsItOut) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_);
  Stream stream = link.stream({.name = "s"});
  for (int i = 0; i < 50; ++i) {
    auto consumer = std::make_unique<Consumer>(*stream.consumer("c"));
    Consumer& takes = *consumer;
    std::optional<Result<Delivery>> taken;
    const auto take = [&] {
      taken.emplace(takes.next());
      return taken->error();
    };
    const Error error = error_when_destroyed(take, [&] {
      ASSERT_TRUE(stream.publish("a", "x"));
      consumer.reset();
    });
    if (*taken) {
      (*taken)->ack();  // its consumer is gone
    } else {
      EXPECT_EQ(error, Errc::closed);
    }
  }
}

TEST_F(KeptDestroyed, AStreamAndABucketLetTheCallsThatWaitInThemEnd) {
  TestLink link(context_, endpoint_);
  std::optional<FakeHub> hub(std::in_place, context_, endpoint_, store_);
  auto stream = std::make_unique<Stream>(link.stream({.name = "s"}));
  auto bucket = std::make_unique<KeyValue>(*KeyValue::declare(link.link(), "b", {}));
  auto second = std::make_unique<KeyValue>(*KeyValue::declare(link.link(), "b", {}));
  hub.reset();
  const auto answers_again = [&] { hub.emplace(context_, endpoint_, store_); };
  Stream& raw = *stream;
  EXPECT_EQ(error_when_destroyed([&] { return raw.publish("a", "x").error(); },
                                 [&] {
                                   stream.reset();
                                   answers_again();
                                 }),
            Error());
  hub.reset();
  KeyValue& puts = *bucket;
  EXPECT_EQ(error_when_destroyed([&] { return puts.put("k", "v").error(); },
                                 [&] {
                                   bucket.reset();
                                   answers_again();
                                 }),
            Error());
  hub.reset();
  KeyValue& lists = *second;
  EXPECT_EQ(error_when_destroyed([&] { return lists.keys().error(); },
                                 [&] {
                                   second.reset();
                                   answers_again();
                                 }),
            Error());
}

}  // namespace
}  // namespace weft::topic
