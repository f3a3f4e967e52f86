// SPDX-License-Identifier: MIT
#pragma once

#include <sys/socket.h>

#include "weft/sys/fd.h"
#include <gtest/gtest.h>

namespace weft::sys::test {

// For tests: two sockets that are each other's peers. Calls on them never wait.
struct SocketPair {
  SocketPair() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    near = Fd(fds[0]);
    far = Fd(fds[1]);
  }
  Fd near;
  Fd far;
};

}  // namespace weft::sys::test
