// SPDX-License-Identifier: MIT
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace weft::sys::test {

// Runs the function in a forked child. False: it returned false, or the child crashed or hung for 20 s.
template <typename Function>
bool holds_in_a_child(const Function& function) {
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
