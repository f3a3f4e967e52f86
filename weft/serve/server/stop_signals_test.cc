// SPDX-License-Identifier: MIT
#include "weft/serve/server/stop_signals.h"

#include <functional>
#include <stdexcept>
#include <thread>

#include "weft/rt/core/test_runtime.h"
#include "weft/serve/server/test_client.h"
#include "weft/sys/clock.h"
#include "weft/sys/linux/test_signals.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::echo;
using test::HeaderSession;
using test::kLong;
using test::Signal;

// The signals go to the thread that runs, so each case has one of its own.
class StopSignalsTest : public test::ServerTest {
 protected:
  // Runs StopSignals::run() on a thread, and returns when that waits for its signal.
  void run(const StopOptions& options, std::function<void()> on_hang_up = {}) {
    Signal blocked;
    runner_ = std::thread([this, options, on_hang_up, &blocked] {
      StopSignals signals(on_hang_up);
      blocked.give();
      result_ = signals.run(*server_, options);
    });
    ASSERT_TRUE(blocked.take());
  }
  void signal() { sys::test::send_end_signal(runner_.native_handle()); }
  Result<void> end() {
    runner_.join();
    return result_;
  }
  void until_ready_is(Errc code) {
    const Instant limit = sys::now() + kLong;
    while ((server_->ready() || server_->ready().error() != code) && sys::now() < limit) {
      std::this_thread::yield();
    }
    EXPECT_EQ(server_->ready().error(), code);
  }

  std::thread runner_;
  Result<void> result_;
};

TEST_F(StopSignalsTest, ASignalStopsTheServer) {
  script_.on_frame = echo;
  make_server();
  const std::string endpoint = listen();
  run({});
  Client client(endpoint);
  client.send(1, "served");
  EXPECT_EQ(client.receive(), "served");
  signal();
  EXPECT_TRUE(end());
  EXPECT_EQ(server_->ready().error(), Errc::closed);
  EXPECT_EQ(client.read_to_end(), "");
}

TEST_F(StopSignalsTest, ALameDuckServesAndIsNotReadyUntilTheNextSignal) {
  script_.on_frame = echo;
  make_server();
  const std::string endpoint = listen();
  run({.lame_duck = kLong * 10});
  signal();
  until_ready_is(Errc::terminated);
  Client client(endpoint);  // still accepted
  client.send(1, "served");
  EXPECT_EQ(client.receive(), "served");
  signal();
  EXPECT_TRUE(end());
}

TEST_F(StopSignalsTest, AFurtherSignalEndsTheDrain) {
  Signal entered;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    session.begin_reply();  // never ends
    entered.give();
  };
  make_server();
  Client client(listen());
  client.send(1, "");
  ASSERT_TRUE(entered.take());
  run({.drain = kLong * 10});
  signal();
  until_ready_is(Errc::terminated);
  signal();
  EXPECT_EQ(end().error(), Errc::timed_out);
}

TEST_F(StopSignalsTest, ASignalThatComesBeforeTheWaitIsNotLost) {
  make_server();
  (void)listen();
  StopSignals signals;
  sys::test::send_end_signal(sys::test::this_thread());
  EXPECT_TRUE(signals.run(*server_));
}

TEST_F(StopSignalsTest, AHangUpCallsTheProgramAndTheServerServesOn) {
  script_.on_frame = echo;
  make_server();
  Client client(listen());
  Signal called;
  int calls = 0;
  run({}, [&] {
    ++calls;
    called.give();
    throw std::runtime_error("dropped");
  });
  for (int i = 1; i <= 3; ++i) {
    sys::test::send_hang_up(runner_.native_handle());
    ASSERT_TRUE(called.take());
    client.send(1, "served");
    EXPECT_EQ(client.receive(), "served");
  }
  signal();
  EXPECT_TRUE(end());
  EXPECT_EQ(calls, 3);
}

TEST_F(StopSignalsTest, ARestartTakesTheAnnouncementBack) {
  make_server();
  (void)listen();
  server_->announce_stop();
  EXPECT_EQ(server_->ready().error(), Errc::terminated);
  ASSERT_TRUE(server_->stop(sys::now() + kLong));
  ASSERT_TRUE(server_->restart());
  EXPECT_TRUE(server_->ready());
}

}  // namespace
}  // namespace weft::serve
