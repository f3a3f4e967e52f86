// SPDX-License-Identifier: MIT
// A new peer beside many that flood the only core: their bytes are there before it connects.
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::frame_of;
using test::HeaderSession;

constexpr std::size_t kPeers = 64;
constexpr std::size_t kOfEach = 4 * Session::kReadMax;
constexpr std::uint32_t kFloods = 1;
constexpr std::uint32_t kAsks = 2;

class FloodTest : public test::ServerTest {
 protected:
  void SetUp() override { start_runtime(1); }
};

TEST_F(FloodTest, ANewPeerIsServedBeforeThoseThatFloodHaveHadTwoTurns) {
  struct Counts {
    std::size_t flooded = 0;
    std::atomic<std::size_t> before{0};
  };
  const auto counts = std::make_shared<Counts>();  // the flood goes on after the test
  script_.on_frame = [counts](HeaderSession& session, const HeaderCodec::Frame& frame) {
    counts->flooded += frame.body.size();
    if (frame.header.id == kAsks) {
      counts->before = counts->flooded;
      test::echo(session, frame);
    }
  };
  const std::string endpoint = listen();
  std::vector<std::unique_ptr<Client>> many;
  for (std::size_t i = 0; i < kPeers; ++i) {
    many.push_back(std::make_unique<Client>(endpoint));
  }
  until([](const CounterValues& counters) { return counters.opened == kPeers; });
  const std::string frame = frame_of(kFloods, std::string(1000, 'f'));
  std::string bytes;
  while (bytes.size() < kOfEach) {
    bytes += frame;
  }
  std::optional<Client> fresh;
  rt::test::on_core(*runtime_, 0, [&] {
    for (const auto& client : many) {
      ASSERT_EQ(client->write_some(bytes, Duration::zero()), bytes.size());
    }
    fresh.emplace(endpoint);
    fresh->send(kAsks, "fresh");
  });
  EXPECT_EQ(fresh->receive(), "fresh");
  EXPECT_LT(counts->before.load(), kPeers * Session::kReadMax * 3 / 2);
}

}  // namespace
}  // namespace weft::serve
