// SPDX-License-Identifier: MIT
#include "weft/serve/session/partial_input.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

class PartialInputTest : public testing::Test {
 protected:
  ~PartialInputTest() override {
    input_.drop(share_);
    EXPECT_EQ(share_.held(), 0u);
  }

  bool append(std::string_view bytes) { return input_.append(as_bytes(bytes), share_); }
  [[nodiscard]] std::string text() const {
    const Bytes bytes = input_.bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  ByteBudget budget_{std::size_t{1} << 30};
  ByteBudget::Share share_{budget_, std::size_t{1} << 30};
  PartialInput input_;
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
  input_.drop(share_);
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
  input_.extend(6);
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

TEST_F(PartialInputTest, ASpentBudgetRefusesBytesAndKeepsThoseThatAreHere) {
  ByteBudget::Share small(budget_, 4096);
  PartialInput input;
  ASSERT_TRUE(input.append(as_bytes("abcd"), small));
  const std::size_t held = small.held();
  EXPECT_FALSE(input.append(as_bytes(std::string(100'000, 'x')), small));
  EXPECT_EQ(input.size(), 4u);
  EXPECT_EQ(input.bytes()[3], 'd');
  EXPECT_EQ(small.held(), held);
  input.drop(small);
}

}  // namespace
}  // namespace weft::serve
