// SPDX-License-Identifier: MIT
#include "weft/topic/kept/hub_link_slot.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "weft/rt/loop/loop.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class HubLinkSlotTest : public testing::Test {
 protected:
  Result<std::shared_ptr<HubLink>> make() {
    ++made_;
    return std::make_shared<HubLink>(*loop_, LinkSettings{.endpoint = "inproc://nobody", .id = "test"});
  }
  ~HubLinkSlotTest() override { slot_.close(); }

  std::unique_ptr<rt::Loop> loop_ = rt::Loop::make("test").value();
  std::atomic<int> made_{0};
  HubLinkSlot slot_;
};

TEST_F(HubLinkSlotTest, ThreadsThatComeAtOnceGetOneLink) {
  EXPECT_EQ(slot_.used(), nullptr);
  std::vector<std::shared_ptr<HubLink>> links(4);
  std::vector<std::thread> threads;
  for (auto& link : links) {
    threads.emplace_back([this, &link] { link = slot_.get_or_make([this] { return make(); }).value(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(made_, 1);
  for (const auto& link : links) {
    EXPECT_EQ(link, slot_.used());
  }
}

TEST_F(HubLinkSlotTest, AFailedAttemptIsRepeatedByTheNextCall) {
  const auto fail = []() -> Result<std::shared_ptr<HubLink>> { return Error(Errc::resource_exhausted, "a test"); };
  EXPECT_EQ(slot_.get_or_make(fail).error(), Errc::resource_exhausted);
  EXPECT_EQ(slot_.used(), nullptr);
  EXPECT_TRUE(slot_.get_or_make([this] { return make(); }));
}

TEST_F(HubLinkSlotTest, AClosedSlotMakesNoLinkAndItsLinkIsClosed) {
  const auto link = slot_.get_or_make([this] { return make(); }).value();
  slot_.close();
  slot_.close();
  EXPECT_EQ(slot_.get_or_make([this] { return make(); }).error(), Errc::closed);
  EXPECT_EQ(made_, 1);
  const auto call = HubLink::prepare({.kind = OpKind::info, .name = "a"}, OnLoss::resend, kNever).value();
  EXPECT_EQ(link->run(call).error(), Errc::closed);
}

}  // namespace
}  // namespace weft::topic
