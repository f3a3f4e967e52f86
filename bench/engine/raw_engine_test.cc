// SPDX-License-Identifier: MIT
#include <memory>
#include <thread>
#include <vector>

#include "bench/engine/end.h"
#include <gtest/gtest.h>

namespace bench {
namespace {

class RawEngine : public testing::TestWithParam<const char*> {};

// Sizes below and above those that are copied into a block, larger than a block, and the largest that the
// ends were made for.
TEST_P(RawEngine, DeliversMessagesOfAnySizeInOrder) {
  const std::vector<std::size_t> sizes{64, 1, 119, 5'000, 65'535, 65'536, 300'000, 64, 0, 700'000};
  const Cell cell = parse_cell(GetParam());
  const auto engine = make_raw(false);
  const auto addresses = std::make_unique<Addresses>();
  engine->prepare(cell, *addresses);
  const Ends leaders = engine->bind(cell, *addresses);
  std::thread sender([&] {
    const Ends followers = engine->connect(cell, *addresses);
    for (int round = 0; round < 5; ++round) {
      for (const std::size_t size : sizes) {
        const std::vector<unsigned char> message(size,
                                                 static_cast<unsigned char>(size + static_cast<std::size_t>(round)));
        followers[0]->send(message.data(), message.size());
      }
    }
    followers[0]->flush();
  });
  std::vector<unsigned char> target(cell.size);
  for (int round = 0; round < 5; ++round) {
    for (const std::size_t size : sizes) {
      ASSERT_EQ(leaders[0]->receive(target.data(), target.size()), size);
      const auto value = static_cast<unsigned char>(size + static_cast<std::size_t>(round));
      ASSERT_EQ(std::vector<unsigned char>(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(size)),
                std::vector<unsigned char>(size, value));
    }
  }
  sender.join();
}

INSTANTIATE_TEST_SUITE_P(OverEach, RawEngine,
                         testing::Values("push_pull/tcp/700000", "push_pull/ipc/700000", "push_pull/inproc/700000",
                                         "round_trip/inproc/700000", "round_trip/tcp/700000"));

}  // namespace
}  // namespace bench
