// SPDX-License-Identifier: MIT
// poll over sockets and plain descriptors.
#include <array>
#include <atomic>

#include "tests/conformance/conformance.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sys/event_fd.h"

namespace weft::conformance {
namespace {

class Polling : public Conformance {
 protected:
  static std::size_t ready(std::span<PollItem> items, Duration timeout = kLong) {
    const auto count = poll(items, timeout);
    EXPECT_TRUE(count) << count.error().message();
    return count ? *count : 0;
  }
  static bool input_ready(Socket& socket, Duration timeout) {
    PollItem item{.socket = &socket, .want_input = true};
    const std::size_t count = ready({&item, 1}, timeout);
    EXPECT_EQ(count, item.input ? 1u : 0u);
    return item.input;
  }
  static bool output_ready(Socket& socket, Duration timeout) {
    PollItem item{.socket = &socket, .want_output = true};
    const std::size_t count = ready({&item, 1}, timeout);
    EXPECT_EQ(count, item.output ? 1u : 0u);
    return item.output;
  }
};
WEFT_EVERY_TRANSPORT(Polling);

TEST_P(Polling, InputIsReportedWhenThereIsAMessageAndNotWhenItIsTaken) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  EXPECT_FALSE(input_ready(pull, 0ms));
  const Instant before = sys::now();
  EXPECT_FALSE(input_ready(pull, 20ms));
  EXPECT_GE(sys::now() - before, 20ms);
  for (int i = 0; i < 50; ++i) {
    send(push, {"a", "b"});
    EXPECT_TRUE(input_ready(pull, kLong));
    EXPECT_TRUE(input_ready(pull, 0ms));  // asking takes nothing
    EXPECT_EQ(recv(pull), (Texts{"a", "b"}));
    EXPECT_FALSE(input_ready(pull, 0ms));
  }
}

TEST_P(Polling, InputThatComesWhilePollSleepsWakesIt) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  for (int i = 0; i < 100; ++i) {
    std::thread sender([&] { send(push, "wake"); });
    EXPECT_TRUE(input_ready(pull, -1ms));
    EXPECT_EQ(recv_text(pull), "wake");
    sender.join();
  }
}

TEST_P(Polling, OutputIsReportedWhileThereIsRoomAndAgainWhenThereIs) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  EXPECT_FALSE(output_ready(push, 0ms)) << "without a peer there is no room";
  ASSERT_TRUE(push.set(option::send_high_water_mark, 2));
  ASSERT_TRUE(pull.set(option::receive_high_water_mark, 2));
  ASSERT_TRUE(push.set(option::send_buffer, 4096));
  connect(push, bind(pull));
  EXPECT_TRUE(output_ready(push, kLong));
  const std::string payload(500'000, 'x');
  int sent = 0;
  do {  // until there is no room for 10 ms: on a loaded machine the kernel makes room late
    while (push.try_send(as_bytes(payload))) {
      ASSERT_LT(++sent, 1'000);
    }
  } while (output_ready(push, 10ms));
  std::thread reader([&] {
    for (int i = 0; i < sent; ++i) {
      EXPECT_EQ(recv_text(pull).size(), payload.size());
    }
  });
  EXPECT_TRUE(output_ready(push, kLong));
  reader.join();
}

TEST_P(Polling, BothDirectionsOfOneSocketAreAnsweredSeparately) {
  Socket one = make(SocketType::pair);
  Socket two = make(SocketType::pair);
  connect(two, bind(one));
  send(two, "hello");
  EXPECT_EQ(recv_text(one), "hello");
  PollItem item{.socket = &one, .want_input = true, .want_output = true};
  EXPECT_EQ(ready({&item, 1}), 1u);
  EXPECT_FALSE(item.input);
  EXPECT_TRUE(item.output);
  send(two, "again");
  EXPECT_TRUE(input_ready(one, kLong));
  EXPECT_EQ(ready({&item, 1}), 1u);
  EXPECT_TRUE(item.input);
  EXPECT_TRUE(item.output);
}

TEST_P(Polling, RequestsAndRepliesAreReadyInTurn) {
  Socket rep = make(SocketType::rep);
  Socket req = make(SocketType::req);
  connect(req, bind(rep));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(output_ready(req, kLong));
    EXPECT_FALSE(output_ready(rep, 0ms));
    EXPECT_FALSE(input_ready(req, 0ms));
    send(req, "question");
    EXPECT_FALSE(output_ready(req, 0ms));
    EXPECT_TRUE(input_ready(rep, kLong));
    EXPECT_EQ(recv_text(rep), "question");
    EXPECT_TRUE(output_ready(rep, 0ms));
    EXPECT_FALSE(input_ready(rep, 0ms));
    send(rep, "answer");
    EXPECT_TRUE(input_ready(req, kLong));
    EXPECT_EQ(recv_text(req), "answer");
  }
}

