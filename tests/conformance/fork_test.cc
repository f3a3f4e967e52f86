// SPDX-License-Identifier: MIT
// A forked child has none of its parent's threads. It must end nevertheless, and may resolve names of its own.
#include <cstdlib>
#include <future>
#include <latch>
#include <utility>

#include "weft/net/resolver.h"
#include "weft/sys/linux/test_child.h"
#include <gtest/gtest.h>

namespace weft::conformance {
namespace {

using Answer = Result<net::Resolver::Addresses>;

// Runs `work` in a forked child; true when the child ended in time, with exit code 0.
template <typename Work>
bool ends_well_in_a_child(Work work) {
  return sys::test::holds_in_a_child([&] {
    work();
    return !testing::Test::HasFailure();
  });
}

void resolve_localhost() {
  std::promise<Answer> promise;
  const auto deliver = [&](Answer answer) { promise.set_value(std::move(answer)); };
  ASSERT_TRUE(net::Resolver::shared().submit("localhost", 80, false, deliver));
  EXPECT_TRUE(promise.get_future().get());
}

TEST(Fork, AChildEndsByExitAfterItsParentResolvedAName) {
  resolve_localhost();
  EXPECT_TRUE(ends_well_in_a_child([] { std::exit(0); }));
}

#if !defined(__SANITIZE_THREAD__)  // it ends a forked child that starts a thread
TEST(Fork, AChildResolvesNames) {
  resolve_localhost();
  EXPECT_TRUE(ends_well_in_a_child(resolve_localhost));
}
#endif

TEST(Fork, AChildMayCancelALookupThatItsParentDelivers) {
  std::latch delivering(1);
  std::promise<void> gate;
  std::shared_future<void> open(gate.get_future());
  net::Resolver resolver([](const std::string&, std::uint16_t port, bool) {
    return net::Resolver::Addresses{sys::SocketAddress::any(false, port)};
  });
  const auto id = resolver.submit("h", 1, false, [&](const Answer& /*address*/) {
    delivering.count_down();
    open.wait();
  });
  ASSERT_TRUE(id);
  delivering.wait();
  EXPECT_TRUE(ends_well_in_a_child([&] { (void)resolver.cancel(*id); }));
  gate.set_value();
}

}  // namespace
}  // namespace weft::conformance
