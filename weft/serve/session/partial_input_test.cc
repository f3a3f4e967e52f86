// SPDX-License-Identifier: MIT
#include "weft/serve/session/partial_input.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

class PartialInputTest : public testing::Test {
 protected:
  ~PartialInputTest() override {
    input_.drop(memory_);
    EXPECT_EQ(share_.held(), 0u);
  }

  bool append(std::string_view bytes) { return input_.append(as_bytes(bytes), memory_); }
  [[nodiscard]] std::string text() const {
    const Bytes bytes = input_.bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  ByteBudget budget_{std::size_t{1} << 30};
  ByteBudget::Share share_{budget_, std::size_t{1} << 30};
  InputMemory memory_{share_, std::size_t{1} << 30, [](void*) noexcept {}};
  PartialInput input_{nullptr};
};

TEST_F(PartialInputTest, BytesStayInOrderAcrossAppendsAndRemovals) {
  std::string expected;
  for (int i = 0; i < 2000; ++i) {
    const std::string piece(1 + i % 37, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(append(piece));
    expected += piece;
    if (i % 3 == 0) {
      const std::size_t gone = expected.size() / 2;
      input_.consume(gone);
      expected.erase(0, gone);
    }
    ASSERT_EQ(text(), expected) << "after piece " << i;
  }
}

TEST_F(PartialInputTest, WithoutBytesItHoldsNoMemory) {
  EXPECT_TRUE(append(""));
  EXPECT_TRUE(input_.empty());
  EXPECT_EQ(share_.held(), 0u);
  EXPECT_TRUE(append("x"));
  EXPECT_FALSE(input_.empty());
  EXPECT_GT(share_.held(), 0u);
  input_.drop(memory_);
  EXPECT_TRUE(input_.empty());
  EXPECT_TRUE(input_.bytes().empty());
  EXPECT_EQ(share_.held(), 0u);
}

TEST_F(PartialInputTest, TheMissingBytesAreReadBehindTheFirstOnes) {
  input_.set_needed(10);
  EXPECT_TRUE(input_.missing(100).empty()) << "nothing is here yet";
  ASSERT_TRUE(append("abcd"));
  const MutableBytes missing = input_.missing(100);
  ASSERT_EQ(missing.size(), 6u);
  copy_bytes(missing.data(), as_bytes("efghij"));
  input_.extend(6, memory_);
  EXPECT_EQ(text(), "abcdefghij");
  EXPECT_TRUE(input_.missing(100).empty());
}

TEST_F(PartialInputTest, OneReadTakesNoMoreThanItsBound) {
  input_.set_needed(1000);
  ASSERT_TRUE(append("abcd"));
  EXPECT_EQ(input_.missing(7).size(), 7u);
}

TEST_F(PartialInputTest, ASizeThatIsOnlyAnnouncedTakesABoundedBlock) {
  input_.set_needed(std::size_t{1} << 30);
  ASSERT_TRUE(append("abcd"));
  EXPECT_LE(share_.held(), 2 * PartialInput::kStep);
}

TEST_F(PartialInputTest, ASmallFrameGetsItsWholeBlockAtOnce) {
  input_.set_needed(20'000);
  ASSERT_TRUE(append("abcd"));
  const std::size_t held = share_.held();
  ASSERT_TRUE(append(std::string(19'996, 'x')));
  EXPECT_EQ(share_.held(), held);
}

// Owners of input in a small memory, and the order in which they are evicted.
class InputMemoryTest : public testing::Test {
 protected:
  struct Owner {
    explicit Owner(InputMemoryTest& of) : test(&of) {}
    InputMemoryTest* test;
    PartialInput input{this};

    bool append(std::size_t bytes) { return input.append(as_bytes(std::string(bytes, 'x')), test->memory_); }
  };
  ~InputMemoryTest() override {
    for (Owner* const owner : {&a_, &b_, &c_}) {
      owner->input.drop(memory_);
    }
    EXPECT_EQ(share_.held(), 0u);
  }
  static void evict(void* owner) noexcept {
    auto& evicted = *static_cast<Owner*>(owner);
    evicted.test->evicted_.push_back(&evicted);
    evicted.input.drop(evicted.test->memory_);
  }

  ByteBudget budget_{std::size_t{1} << 30};
  ByteBudget::Share share_{budget_, std::size_t{1} << 30};
  InputMemory memory_{share_, 256 * 1024, &evict};
  std::vector<Owner*> evicted_;
  Owner a_{*this}, b_{*this}, c_{*this};
};

TEST_F(InputMemoryTest, TheLargestHolderMakesRoom) {
  ASSERT_TRUE(a_.append(60'000));
  ASSERT_TRUE(b_.append(120'000));
  ASSERT_TRUE(c_.append(60'000));
  EXPECT_TRUE(evicted_.empty());
  EXPECT_TRUE(c_.append(60'000));
  EXPECT_EQ(evicted_, std::vector{&b_});
  EXPECT_EQ(c_.input.size(), 120'000u);
}

TEST_F(InputMemoryTest, OfEqualHoldersTheOneThatGotNoBytesForTheLongestTimeMakesRoom) {
  ASSERT_TRUE(a_.append(100'000));
  ASSERT_TRUE(b_.append(100'000));
  ASSERT_TRUE(a_.append(1));
  EXPECT_TRUE(c_.append(100'000));
  EXPECT_EQ(evicted_, std::vector{&b_});
  EXPECT_TRUE(b_.append(100'000));
  EXPECT_EQ(evicted_, (std::vector{&b_, &a_}));
}

TEST_F(InputMemoryTest, AHolderThatWouldBeTheLargestIsRefusedAndKeepsItsBytes) {
  ASSERT_TRUE(a_.append(60'000));
  ASSERT_TRUE(b_.append(4));
  const std::size_t held = share_.held();
  EXPECT_FALSE(b_.append(250'000));
  EXPECT_FALSE(b_.append(10'000'000));
  EXPECT_TRUE(evicted_.empty());
  EXPECT_EQ(b_.input.size(), 4u);
  EXPECT_EQ(b_.input.bytes()[3], 'x');
  EXPECT_EQ(share_.held(), held);
}

TEST_F(InputMemoryTest, TheBudgetOfAllBytesBoundsTheInputToo) {
  ASSERT_TRUE(a_.append(100'000));
  const std::size_t others = (std::size_t{1} << 30) - share_.held();
  ASSERT_TRUE(share_.take(others));
  EXPECT_TRUE(b_.append(100'000));
  EXPECT_EQ(evicted_, std::vector{&a_});
  share_.give_back(others);
}

}  // namespace
}  // namespace weft::serve
