// SPDX-License-Identifier: MIT
#include "weft/topic/async_stream.h"

#include <string>
#include <vector>

#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_scope.h"
#include "weft/topic/kept/test_link.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class AsyncStreamTest : public KeptTest {};

rt::Task<Result<void>> publish_and_read(std::shared_ptr<HubLink> link) {
  const StreamOptions options{.name = "s"};
  WEFT_CO_TRY(auto stream, co_await AsyncStream::declare(link, options));
  std::vector<AsyncPendingPublish> pending;
  for (int i = 0; i < 5000; ++i) {
    const std::string text = std::to_string(i);
    WEFT_CO_TRY(auto later, co_await stream.publish_later("a", text));
    pending.push_back(std::move(later));
  }
  for (std::size_t i = 0; i < pending.size(); ++i) {
    WEFT_CO_TRY(const auto published, co_await pending[i].wait());
    EXPECT_EQ(published.sequence, i + 1);
  }
  const ReadOptions from_first;
  WEFT_CO_TRY(auto reader, co_await stream.read(from_first));
  for (int i = 0;; ++i) {
    WEFT_CO_TRY(auto message, co_await reader.next_stored());
    if (!message) {
      EXPECT_EQ(i, 5000);
      break;
    }
    EXPECT_EQ(message->text(), std::to_string(i));
  }
  const ConsumerOptions all;
  WEFT_CO_TRY(auto consumer, co_await stream.consumer("c", all));
  for (int i = 0; i < 10; ++i) {
    WEFT_CO_TRY(auto delivery, co_await consumer.next());
    EXPECT_EQ(delivery.text(), std::to_string(i));
    WEFT_CO_TRY(co_await delivery.ack_confirmed());
  }
  WEFT_CO_TRY(const auto newest, co_await stream.newest("a"));
  EXPECT_EQ(newest.sequence(), 5000u);
  const auto none = co_await stream.message(0);
  EXPECT_EQ(none.error(), Errc::not_found);
  const auto wrong = co_await stream.publish("a.*", "x");
  EXPECT_EQ(wrong.error(), Errc::invalid_argument);
  co_return Result<void>();
}

TEST_F(AsyncStreamTest, CoroutinesPublishReadAndConsume) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink link(context_, endpoint_, {}, {}, true);
  auto done = rt::spawn(link.loop(), publish_and_read(link.link()));
  const auto result = done.get();
  EXPECT_TRUE(result) << result.error().message();
}

rt::Task<Result<Published>> publish_strictly(AsyncStream* stream, std::string text, Instant deadline = kNever) {
  const PublishOptions strict{.order = Order::strict, .deadline = deadline};
  const Result<Published> published = co_await stream->publish("a", text, strict);
  co_return published;
}

rt::Task<Result<void>> publish_in_a_strict_order(std::shared_ptr<HubLink> link) {
  const StreamOptions options{.name = "s"};
  WEFT_CO_TRY(auto stream, co_await AsyncStream::declare(link, options));
  std::vector<rt::Task<Result<Published>>> publishes;
  for (int i = 1; i <= 50; ++i) {
    publishes.push_back(publish_strictly(&stream, std::to_string(i)));
  }
  const std::vector<Result<Published>> published = co_await rt::when_all(std::move(publishes));
  for (std::size_t i = 0; i < published.size(); ++i) {
    EXPECT_TRUE(published[i]) << published[i].error().message();
    EXPECT_EQ(published[i]->sequence, i + 1);
  }
  WEFT_CO_TRY(auto other, co_await AsyncStream::declare(link, options));
  WEFT_CO_TRY(co_await other.publish("a", "of another publisher"));
  const auto refused = co_await publish_strictly(&stream, "52");
  EXPECT_EQ(refused.error(), Errc::conflict);
  WEFT_CO_TRY(const auto next, co_await publish_strictly(&stream, "52"));  // asks for the last sequence
  EXPECT_EQ(next.sequence, 52U);
  const PublishOptions strict{.order = Order::strict};
  const auto later = co_await stream.publish_later("a", "x", strict);
  EXPECT_EQ(later.error(), Errc::invalid_argument);
  co_return Result<void>();
}

TEST_F(AsyncStreamTest, CoroutinesPublishInAStrictOrder) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink link(context_, endpoint_, {}, {}, true);
  const auto result = rt::spawn(link.loop(), publish_in_a_strict_order(link.link())).get();
  EXPECT_TRUE(result) << result.error().message();
}

rt::Task<Result<void>> wait_for_a_turn(std::shared_ptr<HubLink> link) {
  const StreamOptions options{.name = "s"};
  WEFT_CO_TRY(auto stream, co_await AsyncStream::declare(link, options));
  std::vector<rt::Task<Result<Published>>> publishes;
  publishes.push_back(publish_strictly(&stream, "has no answer", sys::now() + 100ms));
  publishes.push_back(publish_strictly(&stream, "has no turn", sys::now() + 10ms));
  publishes.push_back(publish_strictly(&stream, "gets the turn"));
  const std::vector<Result<Published>> published = co_await rt::when_all(std::move(publishes));
  EXPECT_FALSE(published[0]);
  EXPECT_EQ(published[1].error(), Errc::timed_out);
  EXPECT_TRUE(published[2]) << published[2].error().message();
  co_return Result<void>();
}

TEST_F(AsyncStreamTest, AWaitForATurnEndsAtItsDeadline) {
  FakeHub hub(context_, endpoint_, store_,
              [](FakeHub&, const Op& op) { return op.kind != OpKind::append || as_text(op.body) != "has no answer"; });
  TestLink link(context_, endpoint_, {}, {}, true);
  const auto result = rt::spawn(link.loop(), wait_for_a_turn(link.link())).get();
  EXPECT_TRUE(result) << result.error().message();
}

}  // namespace
}  // namespace weft::topic
