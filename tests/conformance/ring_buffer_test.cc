// SPDX-License-Identifier: MIT
#include "weft/mem/ring_buffer.h"

#include <sys/resource.h>

#include <string>

#include <gtest/gtest.h>

namespace weft::mem {
namespace {

TEST(RingBuffer, CopiesWhereTheSystemRefusesTheMapping) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  RingBuffer grown = RingBuffer::make(1, 1 << 20).value();
  EXPECT_TRUE(grown.mirrored());
  const std::string long_text(100'000, 'x');
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  auto made = RingBuffer::make(16, 16);
  const auto written = grown.write(as_bytes(long_text));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(made);
  EXPECT_FALSE(made->mirrored());
  EXPECT_TRUE(made->write(as_bytes("abc")));
  EXPECT_EQ(as_text(made->read_view()), "abc");
  EXPECT_TRUE(written);
  EXPECT_FALSE(grown.mirrored());
  EXPECT_EQ(as_text(grown.read_view()), long_text);
}

}  // namespace
}  // namespace weft::mem
