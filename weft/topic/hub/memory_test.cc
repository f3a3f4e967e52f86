// SPDX-License-Identifier: MIT
// A store on a file system in memory.
#include <string>
#include <string_view>

#include "weft/sys/small_file.h"
#include "weft/topic/hub/test_hub.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

TEST_F(HubTest, AStoreInTheMemoryOfTheMachineSurvivesNoLossOfPowerAndSaysSo) {
  for (const bool in_memory : {false, true}) {
    hub_.reset();
    options_.store_in_memory = in_memory;
    hub_ = host();
    ASSERT_NE(hub_, nullptr);
    TestMember m = member();
    const std::string settings = write_settings(StreamSettings{});
    const OwnedOp declared = m.request(op_of(OpKind::declare, "s", "", settings));
    ASSERT_EQ(declared.op.error(), Errc::ok);
    const bool on_disk = !sys::is_in_memory(directory_) && !in_memory;
    const std::string_view expected = on_disk ? "survives=power" : "survives=process";
    EXPECT_NE(as_text(declared.op.body).find(expected), std::string_view::npos);
    EXPECT_EQ(declared.op.key, options_.store);
    EXPECT_NE(as_text(m.request(op_of(OpKind::info, "s")).op.body).find(expected), std::string_view::npos);
    EXPECT_EQ(m.declare("s", {}), Errc::ok) << "no conflict with what was asked for";
  }
}

}  // namespace
}  // namespace weft::topic
