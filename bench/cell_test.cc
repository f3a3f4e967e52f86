// SPDX-License-Identifier: MIT
#include "bench/cell.h"

#include <gtest/gtest.h>

namespace bench {
namespace {

TEST(Cell, IsWhatItsNameSays) {
  const Cell cell = parse_cell("pub_sub/ipc/1024/x32/hwm0/eco");
  EXPECT_EQ(cell.pattern, Pattern::pub_sub);
  EXPECT_EQ(cell.transport, "ipc");
  EXPECT_EQ(cell.size, 1024U);
  EXPECT_EQ(cell.times, 32);
  EXPECT_TRUE(cell.unlimited && cell.eco);
  EXPECT_FALSE(cell.moved || cell.curve || cell.pinned);
}

TEST(Cell, HasOnePublisherForAllSubscribersAndAPairOfSocketsPerLaneElsewhere) {
  const Cell fan_out = parse_cell("pub_sub/tcp/64/x8");
  EXPECT_EQ(fan_out.lanes(Side::leader), 8);
  EXPECT_EQ(fan_out.lanes(Side::follower), 1);
  EXPECT_EQ(fan_out.binder(), Side::follower);
  const Cell pairs = parse_cell("push_pull/tcp/64/x8");
  EXPECT_EQ(pairs.lanes(Side::leader), 8);
  EXPECT_EQ(pairs.lanes(Side::follower), 8);
  EXPECT_EQ(parse_cell("connect_storm/tcp/64/x1000").lanes(Side::follower), 1);
  const Cell service = parse_cell("service/tcp/64/x8");
  EXPECT_EQ(service.lanes(Side::leader), 1);
  EXPECT_EQ(service.measured_lanes(), 8);
}

TEST(CellDeathTest, IsRefusedWhenItsNameMeansNothing) {
  for (const char* name : {"push_pull/tcp",
                           "push/tcp/64",
                           "push_pull/udp/64",
                           "push_pull/tcp/8",
                           "push_pull/tcp/64x",
                           "push_pull/tcp/64/x65",
                           "pair/tcp/64/x2",
                           "one_thread/tcp/64/x2",
                           "pipeline/tcp/64/x2",
                           "service/tcp/64/x65",
                           "push_pull/tcp/64/rest10",
                           "round_trip/tcp/64/rest0",
                           "push_pull/tcp/64/load50",
                           "push_pull/inproc/64/curve",
                           "push_pull/ipc/64/tls",
                           "push_pull/tcp/64/tls/curve",
                           "push_pull/ipc/64/ws",
                           "push_pull/tcp/64/ws/tls",
                           "idle_memory/inproc/64/x10",
                           "push_pull/tcp/64/fast"}) {
    EXPECT_EXIT(parse_cell(name), testing::ExitedWithCode(1), "no cell") << name;
  }
}

}  // namespace
}  // namespace bench
