// SPDX-License-Identifier: MIT
// Waits for room beside a stream that takes no more, and in a turn that sends much. Frames with keys.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/random.h"
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

// Takes a little more than half of the budget, or `most` bytes, and then nothing.
class RationedStream final : public net::ByteStream {
 public:
  static constexpr std::size_t kMost = kRationedBudget / 2 + 16 * 1024;
  explicit RationedStream(std::unique_ptr<net::ByteStream> inner, std::size_t most = kMost) noexcept
      : inner_(std::move(inner)), most_(most) {}
  [[nodiscard]] int fd() const override { return inner_->fd(); }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override { return inner_->read(into); }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override {
    std::vector<Bytes> some;
    for (std::size_t left = most_ - taken_; left != 0 && !from.empty(); from = from.subspan(1)) {
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
  std::unique_ptr<net::ByteStream> inner_;
  const std::size_t most_;
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
    if (!written) {
      break;
    }
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
  options.wrap = [](std::unique_ptr<net::ByteStream> stream) -> Result<std::unique_ptr<net::ByteStream>> {
    return std::unique_ptr<net::ByteStream>(std::make_unique<RationedStream>(std::move(stream)));
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

// --- frames with keys ---

struct ModelFrame {
  std::uint32_t id;
  std::string body;
  std::optional<std::uint64_t> key;
};

// All frames of one turn are queued until its end: the client gets exactly those of the model.
class FramesOfOneTurn : public RationedWrites, public testing::WithParamInterface<std::uint64_t> {
 protected:
  // Sends random frames, and does the same in the model.
  void send_all(HeaderSession& session) {
    Random random(GetParam());
    const std::uint64_t keys = 1 + random.below(20);
    for (std::uint32_t id = 2; id < 300; ++id) {
      const std::size_t size = random.below(8) == 0 ? 2000 + random.below(6000) : random.below(200);
      ModelFrame frame{id, std::string(size, static_cast<char>('a' + id % 26)), std::nullopt};
      if (random.below(4) == 0) {
        EXPECT_TRUE(session.send({id, 0}, as_bytes(frame.body)));
        model_.push_back(std::move(frame));
        continue;
      }
      frame.key = random.below(keys);
      send(session, frame, random.below(2) == 0);
      const auto older =
          std::find_if(model_.begin(), model_.end(), [&](const auto& of) { return of.key == frame.key; });
      if (older != model_.end()) {
        *older = std::move(frame);
        ++replaced_;
      } else {
        model_.push_back(std::move(frame));
      }
    }
  }
  static void send(HeaderSession& session, const ModelFrame& frame, bool shared) {
    const FrameKey key{*frame.key};
    if (shared) {
      const auto encoded = SharedFrame::encode(HeaderCodec(), {frame.id, 0}, as_bytes(frame.body), key);
      EXPECT_TRUE(session.send_shared(*encoded));
    } else {
      EXPECT_TRUE(session.send_state({frame.id, 0}, as_bytes(frame.body), key));
    }
  }

  std::vector<ModelFrame> model_;
  std::uint64_t replaced_ = 0;
};

TEST_P(FramesOfOneTurn, LeaveInTheOrderInWhichTheirKeysCame) {
  Signal sent;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    send_all(session);
    session.close();
    sent.give();
  };
  ListenerOptions options;
  options.limits.write_budget = std::size_t{64} * 1024 * 1024;
  Client client(listen(options));
  client.send(1, "");
  ASSERT_TRUE(sent.take());
  std::string expected;
  for (const ModelFrame& frame : model_) {
    expected += test::frame_of(frame.id, frame.body);
  }
  EXPECT_TRUE(client.read_to_end() == expected);
  EXPECT_GT(replaced_, 0u);
  EXPECT_EQ(server_->counters().conflated, replaced_);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FramesOfOneTurn, testing::Range<std::uint64_t>(1, 11));

// Beside a stream that takes nothing.
class FullQueue : public RationedWrites, public testing::WithParamInterface<SlowConsumer> {
 protected:
  // Leaves less than 8,012 bytes of room, and then sends more than that.
  static void fill(HeaderSession& session) {
    const std::string body(8000, 'e');
    while (session.queued() + 8012 < kRationedBudget) {
      EXPECT_TRUE(session.send({1, 0}, as_bytes(body)));
    }
    EXPECT_TRUE(session.send({1, 0}, as_bytes(std::string(15'000, 'l'))));
    EXPECT_FALSE(session.has_room());
  }
  static Result<void> send(HeaderSession& session, std::size_t size) {
    return session.send_state({2, 0}, as_bytes(std::string(size, 's')), FrameKey{1});
  }
};

TEST_P(FullQueue, TakesAFrameThatIsNotLargerThanTheOlderOneWithItsKey) {
  Signal sent;
  ListenerOptions options;
  options.limits.write_budget = kRationedBudget;
  options.limits.slow_consumer = GetParam();
  options.wrap = [](std::unique_ptr<net::ByteStream> stream) -> Result<std::unique_ptr<net::ByteStream>> {
    return std::unique_ptr<net::ByteStream>(std::make_unique<RationedStream>(std::move(stream), 0));
  };
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    EXPECT_TRUE(send(session, 1000));
    fill(session);
    const std::size_t full = session.queued();
    EXPECT_TRUE(send(session, 1000));
    EXPECT_EQ(session.queued(), full);
    EXPECT_TRUE(send(session, 500));
    EXPECT_EQ(session.queued(), full - 500);
    EXPECT_FALSE(session.has_room());
    const Error larger = send(session, 2000).error();
    const bool drops = GetParam() == SlowConsumer::drop_oldest || GetParam() == SlowConsumer::conflate;
    const bool ends = GetParam() == SlowConsumer::disconnect;
    EXPECT_EQ(larger, drops ? Errc::ok : ends ? Errc::closed : Errc::resource_exhausted);
    EXPECT_EQ(session.is_open(), !ends);
    EXPECT_EQ(session.queued() < full - 500, drops);
    session.abort();
    sent.give();
  };
  Client client(listen(options));
  client.send(1, "");
  ASSERT_TRUE(sent.take());
  (void)client.read_to_end();
  const bool refuses = GetParam() == SlowConsumer::drop_newest || GetParam() == SlowConsumer::conflate_state;
  EXPECT_EQ(server_->counters().dropped_newest, refuses ? 1u : 0u);
  EXPECT_GE(server_->counters().conflated, 2u);
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, FullQueue,
                         testing::Values(SlowConsumer::disconnect, SlowConsumer::drop_newest, SlowConsumer::drop_oldest,
                                         SlowConsumer::conflate, SlowConsumer::conflate_state));

}  // namespace
}  // namespace weft::serve
