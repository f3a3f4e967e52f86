// SPDX-License-Identifier: MIT
#include "weft/net/acceptor.h"

#include <algorithm>
#include <future>
#include <map>
#include <vector>

#include "weft/rt/loop/test_signal.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/limits.h"
#include "weft/sys/socket.h"
#include <gtest/gtest.h>

namespace weft::net {
namespace {

std::unique_ptr<Listener> listen_on(std::string_view endpoint, AcceptFilter filter = {}, int backlog = 256) {
  auto listener = Listener::open(*parse_endpoint(endpoint, true), {.backlog = backlog});
  EXPECT_TRUE(listener) << listener.error().message();
  (*listener)->set_filter(std::move(filter));
  return std::move(*listener);
}

// The kernel completes this connection before the acceptor takes it.
sys::Connecting connect_to(std::string_view endpoint) {
  const auto parsed = *parse_endpoint(endpoint, false);
  const auto to = *sys::SocketAddress::parse_numeric(parsed.host, parsed.port);
  return std::move(sys::open_tcp_connection(to, nullptr, {})).value();
}

// An Acceptor on a loop of its own, and the arguments of its handlers. The loop's thread writes `streams_`, `by_turn_`
// and `errors_`; the test reads them by on_loop().
class AcceptorTest : public testing::Test {
 protected:
  AcceptorTest() : loop_(std::move(rt::Loop::make("acceptor")).value()) { EXPECT_TRUE(loop_->start(nullptr)); }
  ~AcceptorTest() override {
    if (acceptor_ != nullptr) {
      on_loop([this] { acceptor_->close(); });
    }
    loop_->stop();
  }

  void make(std::unique_ptr<Listener> listener) {
    acceptor_ = Acceptor::make(*loop_, std::move(listener),
                               {[this](std::unique_ptr<ByteStream> stream) {
                                  streams_.push_back(std::move(stream));
                                  ++by_turn_[loop_->now()];
                                  if (when_accepted_) {
                                    when_accepted_();
                                  }
                                  accepted_.give();
                                },
                                [this](const Error& error) {
                                  errors_.push_back(error);
                                  failed_.give();
                                },
                                [this](const Error& error) {
                                  errors_.push_back(error);
                                  paused_.give();
                                }});
  }
  void start() {
    on_loop([this] { acceptor_->start(); });
  }
  void on_loop(const std::function<void()>& function) {
    std::promise<void> done;
    loop_->post([&] {
      function();
      done.set_value();
    });
    done.get_future().wait();
  }
  std::size_t timers() {
    std::size_t timers = 0;
    on_loop([&] { timers = loop_->timers().size(); });
    return timers;
  }

