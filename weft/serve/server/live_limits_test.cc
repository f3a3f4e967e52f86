// SPDX-License-Identifier: MIT
#include "weft/serve/server/live_limits.h"

#include <memory>
#include <string>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::HeaderSession;

class LiveLimitsTest : public test::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
      const SessionLimits& limits = session.slot().limits;
      const std::string text = std::to_string(limits.tasks_max) + " " + std::to_string(limits.handlers_max);
      (void)session.send(frame.header, as_bytes(text));
    };
    options_.limits.tasks_max = 1;
    options_.live_limits = live_;
  }
  std::string limits_of(Client& client) {
    client.send(1, "");
    return client.receive().value_or("");
  }
  void set(std::size_t tasks_max) {
    SessionLimits limits;
    limits.tasks_max = tasks_max;
    limits.handlers_max = 9;  // a codec without request numbers does not permit it
    live_->set(limits);
  }

  const std::shared_ptr<LiveLimits> live_ = std::make_shared<LiveLimits>();
  ListenerOptions options_;
};

TEST_F(LiveLimitsTest, NewSessionsHaveTheNewLimitsAndOpenOnesKeepTheirs) {
  for (const AcceptMode mode : {AcceptMode::hand_off, AcceptMode::reuse_port}) {
    options_.accept = mode;
    const std::string endpoint = listen(options_);
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 4; ++i) {
      clients.push_back(std::make_unique<Client>(endpoint));
      EXPECT_EQ(limits_of(*clients.back()), "1 1");
    }
    set(2);
    for (int i = 0; i < 4; ++i) {
      clients.push_back(std::make_unique<Client>(endpoint));
      EXPECT_EQ(limits_of(*clients.back()), "2 1");
    }
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(limits_of(*clients[i]), "1 1");
    }
    live_->set(options_.limits);
  }
}

// A slot of older limits lives as long as its sessions: AddressSanitizer finds one that ends earlier.
TEST_F(LiveLimitsTest, ManyChangesKeepOnlyTheLimitsThatSessionsHave) {
  const std::string endpoint = listen(options_);
  Client first(endpoint);
  EXPECT_EQ(limits_of(first), "1 1");
  for (std::size_t i = 2; i < 50; ++i) {
    set(i);
    Client next(endpoint);
    EXPECT_EQ(limits_of(next), std::to_string(i) + " 1");
  }
  EXPECT_EQ(limits_of(first), "1 1");
  until([](const CounterValues& counters) { return counters.closed_total() == 48; });
}

TEST_F(LiveLimitsTest, LimitsThatWereSetBeforeListeningAreThoseOfTheFirstSession) {
  set(7);
  const std::string endpoint = listen(options_);
  Client client(endpoint);
  EXPECT_EQ(limits_of(client), "7 1");
}

}  // namespace
}  // namespace weft::serve
