// SPDX-License-Identifier: MIT
#include <memory>
#include <optional>

#include "tests/exhaustion/failing_memory.h"
#include "weft/net/acceptor.h"
#include "weft/rt/loop/loop.h"
#include "weft/sys/clock.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/limits.h"
#include "weft/sys/socket.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;
using test::FailingMemory;

// Stops its loop when the time is over.
class Deadline final : public rt::TurnHook {
 public:
  explicit Deadline(rt::Loop& loop) : loop_(loop), end_(sys::now() + 10s) {}
  Instant handle_turn(Instant now) override {
    if (now >= end_) {
      loop_.stop();
    }
    return end_;
  }
  [[nodiscard]] bool has_work() const noexcept override { return false; }

 private:
  rt::Loop& loop_;
  const Instant end_;
};

// Neither a descriptor for the connection nor memory for the timer that ends the pause.
TEST(Exhaustion, AcceptingResumesAlsoWhenThereWasNoMemoryForItsPause) {
  const auto loop = std::move(rt::Loop::make(nullptr)).value();
  auto listener = std::move(net::Listener::open(*net::parse_endpoint("tcp://127.0.0.1:*", true), {})).value();
  std::optional<FailingMemory> memory;
  std::size_t descriptors = 0;
  int paused = 0;
  bool accepted = false;
  const auto acceptor = net::Acceptor::make(*loop, std::move(listener),
                                            {[&](const std::unique_ptr<net::ByteStream>&) {
                                               accepted = true;
                                               loop->stop();
                                             },
                                             [](const Error&) {},
                                             [&](const Error&) {
                                               if (++paused == 3) {
                                                 memory.reset();
                                                 (void)sys::set_descriptor_limit(descriptors);
                                               }
                                             }});
  const auto parsed = *net::parse_endpoint(acceptor->endpoint(), false);
  const auto to = *sys::SocketAddress::parse_numeric(parsed.host, parsed.port);
  const auto client = std::move(sys::open_tcp_connection(to, nullptr, {})).value();
  acceptor->start();
  {
    const auto probe = std::move(sys::EventFd::make()).value();
    descriptors = *sys::set_descriptor_limit(static_cast<std::size_t>(probe.fd()));
  }
  Deadline deadline(*loop);
  memory.emplace(0, FailingMemory::Length::all);
  (void)loop->run(&deadline, sync::WaitMode::eco);
  memory.reset();
  (void)sys::set_descriptor_limit(descriptors);
  EXPECT_EQ(paused, 3);
  EXPECT_TRUE(accepted);
  acceptor->close();
}

}  // namespace
}  // namespace weft