  std::unique_ptr<rt::Loop> loop_;
  std::shared_ptr<Acceptor> acceptor_;
  rt::test::Signal accepted_, failed_, paused_;
  std::function<void()> when_accepted_;
  std::vector<std::unique_ptr<ByteStream>> streams_;
  std::map<Instant, int> by_turn_;
  std::vector<Error> errors_;
};

TEST_F(AcceptorTest, EveryConnectionIsHandedOver) {
  make(listen_on("tcp://127.0.0.1:*"));
  start();
  const auto first = connect_to(acceptor_->endpoint());
  ASSERT_TRUE(accepted_.take());
  const auto second = connect_to(acceptor_->endpoint());
  ASSERT_TRUE(accepted_.take());
  on_loop([&] {
    ASSERT_EQ(streams_.size(), 2u);
    EXPECT_EQ(streams_[0]->peer_address(), sys::local_address(first.fd.fd())->to_text());
    EXPECT_EQ(streams_[1]->peer_address(), sys::local_address(second.fd.fd())->to_text());
    EXPECT_TRUE(errors_.empty());
  });
}

TEST_F(AcceptorTest, ATurnTakesABoundedNumberOfConnections) {
  make(listen_on("tcp://127.0.0.1:*"));
  std::vector<sys::Connecting> clients;
  for (int i = 0; i < Acceptor::kAcceptsPerTurn + 10; ++i) {
    clients.push_back(connect_to(acceptor_->endpoint()));
  }
  start();
  for (std::size_t i = 0; i < clients.size(); ++i) {
    ASSERT_TRUE(accepted_.take());
  }
  on_loop([&] {
    EXPECT_GE(by_turn_.size(), 2u);
    for (const auto& [turn, count] : by_turn_) {
      EXPECT_LE(count, Acceptor::kAcceptsPerTurn);
    }
  });
}

TEST_F(AcceptorTest, ARefusedConnectionIsReportedAndTheNextIsTaken) {
  make(listen_on("tcp://127.0.0.1:*", *AcceptFilter::parse("127.9.8.7", "")));
  start();
  const auto stranger = connect_to(acceptor_->endpoint());
  ASSERT_TRUE(failed_.take());
  const auto parsed = *parse_endpoint(acceptor_->endpoint(), false);
  const auto from = *sys::SocketAddress::parse_numeric("127.9.8.7", 0);
  const auto to = *sys::SocketAddress::parse_numeric(parsed.host, parsed.port);
  const auto friendly = std::move(sys::open_tcp_connection(to, &from, {})).value();
  ASSERT_TRUE(accepted_.take());
  on_loop([&] {
    ASSERT_EQ(errors_.size(), 1u);
    EXPECT_EQ(errors_[0], Errc::connection_failed);
    EXPECT_EQ(streams_.size(), 1u);
  });
}

TEST_F(AcceptorTest, PausesWhenDescriptorsRunOutAndLaterTakesTheConnectionThatWaited) {
  make(listen_on("tcp://127.0.0.1:*"));
  start();
  const auto first = connect_to(acceptor_->endpoint());
  ASSERT_TRUE(accepted_.take());
  const auto second = connect_to(acceptor_->endpoint());
  ASSERT_TRUE(accepted_.take());
  auto third = sys::Connecting{};
  std::size_t before = 0;
  on_loop([&] {  // in one turn: the loop accepts nothing between the connect and the limit
    third = connect_to(acceptor_->endpoint());
    auto probe = std::move(sys::EventFd::make()).value();
    const auto lowest = static_cast<std::size_t>(probe.fd());
    before = *sys::set_descriptor_limit(lowest);
  });
  const bool told = paused_.take() && paused_.take();  // and once more, kPause later
  ASSERT_TRUE(sys::set_descriptor_limit(before));
  EXPECT_TRUE(told);
  ASSERT_TRUE(accepted_.take());
  on_loop([&] {
    EXPECT_EQ(streams_.size(), 3u);
    ASSERT_GE(errors_.size(), 2u);
    EXPECT_EQ(errors_[0], Errc::resource_exhausted);
    EXPECT_EQ(loop_->timers().size(), 0u);
  });
}

// Over TCP the kernel drops a connection for which it has no room, and the peer tries again after a second.
TEST_F(AcceptorTest, WhileNoneCanBeTakenMoreConnectionsWaitThanTheBacklogHolds) {
  constexpr int kBacklog = 3;
  constexpr std::size_t kClients = 40;
  make(listen_on("ipc://*", {}, kBacklog));
  const auto at = *sys::SocketAddress::from_path(acceptor_->endpoint().substr(6));
  std::vector<sys::Connecting> clients;
  const auto connect_some = [&] {
    for (std::size_t i = 0; i < kClients; ++i) {
      if (auto client = sys::open_unix_connection(at, {})) {
        clients.push_back(std::move(*client));
      }
    }
  };
  bool exhausted = true;  // the loop's thread
  when_accepted_ = [&] {
    if (exhausted) {
      throw std::bad_alloc();
    }
  };
  start();
  on_loop([&] { clients.push_back(std::move(sys::open_unix_connection(at, {})).value()); });
  ASSERT_TRUE(paused_.take());
  on_loop([&] {
    clients.clear();
    connect_some();
    exhausted = false;
  });
  EXPECT_EQ(clients.size(), kClients);
  for (std::size_t i = 0; i < kClients; ++i) {
    ASSERT_TRUE(accepted_.take());
  }
  on_loop([&] {});  // the turn in which it found no other is over
  clients.clear();
  on_loop([&] {
    when_accepted_ = nullptr;  // an accept at the end of the test finds no `exhausted`
    connect_some();
  });
  EXPECT_LT(clients.size(), kClients);
}

TEST_F(AcceptorTest, AfterCloseTheEndpointIsFreeAndNoTimerIsLeft) {
  make(listen_on("tcp://127.0.0.1:*"));
  const std::string endpoint = acceptor_->endpoint();
  start();
  std::size_t before = 0;
  const auto first = connect_to(endpoint);
  ASSERT_TRUE(accepted_.take());
  auto second = sys::Connecting{};
  on_loop([&] {
    second = connect_to(endpoint);
    auto probe = std::move(sys::EventFd::make()).value();
    before = *sys::set_descriptor_limit(static_cast<std::size_t>(probe.fd()));
  });
  const bool told = paused_.take();
  on_loop([&] {
    EXPECT_EQ(loop_->timers().size(), 1u);  // the pause
    acceptor_->close();
    acceptor_->close();
    EXPECT_EQ(loop_->timers().size(), 0u);
  });
  ASSERT_TRUE(sys::set_descriptor_limit(before));
  EXPECT_TRUE(told);
  EXPECT_EQ(acceptor_->fd(), -1);
  EXPECT_EQ(acceptor_->endpoint(), endpoint);  // its name stays
  EXPECT_TRUE(Listener::open(*parse_endpoint(endpoint, true), {}));
}

TEST_F(AcceptorTest, StartAfterCloseWatchesNothing) {
  make(listen_on("tcp://127.0.0.1:*"));
  on_loop([&] { acceptor_->close(); });
  start();
  on_loop([&] { EXPECT_EQ(acceptor_->fd(), -1); });
  EXPECT_EQ(timers(), 0u);
  on_loop([&] { EXPECT_TRUE(errors_.empty()); });
}

TEST_F(AcceptorTest, AHandlerMayCloseTheAcceptorAndDropTheLastReference) {
  make(listen_on("tcp://127.0.0.1:*"));
  std::vector<sys::Connecting> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(connect_to(acceptor_->endpoint()));
  }
  when_accepted_ = [this] {
    acceptor_->close();
    acceptor_.reset();
  };
  on_loop([this] { acceptor_->start(); });
  ASSERT_TRUE(accepted_.take());
  on_loop([this] { EXPECT_EQ(streams_.size(), 1u); });
  EXPECT_EQ(acceptor_, nullptr);
}

TEST_F(AcceptorTest, AnAcceptorThatNeverStartedMayBeDestroyedOnAnyThread) {
  make(listen_on("tcp://127.0.0.1:*"));
  const std::string endpoint = acceptor_->endpoint();
  acceptor_.reset();
  EXPECT_TRUE(Listener::open(*parse_endpoint(endpoint, true), {}));
}

}  // namespace
}  // namespace weft::net