TEST_P(Polling, AmongManySocketsExactlyTheReadyOnesAreReported) {
  constexpr std::size_t kCount = 20;
  std::vector<Socket> pulls;
  std::vector<Socket> pushes;
  std::vector<PollItem> items;
  for (std::size_t i = 0; i < kCount; ++i) {
    pulls.push_back(make(SocketType::pull));
    pushes.push_back(make(SocketType::push));
    connect(pushes.back(), bind(pulls.back()));
  }
  for (Socket& pull : pulls) {
    items.push_back({.socket = &pull, .want_input = true});
  }
  EXPECT_EQ(ready(items, 0ms), 0u);
  for (std::size_t i = 0; i < kCount; ++i) {
    std::thread sender([&] { send(pushes[i], "x"); });
    EXPECT_EQ(ready(items), 1u);
    for (std::size_t k = 0; k < kCount; ++k) {
      EXPECT_EQ(items[k].input, k == i);
    }
    EXPECT_EQ(recv_text(pulls[i]), "x");
    sender.join();
  }
  EXPECT_EQ(ready(items, 0ms), 0u);
}

TEST_P(Polling, PlainDescriptorsAndSocketsAreWaitedForTogether) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  auto event = std::move(sys::EventFd::make()).value();
  std::array<PollItem, 3> items = {PollItem{.socket = &pull, .want_input = true},
                                   PollItem{.fd = event.fd(), .want_input = true},
                                   PollItem{.fd = -1, .want_input = true}};
  EXPECT_EQ(ready(items, 0ms), 0u);
  EXPECT_EQ(ready(items, 10ms), 0u);
  for (int i = 0; i < 20; ++i) {
    std::thread signaller([&] { event.signal(); });
    EXPECT_EQ(ready(items), 1u);
    EXPECT_FALSE(items[0].input);
    EXPECT_TRUE(items[1].input);
    signaller.join();
    event.drain();
    std::thread sender([&] { send(push, "x"); });
    EXPECT_EQ(ready(items), 1u);
    EXPECT_TRUE(items[0].input);
    EXPECT_FALSE(items[1].input);
    sender.join();
    event.signal();
    EXPECT_EQ(ready(items), 2u);
    EXPECT_TRUE(items[0].input);
    EXPECT_TRUE(items[1].input);
    event.drain();
    EXPECT_EQ(recv_text(pull), "x");
  }
}

TEST_P(Polling, OfAPlainDescriptorOutputAndFailureAreReported) {
  auto event = std::move(sys::EventFd::make()).value();  // has room always
  PollItem item{.fd = event.fd(), .want_input = true, .want_output = true};
  EXPECT_EQ(ready({&item, 1}), 1u);
  EXPECT_FALSE(item.input);
  EXPECT_TRUE(item.output);
  EXPECT_FALSE(item.failed);
  PollItem bad{.fd = 1'000'000, .want_input = true};
  EXPECT_EQ(ready({&bad, 1}), 1u);
  EXPECT_TRUE(bad.failed);
}

TEST_P(Polling, NothingToWaitForIsATimeOut) {
  EXPECT_EQ(ready({}, 1ms), 0u);
  EXPECT_EQ(ready({}, 0ms), 0u);
}

