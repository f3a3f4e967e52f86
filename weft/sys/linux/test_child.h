// SPDX-License-Identifier: MIT
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#endif

#include <gtest/gtest.h>

namespace weft::sys::test {

#if defined(__SANITIZE_ADDRESS__)
// Waits until all other threads of the process sleep, at most for 10,000 looks. The address sanitizer of GCC 12 has a
// lock that its operator delete takes: a child that is forked while another thread holds it waits for it for ever.
inline void let_other_threads_sleep() {
  const auto asleep = [] {
    int awake = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string status;
      std::getline(std::ifstream(thread.path() / "stat"), status);
      const std::size_t name_end = status.rfind(')');  // then a blank and the state
      awake += name_end == std::string::npos || status.substr(name_end).substr(0, 3) != ") S" ? 1 : 0;
    }
    return awake <= 1;  // the caller
  };
  for (int looks = 0; !asleep() && looks < 10'000; ++looks) {
    std::this_thread::yield();
  }
}
#endif

// Runs the function in a forked child. Returns false if it returned false, or the child crashed or hung for 20 s.
template <typename Function>
bool holds_in_a_child(const Function& function) {
#if defined(__SANITIZE_ADDRESS__)
  let_other_threads_sleep();
#endif
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(function() ? 0 : 1);
  }
  int status = 1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace weft::sys::test
