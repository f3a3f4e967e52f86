// SPDX-License-Identifier: MIT
// Subscribers that harm: nothing that one of them asks for slows the publisher or the other subscribers.
#include <atomic>
#include <cstdlib>
#include <set>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"
#include "tests/support/thread_time.h"
#include "weft/msg/socket/socket_core.h"

namespace weft::conformance {
namespace {

std::string subscribe(std::string_view topic) {
  return wire_frame(zmtp::kCommand, "\x9SUBSCRIBE" + std::string(topic));
}
std::string cancel(std::string_view topic) {
  return wire_frame(zmtp::kCommand,
                    "\x6"
                    "CANCEL" +
                        std::string(topic));
}
std::string topic_of(int number) { return "t" + std::to_string(number); }

// The suite measures, so it runs alone.
class QuietHostileSubscriber : public Conformance {
 protected:
  static std::size_t subscribers(Socket& socket) { return socket.core()->subscribers().value_or(0); }
  static void wait_for_subscribers(Socket& socket, std::size_t count) {
    const Instant end = sys::now() + kLong;
    while (subscribers(socket) != count) {
      ASSERT_LT(sys::now(), end);
      std::this_thread::yield();
    }
  }
  // Returns once the publisher has all subscriptions that the peer sent.
  static void settle(Socket& publisher, WirePeer& peer) {
    peer.write(subscribe("settled"));
    std::atomic<bool> settled{false};
    std::thread reader([&] {
      WirePeer::Frame frame = peer.read_frame();
      while ((frame.flags & zmtp::kCommand) != 0) {  // a PING: the publisher took long
        frame = peer.read_frame();
      }
      EXPECT_EQ(frame.body, "settled");
      settled = true;
    });
    while (!settled) {
      send(publisher, "settled");
      std::this_thread::yield();
    }
    reader.join();
  }
};
INSTANTIATE_TEST_SUITE_P(QuietTcp, QuietHostileSubscriber, testing::Values(kTransports[1]),
                         [](const auto& row) { return std::string(row.param.name); });

// A look-up for each subscribed length took 2.6 ms for a message.
TEST_P(QuietHostileSubscriber, ATopicOfEveryLengthDoesNotSlowThePublisher) {
  Socket pub = make(SocketType::pub);
  WirePeer peer = WirePeer::dial(bind(pub), zmtp::WireType::sub);
  std::string subscriptions;
  for (std::size_t size = 1; size <= 4096; ++size) {
    subscriptions += subscribe(std::string(size, '\xee'));
  }
  peer.write(subscriptions);
  settle(pub, peer);
  std::string body(4096, 'x');
  const auto publish = [&] {
    const Duration begin = thread_time();
    for (int i = 0; i < 300; ++i) {
      body.replace(0, 8, std::to_string(10'000'000 + i));
      send(pub, body);
    }
    return thread_time() - begin;
  };
  EXPECT_LT(shortest_time(200ms, publish), 200ms);
}

// Each end of a subscriber visited all topics of the others, which took 31 ms.
TEST_P(QuietHostileSubscriber, TheTopicsOfOneDoNotDelayTheEndOfAnother) {
  const auto come_and_go = [](Socket& publisher, const std::string& at, std::size_t others) {
    const Instant begin = sys::now();
    for (int i = 0; i < 20; ++i) {
      WirePeer peer = WirePeer::dial(at, zmtp::WireType::sub);
      peer.write(subscribe("small"));
      wait_for_subscribers(publisher, others + 1);
      peer = WirePeer::dial(at, zmtp::WireType::sub);
      wait_for_subscribers(publisher, others);
    }
    return sys::now() - begin;
  };
  Socket alone = make(SocketType::pub);
  const std::string alone_endpoint = bind(alone);
  Socket pub = make(SocketType::pub);
  const std::string endpoint = bind(pub);
  WirePeer large = WirePeer::dial(endpoint, zmtp::WireType::sub);
  std::string subscriptions;
  for (int i = 0; i < 200'000; ++i) {
    subscriptions += subscribe(topic_of(i));
  }
  large.write(subscriptions);
  settle(pub, large);
  // In turns with the publisher that has no other subscriber: the machine may be busy at any time.
  bool quick = false;
  for (int i = 0; i < 6 && !quick; ++i) {
    const Duration without = come_and_go(alone, alone_endpoint, 0);
    quick = come_and_go(pub, endpoint, 1) < 3 * without + 300ms;
  }
  EXPECT_TRUE(quick);
}

class HostileSubscriber : public QuietHostileSubscriber {};
WEFT_TRANSPORTS_WHERE(HostileSubscriber, in_the_clear);

TEST_P(HostileSubscriber, AnEndedSubscribersTopicsAreAllToldOnce) {
  constexpr int kTopics = 3000;
  Socket xpub = make(SocketType::xpub);
  const std::string endpoint = bind(xpub);
  WirePeer stays = WirePeer::dial(endpoint, zmtp::WireType::sub);
  stays.write(subscribe(topic_of(7)));
  EXPECT_EQ(recv_text(xpub), "\1" + topic_of(7));
  std::set<std::string> expected;
  {
    WirePeer leaves = WirePeer::dial(endpoint, zmtp::WireType::sub);
    std::string subscriptions;
    for (int i = 0; i < kTopics; ++i) {
      subscriptions += subscribe(topic_of(i));
      if (i != 7) {
        expected.insert(topic_of(i));
      }
    }
    leaves.write(subscriptions);
    for (const std::string& text : recv_many(xpub, kTopics - 1)) {
      EXPECT_EQ(text[0], '\1');
    }
  }
  std::set<std::string> told;
  for (const std::string& text : recv_many(xpub, kTopics - 1)) {
    EXPECT_EQ(text[0], '\0');
    EXPECT_TRUE(told.insert(text.substr(1)).second) << text;
  }
  EXPECT_EQ(told, expected);
  EXPECT_EQ(subscribers(xpub), 1u);
  send(xpub, topic_of(7));
  EXPECT_EQ(stays.read_frame().body, topic_of(7));
  EXPECT_EQ(xpub.recv_until(sys::now()).error(), Errc::timed_out);
}

TEST_P(HostileSubscriber, APublisherMayCloseWhileTheTopicsOfAnEndedSubscriberGo) {
  std::string subscriptions;
  for (int i = 0; i < 20'000; ++i) {
    subscriptions += subscribe(topic_of(i));
  }
  Socket xpub = make(SocketType::xpub);
  {
    WirePeer peer = WirePeer::dial(bind(xpub), zmtp::WireType::sub);
    peer.write(subscriptions);
    EXPECT_EQ(recv_many(xpub, 20'000).size(), 20'000u);
  }
  EXPECT_EQ(recv_text(xpub)[0], '\0');
  xpub.close();
}

TEST_P(HostileSubscriber, ASubscriberOfTooManyBytesLosesTheLastTopicsAndStays) {
  Socket pub = make(SocketType::pub);
  (void)pub.watch_events();
  WirePeer peer = WirePeer::dial(bind(pub), zmtp::WireType::sub);
  const std::string rest(60'000, 'x');
  for (int i = 0; i < 1100; ++i) {  // 66,000,000 bytes: within the bound
    peer.write(subscribe(topic_of(i) + rest));
  }
  settle(pub, peer);
  std::string more;
  for (int i = 1100; i < 1140; ++i) {
    more += subscribe(topic_of(i) + rest);
  }
  peer.write(more);
  const MonitorEvent event = wait_for_event(pub, EventKind::bound_exceeded);
  EXPECT_EQ(event.reason, Errc::message_too_large);
  EXPECT_STREQ(event.reason.text(), "too many bytes of subscriptions");
  send(pub, topic_of(1139) + rest);
  send(pub, topic_of(7) + rest);
  WirePeer::Frame frame = peer.read_frame();
  while (frame.body == "settled") {  // settle() may have published more of them
    frame = peer.read_frame();
  }
  EXPECT_TRUE(frame.body == topic_of(7) + rest) << frame.body.substr(0, 40);
  EXPECT_EQ(subscribers(pub), 1u);
}

// The application does not receive: the waiting messages stay bounded, and the notices of other peers still find room.
TEST_P(HostileSubscriber, ASubscriberThatComesAndGoesFasterThanTheApplicationReadsIsLeft) {
  Socket xpub = make(SocketType::xpub);
  (void)xpub.watch_events();
  const std::string endpoint = bind(xpub);
  WirePeer peer = WirePeer::dial(endpoint, zmtp::WireType::sub);
  const std::string topic(60'000, 'x');
  const std::string turn = subscribe(topic) + cancel(topic);
  for (int i = 0; i < 400; ++i) {  // 48 MB of notices
    if (peer.write_until_full(turn, kLong) != turn.size()) {
      break;
    }
  }
  const MonitorEvent event = wait_for_event(xpub, EventKind::disconnected);
  EXPECT_STREQ(event.reason.text(), "too many subscriptions that the application has not received");
  WirePeer other = WirePeer::dial(endpoint, zmtp::WireType::sub);
  other.write(subscribe("other"));
  while (recv_text(xpub) != "\1other" && !HasFailure()) {
  }
}

// Runs each of `tasks` in a thread. A deadlock ends the program: its threads cannot be joined.
void run_all(std::initializer_list<std::function<void()>> tasks) {
  constexpr Duration kLimit = 100s;
  std::atomic<std::size_t> ended{0};
  std::vector<std::thread> threads;
  for (const std::function<void()>& task : tasks) {
    threads.emplace_back([&ended, task] {
      task();
      ++ended;
    });
  }
  const Instant end = sys::now() + kLimit;
  while (ended != threads.size()) {
    if (sys::now() > end) {
      (void)std::fputs("deadlock\n", stderr);
      std::_Exit(1);
    }
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

class SubscriberPair : public Conformance {};
INSTANTIATE_TEST_SUITE_P(Inproc, SubscriberPair, testing::Values(kTransports[0]),
                         [](const auto& row) { return std::string(row.param.name); });

// Each subscription locked the other socket, whatever its type.
TEST_P(SubscriberPair, TwoSubscribersThatAreConnectedToEachOtherDoNotWaitForEachOther) {
  for (const auto& [first_type, second_type] :
       {std::pair(SocketType::sub, SocketType::sub), std::pair(SocketType::sub, SocketType::xsub),
        std::pair(SocketType::xsub, SocketType::xsub)}) {
    Socket first = make(first_type);
    Socket second = make(second_type);
    connect(first, bind(second));
    connect(second, bind(first));
    const auto churn = [](Socket& socket) {
      for (int i = 0; i < 20'000; ++i) {
        const std::string topic = topic_of(i % 10);
        ASSERT_TRUE(socket.core()->subscribe({FilterKind::prefix, topic}, i / 10 % 2 == 0));
      }
    };
    run_all({[&] { churn(first); }, [&] { churn(second); }});
  }
}

TEST_P(SubscriberPair, ASubscriberThatIsConnectedToItselfSubscribes) {
  Socket sub = make(SocketType::sub);
  connect(sub, bind(sub));
  run_all({[&] { EXPECT_TRUE(sub.subscribe("a")); }});
}

// The I/O thread starts for the rest of the topics.
TEST_P(SubscriberPair, AnEndedSubscribersTopicsAreAllToldOnce) {
  constexpr std::size_t kTopics = 3000;
  Socket xpub = make(SocketType::xpub);
  {
    Socket sub = make(SocketType::sub);
    connect(sub, bind(xpub));
    for (std::size_t i = 0; i < kTopics; ++i) {
      ASSERT_TRUE(sub.subscribe(topic_of(static_cast<int>(i))));
    }
    EXPECT_EQ(recv_many(xpub, kTopics).size(), kTopics);
  }
  std::set<std::string> told;
  for (const std::string& text : recv_many(xpub, kTopics)) {
    EXPECT_EQ(text[0], '\0');
    EXPECT_TRUE(told.insert(text.substr(1)).second) << text;
  }
  EXPECT_EQ(told.size(), kTopics);
}

TEST_P(SubscriberPair, APublisherAndItsSubscriberMayBothChangeAtOnce) {
  Socket xpub = make(SocketType::xpub);
  Socket xsub = make(SocketType::xsub);
  connect(xsub, bind(xpub));
  connect(xpub, bind(xsub));
  run_all({[&] {
             for (int i = 0; i < 20'000; ++i) {
               ASSERT_TRUE(xsub.core()->subscribe({FilterKind::prefix, topic_of(i % 10)}, i / 10 % 2 == 0));
             }
           },
           [&] {
             for (int i = 0; i < 20'000; ++i) {
               send(xpub, topic_of(i % 10));
             }
           }});
}

}  // namespace
}  // namespace weft::conformance
