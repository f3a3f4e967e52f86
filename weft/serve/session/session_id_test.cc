// SPDX-License-Identifier: MIT
#include "weft/serve/session/session_id.h"

#include <set>

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

TEST(SessionId, CarriesItsParts) {
  const SlotId slot{std::uint64_t{0xABCDE} << 32 | 0x12345};
  const SessionId id = SessionId::make(200, slot, 0xFEDC);
  EXPECT_EQ(id.core(), 200u);
  EXPECT_EQ(id.epoch(), 0xFEDC);
  EXPECT_EQ(id.slot(), slot);
  EXPECT_TRUE(id);
  EXPECT_FALSE(SessionId());
}

TEST(SessionId, NoTwoStartsHaveOneEpoch) {
  std::set<std::uint16_t> epochs;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(epochs.insert(next_epoch()).second);
  }
}

TEST(SessionId, ASlotThatIsUsedAgainHasAnotherId) {
  SlotMap<int, SessionId::kGenerationBits> table(4);
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 1000; ++i) {
    const auto slot = table.emplace(i);
    ASSERT_TRUE(slot);
    EXPECT_TRUE(ids.insert(SessionId::make(0, *slot, 1).value).second);
    table.erase(*slot);
  }
}

}  // namespace
}  // namespace weft::serve
