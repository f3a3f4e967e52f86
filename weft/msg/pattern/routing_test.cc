// SPDX-License-Identifier: MIT
// The parts that patterns are made of: FairQueue, LoadBalancer, Distributor.
#include <memory>
#include <string>
#include <vector>

#include "weft/msg/pattern/distributor.h"
#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/load_balancer.h"
#include "weft/msg/socket/test_support.h"
#include <gtest/gtest.h>

namespace weft::msg {
namespace {

using test::Owner;
using test::PipePair;

using Texts = std::vector<std::string>;

class RoutingTest : public testing::Test {
 protected:
  PipePair& pair(int mark = 0) {
    pairs_.push_back(std::make_unique<PipePair>(owner_.core(), mark));
    return *pairs_.back();
  }
  // Receives everything that a pipe holds; joins the parts of one message by '|'.
  static Texts drain(Pipe& pipe) {
    Texts texts;
    FrameView view;
    bool more = false;
    while (pipe.peek(view)) {
      if (more) {
        texts.back() += '|' + std::string(as_text(view.bytes));
      } else {
        texts.emplace_back(as_text(view.bytes));
      }
      more = view.more;
      pipe.pop();
    }
    return texts;
  }

  Owner owner_;
  std::vector<std::unique_ptr<PipePair>> pairs_;
};

class FairQueueTest : public RoutingTest {
 protected:
  std::string take() {
    Message message;
    Inbound part{&message, {}};
    const auto result = queue_.receive(part);
    return result ? std::string(message.text()) : result.error().message();
  }
  FairQueue queue_;
};

TEST_F(FairQueueTest, AHeldPartIsTheNextPart) {
  PipePair& a = pair();
  PipePair& b = pair();
  queue_.attach(a.far);
  queue_.attach(b.far);
  ASSERT_TRUE(a.send("a"));
  ASSERT_TRUE(b.send("b"));
  for (PipePair* turn : {&a, &b}) {
    FrameView view;
    ASSERT_EQ(queue_.peek(view), &turn->far);
    ASSERT_TRUE(queue_.hold());
    EXPECT_TRUE(queue_.in_message());
    EXPECT_TRUE(queue_.has_input());
    ASSERT_EQ(queue_.peek(view), &turn->far);
    EXPECT_EQ(as_text(view.bytes), turn == &a ? "a" : "b");
    queue_.pop();
    EXPECT_FALSE(queue_.in_message());
  }
  EXPECT_FALSE(queue_.has_input());
}

TEST_F(FairQueueTest, TakesFromPipesInTurn) {
  PipePair& a = pair();
  PipePair& b = pair();
  queue_.attach(a.far);
  queue_.attach(b.far);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(a.send("a" + std::to_string(i)));
    ASSERT_TRUE(b.send("b" + std::to_string(i)));
  }
  Texts taken;
  for (int i = 0; i < 6; ++i) {
    taken.push_back(take());
  }
  EXPECT_EQ(taken, (Texts{"a0", "b0", "a1", "b1", "a2", "b2"}));
  EXPECT_EQ(take(), "would block");
  EXPECT_FALSE(queue_.has_input());
}

TEST_F(FairQueueTest, SkipsPipesWithoutInput) {
  PipePair& a = pair();
  PipePair& b = pair();
  PipePair& c = pair();
  for (PipePair* each : {&a, &b, &c}) {
    queue_.attach(each->far);
  }
  ASSERT_TRUE(b.send("b0"));
  ASSERT_TRUE(b.send("b1"));
  EXPECT_EQ(take(), "b0");
  ASSERT_TRUE(c.send("c0"));
  EXPECT_EQ(take(), "c0");
  EXPECT_EQ(take(), "b1");
  ASSERT_TRUE(a.send("a0"));
  EXPECT_EQ(take(), "a0");
}

TEST_F(FairQueueTest, ThePartsOfAMessageComeWithoutAGap) {
  PipePair& a = pair();
  PipePair& b = pair();
  queue_.attach(a.far);
  queue_.attach(b.far);
  a.send_parts({"a0", "a1", "a2"});
  b.send_parts({"b0", "b1"});
  a.send_parts({"a3"});
  Texts taken;
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(queue_.in_message(), i == 1 || i == 2 || i == 4) << i;
    taken.push_back(take());
  }
  EXPECT_EQ(taken, (Texts{"a0", "a1", "a2", "b0", "b1", "a3"}));
}

