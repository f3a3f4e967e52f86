// SPDX-License-Identifier: MIT
#include "bench/workload.h"

#include <deque>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

namespace bench {
namespace {

using Message = std::vector<unsigned char>;

// Keeps sent messages until they are received.
class QueueEnd final : public End {
 public:
  void send(const void* data, std::size_t size) override {
    const auto* const bytes = static_cast<const unsigned char*>(data);
    messages.emplace_back(bytes, bytes + size);
  }
  std::size_t receive(void* target, std::size_t) override {
    const Message message = messages.front();
    messages.pop_front();
    std::copy(message.begin(), message.end(), static_cast<unsigned char*>(target));
    return message.size();
  }

  std::deque<Message> messages;
};

// Sends ten messages in repetition 2, lets `harm` change them, and receives them.
void send_and_receive(bool verify_all, const std::function<void(std::deque<Message>&)>& harm) {
  const Cell cell = parse_cell("push_pull/tcp/64");
  QueueEnd end;
  std::atomic<int> greeted{0};
  Workload sender(cell, end);
  Workload receiver(cell, end);
  const auto result = std::make_unique<LaneResult>();
  sender.greet(Side::follower, greeted);
  receiver.greet(Side::leader, greeted);
  const Task task{2, 10, 0, verify_all};
  sender.perform(Side::follower, task, *result);
  harm(end.messages);
  receiver.perform(Side::leader, task, *result);
  EXPECT_GE(result->last_ns, result->first_ns);
}

TEST(Workload, AcceptsWhatArrivesAsItWasSent) {
  send_and_receive(false, [](auto&) {});
  send_and_receive(true, [](auto&) {});
}

TEST(WorkloadDeathTest, NoticesEveryKindOfHarm) {
  const std::vector<std::function<void(std::deque<Message>&)>> harms{
      [](auto& messages) { std::swap(messages[3], messages[4]); },
      [](auto& messages) { messages[5] = messages[4]; },
      [](auto& messages) {
        messages.erase(messages.begin() + 2);
        messages.push_back(messages.back());
      },
      [](auto& messages) { messages[7].front() ^= 1; },
      [](auto& messages) { messages[9].back() ^= 1; },
      [](auto& messages) { messages[0].pop_back(); },
      [](auto& messages) { messages[1][5] ^= 2; },  // a message of another repetition
  };
  for (const auto& harm : harms) {
    EXPECT_EXIT(send_and_receive(false, harm), testing::ExitedWithCode(1), "message");
  }
}

TEST(WorkloadDeathTest, NoticesABadByteInTheMiddleWhenItVerifiesAll) {
  EXPECT_EXIT(send_and_receive(true, [](auto& messages) { messages[6][30] ^= 1; }), testing::ExitedWithCode(1),
              "damaged");
}

// An End that answers each request at once, except one, which it answers late.
class LateEnd final : public End {
 public:
  void send(const void* data, std::size_t size) override {
    const auto* const bytes = static_cast<const unsigned char*>(data);
    message_.assign(bytes, bytes + size);
    if (++sent_ == 3) {
      const std::uint64_t until = now_ns() + kLateNs;
      while (now_ns() < until) {
      }
    }
  }
  std::size_t receive(void* target, std::size_t) override {
    std::copy(message_.begin(), message_.end(), static_cast<unsigned char*>(target));
    return message_.size();
  }

  static constexpr std::uint64_t kLateNs = 20'000'000;

 private:
  Message message_;
  int sent_ = 0;
};

// One answer comes after 20 intervals. The requests that were due meanwhile have waited too, and their
// times must show that.
TEST(Workload, CountsTheTimeOfARequestFromWhenItWasDue) {
  const Cell cell = parse_cell("round_trip/tcp/64");
  LateEnd end;
  Workload requester(cell, end);
  const auto result = std::make_unique<LaneResult>();
  requester.perform(Side::follower, Task{1, 40, LateEnd::kLateNs / 20, false}, *result);
  std::uint64_t waited = 0;
  for (std::size_t i = Histogram::bucket_of(LateEnd::kLateNs / 4); i < Histogram::kBuckets; ++i) {
    waited += result->trips.count(i);
  }
  EXPECT_GE(waited, 14U);  // those due in the first three quarters of the delay; 1 if the clock started at sending
  EXPECT_EQ(result->trips.total(), 40U);
}

}  // namespace
}  // namespace bench
