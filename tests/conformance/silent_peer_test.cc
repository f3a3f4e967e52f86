// SPDX-License-Identifier: MIT
// Peers that connect and send no byte: each transport keeps them in the lobby.
#include <malloc.h>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"

namespace weft::conformance {
namespace {

// The suite measures, so it runs alone.
class QuietSilentPeer : public Conformance {
 protected:
  // The allocator's bytes in use.
  static std::size_t in_use() {
    const struct mallinfo2 now = ::mallinfo2();
    return now.uordblks + now.hblkhd;
  }
};
// A sanitizer has an allocator of its own, whose bytes are not counted.
bool counted(const Transport& row) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  (void)row;
  return false;
#else
  return over_tcp(row);
#endif
}
WEFT_TRANSPORTS_WHERE(QuietSilentPeer, counted);

TEST_P(QuietSilentPeer, TakesAtMostTwoKilobytesBeforeItsFirstByte) {
  constexpr std::uint64_t kPeers = 300;
  constexpr std::size_t kMost = 2048;
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::handshake_timeout, kLong));
  std::string endpoint = bind(pull);
  endpoint = "tcp://" + endpoint.substr(endpoint.find("://") + 3);
  endpoint.erase(std::min(endpoint.find("/", 6), endpoint.size()));  // of ws
  std::vector<BytePeer> peers;
  peers.reserve(kPeers);
  const auto add = [&](std::uint64_t count) {
    while (peers.size() < count) {
      peers.push_back(BytePeer::dial(endpoint));
    }
    const Instant end = sys::now() + kLong;
    while (pull.statistics()->accepted < count) {
      ASSERT_LT(sys::now(), end);
      std::this_thread::yield();
    }
  };
  add(kPeers / 3);  // tables and pools grow
  const std::size_t before = in_use();
  add(kPeers);
  const std::size_t each = (in_use() - before) / (kPeers - kPeers / 3);  // with the peer's own object
  EXPECT_LE(each, kMost);
  EXPECT_EQ(pull.statistics()->handshakes_failed, 0u);
}

}  // namespace
}  // namespace weft::conformance
