// SPDX-License-Identifier: MIT
#include "weft/sys/files/whole_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "weft/sys/path.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

class WholeFileTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_private_directory();
    ASSERT_TRUE(made);
    directory_ = *made;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }

  std::string directory_;
};

TEST_F(WholeFileTest, AFileIsReadUpToItsBoundAndNoFurther) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{65'536}, std::size_t{200'000}}) {
    const std::string text(size, 'x');
    const std::string path = write("file", text);
    const auto whole = read_whole_file(path, size);
    ASSERT_TRUE(whole) << size;
    EXPECT_TRUE(*whole == text) << size;
    if (size != 0) {
      EXPECT_EQ(read_whole_file(path, size - 1).error(), Errc::message_too_large) << size;
    }
  }
}

TEST_F(WholeFileTest, ALinkIsFollowed) {
  std::filesystem::create_symlink(write("file", "text"), directory_ + "/link");
  EXPECT_EQ(read_whole_file(directory_ + "/link", 100).value_or(""), "text");
}

TEST_F(WholeFileTest, ADirectoryAndAFifoAreRefusedAtOnce) {
  EXPECT_EQ(read_whole_file(directory_, 100).error(), Errc::not_found);
  ASSERT_EQ(::mkfifo((directory_ + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(read_whole_file(directory_ + "/fifo", 100).error(), Errc::not_found);
  EXPECT_EQ(read_whole_file(directory_ + "/none", 100).error(), Errc::not_found);
}

}  // namespace
}  // namespace weft::sys