TEST_P(Polling, APeerThatConnectsWhilePollSleepsIsHeard) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  for (int i = 0; i < 10; ++i) {
    std::thread peer([&] {
      Socket push = make(SocketType::push);
      connect(push, endpoint);
      send(push, "x");
    });
    EXPECT_TRUE(input_ready(pull, kLong));
    EXPECT_EQ(recv_text(pull), "x");
    peer.join();
  }
}

TEST_P(Polling, SeveralThreadsMayPollAndReceiveOnOneSocket) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  constexpr int kCount = 3000;
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (;;) {
        auto got = t == 0 ? pull.recv() : pull.try_recv();
        if (!got && got.error() == Errc::would_block) {
          (void)input_ready(pull, -1ms);
          continue;
        }
        if (!got || got->text() == "end") {
          EXPECT_TRUE(got) << got.error().message();
          return;
        }
        taken.fetch_add(1);
      }
    });
  }
  for (int i = 0; i < kCount; ++i) {
    send(push, "x");
  }
  while (taken.load() < kCount && !HasFailure()) {
    std::this_thread::yield();
  }
  for (int t = 0; t < 3; ++t) {
    send(push, "end");
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(taken.load(), kCount);
}

TEST_P(Polling, TheSocketsDescriptorTellsAnEventLoop) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  const auto fd = pull.core()->descriptor();
  ASSERT_TRUE(fd) << fd.error().message();
  EXPECT_EQ(*pull.core()->descriptor(), *fd);
  const auto wait = [&] {
    PollItem item{.fd = *fd, .want_input = true};
    return ready({&item, 1}) == 1;
  };
  for (int i = 0; i < 100; ++i) {
    std::thread sender([&] { send(push, "x"); });
    // As an event loop does: receive all messages, read the events, and only then sleep.
    for (;;) {
      const auto got = pull.try_recv();
      if (got) {
        EXPECT_EQ(got->text(), "x");
        break;
      }
      if (!pull.core()->readiness({true, false}).input) {
        ASSERT_TRUE(wait());
      }
    }
    sender.join();
  }
}

TEST_P(Polling, AMessageThatCameBeforeTheDescriptorWasMadeMakesItReady) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  for (const char* text : {"1", "2"}) {
    send(push, text);
  }
  EXPECT_EQ(recv_text(pull), "1");  // "2" may be in this process already, where no descriptor shows it
  PollItem item{.fd = *pull.core()->descriptor(), .want_input = true};
  EXPECT_EQ(ready({&item, 1}), 1);
}

// As libzmq's zmq_poll does; CZMQ's test of zpoller requires it.
TEST_P(Polling, ADescriptorIsReportedBesideItsOwnSocket) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  std::array<PollItem, 2> items{PollItem{.socket = &pull, .want_input = true},
                                PollItem{.fd = *pull.core()->descriptor(), .want_input = true}};
  EXPECT_EQ(ready(items), 1u);
  EXPECT_FALSE(items[0].input);
  EXPECT_TRUE(items[1].input) << "it is ready at first";
  while (ready(items, 0ms) != 0) {
  }
  send(push, "x");
  while (!items[0].input && !HasFailure()) {
    EXPECT_GE(ready(items), 1u);
  }
  EXPECT_EQ(recv_text(pull), "x");
}

// A program that never reads ZMQ_EVENTS, but receives until no message is left.
TEST_P(Polling, AReceiverThatNeverReadsTheEventsSleepsOnTheDescriptorAndIsWoken) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  PollItem item{.fd = *pull.core()->descriptor(), .want_input = true};
  for (int i = 0; i < 20; ++i) {
    send(push, "x");
    int taken = 0;
    while (taken == 0) {
      ASSERT_EQ(ready({&item, 1}), 1);
      while (pull.try_recv()) {
        ++taken;
      }
    }
    EXPECT_EQ(taken, 1);
    // Late events of the connection may make the descriptor ready again, but not for ever.
    const Instant end = sys::now() + kLong;
    while (ready({&item, 1}, 0ms) != 0) {
      ASSERT_LT(sys::now(), end) << "it does not sleep";
      EXPECT_FALSE(pull.try_recv());
    }
  }
}

}  // namespace
}  // namespace weft::conformance
