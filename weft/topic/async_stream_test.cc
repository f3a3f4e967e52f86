// SPDX-License-Identifier: MIT
#include "weft/topic/async_stream.h"

#include <string>
#include <vector>

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

}  // namespace
}  // namespace weft::topic
