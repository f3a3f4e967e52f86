// SPDX-License-Identifier: MIT
#include "weft/sys/path.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "weft/sys/address.h"
#include "weft/sys/small_file.h"
#include "weft/sys/socket.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

TEST(Path, MakesAndRemovesAPrivateDirectory) {
  const std::string directory = std::move(make_private_directory()).value();
  const std::string socket_path = directory + "/s";
  const std::string plain_path = directory + "/p";
  EXPECT_EQ(identify_file(socket_path).error().code(), Errc::address_unavailable);
  {
    const Fd listener = std::move(open_unix_listener(*SocketAddress::from_path(socket_path), {})).value();
    std::ofstream(plain_path) << "x";
  }
  const auto socket_file = identify_file(socket_path).value();
  const auto plain_file = identify_file(plain_path).value();
  EXPECT_TRUE(socket_file.is_socket);
  EXPECT_FALSE(plain_file.is_socket);
  EXPECT_FALSE(socket_file == plain_file);
  EXPECT_FALSE(remove_directory(directory));
  EXPECT_TRUE(remove_file(socket_path));
  EXPECT_TRUE(remove_file(plain_path));
  EXPECT_FALSE(remove_file(plain_path));
  EXPECT_TRUE(remove_directory(directory));
}

// The kernel drops the POSIX locks that a process has on a file when it closes any descriptor of the file.
TEST(Path, AFileThatIsMadeAgainKeepsItsBytesAndItsLocks) {
  const std::string directory = std::move(make_private_directory()).value();
  const std::string path = directory + "/f";
  ASSERT_TRUE(make_private_file(path));
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  std::ofstream(path) << "x";
  {
    const Fd locked(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    const Fd other(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    struct flock lock{};
    lock.l_type = F_WRLCK;
    ASSERT_EQ(::fcntl(locked.fd(), F_SETLK, &lock), 0);
    EXPECT_TRUE(make_private_file(path));
    struct flock seen{};  // an open file's own lock sees those of its process
    seen.l_type = F_WRLCK;
    ASSERT_EQ(::fcntl(other.fd(), F_OFD_GETLK, &seen), 0);
    EXPECT_EQ(seen.l_type, F_WRLCK);
  }
  EXPECT_EQ(std::filesystem::file_size(path), 1U);
  EXPECT_TRUE(remove_file(path));
  EXPECT_TRUE(remove_directory(directory));
}

TEST(Path, NoPrivateFileIsMadeWhereALinkOrADirectoryIs) {
  const std::string directory = std::move(make_private_directory()).value();
  std::filesystem::create_symlink(directory + "/nowhere", directory + "/link");
  EXPECT_EQ(make_private_file(directory + "/link").error(), Errc::invalid_state);
  EXPECT_EQ(make_private_file(directory).error(), Errc::invalid_state);
  EXPECT_FALSE(std::filesystem::exists(directory + "/nowhere"));
  std::filesystem::remove_all(directory);
}

TEST(Path, LocksADirectoryAgainstOthersAndGivesUpQuietly) {
  const std::string directory = std::move(make_private_directory()).value();
  {
    const Fd lock = lock_parent_directory(directory + "/x");
    EXPECT_TRUE(lock.valid());
    EXPECT_FALSE(lock_parent_directory(directory + "/y").valid());
  }
  EXPECT_TRUE(lock_parent_directory(directory + "/y").valid());
  EXPECT_FALSE(lock_parent_directory(directory + "/none/y").valid());
  EXPECT_TRUE(remove_directory(directory));
}

TEST(Path, AFileSystemInMemoryIsToldFromOthers) {
  EXPECT_FALSE(is_in_memory("/proc"));
  EXPECT_FALSE(is_in_memory("/no/such/path"));
  std::ifstream mounts("/proc/mounts");
  std::string device;
  std::string point;
  std::string type;
  for (std::string line; mounts >> device >> point >> type && std::getline(mounts, line);) {
    struct stat status{};
    if (type == "tmpfs" && point == "/dev/shm" && ::stat(point.c_str(), &status) == 0) {
      EXPECT_TRUE(is_in_memory(point)) << point;
    }
  }
}

}  // namespace
}  // namespace weft::sys
