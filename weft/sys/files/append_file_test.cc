// SPDX-License-Identifier: MIT
#include "weft/sys/files/append_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "weft/sys/linux/test_child.h"
#include "weft/sys/path.h"
#include "weft/sys/signals.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

constexpr Duration kNoWait = Duration::zero();

class AppendFileTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = make_private_directory().value();
    file_ = directory_ + "/file";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string text() const {
    std::ifstream stream(file_);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  std::string directory_;
  std::string file_;
};

TEST_F(AppendFileTest, AppendsAndKnowsTheSize) {
  std::ofstream(file_) << "one";
  auto file = AppendFile::open(file_);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->is_regular());
  EXPECT_EQ(file->size(), 3U);
  EXPECT_EQ(file->append(as_bytes("two"), kNoWait).value(), 3U);
  EXPECT_EQ(file->size(), 6U);
  EXPECT_EQ(text(), "onetwo");
  EXPECT_FALSE(file->leads_to_journal());
}

TEST_F(AppendFileTest, ANewFileIsNotForOthers) {
  ASSERT_TRUE(AppendFile::open(file_));
  struct stat status{};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07, 0U);
}

TEST_F(AppendFileTest, APathThatCannotBeWrittenIsAnError) {
  EXPECT_EQ(AppendFile::open(directory_ + "/none/file").error(), Errc::not_found);
  EXPECT_EQ(AppendFile::open(directory_).error(), Errc::invalid_argument);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_EQ(AppendFile::open(file_).error(), Errc::not_found);  // no reader
}

TEST_F(AppendFileTest, AFullDiskIsAnError) {
  auto file = AppendFile::open("/dev/full");
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->is_regular());
  EXPECT_EQ(file->append(as_bytes("text"), kNoWait).error(), Errc::resource_exhausted);
}

TEST_F(AppendFileTest, APipeTakesWhatFitsAndWithoutItsReaderIsClosed) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  Fd reader(::open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  auto file = AppendFile::open(file_);
  ASSERT_TRUE(file);
  const std::string large(10'000, 'x');
  std::size_t taken = 0;
  for (;;) {
    const auto some = file->append(as_bytes(large), kNoWait);
    ASSERT_TRUE(some);
    if (*some == 0) {
      break;
    }
    taken += *some;
    ASSERT_LT(taken, std::size_t{16} << 20);
  }
  EXPECT_GT(taken, 0U);
  reader.close();
  const auto append = [&] { EXPECT_EQ(file->append(as_bytes(large), kNoWait).error(), Errc::closed); };
  const SignalsBlocked blocked;
  std::thread(append).join();  // SIGPIPE is blocked in it, and pending until it ends
}

TEST_F(AppendFileTest, AFileAtItsLimitTakesAPartAndThenIsAnError) {
  EXPECT_TRUE(test::holds_in_a_child([this] {
    const rlimit limit{10, 10};
    (void)new SignalsBlocked;  // until the child ends: SIGXFSZ is pending from then on
    auto file = AppendFile::open(file_);
    if (!file || ::setrlimit(RLIMIT_FSIZE, &limit) != 0) {
      return false;
    }
    const auto part = file->append(as_bytes("more than ten bytes"), kNoWait);
    return part && *part == 10 && file->append(as_bytes("x"), kNoWait).error() == Errc::resource_exhausted;
  }));
  EXPECT_EQ(text(), "more than ");
}

TEST_F(AppendFileTest, KnowsTheJournalByItsFile) {
  EXPECT_TRUE(test::holds_in_a_child([this] {
    auto file = AppendFile::open(file_);
    struct stat status{};
    if (!file || ::stat(file_.c_str(), &status) != 0 || file->leads_to_journal()) {
      return false;
    }
    const std::string device = std::to_string(status.st_dev);
    const std::string inode = std::to_string(status.st_ino);
    ::setenv("JOURNAL_STREAM", (device + ":" + inode).c_str(), 1);
    const bool known = file->leads_to_journal();
    ::setenv("JOURNAL_STREAM", (device + ":" + inode + "1").c_str(), 1);
    const bool other = file->leads_to_journal();
    ::setenv("JOURNAL_STREAM", "text", 1);
    return known && !other && !file->leads_to_journal();
  }));
}

TEST_F(AppendFileTest, RenamesOverAnotherFile) {
  std::ofstream(file_) << "new";
  std::ofstream(file_ + ".1") << "old";
  EXPECT_TRUE(rename_file(file_, file_ + ".1"));
  EXPECT_FALSE(std::filesystem::exists(file_));
  EXPECT_EQ(rename_file(file_, file_ + ".1").error(), Errc::not_found);
}

}  // namespace
}  // namespace weft::sys
