// SPDX-License-Identifier: MIT
#include "weft/sync/kept_text.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::sync {
namespace {

TEST(KeptText, TheSameTextIsKeptOnce) {
  const char* const first = keep_text({"tcp://", "host", ":1"}, "");
  EXPECT_STREQ(first, "tcp://host:1");
  EXPECT_EQ(keep_text({"tcp://host:1"}, ""), first);
  EXPECT_NE(keep_peer_text({"tcp://host:1"}, ""), first);
}

TEST(KeptText, ControlCharactersAreNotKept) {
  EXPECT_STREQ(keep_peer_text({"a\x1b[2J\n\x7f\xc2\x9b", "1m"}, ""), "a?[2J????1m");
}

TEST(KeptText, ALongTextIsCutBetweenCharacters) {
  const std::string fits(kKeptTextSize - 1, 'x');
  EXPECT_EQ(keep_text({fits}, "").c_str(), fits);
  EXPECT_EQ(keep_text({fits, "more"}, "").c_str(), fits);
  const std::string before(kKeptTextSize - 3, 'y');
  EXPECT_EQ(keep_text({before, "\xea\xb0\x80"}, "").c_str(), before);
}

TEST(KeptText, AFullTableOfPeersLeavesTheProgramsOwn) {
  for (unsigned i = 0; i <= kKeptTexts; ++i) {
    (void)keep_peer_text({"flood ", std::to_string(i)}, "");
  }
  EXPECT_STREQ(keep_peer_text({"one more"}, "the peer refused"), "the peer refused");
  EXPECT_STREQ(keep_text({"one more"}, ""), "one more");
}

}  // namespace
}  // namespace weft::sync
