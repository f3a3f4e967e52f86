// SPDX-License-Identifier: MIT
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
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

// The milliseconds after which the kernel gives up bytes that the peer of a TCP socket does not acknowledge.
inline int user_timeout(int fd) {
  int timeout = -1;
  socklen_t size = sizeof timeout;
  EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, &size), 0);
  return timeout;
}

}  // namespace weft::sys::test