TEST_F(FairQueueTest, PeekingTakesNothing) {
  PipePair& a = pair();
  queue_.attach(a.far);
  ASSERT_TRUE(a.send("a"));
  FrameView view;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(queue_.peek(view), &a.far);
    EXPECT_EQ(as_text(view.bytes), "a");
    queue_.unpeek();
    EXPECT_TRUE(queue_.has_input());
  }
  EXPECT_EQ(take(), "a");
}

TEST_F(FairQueueTest, AttachingTwiceIsOnceAndDetachingForgets) {
  PipePair& a = pair();
  PipePair& b = pair();
  queue_.attach(a.far);
  queue_.attach(a.far);
  queue_.attach(b.far);
  ASSERT_TRUE(a.send("a"));
  ASSERT_TRUE(b.send("b"));
  EXPECT_FALSE(queue_.detach(a.far));
  EXPECT_FALSE(queue_.detach(a.far));
  EXPECT_EQ(take(), "b");
  EXPECT_EQ(take(), "would block");
  queue_.attach(a.far);
  EXPECT_EQ(take(), "a");
}

TEST_F(FairQueueTest, DetachingInTheMiddleOfAMessageSaysSo) {
  PipePair& a = pair();
  PipePair& b = pair();
  queue_.attach(a.far);
  queue_.attach(b.far);
  a.send_parts({"a0", "a1"});
  b.send_parts({"b0"});
  EXPECT_EQ(take(), "a0");
  EXPECT_FALSE(queue_.detach(b.far)) << "it is not b's message";
  queue_.attach(b.far);
  EXPECT_TRUE(queue_.detach(a.far));
  EXPECT_FALSE(queue_.in_message());
  EXPECT_EQ(take(), "b0");
}

TEST_F(FairQueueTest, DetachingAnyPipeKeepsTheTurnOfTheOthers) {
  for (std::size_t gone = 0; gone < 4; ++gone) {
    FairQueue queue;
    std::vector<PipePair*> four;
    for (int i = 0; i < 4; ++i) {
      four.push_back(&pair());
      queue.attach(four.back()->far);
      for (int k = 0; k < 3; ++k) {
        ASSERT_TRUE(four.back()->send(std::to_string(i)));
      }
    }
    const auto next = [&] {
      Message message;
      Inbound part{&message, {}};
      return queue.receive(part) ? std::string(message.text()) : std::string("nothing");
    };
    EXPECT_EQ(next(), "0");
    EXPECT_EQ(next(), "1");
    queue.detach(four[gone]->far);
    std::vector<int> left(4, 3);
    left[0] = left[1] = 2;
    left[gone] = 0;
    for (int n = left[0] + left[1] + left[2] + left[3]; n > 0; --n) {
      const std::string from = next();
      ASSERT_NE(from, "nothing");
      EXPECT_GE(--left[static_cast<std::size_t>(std::stoi(from))], 0) << "from " << from << " without " << gone;
    }
    EXPECT_EQ(next(), "nothing");
  }
}

TEST_F(FairQueueTest, LargePartsMoveIntoTheMessageAndSmallTargetsTruncate) {
  PipePair& a = pair();
  queue_.attach(a.far);
  const std::string text(5000, 'l');
  ASSERT_TRUE(a.send(text));
  ASSERT_TRUE(a.send(text));
  EXPECT_TRUE(take() == text);
  std::uint8_t target[10];
  Inbound part{nullptr, target};
  ASSERT_TRUE(queue_.receive(part));
  EXPECT_EQ(part.size, 5000u);
  EXPECT_EQ(as_text(target), "llllllllll");
}

class LoadBalancerTest : public RoutingTest {
 protected:
  Result<void> send(std::string_view text, bool more = false, bool delimited = false) {
    Outbound part{as_bytes(text), nullptr, more};
    Cell delimiter{};
    delimiter.more = true;
    return balancer_.send(part, delimited ? std::span<const Cell>(&delimiter, 1) : std::span<const Cell>());
  }
  MessageDrops drops_;
  LoadBalancer balancer_{drops_};
};

TEST_F(LoadBalancerTest, GivesToPipesInTurn) {
  PipePair& a = pair();
  PipePair& b = pair();
  balancer_.attach(a.near);
  balancer_.attach(b.near);
  balancer_.attach(b.near);
  for (const std::string_view text : {"0", "1", "2", "3", "4"}) {
    ASSERT_TRUE(send(text));
  }
  EXPECT_EQ(balancer_.last(), &a.near);
  EXPECT_EQ(drain(a.far), (Texts{"0", "2", "4"}));
  EXPECT_EQ(drain(b.far), (Texts{"1", "3"}));
}

