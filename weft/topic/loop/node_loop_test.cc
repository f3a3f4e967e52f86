// SPDX-License-Identifier: MIT
#include "weft/topic/loop/node_loop.h"

#include <memory>
#include <vector>

#include "weft/topic/loop/loop_timer.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

// A loop of the program that runs in the test's thread until it has nothing to do.
struct Turns {
  std::unique_ptr<rt::Loop> loop = rt::Loop::make("test").value();
  std::shared_ptr<int> owner = std::make_shared<int>();
  NodeLoop node{loop.get()};
  std::vector<unsigned> taken;

  Turns() {
    EXPECT_TRUE(node.make(owner, [this] {
      taken.push_back(node.take(NodeLoop::kRepair));
      loop->stop();
    }));
  }
  ~Turns() { node.end_turns(); }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;
  void run() { EXPECT_TRUE(loop->run(nullptr, sync::WaitMode::eco)); }
};

TEST(NodeLoop, TheRequestsOfATurnAreTakenTogether) {
  Turns turns;
  turns.node.request(NodeLoop::kScouts);
  turns.node.request(NodeLoop::kScouts);
  turns.node.request(NodeLoop::kReadOut | NodeLoop::kRepair);
  turns.run();
  EXPECT_EQ(turns.taken, (std::vector<unsigned>{NodeLoop::kScouts | NodeLoop::kReadOut | NodeLoop::kRepair}));
  EXPECT_EQ(turns.node.requested(), NodeLoop::kRepair);  // it waits for its time
  turns.node.take_back(NodeLoop::kRepair);
  EXPECT_EQ(turns.node.requested(), 0U);
}

TEST(NodeLoop, AJobRunsUntilTheHandleClosesOrIsGone) {
  Turns turns;
  int ran = 0;
  turns.node.post([&] { ++ran; });
  turns.loop->post([&] { turns.node.close(); });
  turns.node.post([&] { ++ran; });
  turns.loop->post([&] { turns.loop->stop(); });
  turns.run();
  EXPECT_EQ(ran, 1);

  Turns others;
  others.node.post([&] { ++ran; });
  others.loop->post([&] { others.owner.reset(); });
  others.node.post([&] { ++ran; });
  others.loop->post([&] { others.loop->stop(); });
  others.run();
  EXPECT_EQ(ran, 2);
}

TEST(NodeLoop, OneCloseOfManyFindsItOpen) {
  Turns turns;
  EXPECT_FALSE(turns.node.closed());
  EXPECT_TRUE(turns.node.close());
  EXPECT_FALSE(turns.node.close());
  EXPECT_TRUE(turns.node.closed());
}

// Ring: a timer that rings three times, and then ends the loop.
struct Ring {
  explicit Ring(Turns& own) : turns(own), timer(own.node, {&Ring::ring, this}, Duration(1), Duration(2)) {}
  static void ring(void* self) {
    Ring& each = *static_cast<Ring*>(self);
    EXPECT_FALSE(each.timer.runs());
    each.timer.lengthen();
    if (++each.rang == 3) {
      each.turns.loop->stop();
      return;
    }
    EXPECT_TRUE(each.timer.start());
  }
  Turns& turns;
  int rang = 0;
  LoopTimer timer;
};

TEST(LoopTimer, ATimerThatRangCanStartAgain) {
  Turns turns;
  Ring ring(turns);
  EXPECT_TRUE(ring.timer.start());
  EXPECT_TRUE(ring.timer.start());  // it runs already
  turns.run();
  EXPECT_EQ(ring.rang, 3);
}

TEST(LoopTimer, AStoppedTimerDoesNotRing) {
  Turns turns;
  Ring ring(turns);
  EXPECT_TRUE(ring.timer.start());
  EXPECT_TRUE(ring.timer.runs());
  ring.timer.stop();
  EXPECT_FALSE(ring.timer.runs());
  turns.node.request(NodeLoop::kScouts);
  turns.run();
  EXPECT_EQ(ring.rang, 0);
}

}  // namespace
}  // namespace weft::topic
