// SPDX-License-Identifier: MIT
#include "weft/sys/files/file_watch.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "weft/sys/path.h"
#include "weft/sys/poll.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

class FileWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_private_directory();
    ASSERT_TRUE(made);
    directory_ = *made;
    write("file", "one");
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(directory_ + "/" + name) << text; }
  void rename(const std::string& from, const std::string& to) const {
    std::filesystem::rename(directory_ + "/" + from, directory_ + "/" + to);
  }
  [[nodiscard]] Result<FileWatch> open(std::vector<std::string> paths) const {
    for (std::string& path : paths) {
      path.insert(0, directory_);
    }
    return FileWatch::open(paths);
  }
  static bool is_readable(const FileWatch& watch) {
    PollFd fds[] = {{watch.fd(), Interest::readable}};
    return poll_fds(fds, Duration::zero()).value_or(0) == 1;
  }

  std::string directory_;
};

TEST_F(FileWatchTest, AWriteAndARenameOverTheFileAreNoticedAndOtherFilesAreNot) {
  auto watch = open({"/file"});
  ASSERT_TRUE(watch) << watch.error().message();
  EXPECT_FALSE(is_readable(*watch));
  EXPECT_FALSE(watch->take_change());
  write("other", "text");
  EXPECT_TRUE(is_readable(*watch));
  EXPECT_FALSE(watch->take_change());
  EXPECT_FALSE(is_readable(*watch));
  for (int i = 0; i < 3; ++i) {  // of the same size
    write("file", "two");
    EXPECT_TRUE(is_readable(*watch));
    EXPECT_TRUE(watch->take_change());
    EXPECT_FALSE(watch->take_change());
  }
  rename("other", "file");
  EXPECT_TRUE(is_readable(*watch));
  EXPECT_TRUE(watch->take_change());
  std::filesystem::remove(directory_ + "/file");
  EXPECT_TRUE(watch->take_change());
  write("file", "three");
  EXPECT_TRUE(watch->take_change());
  EXPECT_FALSE(watch->take_change());
}

// A volume of Kubernetes: the file is a link through a directory that a rename replaces.
TEST_F(FileWatchTest, ARenameOverALinkOfTheDirectoryIsNoticed) {
  for (const char* version : {"v1", "v2"}) {
    std::filesystem::create_directory(directory_ + "/" + version);
    write(std::string(version) + "/config", version);
  }
  std::filesystem::create_directory_symlink("v1", directory_ + "/data");
  std::filesystem::create_symlink("data/config", directory_ + "/config");
  auto watch = open({"/config"});
  ASSERT_TRUE(watch);
  std::filesystem::create_directory_symlink("v2", directory_ + "/data.new");
  EXPECT_FALSE(watch->take_change());
  rename("data.new", "data");
  EXPECT_TRUE(is_readable(*watch));
  EXPECT_TRUE(watch->take_change());
}

TEST_F(FileWatchTest, EachOfSeveralFilesIsWatchedInItsDirectory) {
  std::filesystem::create_directory(directory_ + "/below");
  write("below/deep", "one");
  auto watch = open({"/file", "/later", "/below/deep"});
  ASSERT_TRUE(watch);
  EXPECT_FALSE(watch->take_change());
  for (const char* const name : {"file", "later", "below/deep", "file"}) {
    write(name, "two");
    EXPECT_TRUE(is_readable(*watch)) << name;
    EXPECT_TRUE(watch->take_change()) << name;
    EXPECT_FALSE(watch->take_change()) << name;
  }
  write("below/other", "text");
  EXPECT_FALSE(watch->take_change());
}

TEST_F(FileWatchTest, AMissingDirectoryIsAnErrorAndAMissingFileIsNot) {
  EXPECT_EQ(open({"/none/file"}).error(), Errc::not_found);
  auto watch = open({"/later"});
  ASSERT_TRUE(watch);
  write("later", "text");
  EXPECT_TRUE(watch->take_change());
}

}  // namespace
}  // namespace weft::sys
