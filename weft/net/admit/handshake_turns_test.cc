// SPDX-License-Identifier: MIT
#include "weft/net/admit/handshake_turns.h"

#include <gtest/gtest.h>

namespace weft::net {
namespace {

TEST(HandshakeTurns, ALongTurnHasOneStepAndTheNextTurnAnother) {
  HandshakeTurns turns;
  const Instant began = sys::now() - std::chrono::hours(1);
  const Instant next = began + std::chrono::seconds(1);
  EXPECT_FALSE(turns.defers(began));
  EXPECT_TRUE(turns.defers(began));
  EXPECT_TRUE(turns.defers(began));
  EXPECT_FALSE(turns.defers(next));
  EXPECT_TRUE(turns.defers(next));
}

TEST(HandshakeTurns, AShortTurnHasMany) {
  HandshakeTurns turns;
  const Instant begins_later = sys::now() + std::chrono::hours(1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(turns.defers(begins_later));
  }
}

}  // namespace
}  // namespace weft::net
