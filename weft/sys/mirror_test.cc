// SPDX-License-Identifier: MIT
#include "weft/sys/mirror.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

namespace weft::sys {
namespace {

TEST(Mirror, ShowsEachByteTwice) {
  const Mirror mirror = Mirror::make(1).value();
  ASSERT_GE(mirror.size(), 1u);
  EXPECT_EQ(std::count(mirror.data(), mirror.data() + 2 * mirror.size(), 0), std::ptrdiff_t(2 * mirror.size()));
  mirror.data()[3] = 7;
  EXPECT_EQ(mirror.data()[mirror.size() + 3], 7);
  mirror.data()[2 * mirror.size() - 1] = 9;
  EXPECT_EQ(mirror.data()[mirror.size() - 1], 9);
}

TEST(Mirror, RoundsUpToWholePages) {
  const std::size_t page = Mirror::make(1).value().size();
  EXPECT_EQ(Mirror::make(page).value().size(), page);
  EXPECT_EQ(Mirror::make(page + 1).value().size(), 2 * page);
}

TEST(Mirror, RefusesNothingAndTooMuch) {
  EXPECT_EQ(Mirror::make(0).error(), Errc::invalid_argument);
  EXPECT_EQ(Mirror::make(std::numeric_limits<std::size_t>::max()).error(), Errc::invalid_argument);
  EXPECT_FALSE(Mirror::make(std::size_t{1} << 50)) << "more than the machine can address";
}

TEST(Mirror, HasOneOwner) {
  Mirror first = Mirror::make(1).value();
  std::uint8_t* data = first.data();
  Mirror second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move)
  first = std::move(second);
  EXPECT_EQ(first.data(), data);
}

TEST(Mirror, AForkedChildCannotChangeTheBytesAndUnmapsNothing) {
  Mirror mirror = Mirror::make(1).value();
  mirror.data()[0] = 'p';
  const pid_t writer = ::fork();
  if (writer == 0) {
    ::signal(SIGSEGV, SIG_DFL);  // without the report of a sanitizer
    static_cast<volatile std::uint8_t*>(mirror.data())[0] = 'c';
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(writer, &status, 0), writer);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  EXPECT_EQ(mirror.data()[0], 'p');

  const pid_t owner = ::fork();
  if (owner == 0) {
    // Maps memory of its own where its parent has the mirror.
    void* const own = ::mmap(mirror.data(), 2 * mirror.size(), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    const bool mapped = own == static_cast<void*>(mirror.data());
    mirror = Mirror();
    *static_cast<volatile char*>(own) = 1;
    ::_exit(mapped ? 0 : 1);
  }
  EXPECT_EQ(::waitpid(owner, &status, 0), owner);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace weft::sys
