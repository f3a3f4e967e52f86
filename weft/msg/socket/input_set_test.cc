// SPDX-License-Identifier: MIT
#include "weft/msg/socket/input_set.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace weft::msg {
namespace {

struct Source : InputSource {
  [[nodiscard]] int fd() const noexcept { return event.fd(); }
  sys::EventFd event = sys::EventFd::make().value();
};

class InputSetTest : public testing::Test {
 protected:
  void add(Source& source) {
    const Result<void> added = set_.add(source, source.fd());
    ASSERT_TRUE(added) << added.error().message();
  }
  void remove(Source& source) { set_.remove(source, source.fd()); }
  // The sources that one query of the kernel names.
  std::set<const InputSource*> readable() {
    std::set<const InputSource*> found;
    const bool any = set_.poll([&](InputSource& source) { EXPECT_TRUE(found.insert(&source).second); });
    EXPECT_EQ(any, !found.empty());
    return found;
  }

  SocketShare share_{{zmtp::WireType::pull, true, false, false, false}, sync::WaitMode::eco};
  InputSet set_{share_};
};

using Sources = std::set<const InputSource*>;

TEST_F(InputSetTest, ASetWithoutSourcesIsReadyForNothing) {
  EXPECT_FALSE(set_.is_open());
  EXPECT_EQ(readable(), Sources());
  ASSERT_TRUE(set_.open());
  EXPECT_TRUE(set_.is_open());
  EXPECT_EQ(readable(), Sources());
}

TEST_F(InputSetTest, TheOnlySourceIsReadWithoutAQuery) {
  Source only;
  add(only);
  EXPECT_EQ(readable(), Sources{&only});
  remove(only);
  EXPECT_EQ(readable(), Sources());
  EXPECT_EQ(set_.size(), 0U);
}

TEST_F(InputSetTest, OfSeveralSourcesThoseWithInputAreReadable) {
  Source a;
  Source b;
  Source c;
  for (Source* source : {&a, &b, &c}) {
    add(*source);
  }
  EXPECT_EQ(readable(), Sources());
  b.event.signal();
  EXPECT_EQ(readable(), Sources{&b});
  c.event.signal();
  EXPECT_EQ(readable(), (Sources{&b, &c}));
  b.event.drain();
  EXPECT_EQ(readable(), Sources{&c});
}

TEST_F(InputSetTest, ALateEventOfARemovedSourceNamesNoOther) {
  Source stays;
  Source leaves;
  Source comes;
  add(stays);
  add(leaves);
  leaves.event.signal();
  std::array<sys::PollEvent, 4> events;
  const auto count = set_.leader_set().wait(events, Duration::zero());
  ASSERT_EQ(count, 1U);
  const auto late = std::span(events).first(1);
  const auto named = [&] {
    Sources found;
    set_.take_events(late, [&](InputSource& source) { found.insert(&source); });
    return found;
  };
  EXPECT_EQ(named(), Sources{&leaves});
  remove(leaves);
  EXPECT_EQ(named(), Sources());
  add(comes);  // in the place of the removed source
  EXPECT_EQ(static_cast<std::uint32_t>(comes.poll_tag), static_cast<std::uint32_t>(late.front().tag));
  EXPECT_EQ(named(), Sources());
}

TEST_F(InputSetTest, RemovingIsIdempotent) {
  Source a;
  Source b;
  add(a);
  add(b);
  remove(a);
  remove(a);
  EXPECT_EQ(set_.size(), 1U);
  EXPECT_EQ(a.poll_tag, 0U);
  EXPECT_EQ(readable(), Sources{&b});
}

TEST_F(InputSetTest, ADescriptorThatTheKernelRefusesIsNotInTheSet) {
  Source a;
  const Result<void> added = set_.add(a, -1);
  ASSERT_FALSE(added);
  EXPECT_EQ(a.poll_tag, 0U);
  EXPECT_FALSE(a.hooked());
  EXPECT_EQ(set_.size(), 0U);
  add(a);  // the place is free again
  EXPECT_EQ(readable(), Sources{&a});
}

TEST_F(InputSetTest, PlacesAreUsedAgain) {
  std::vector<Source> sources(9);
  for (int round = 0; round < 3; ++round) {
    for (Source& source : sources) {
      add(source);
      EXPECT_LT(static_cast<std::uint32_t>(source.poll_tag), sources.size());
    }
    EXPECT_EQ(set_.size(), sources.size());
    for (Source& source : sources) {
      remove(source);
    }
  }
}

TEST_F(InputSetTest, OneThreadLeadsWhileThereAreSources) {
  EXPECT_FALSE(set_.try_lead());
  Source a;
  add(a);
  EXPECT_TRUE(set_.try_lead());
  EXPECT_FALSE(set_.try_lead());
  set_.end_lead();
  EXPECT_TRUE(set_.try_lead());
}

TEST_F(InputSetTest, TheEventWakesTheLeaderAndNamesNoSource) {
  Source a;
  add(a);
  ASSERT_TRUE(set_.try_lead());
  std::array<sys::PollEvent, 4> events;
  EXPECT_EQ(set_.leader_set().wait(events, Duration::zero()), 0U);
  set_.leader_event().signal();
  const auto count = set_.leader_set().wait(events, Duration::zero());
  ASSERT_EQ(count, 1U);
  set_.take_events(std::span(events).first(*count), [](InputSource& /*source*/) { ADD_FAILURE(); });
}

TEST_F(InputSetTest, EachSignalledPipeIsTakenOnce) {
  std::array<PipeShare, 3> pipes;
  const auto take = [&] {
    std::multiset<const PipeShare*> taken;
    set_.take_signals([&](PipeShare& pipe) { taken.insert(&pipe); });
    return taken;
  };
  using Pipes = std::multiset<const PipeShare*>;
  EXPECT_FALSE(set_.has_signals());
  EXPECT_EQ(take(), Pipes());
  share_.signal_input(pipes[0]);
  share_.signal_input(pipes[2]);
  share_.signal_input(pipes[0]);
  EXPECT_TRUE(set_.has_signals());
  EXPECT_EQ(take(), (Pipes{&pipes[0], &pipes[2]}));
  EXPECT_FALSE(set_.has_signals());
  share_.signal_input(pipes[0]);
  EXPECT_EQ(take(), Pipes{&pipes[0]});
}

TEST_F(InputSetTest, InputThatComesWhileAPipeIsTakenSignalsAgain) {
  PipeShare pipe;
  share_.signal_input(pipe);
  set_.take_signals([&](PipeShare& taken) { share_.signal_input(taken); });
  EXPECT_TRUE(set_.has_signals());
}

}  // namespace
}  // namespace weft::msg
