// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/credit.h"

#include <algorithm>
#include <deque>

#include "weft/base/random.h"
#include <gtest/gtest.h>

namespace weft::serve::rpc {
namespace {

TEST(StreamCredit, AGrantOfNothingOrBeyondTheBoundIsRefusedAndChangesNothing) {
  Credit credit;
  EXPECT_FALSE(credit.add(0));
  EXPECT_FALSE(credit.add(0xFFFFFFFF));
  EXPECT_FALSE(credit.add(static_cast<std::uint32_t>(kCreditMax)));
  EXPECT_EQ(credit.left(), kWindow);
  EXPECT_TRUE(credit.add(static_cast<std::uint32_t>(kCreditMax - kWindow)));
  EXPECT_EQ(credit.left(), kCreditMax);
  EXPECT_FALSE(credit.add(1));
}

TEST(StreamCredit, AMessageMayOverdrawACreditThatIsNotSpent) {
  Credit credit;
  Window window;
  ASSERT_TRUE(credit.may_send());
  credit.spend(10 * kWindow);
  ASSERT_TRUE(window.take(10 * kWindow));
  EXPECT_FALSE(credit.may_send());
  EXPECT_FALSE(window.take(0)) << "the next one comes without credit";
}

TEST(StreamCredit, EmptyMessagesCostToo) {
  Window window;
  std::int64_t taken = 0;
  while (window.take(0)) {
    ++taken;
  }
  EXPECT_EQ(taken, kWindow / kMessageCost);
}

// A sender that keeps to its credit is never refused, at most kWindow and one message wait, and no stream stops for
// ever: when all messages are taken, the sender may send.
TEST(StreamCredit, BothEndsAgreeWhateverTheOrderOfMessagesAndGrants) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    Credit credit;
    Window window;
    std::deque<std::size_t> on_the_way;
    std::deque<std::size_t> waiting;
    std::deque<std::uint32_t> grants;
    const std::size_t largest = std::size_t{1} << random.below(21);
    std::int64_t held = 0;
    for (int step = 0; step < 3000; ++step) {
      switch (random.below(4)) {
        case 0:
          if (credit.may_send()) {
            on_the_way.push_back(random.below(largest + 1));
            credit.spend(on_the_way.back());
          }
          break;
        case 1:
          if (!on_the_way.empty()) {
            ASSERT_TRUE(window.take(on_the_way.front()));
            held += cost_of(on_the_way.front());
            waiting.push_back(on_the_way.front());
            on_the_way.pop_front();
            ASSERT_LT(held, kWindow + cost_of(largest));
          }
          break;
        case 2:
          if (!waiting.empty()) {
            held -= cost_of(waiting.front());
            if (const std::uint32_t granted = window.consume(waiting.front()); granted != 0) {
              grants.push_back(granted);
            }
            waiting.pop_front();
          }
          break;
        default:
          if (!grants.empty()) {
            ASSERT_TRUE(credit.add(grants.front()));
            grants.pop_front();
          }
      }
      if (on_the_way.empty() && waiting.empty() && grants.empty()) {
        ASSERT_TRUE(credit.may_send());
      }
    }
  }
}

}  // namespace
}  // namespace weft::serve::rpc
