// SPDX-License-Identifier: MIT
// The program that run_cases_test.py runs: one case for each end that a case can have. WEFT_SUBJECT_LOG names a file
// that gets a line a case: the process that ran it.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

namespace {

void note(const char* name, pid_t process) {
  if (const char* log = std::getenv("WEFT_SUBJECT_LOG")) {
    std::ofstream(log, std::ios::app) << name << ' ' << process << '\n';
  }
}

struct Subject : testing::Test {
  Subject() { note(testing::UnitTest::GetInstance()->current_test_info()->name(), ::getpid()); }
};

TEST_F(Subject, First) {}
TEST_F(Subject, Fails) {
  std::puts("before the failure");
  FAIL() << "on purpose";
}
TEST_F(Subject, Skips) { GTEST_SKIP() << "not here"; }
TEST_F(Subject, LeavesALineOpen) { std::fputs("no end of line", stdout); }
TEST_F(Subject, Aborts) {
  std::fputs("last words\n", stderr);
  std::abort();
}
TEST_F(Subject, ExitsWell) { std::exit(0); }
TEST_F(Subject, Hangs) {
  for (;;) {
    ::pause();
  }
}
TEST_F(Subject, LeavesAChild) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) {
      ::pause();
    }
  }
  note("TheChild", child);
}
TEST_F(Subject, DISABLED_Waits) { FAIL(); }
TEST_F(Subject, Last) {}

struct Environment : Subject {
  static void SetUpTestSuite() { std::abort(); }
};
TEST_F(Environment, One) {}
TEST_F(Environment, Two) {}

struct Ends : Subject {
  static void TearDownTestSuite() { std::quick_exit(3); }
};
TEST_F(Ends, Badly) {}

TEST(QuietSubject, Counts) {}

class Rows : public testing::TestWithParam<int> {};
TEST_P(Rows, AreCases) { EXPECT_NE(GetParam(), 1) << "row one"; }
INSTANTIATE_TEST_SUITE_P(Every, Rows, testing::Values(0, 1));

}  // namespace
