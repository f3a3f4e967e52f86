// SPDX-License-Identifier: MIT
#include "weft/rt/loop/type_name.h"

#include <gtest/gtest.h>

namespace weft::rt {
struct Named {
  struct Inner {};
};

TEST(TypeName, IsTheQualifiedNameWithoutWhatTheCompilerPutsAroundIt) {
  EXPECT_TRUE(type_name<Named>().ends_with("Named")) << type_name<Named>();
  EXPECT_TRUE(type_name<Named::Inner>().ends_with("Named::Inner")) << type_name<Named::Inner>();
  EXPECT_EQ(type_name<int>(), "int");
}

}  // namespace weft::rt
