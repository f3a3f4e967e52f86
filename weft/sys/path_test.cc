// SPDX-License-Identifier: MIT
#include "weft/sys/path.h"

#include <fstream>
#include <string>
#include <utility>

#include "weft/sys/address.h"
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

}  // namespace
}  // namespace weft::sys
