// SPDX-License-Identifier: MIT
#include "weft/sys/files/file_tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "weft/sys/path.h"
#include "weft/sys/test_socket_pair.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

class FileTreeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_private_directory();
    ASSERT_TRUE(made);
    outside_ = *made;
    root_ = outside_ + "/root";
    std::filesystem::create_directories(root_ + "/a/b");
    write("/a/b/c.txt", "inside");
    std::ofstream(outside_ + "/secret") << "secret";
  }
  void TearDown() override { std::filesystem::remove_all(outside_); }
  void write(const std::string& path, const std::string& text) const { std::ofstream(root_ + path) << text; }

  // The content of the file, "directory", or the error; both ways agree.
  [[nodiscard]] std::string open(const std::string& path) const {
    const auto tree = FileTree::open(root_);
    EXPECT_TRUE(tree);
    const std::string fast = text_of(tree->open_file(path));
    EXPECT_EQ(text_of(tree->open_by_segments(path)), fast) << path;
    return fast;
  }
  static std::string text_of(const Result<OpenFile>& file) {
    if (!file) {
      return std::string(file.error().message().substr(0, file.error().message().find(':')));
    }
    if (file->is_directory) {
      return "directory";
    }
    std::vector<std::uint8_t> bytes(file->size + 10);
    const auto size = read_file_at(file->fd.fd(), 0, bytes);
    EXPECT_TRUE(size && *size == file->size);
    return std::string(as_text(Bytes(bytes).first(*size)));
  }

  std::string outside_;
  std::string root_;
};

TEST_F(FileTreeTest, FilesAndDirectoriesBelowItAreOpened) {
  EXPECT_EQ(open("a/b/c.txt"), "inside");
  EXPECT_EQ(open("a/b"), "directory");
  const auto tree = FileTree::open(root_);
  const auto file = tree->open_file("a/b/c.txt");
  ASSERT_TRUE(file);
  struct stat status{};
  ASSERT_EQ(::stat((root_ + "/a/b/c.txt").c_str(), &status), 0);
  EXPECT_EQ(file->modified_ns, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec);
  EXPECT_FALSE(FileTree::open(root_ + "/none"));
  EXPECT_FALSE(FileTree::open(root_ + "/a/b/c.txt"));
}

TEST_F(FileTreeTest, NoPathLeadsOut) {
  std::filesystem::create_symlink("../secret", root_ + "/link");
  std::filesystem::create_symlink(outside_, root_ + "/out");
  std::filesystem::create_symlink("b", root_ + "/a/inner");
  for (const char* path : {"link", "out/secret", "out", "a/inner/c.txt", "a/inner", "none", "a/none", "a/b/c.txt/d"}) {
    EXPECT_EQ(open(path), "not found") << path;
  }
  for (const std::string& path :
       {std::string(), std::string("/"), std::string("/etc/passwd"), std::string(".."), std::string("../secret"),
        std::string("a/../../secret"), std::string("a/../a/b/c.txt"), std::string("a//b"), std::string("a/"),
        std::string("./a"), std::string("a/b/c.txt\0.png", 14)}) {
    EXPECT_EQ(open(path), "invalid argument") << path;
  }
  EXPECT_EQ(open(std::string(300, 'x')), "not found");
  EXPECT_EQ(open("a/" + std::string(5000, 'x')), "not found");
}

TEST_F(FileTreeTest, WhatIsNoFileIsNotOpenedAndHoldsNothingUp) {
  ASSERT_EQ(::mkfifo((root_ + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(open("fifo"), "not found");
}

TEST_F(FileTreeTest, AFileGoesToASocketInPiecesAndEndsWhereItEnds) {
  write("/data", "0123456789");
  const auto tree = FileTree::open(root_);
  const auto file = tree->open_file("data");
  ASSERT_TRUE(file);
  test::SocketPair pair;
  IoResult sent = send_file(pair.near.fd(), file->fd.fd(), 2, 5);
  EXPECT_EQ(sent.status, IoResult::Status::done);
  EXPECT_EQ(sent.bytes, 5u);
  std::uint8_t room[16];
  EXPECT_EQ(read_some(pair.far.fd(), room).bytes, 5u);
  EXPECT_EQ(as_text(Bytes(room, 5)), "23456");
  sent = send_file(pair.near.fd(), file->fd.fd(), 10, 5);
  EXPECT_EQ(sent.status, IoResult::Status::done);
  EXPECT_EQ(sent.bytes, 0u);
  pair.far.close();
  sent = send_file(pair.near.fd(), file->fd.fd(), 0, 5);  // raises no signal
  EXPECT_EQ(sent.status, IoResult::Status::failed);
}

TEST_F(FileTreeTest, AFullSocketTakesNothing) {
  write("/data", std::string(1'000'000, 'x'));
  const auto tree = FileTree::open(root_);
  const auto file = tree->open_file("data");
  ASSERT_TRUE(file);
  const test::SocketPair pair;
  while (send_file(pair.near.fd(), file->fd.fd(), 0, 1'000'000).status == IoResult::Status::done) {
  }
  EXPECT_EQ(send_file(pair.near.fd(), file->fd.fd(), 0, 1).status, IoResult::Status::would_block);
}

}  // namespace
}  // namespace weft::sys
