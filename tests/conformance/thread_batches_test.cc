// SPDX-License-Identifier: MIT
// A thread that waits flushes its messages on other sockets. The I/O thread, which would flush it later, is held.
#include "weft/msg/socket/thread_batches.h"

#include <chrono>
#include <functional>
#include <latch>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "weft/msg/context.h"
#include "weft/msg/poll.h"
#include "weft/msg/socket/context_core.h"
#include "weft/sys/linux/test_child.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;

// HeldIo: the I/O thread of a context does nothing until the end of this object.
class HeldIo {
 public:
  explicit HeldIo(Context& context)
      : thread_([this, &io = context.core()->io()] {
          io.run([this] {
            held_.count_down();
            release_.wait();
          });
        }) {
    held_.wait();
  }
  HeldIo(const HeldIo&) = delete;
  HeldIo& operator=(const HeldIo&) = delete;
  ~HeldIo() {
    release_.count_down();
    thread_.join();
  }

 private:
  std::latch held_{1};
  std::latch release_{1};
  std::thread thread_;
};

// A message to so many subscribers always goes into their batches: Distributor's fan-out is wide.
constexpr std::size_t kSubscribers = 16;

class ThreadBatches : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(pull_.set(option::receive_timeout, 1ms));
    ASSERT_TRUE(push_.set(option::send_timeout, 1ms));
    const auto endpoint = pub_.bind("tcp://127.0.0.1:*");
    ASSERT_TRUE(endpoint);
    for (std::size_t i = 0; i < kSubscribers; ++i) {
      Socket& sub = subs_.emplace_back(make(receiving_, SocketType::sub));
      ASSERT_TRUE(sub.set(option::receive_timeout, 20s));  // passes only in a test that fails
      ASSERT_TRUE(sub.connect(*endpoint));
      ASSERT_TRUE(sub.subscribe(""));
    }
    while (pub_.core()->subscribers().value_or(std::size_t{0}) < subs_.size()) {
      std::this_thread::yield();
    }
    held_.emplace(sending_);
  }
  void expect_received(std::string_view text) {
    for (Socket& sub : subs_) {
      const auto got = sub.recv();
      ASSERT_TRUE(got) << got.error().message();
      EXPECT_EQ(got->text(), text);
    }
  }
  void expect_flush_by(const std::function<void()>& wait) {
    ASSERT_TRUE(pub_.send("first"));
    wait();
    expect_received("first");
  }
  Socket make(Context& context, SocketType type) { return std::move(context.socket(type)).value(); }

  Context sending_, receiving_;
  Socket pub_ = make(sending_, SocketType::pub);
  Socket pull_ = make(sending_, SocketType::pull);
  Socket push_ = make(sending_, SocketType::push);
  std::vector<Socket> subs_;
  std::optional<HeldIo> held_;
};

TEST_F(ThreadBatches, AReceiveThatFindsNothingFlushesOtherSockets) {
  expect_flush_by([&] { EXPECT_EQ(pull_.try_recv().error(), Errc::would_block); });
}

TEST_F(ThreadBatches, AReceiveThatWaitsFlushesOtherSockets) {
  expect_flush_by([&] { EXPECT_EQ(pull_.recv().error(), Errc::timed_out); });
}

TEST_F(ThreadBatches, ASendThatWaitsFlushesOtherSockets) {
  expect_flush_by([&] { EXPECT_EQ(push_.send("no peer").error(), Errc::timed_out); });
}

TEST_F(ThreadBatches, APollFlushesOtherSockets) {
  expect_flush_by([&] {
    PollItem item;
    item.socket = &pull_;
    item.want_input = true;
    EXPECT_EQ(poll({&item, 1}, 0ms).value_or(std::size_t{9}), 0u);
  });
}

TEST_F(ThreadBatches, ASocketThatAnotherThreadUsedBeforeIsFlushed) {
  ASSERT_TRUE(pub_.send("first"));
  std::thread([&] {
    ASSERT_TRUE(pub_.send("second"));
    EXPECT_EQ(pull_.try_recv().error(), Errc::would_block);
  }).join();
  expect_received("first");
  expect_received("second");
}

// The system gives the next thread the memory of one that ended.
TEST_F(ThreadBatches, ASocketThatAnEndedThreadUsedIsFlushed) {
  std::thread([&] { ASSERT_TRUE(pub_.send("first")); }).join();
  std::thread([&] {
    ASSERT_TRUE(pub_.send("second"));
    EXPECT_EQ(pull_.try_recv().error(), Errc::would_block);
  }).join();
  expect_received("first");
  expect_received("second");
}

TEST_F(ThreadBatches, ASocketThatIsGoneIsLeftOut) {
  {
    Context context;
    Socket gone = make(context, SocketType::pub);
    msg::list_at_this_thread(gone.core());
  }
  expect_flush_by([&] { EXPECT_EQ(pull_.try_recv().error(), Errc::would_block); });
}

TEST_F(ThreadBatches, AForkedChildLeavesTheBatchToItsParent) {
  ASSERT_TRUE(pub_.send("first"));
  EXPECT_TRUE(sys::test::holds_in_a_child([] {
    msg::flush_this_threads_batches();
    return true;
  }));
  ASSERT_TRUE(pub_.send("second"));
  msg::flush_this_threads_batches();
  expect_received("first");
  expect_received("second");
}

}  // namespace
}  // namespace weft
