// SPDX-License-Identifier: MIT
#include "weft/sys/linux/service_manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "weft/sys/call.h"
#include "weft/sys/fd.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

class ServiceManager : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* const name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET"}) {
      ::unsetenv(name);
    }
  }
  static void announce(const std::string& pid, const std::string& count, const std::string& names) {
    ::setenv("LISTEN_PID", pid.c_str(), 1);
    ::setenv("LISTEN_FDS", count.c_str(), 1);
    ::setenv("LISTEN_FDNAMES", names.c_str(), 1);
  }
};

TEST_F(ServiceManager, PassedSocketsHaveTheirNamesAndAreTakenOnce) {
  const std::string pid = std::to_string(::getpid());
  announce(pid, "0", "");
  EXPECT_TRUE(take_passed_sockets().value().empty());
  ASSERT_EQ(std::getenv("LISTEN_PID"), nullptr);
  if (::fcntl(3, F_GETFD) < 0) {
    ASSERT_EQ(::open("/dev/null", O_RDONLY), 3);
  }
  const bool was_open = ::fcntl(4, F_GETFD) >= 0;
  if (!was_open) {
    ASSERT_EQ(::open("/dev/null", O_RDONLY), 4);
  }
  ASSERT_EQ(::fcntl(3, F_SETFD, 0), 0);
  announce(pid, "2", "web:");
  const auto sockets = take_passed_sockets();
  ASSERT_TRUE(sockets) << sockets.error().message();
  ASSERT_EQ(sockets->size(), 2u);
  EXPECT_EQ(sockets->at(0).fd, 3);
  EXPECT_EQ(sockets->at(0).name, "web");
  EXPECT_EQ(sockets->at(1).fd, 4);
  EXPECT_EQ(sockets->at(1).name, "unknown");
  EXPECT_EQ(::fcntl(3, F_GETFD), FD_CLOEXEC);
  EXPECT_TRUE(take_passed_sockets().value().empty());
}

TEST_F(ServiceManager, SocketsOfAnotherProcessAreNotTaken) {
  announce(std::to_string(::getppid()), "1", "");
  EXPECT_TRUE(take_passed_sockets().value().empty());
}

TEST_F(ServiceManager, AnAnnouncementThatCannotBeTrueIsRefused) {
  const std::string pid = std::to_string(::getpid());
  for (const char* const count : {"", "x", "-1", "1025", "2 ", "99999999999999999999", "1000"}) {
    announce(pid, count, "");
    EXPECT_EQ(take_passed_sockets().error(), Errc::invalid_argument) << count;
  }
  for (const std::string& other : {std::string(), pid + "x", std::string("x")}) {
    announce(other, "1", "");
    EXPECT_TRUE(take_passed_sockets().value().empty()) << other;
  }
}

TEST_F(ServiceManager, GetsAStateAtAnAbstractAddress) {
  EXPECT_FALSE(notify_service_manager("READY=1").value());
  const Fd manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_EQ(::bind(manager.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address.sun_family), 0);  // any
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(manager.fd(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string name(address.sun_path + 1, size - offsetof(sockaddr_un, sun_path) - 1);
  ::setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
  EXPECT_TRUE(notify_service_manager("STOPPING=1").value());
  char text[64];
  const ssize_t got = ::recv(manager.fd(), text, sizeof text, 0);
  ASSERT_GT(got, 0);
  EXPECT_EQ(std::string(text, static_cast<std::size_t>(got)), "STOPPING=1");
}

TEST_F(ServiceManager, AnAddressThatIsNoneOrThatNobodyHasFails) {
  for (const std::string& address : {std::string("relative"), "/" + std::string(200, 'x')}) {
    ::setenv("NOTIFY_SOCKET", address.c_str(), 1);
    EXPECT_EQ(notify_service_manager("READY=1").error(), Errc::invalid_argument);
  }
  ::setenv("NOTIFY_SOCKET", "/no/such/socket", 1);
  EXPECT_FALSE(notify_service_manager("READY=1"));
}

}  // namespace
}  // namespace weft::sys
