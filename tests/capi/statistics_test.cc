// SPDX-License-Identifier: MIT
// The counters of a socket, by name.
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

class CapiStatistics : public CapiTest {
 protected:
  static std::map<std::string, std::uint64_t> read(void* socket) {
    std::array<std::uint64_t, 256> values{};
    const int count = weft_socket_statistics(socket, values.data(), values.size());
    std::map<std::string, std::uint64_t> all;
    for (int i = 0; i < count; ++i) {
      all[weft_socket_statistic_name(static_cast<std::size_t>(i))] = values[static_cast<std::size_t>(i)];
    }
    EXPECT_EQ(weft_socket_statistic_name(static_cast<std::size_t>(count)), nullptr);
    EXPECT_EQ(all.size(), static_cast<std::size_t>(count)) << "two counters have one name";
    return all;
  }
};

TEST_F(CapiStatistics, CountWhatASocketDid) {
  void* const pull = zmq_socket(context_, ZMQ_PULL);
  void* const push = zmq_socket(context_, ZMQ_PUSH);
  ASSERT_EQ(zmq_bind(pull, "inproc://counted"), 0);
  ASSERT_EQ(zmq_connect(push, "inproc://counted"), 0);
  char byte = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(zmq_send(push, "x", 1, 0), 1);
    ASSERT_EQ(zmq_recv(pull, &byte, 1, 0), 1);
  }
  auto sent = read(push);
  auto got = read(pull);
  EXPECT_EQ(sent.at("sent"), 3u);
  EXPECT_EQ(sent.at("arrived"), 0u);
  EXPECT_EQ(got.at("arrived"), 3u);
  EXPECT_EQ(got.at("peers"), 1u);
  EXPECT_EQ(got.at("queued_in"), 0u);
  // A program that was built for fewer counters gets the first ones.
  std::array<std::uint64_t, 2> two{~0ULL, ~0ULL};
  EXPECT_EQ(weft_socket_statistics(push, two.data(), 1), static_cast<int>(sent.size()));
  EXPECT_EQ(two[0], sent.at(weft_socket_statistic_name(0)));
  EXPECT_EQ(two[1], ~0ULL);
  EXPECT_EQ(zmq_close(push), 0);
  EXPECT_EQ(zmq_close(pull), 0);
}

TEST_F(CapiStatistics, AreRefusedWithoutASocketOrAPlace) {
  void* const pull = zmq_socket(context_, ZMQ_PULL);
  EXPECT_ERRNO(EFAULT, weft_socket_statistics(pull, nullptr, 1));
  EXPECT_GT(weft_socket_statistics(pull, nullptr, 0), 0);
  ASSERT_EQ(zmq_close(pull), 0);
  std::uint64_t value = 0;
  EXPECT_ERRNO(ENOTSOCK, weft_socket_statistics(pull, &value, 1));
  EXPECT_ERRNO(ENOTSOCK, weft_socket_statistics(nullptr, &value, 1));
}

}  // namespace
}  // namespace weft::capi
