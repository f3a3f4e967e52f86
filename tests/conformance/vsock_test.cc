// SPDX-License-Identifier: MIT
// vsock:// endpoints that this machine can bind. Where the kernel connects a machine to itself, every suite of this
// folder runs over vsock, too: transports() in conformance.h.
#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

std::vector<std::string> vsock_endpoints() {
  constexpr std::uint32_t kAny = sys::SocketAddress::kVsockAny;
  std::vector<std::string> endpoints;
  if (sys::open_vsock_listener(sys::SocketAddress::from_vsock(kAny, kAny), {})) {
    endpoints.emplace_back("vsock://*:*");
  }
  if (sys::has_vsock_loopback()) {
    endpoints.emplace_back("vsock://1:*");
  }
  return endpoints;
}

class Vsock : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] Socket make(SocketType type) { return std::move(context_.socket(type)).value(); }
  // "vsock://*:1234" -> "1234"
  [[nodiscard]] static std::string port_of(const std::string& endpoint) {
    return endpoint.substr(endpoint.rfind(':') + 1);
  }

  Context context_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Vsock);
INSTANTIATE_TEST_SUITE_P(Here, Vsock, testing::ValuesIn(vsock_endpoints()),
                         [](const auto& row) { return std::string(row.param == "vsock://*:*" ? "Any" : "Loopback"); });

TEST_P(Vsock, BindReportsThePortAndUnbindFreesIt) {
  Socket socket = make(SocketType::pull);
  ASSERT_TRUE(socket.watch_events());
  const auto exact = socket.bind(GetParam());
  ASSERT_TRUE(exact) << exact.error().message();
  EXPECT_EQ(*exact, GetParam().substr(0, GetParam().size() - 1) + port_of(*exact));
  const auto listening = socket.next_event(Duration::zero());
  ASSERT_TRUE(listening) << listening.error().message();
  EXPECT_EQ(listening->kind, EventKind::listening);
  EXPECT_EQ(listening->endpoint, *exact);
  Socket other = make(SocketType::pull);
  EXPECT_EQ(other.bind(*exact).error(), Errc::address_in_use);
  EXPECT_TRUE(socket.unbind(*exact));
  EXPECT_TRUE(other.bind(*exact));
}

TEST_P(Vsock, UnbindTakesEveryFormOfTheEndpoint) {
  Socket socket = make(SocketType::pull);
  const bool any = GetParam() == "vsock://*:*";
  const std::string port = port_of(socket.bind(GetParam()).value());
  EXPECT_EQ(socket.unbind("vsock://3:" + port).error(), Errc::no_such_endpoint);
  EXPECT_TRUE(socket.unbind((any ? "vsock://-1:0" : "vsock://01:0") + port));
}

}  // namespace
}  // namespace weft::conformance
