// SPDX-License-Identifier: MIT
#include "weft/mem/ring_buffer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace weft::mem {
namespace {

using Make = Result<RingBuffer> (*)(std::size_t, std::size_t) noexcept;

class RingBufferTest : public testing::TestWithParam<Make> {
 protected:
  static RingBuffer make(std::size_t capacity, std::size_t capacity_max) {
    return GetParam()(capacity, capacity_max).value();
  }
  static std::string text_of(const RingBuffer& buffer) { return std::string(as_text(buffer.read_view())); }
};
INSTANTIATE_TEST_SUITE_P(Storage, RingBufferTest, testing::Values(&RingBuffer::make, &RingBuffer::make_copying),
                         [](const auto& each) { return each.index == 0 ? "Mirrored" : "Copying"; });

TEST_P(RingBufferTest, RefusesCapacitiesThatMakeNoSense) {
  EXPECT_EQ(GetParam()(0, 10).error(), Errc::invalid_argument);
  EXPECT_EQ(GetParam()(11, 10).error(), Errc::invalid_argument);
  EXPECT_EQ(GetParam()(1, std::numeric_limits<std::size_t>::max()).error(), Errc::invalid_argument);
}

TEST_P(RingBufferTest, GivesBackWhatWasWritten) {
  RingBuffer buffer = make(16, 64);
  EXPECT_TRUE(buffer.empty());
  EXPECT_GE(buffer.capacity(), 16u);
  ASSERT_TRUE(buffer.write(as_bytes("hello ")));
  const auto view = buffer.write_view(5);
  ASSERT_TRUE(view);
  ASSERT_GE(view->size(), 5u);
  copy_bytes(view->data(), as_bytes("world"));
  EXPECT_EQ(buffer.size(), 6u) << "a view is nothing until it is committed";
  EXPECT_TRUE(buffer.commit(5));
  EXPECT_EQ(text_of(buffer), "hello world");
  EXPECT_TRUE(buffer.consume(6));
  EXPECT_EQ(text_of(buffer), "world");
  EXPECT_TRUE(buffer.consume(5));
  EXPECT_TRUE(buffer.empty());
}

TEST_P(RingBufferTest, RefusesMoreThanThereIs) {
  RingBuffer buffer = make(8, 8);
  ASSERT_TRUE(buffer.write(as_bytes("1234")));
  EXPECT_EQ(buffer.consume(5).error(), Errc::invalid_argument);
  EXPECT_EQ(buffer.commit(5).error(), Errc::invalid_argument);
  EXPECT_EQ(buffer.commit(std::numeric_limits<std::size_t>::max()).error(), Errc::invalid_argument);
  EXPECT_EQ(buffer.write(as_bytes("56789")).error(), Errc::resource_exhausted);
  EXPECT_EQ(buffer.write_view(std::numeric_limits<std::size_t>::max()).error(), Errc::resource_exhausted);
  EXPECT_EQ(text_of(buffer), "1234");
  EXPECT_TRUE(buffer.write(as_bytes("5678")));
  EXPECT_EQ(text_of(buffer), "12345678");
}

TEST_P(RingBufferTest, GrowsToItsBoundAndNoFurther) {
  constexpr std::size_t kMost = 10'000;
  RingBuffer buffer = make(1, kMost);
  std::string written;
  for (char c = 'a'; buffer.write(as_bytes(std::string_view(&c, 1))); c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
    written += c;
  }
  EXPECT_EQ(written.size(), kMost);
  EXPECT_EQ(buffer.capacity(), kMost);
  EXPECT_EQ(text_of(buffer), written);
}

// The published design copies a frame that wraps; a frame larger than the first buffer ends its connection.
TEST_P(RingBufferTest, EveryFrameOfAStreamIsOnePiece) {
  RingBuffer buffer = make(4096, 64 * 1024);
  std::uint8_t next_written = 0;
  std::uint8_t next_read = 0;
  const auto write = [&](std::size_t size) {
    const auto view = buffer.write_view(size);
    ASSERT_TRUE(view);
    std::generate_n(view->data(), size, [&] { return next_written++; });
    ASSERT_TRUE(buffer.commit(size));
  };
  const auto read = [&](std::size_t size) {
    const Bytes view = buffer.read_view();
    ASSERT_GE(view.size(), size);
    ASSERT_TRUE(std::all_of(view.begin(), view.begin() + std::ptrdiff_t(size),
                            [&](std::uint8_t byte) { return byte == next_read++; }));
    ASSERT_TRUE(buffer.consume(size));
  };
  write(100);
  for (std::size_t frame = 1; frame < 6000; frame += 37) {
    write(frame);
    read(frame);
  }
  read(100);
}

TEST_P(RingBufferTest, AMovedBufferKeepsItsBytes) {
  RingBuffer first = make(16, 16);
  ASSERT_TRUE(first.write(as_bytes("abc")));
  RingBuffer second = std::move(first);
  EXPECT_EQ(text_of(second), "abc");
  EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(first.write(as_bytes("x")).error(), Errc::resource_exhausted);
  first = std::move(second);
  EXPECT_EQ(text_of(first), "abc");
}

}  // namespace
}  // namespace weft::mem
