// SPDX-License-Identifier: MIT
#include "weft/logging/output.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/sys/path.h"
#include <gtest/gtest.h>

namespace weft::logging {
namespace {

std::string text_of(const std::string& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class OutputTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = sys::make_private_directory().value();
    file_ = directory_ + "/log";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void write(Output& output, std::string_view lines) {
    output.write(lines, [] { return true; }, counters_);
  }

  std::string directory_;
  std::string file_;
  WriterCounters counters_{};
};

TEST_F(OutputTest, AppendsToAFileThatIsThere) {
  std::ofstream(file_) << "before\n";
  auto output = Output::open(file_);
  ASSERT_TRUE(output);
  write(*output, "one\ntwo\n");
  EXPECT_EQ(text_of(file_), "before\none\ntwo\n");
  EXPECT_EQ(counters_.written.load(), 2U);
  EXPECT_EQ(counters_.written_bytes.load(), 8U);
}

TEST_F(OutputTest, AFileThatCannotBeMadeIsAnError) {
  EXPECT_EQ(Output::open(directory_ + "/none/log").error(), Errc::not_found);
  EXPECT_EQ(Output::open(directory_).error(), Errc::invalid_argument);
}

TEST_F(OutputTest, AFileRotatesBetweenLinesAndKeepsANumberOfThem) {
  auto output = Output::open(file_);
  ASSERT_TRUE(output);
  output->rotate_by({10, 2});
  for (const char* lines : {"aaaa\nbbbb\n", "cccc\n", "dddd\neeee\n", "ffff\n"}) {
    write(*output, lines);
  }
  EXPECT_EQ(text_of(file_), "eeee\nffff\n");
  EXPECT_EQ(text_of(file_ + ".1"), "cccc\ndddd\n");
  EXPECT_EQ(text_of(file_ + ".2"), "aaaa\nbbbb\n");
  write(*output, "gggg\n");
  EXPECT_EQ(text_of(file_ + ".2"), "cccc\ndddd\n");
  EXPECT_FALSE(std::filesystem::exists(file_ + ".3"));
  EXPECT_EQ(counters_.rotations.load(), 3U);
  EXPECT_EQ(counters_.written.load(), 7U);
}

TEST_F(OutputTest, ALineThatIsLongerThanTheBoundHasAFileOfItsOwn) {
  auto output = Output::open(file_);
  ASSERT_TRUE(output);
  output->rotate_by({4, 9});
  write(*output, "a\nlonger\nb\n");
  EXPECT_EQ(text_of(file_), "b\n");
  EXPECT_EQ(text_of(file_ + ".1"), "longer\n");
  EXPECT_EQ(text_of(file_ + ".2"), "a\n");
  EXPECT_EQ(counters_.rotations.load(), 2U);
}

TEST_F(OutputTest, AFileThatWasRemovedIsMadeAgainByARotation) {
  auto output = Output::open(file_);
  ASSERT_TRUE(output);
  output->rotate_by({4, 2});
  write(*output, "aaa\n");
  std::filesystem::remove(file_);
  write(*output, "bbb\n");
  EXPECT_EQ(text_of(file_), "bbb\n");
  EXPECT_EQ(counters_.rotations_failed.load(), 0U);
}

TEST_F(OutputTest, AFileThatCannotBeRotatedGrows) {
  auto output = Output::open(file_);
  ASSERT_TRUE(output);
  output->rotate_by({4, 1});
  std::filesystem::create_directories(file_ + ".1/full");
  write(*output, "aaa\n");
  write(*output, "bbb\n");
  write(*output, "ccc\n");
  EXPECT_EQ(text_of(file_), "aaa\nbbb\nccc\n");
  EXPECT_GE(counters_.rotations_failed.load(), 1U);
  EXPECT_EQ(counters_.dropped_failed.load(), 0U);
}

TEST_F(OutputTest, ReopenFollowsTheName) {
  auto output = Output::open(file_);
  ASSERT_TRUE(output);
  write(*output, "one\n");
  std::filesystem::rename(file_, file_ + ".old");
  write(*output, "two\n");
  EXPECT_TRUE(output->reopen());
  write(*output, "three\n");
  EXPECT_EQ(text_of(file_ + ".old"), "one\ntwo\n");
  EXPECT_EQ(text_of(file_), "three\n");
}

TEST_F(OutputTest, AFullDiskDropsTheLinesAndCountsThem) {
  auto output = Output::open("/dev/full");
  ASSERT_TRUE(output);
  output->rotate_by({4, 2});  // a device does not rotate
  write(*output, "one\ntwo\n");
  EXPECT_EQ(counters_.written.load(), 0U);
  EXPECT_EQ(counters_.dropped_failed.load(), 2U);
  EXPECT_EQ(counters_.rotations.load() + counters_.rotations_failed.load(), 0U);
}

TEST_F(OutputTest, AFunctionThatThrowsDropsTheLines) {
  bool fails = true;
  std::string got;
  Output output([&](std::string_view lines) {
    if (fails) {
      throw std::runtime_error("no");
    }
    got += lines;
  });
  write(output, "one\ntwo\n");
  fails = false;
  write(output, "three\n");
  EXPECT_EQ(got, "three\n");
  EXPECT_EQ(counters_.dropped_failed.load(), 2U);
  EXPECT_EQ(counters_.written.load(), 1U);
}

}  // namespace
}  // namespace weft::logging
