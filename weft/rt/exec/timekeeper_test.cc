// SPDX-License-Identifier: MIT
#include "weft/rt/exec/timekeeper.h"

#include <atomic>
#include <memory>
#include <stop_token>
#include <utility>

#include "weft/rt/loop/test_signal.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;

// Takes jobs once it has room, and runs them.
struct Sink {
  test::Signal offered;
  std::atomic<bool> has_room{true};
  std::atomic<std::size_t> dropped{0};
  detail::Drops drops;
  Timekeeper timekeeper{{[this](Job& job) -> Result<void> {
                           offered.give();
                           if (!has_room.load()) {
                             return Errc::resource_exhausted;
                           }
                           Job mine = std::move(job);
                           mine();
                           return {};
                         },
                         [this](std::size_t count) { dropped.fetch_add(count); }, drops}};
};

Result<void> schedule(Sink& sink, Duration delay, Job job, std::stop_token token = {}) {
  return sink.timekeeper.schedule(delay, std::move(token), job);
}

TEST(Timekeeper, OffersAJobAgainUntilTheSinkHasRoom) {
  Sink sink;
  sink.has_room = false;
  test::Signal ran;
  ASSERT_TRUE(schedule(sink, 1ns, [&] { ran.give(); }));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(sink.offered.take());
  }
  sink.has_room = true;
  EXPECT_TRUE(ran.take());
  EXPECT_EQ(sink.dropped.load(), 0u);
}

TEST(Timekeeper, AfterADrainTheJobsThatAreDueAreOfferedOrLeft) {
  Sink sink;
  sink.has_room = false;
  int ran = 0;
  ASSERT_TRUE(schedule(sink, 1ns, [&] { ++ran; }));
  ASSERT_TRUE(schedule(sink, 1h, [&] { ran += 100; }));
  ASSERT_TRUE(sink.offered.take());
  sink.timekeeper.close(StopMode::drain);
  EXPECT_EQ(sink.dropped.load(), 1u);
  sink.timekeeper.join();
  while (Job job = sink.timekeeper.take_due()) {
    job();
  }
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(schedule(sink, 1ns, [] {}).error(), Errc::closed);
  EXPECT_EQ(sink.dropped.load(), 1u);
}

TEST(Timekeeper, ACancelledJobFreesItsPlace) {
  Sink sink;
  std::stop_source source;
  for (std::size_t i = 0; i < Timekeeper::kJobsMax; ++i) {
    ASSERT_TRUE(schedule(sink, 1h, [] {}, i % 2 == 0 ? source.get_token() : std::stop_token()));
  }
  EXPECT_EQ(schedule(sink, 1h, [] {}).error(), Errc::resource_exhausted);
  source.request_stop();
  EXPECT_EQ(sink.dropped.load(), Timekeeper::kJobsMax / 2);
  EXPECT_TRUE(schedule(sink, 1h, [] {}));
}

}  // namespace
}  // namespace weft::rt
