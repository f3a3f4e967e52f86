// SPDX-License-Identifier: MIT
#include "weft/sys/files/group.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "weft/sys/path.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

class GroupDirectory : public testing::Test {
 protected:
  GroupDirectory() : directory_(make_private_directory().value()), path_(directory_ + "/group") {}
  ~GroupDirectory() override { std::filesystem::remove_all(directory_); }

  static mode_t mode_of(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  std::string directory_;
  std::string path_;
  std::uint32_t own_ = ::getegid();
};

TEST(GroupId, IsFoundByNameAndByDigits) {
  EXPECT_EQ(*group_id("root"), 0u);
  EXPECT_EQ(*group_id("12345"), 12345u);
  EXPECT_EQ(group_id("no-such-group-of-weft").error(), Errc::not_found);
  EXPECT_EQ(group_id("").error(), Errc::not_found);
  EXPECT_EQ(group_id("4294967295").error(), Errc::not_found);  // which chown takes for "leave it"
  EXPECT_EQ(group_id("12345678901").error(), Errc::not_found);
}

TEST_F(GroupDirectory, IsMadeForTheGroupAloneAndFoundAgain) {
  ASSERT_TRUE(make_group_directory(path_, own_));
  EXPECT_EQ(mode_of(path_), 0750u);
  EXPECT_TRUE(make_group_directory(path_, own_));
  std::ofstream(path_ + "/file") << "x";
  ASSERT_TRUE(give_to_group(path_ + "/file", own_));
  EXPECT_EQ(mode_of(path_ + "/file"), 0660u);
  EXPECT_FALSE(give_to_group(path_ + "/absent", own_));
}

TEST_F(GroupDirectory, ADirectoryThatOthersReachOrThatMembersChangeIsRefusedAndLeftAsItIs) {
  ASSERT_TRUE(make_group_directory(path_, own_));
  for (const mode_t mode : {0755u, 0751u, 0770u, 0700u, 0752u}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    EXPECT_EQ(make_group_directory(path_, own_).error(), Errc::invalid_state) << std::oct << mode;
    EXPECT_EQ(mode_of(path_), mode);
  }
  ASSERT_EQ(::chmod(path_.c_str(), 0750), 0);
  EXPECT_EQ(make_group_directory(path_, own_ + 1).error(), Errc::invalid_state);
}

TEST_F(GroupDirectory, AFileOrALinkIsNoDirectory) {
  std::ofstream(directory_ + "/file") << "x";
  EXPECT_EQ(make_group_directory(directory_ + "/file", own_).error(), Errc::invalid_state);
  ASSERT_TRUE(make_group_directory(path_, own_));
  std::filesystem::create_symlink(path_, directory_ + "/link");
  EXPECT_EQ(make_group_directory(directory_ + "/link", own_).error(), Errc::invalid_state);
  EXPECT_FALSE(make_group_directory(directory_ + "/absent/group", own_));
}

}  // namespace
}  // namespace weft::sys
