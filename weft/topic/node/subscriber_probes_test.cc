// SPDX-License-Identifier: MIT
#include "weft/topic/node/subscriber_probes.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "weft/sys/clock.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

constexpr std::uint64_t kPeer = 2;

// The probes of handle 1, whose messages the test keeps. The loop does not run unless a test runs it.
class SubscriberProbesTest : public testing::Test {
 protected:
  SubscriberProbesTest() {
    EXPECT_TRUE(loop_.make(owner_, [] {}));
  }
  ~SubscriberProbesTest() override {
    probes_.stop();
    loop_.end_turns();
  }

  void subscribe(const std::string& topic) {
    subscriptions_.push_back(make_intrusive<SubscriptionCore>(Full::drop_oldest, 16, 1 << 20));
    const Filter filter = Filter::exact(topic).value();
    EXPECT_TRUE(interest_.add(*subscriptions_.back(), make_intrusive<const OwnFilter>(topic, filter)).value());
  }
  // The mesh has the probe, as MeshState::handle() leaves it.
  void receive_probe(std::uint64_t id, const std::string& topic) {
    const auto minute = static_cast<std::uint64_t>(Duration(std::chrono::minutes(1)).count());
    const Control probe{.kind = Control::Kind::probe, .from = kPeer, .id = id, .number = minute, .texts = {topic}};
    mesh_.with([&](MeshState& mesh) { EXPECT_EQ(mesh.readiness().handle_probe(probe, sys::now()), Outcome::taken); });
  }
  std::uint64_t sum(std::uint64_t probe) {
    return mesh_.with([&](MeshState& mesh) { return mesh.readiness().sum(probe); });
  }
  Result<void> send(const Control& control) {
    if (refused_) {
      return Error(Errc::resource_exhausted, "a test");
    }
    sent_.push_back(control);
    if (on_send_) {
      on_send_();
    }
    return {};
  }

  std::unique_ptr<rt::Loop> programs_ = rt::Loop::make("test").value();
  std::shared_ptr<int> owner_ = std::make_shared<int>();
  NodeLoop loop_{programs_.get()};
  SharedMesh mesh_{MeshState::Self{.instance = 1}};
  InterestTable interest_;
  std::vector<IntrusivePtr<SubscriptionCore>> subscriptions_;
  std::vector<Control> sent_;
  bool refused_ = false;
  std::function<void()> on_send_;
  SubscriberProbes probes_{loop_, mesh_, interest_, [this](const Control& control) { return send(control); }};
};

TEST_F(SubscriberProbesTest, AProbeCountsTheSubscriptionsOfItsOwnHandle) {
  subscribe("t");
  const auto probe = probes_.begin("t", sys::now() + std::chrono::minutes(1));
  ASSERT_TRUE(probe);
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_.front().kind, Control::Kind::probe);
  EXPECT_EQ(sum(*probe), 1U);
  subscribe("t");
  EXPECT_TRUE(probes_.count_again().value());
  EXPECT_EQ(sum(*probe), 2U);
  EXPECT_EQ(sent_.size(), 1U) << "a peer does not get the counts of this handle's own probe";
  probes_.end(*probe);
  EXPECT_EQ(sent_.size(), 2U) << "the peers learn of the end";
  probes_.end(*probe);
  EXPECT_EQ(sent_.size(), 2U);
  EXPECT_FALSE(probes_.count_again().value());
}

TEST_F(SubscriberProbesTest, AProbeThatDoesNotGoOutDoesNotStand) {
  refused_ = true;
  EXPECT_EQ(probes_.begin("t", sys::now() + std::chrono::minutes(1)).error(), Errc::resource_exhausted);
  refused_ = false;
  EXPECT_FALSE(probes_.count_again().value());
}

TEST_F(SubscriberProbesTest, APeerGetsACountAndEachChangeOfItOnce) {
  subscribe("t");
  receive_probe(5, "t");
  ASSERT_TRUE(probes_.answer_new(kPeer, 5));
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_.back().to, kPeer);
  EXPECT_EQ(sent_.back().number, 1U);
  EXPECT_FALSE(probes_.count_again().value());
  ASSERT_TRUE(probes_.answer_all());
  EXPECT_EQ(sent_.size(), 1U);
  subscribe("t");
  subscribe("other");
  EXPECT_FALSE(probes_.count_again().value());
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_.back().number, 2U);
}

TEST_F(SubscriberProbesTest, ACountThatFoundNoMemoryIsSentByTheNextCall) {
  receive_probe(5, "t");
  ASSERT_TRUE(probes_.answer_new(kPeer, 5));
  subscribe("t");
  refused_ = true;
  EXPECT_EQ(probes_.count_again().error(), Errc::resource_exhausted);
  refused_ = false;
  EXPECT_TRUE(probes_.count_again());
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_.back().number, 1U);
}

TEST_F(SubscriberProbesTest, AWindowBoundsTheCountsOfACall) {
  for (std::uint64_t id = 1; id <= 3; ++id) {
    receive_probe(id, "t");
  }
  EXPECT_EQ(probes_.answer_some(2).value(), 0U);
  EXPECT_EQ(sent_.size(), 2U);
  EXPECT_EQ(probes_.answer_some(2).value(), 1U);
  EXPECT_EQ(sent_.size(), 3U);
}

TEST_F(SubscriberProbesTest, AProbeThatStandsIsRepeated) {
  const auto probe = probes_.begin("t", sys::now() + std::chrono::minutes(1));
  ASSERT_TRUE(probe);
  on_send_ = [&] {
    if (sent_.size() == 3) {
      programs_->stop();
    }
  };
  probes_.repeat_soon();
  EXPECT_TRUE(programs_->run(nullptr, sync::WaitMode::eco));
  ASSERT_EQ(sent_.size(), 3U);
  EXPECT_EQ(sent_[1].id, *probe);
  EXPECT_EQ(sent_[2].id, *probe);
}

}  // namespace
}  // namespace weft::topic
