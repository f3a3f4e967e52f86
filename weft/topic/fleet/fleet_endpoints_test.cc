// SPDX-License-Identifier: MIT
#include "weft/topic/fleet/fleet_endpoints.h"

#include <filesystem>
#include <string>

#include "weft/sys/path.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

// Directory: an empty one, for a test.
class Directory {
 public:
  Directory() : path_(*sys::make_private_directory()) {}
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

TEST(FleetEndpoints, APeerOfATcpFleetListensAtItsSchemeOnly) {
  const FleetEndpoints plain(*Fleet::parse("tcp://127.0.0.1:5555"), 7);
  EXPECT_TRUE(plain.is_possible(1, "tcp://10.0.0.1:7000"));
  EXPECT_FALSE(plain.is_possible(1, "tls+tcp://10.0.0.1:7000"));
  EXPECT_FALSE(plain.is_possible(1, "ipc:///tmp/other.sock"));
  EXPECT_FALSE(plain.is_possible(1, "no endpoint"));
  const FleetEndpoints tls(*Fleet::parse("tls+tcp://127.0.0.1:5555"), 7);
  EXPECT_TRUE(tls.is_possible(1, "tls+tcp://10.0.0.1:7000"));
  EXPECT_FALSE(tls.is_possible(1, "tcp://10.0.0.1:7000"));
}

TEST(FleetEndpoints, APeerOfALocalFleetListensInItsDirectoryUnderItsInstance) {
  const Directory directory;
  FleetEndpoints local(*Fleet::parse("local:one"), 7);
  EXPECT_FALSE(local.is_possible(7, "ipc:///one/0000000000000007.sock"));  // not open
  const auto own = local.open(directory.path());
  ASSERT_TRUE(own) << own.error().text();
  EXPECT_TRUE(local.is_possible(7, *own));
  EXPECT_FALSE(local.is_possible(8, *own));
  EXPECT_FALSE(local.is_possible(0, "ipc:///elsewhere.sock"));
  EXPECT_FALSE(local.is_possible(8, "tcp://127.0.0.1:7000"));
}

TEST(FleetEndpoints, AHandleThatDoesNotListenHasEnded) {
  const Directory directory;
  FleetEndpoints local(*Fleet::parse("local:one"), 7);
  ASSERT_TRUE(local.open(directory.path()));
  EXPECT_TRUE(local.has_ended(8));
  EXPECT_FALSE(local.has_ended(0));
  const auto others = local.find_others();
  ASSERT_TRUE(others);
  EXPECT_TRUE(others->empty());
}

TEST(FleetEndpoints, FleetsOfTheProcessAndOfServersHaveNone) {
  for (const char* const text : {"inproc:one", "nats://127.0.0.1:4222"}) {
    const FleetEndpoints none(*Fleet::parse(text), 7);
    EXPECT_FALSE(none.is_possible(1, "tcp://127.0.0.1:4222"));
    EXPECT_FALSE(none.has_ended(1));
    EXPECT_TRUE(none.find_others()->empty());
  }
}

}  // namespace
}  // namespace weft::topic
