// SPDX-License-Identifier: MIT
// Waits for room beside a stream that takes no more, and in a turn that sends much.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/serve/server/test_client.h"
#include "weft/serve/session/shard.h"
#include "weft/serve/session/write_room.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::HeaderSession;
using test::Signal;

constexpr std::size_t kRationedBudget = 256 * 1024;

// Takes a little more than half of the budget, and then nothing.
class RationedStream final : public net::Stream {
 public:
  explicit RationedStream(std::unique_ptr<net::Stream> inner) noexcept : inner_(std::move(inner)) {}
  [[nodiscard]] int fd() const override { return inner_->fd(); }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override { return inner_->read(into); }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override {
    std::vector<Bytes> some;
    for (std::size_t left = kMost - taken_; left != 0 && !from.empty(); from = from.subspan(1)) {
      some.push_back(from[0].first(std::min(from[0].size(), left)));
      left -= some.back().size();
    }
    if (some.empty()) {
      return {.status = sys::IoResult::Status::would_block};
    }
    const sys::IoResult result = inner_->write(some);
    taken_ += result.bytes;
    return result;
  }
  void shutdown_write() override { inner_->shutdown_write(); }
  [[nodiscard]] std::string peer_address() const override { return inner_->peer_address(); }

 private:
  static constexpr std::size_t kMost = kRationedBudget / 2 + 16 * 1024;
  std::unique_ptr<net::Stream> inner_;
  std::size_t taken_ = 0;
};

class RationedWrites : public test::ServerTest {
 protected:
  void SetUp() override { start_runtime(1); }
};

void fill_rationed(HeaderSession& session) {
  const std::string body(8000, 'f');
  while (session.has_room()) {
    EXPECT_TRUE(session.send({1, 0}, as_bytes(body)));
  }
}
rt::Task<void> fill_after_write(HeaderSession& session) {
  while (session.queued() > kRationedBudget / 2) {
    const Result<void> written = co_await session.written().wait();
    EXPECT_TRUE(written);
  }
  fill_rationed(session);
}
rt::Task<void> send_when_writable(HeaderSession& session, Signal* sent) {
  const Result<void> waited = co_await session.writable();
  EXPECT_TRUE(waited);
  EXPECT_FALSE(session.has_room()) << "others have filled the queue since";
  EXPECT_TRUE(session.send({2, 0}, as_bytes(std::string_view("taken without the policy"))));
  EXPECT_TRUE(session.is_open());
  sent->give();
}

TEST_F(RationedWrites, ARoomThatOthersHaveFilledIsARoomNevertheless) {
  Signal sent;
  ListenerOptions options;
  options.limits.write_budget = kRationedBudget;
  options.wrap = [](std::unique_ptr<net::Stream> stream) -> Result<std::unique_ptr<net::Stream>> {
    return std::unique_ptr<net::Stream>(std::make_unique<RationedStream>(std::move(stream)));
  };
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    fill_rationed(session);
    ASSERT_TRUE(session.spawn(fill_after_write(session)));
    ASSERT_TRUE(session.spawn(send_when_writable(session, &sent)));
  };
  Client client(listen(options));
  client.send(1, "");
  EXPECT_EQ(client.read(kRationedBudget / 2).size(), kRationedBudget / 2);
  ASSERT_TRUE(sent.take());
  EXPECT_EQ(server_->counters().closed_total(), 0u) << "the policy is to disconnect";
  (void)stop_now();
}

// The queue has room for all, so that the task could send all of it in one turn.
rt::Task<void> send_in_turns(HeaderSession& session, std::size_t* most, Signal* sent) {
  const std::string body(8000, 't');
  Instant turn{};
  std::size_t in_turn = 0;
  for (int i = 0; i < 1000; ++i) {
    const Result<void> done = co_await session.send_wait({1, 0}, as_bytes(body));
    EXPECT_TRUE(done);
    const Instant now = session.shard().loop().now();
    in_turn = std::exchange(turn, now) == now ? in_turn + body.size() : 0;
    *most = std::max(*most, in_turn);
  }
  sent->give();
}

TEST_F(RationedWrites, ATaskSendsABoundedPartInATurn) {
  Signal sent;
  std::size_t most = 0;
  ListenerOptions options;
  options.limits.write_budget = std::size_t{64} * 1024 * 1024;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    ASSERT_TRUE(session.spawn(send_in_turns(session, &most, &sent)));
  };
  Client client(listen(options));
  client.send(1, "");
  EXPECT_EQ(client.read(std::size_t{1000} * 8012).size(), std::size_t{1000} * 8012);
  ASSERT_TRUE(sent.take());
  EXPECT_GT(most, 0u);
  EXPECT_LE(most, WriteRoom::kTurnMax + 2 * 8012);
  EXPECT_EQ(server_->counters().closed_total(), 0u);
}

}  // namespace
}  // namespace weft::serve