TEST_F(LoadBalancerTest, WhenAPipeLeavesNoOtherMissesItsTurnOrGetsASecond) {
  for (std::size_t leaves = 0; leaves < 4; ++leaves) {
    for (std::size_t turn = 0; turn < 4; ++turn) {
      MessageDrops drops;
      LoadBalancer balancer{drops};
      std::vector<std::unique_ptr<PipePair>> pairs;
      for (int i = 0; i < 4; ++i) {
        pairs.push_back(std::make_unique<PipePair>(owner_.core()));
        balancer.attach(pairs.back()->near);
      }
      const auto send_one = [&] {
        Outbound part{as_bytes("x"), nullptr, false};
        ASSERT_TRUE(balancer.send(part));
      };
      for (std::size_t i = 0; i < turn; ++i) {
        send_one();
      }
      balancer.detach(pairs[leaves]->near);
      balancer.detach(pairs[leaves]->near);
      const std::size_t rest = 4 - turn - (leaves >= turn ? 1 : 0);
      for (std::size_t i = 0; i < rest; ++i) {
        send_one();
      }
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(drain(pairs[i]->far).size(), i != leaves || leaves < turn ? 1U : 0U)
            << leaves << " leaves in turn " << turn << ": pipe " << i;
      }
    }
  }
}

TEST_F(LoadBalancerTest, WithoutPipesOrRoomItWouldBlock) {
  EXPECT_FALSE(balancer_.writable());
  EXPECT_EQ(send("x").error(), Errc::would_block);
  EXPECT_EQ(send("x", true).error(), Errc::would_block);
  PipePair& a = pair(1);  // room for two messages: one at each end
  balancer_.attach(a.near);
  EXPECT_TRUE(balancer_.writable());
  EXPECT_TRUE(send("1"));
  EXPECT_FALSE(balancer_.writable());
  EXPECT_EQ(send("2").error(), Errc::would_block);
  EXPECT_EQ(drain(a.far), Texts{"1"});
  EXPECT_TRUE(balancer_.writable());
}

TEST_F(LoadBalancerTest, PassesOverPipesThatAreFull) {
  PipePair& a = pair(1);
  PipePair& b = pair(10);
  balancer_.attach(a.near);
  balancer_.attach(b.near);
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(send(std::to_string(i)));
  }
  EXPECT_EQ(drain(a.far), Texts{"0"});
  EXPECT_EQ(drain(b.far), (Texts{"1", "2", "3", "4", "5"}));
}

TEST_F(LoadBalancerTest, AllPartsOfAMessageGoToOnePipeAndNoneShowsBeforeTheLast) {
  PipePair& a = pair();
  PipePair& b = pair();
  balancer_.attach(a.near);
  balancer_.attach(b.near);
  ASSERT_TRUE(send("a0", true));
  ASSERT_TRUE(send("a1", true));
  EXPECT_TRUE(drain(a.far).empty());
  ASSERT_TRUE(send("a2"));
  ASSERT_TRUE(send("b0"));
  EXPECT_EQ(drain(a.far), Texts{"a0|a1|a2"});
  EXPECT_EQ(drain(b.far), Texts{"b0"});
}

TEST_F(LoadBalancerTest, ADelimitedMessageHasAnEmptyPartInFront) {
  PipePair& a = pair();
  balancer_.attach(a.near);
  ASSERT_TRUE(send("single", false, true));
  ASSERT_TRUE(send("first", true, true));
  ASSERT_TRUE(send("second", false, false));
  EXPECT_EQ(drain(a.far), (Texts{"|single", "|first|second"}));
}

TEST_F(LoadBalancerTest, AMessageWhosePipeGoesAwayGoesNowhereAndIsCounted) {
  PipePair& a = pair();
  PipePair& b = pair();
  balancer_.attach(a.near);
  balancer_.attach(b.near);
  ASSERT_TRUE(send("a0", true));
  balancer_.detach(a.near);
  balancer_.detach(a.near);
  ASSERT_TRUE(send(std::string(1000, 'x'), true));
  ASSERT_TRUE(send("a2"));
  EXPECT_EQ(drops_.dropped_no_peer, 1u);
  ASSERT_TRUE(send("whole"));
  EXPECT_TRUE(drain(a.far).empty());
  EXPECT_EQ(drain(b.far), Texts{"whole"});
  balancer_.detach(b.near);
  EXPECT_EQ(balancer_.last(), nullptr);
}

TEST_F(LoadBalancerTest, DetachingAnyPipeKeepsTheTurnOfTheOthers) {
  for (std::size_t gone = 0; gone < 3; ++gone) {
    MessageDrops drops;
    LoadBalancer balancer{drops};
    std::vector<PipePair*> three;
    for (int i = 0; i < 3; ++i) {
      three.push_back(&pair());
      balancer.attach(three.back()->near);
    }
    const auto give = [&](std::string_view text) {
      Outbound part{as_bytes(text), nullptr, false};
      ASSERT_TRUE(balancer.send(part));
    };
    give("0");  // the second pipe is the next in turn
    balancer.detach(three[gone]->near);
    for (const std::string_view text : {"1", "2", "3", "4"}) {
      give(text);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t count = drain(three[i]->far).size();
      EXPECT_EQ(count, (i == gone ? 0u : 2u) + (i == 0 ? 1u : 0u)) << i << " without " << gone;
    }
  }
}

TEST_F(LoadBalancerTest, AMessageThatFindsNoRoomKeepsItsBuffer) {
  Message message = std::move(Message::copy_of(std::string(5000, 'm'))).value();
  Outbound part{message.bytes(), &message, false};
  EXPECT_EQ(balancer_.send(part).error(), Errc::would_block);
  EXPECT_EQ(message.size(), 5000u);
}

class DistributorTest : public RoutingTest {
 protected:
  Result<void> send(std::string_view text, bool more = false) {
    Outbound part{as_bytes(text), nullptr, more};
    return distributor_.send(part);
  }
  Distributor distributor_;
};

TEST_F(DistributorTest, EveryChosenPipeGetsTheMessage) {
  const std::string large(3000, 'l');
  PipePair& a = pair();
  PipePair& b = pair();
  PipePair& c = pair();
  distributor_.choose({&a.near, &c.near});
  ASSERT_TRUE(send("x"));
  ASSERT_TRUE(send(large));
  ASSERT_TRUE(send("y0", true));
  EXPECT_TRUE(distributor_.in_message());
  ASSERT_TRUE(send(large));
  EXPECT_FALSE(distributor_.in_message());
  const Texts expected = {"x", large, "y0|" + large};
  EXPECT_TRUE(drain(a.far) == expected);
  EXPECT_TRUE(drain(c.far) == expected);
  EXPECT_TRUE(drain(b.far).empty());
}

TEST_F(DistributorTest, ALargePayloadIsSharedByAllAndNotCopied) {
  PipePair& a = pair();
  PipePair& b = pair();
  distributor_.choose({&a.near, &b.near});
  Message message = std::move(Message::copy_of(std::string(3000, 'l'))).value();
  const std::uint8_t* data = message.bytes().data();
  Outbound part{message.bytes(), &message, false};
  ASSERT_TRUE(distributor_.send(part));
  for (PipePair* each : {&a, &b}) {
    FrameView view;
    ASSERT_TRUE(each->far.peek(view));
    EXPECT_EQ(view.bytes.data(), data);
    each->far.pop();
  }
}

TEST_F(DistributorTest, AFullPipeMissesTheMessageAndCountsIt) {
  PipePair& full = pair(1);
  PipePair& wide = pair(10);
  distributor_.choose({&full.near, &wide.near});
  ASSERT_TRUE(send("1"));
  ASSERT_TRUE(send("2"));
  ASSERT_TRUE(send("3", true));
  ASSERT_TRUE(send("3"));
  EXPECT_EQ(owner_.core().share().drops.dropped_full, 2u);
  EXPECT_EQ(drain(full.far), Texts{"1"});
  EXPECT_EQ(drain(wide.far), (Texts{"1", "2", "3|3"}));
}

TEST_F(DistributorTest, APipeThatGoesInTheMiddleOfAMessageGetsNothingOfIt) {
  PipePair& a = pair();
  PipePair& b = pair();
  distributor_.choose({&a.near, &b.near});
  ASSERT_TRUE(send("0", true));
  distributor_.detach(a.near);
  ASSERT_TRUE(send("1"));
  EXPECT_TRUE(drain(a.far).empty());
  EXPECT_EQ(drain(b.far), Texts{"0|1"});
}

}  // namespace
}  // namespace weft::msg
