// SPDX-License-Identifier: MIT
// One socket, several threads; and peers that die in the middle of a message.
#include <atomic>
#include <set>

#include "tests/conformance/conformance.h"
#include "weft/sys/clock.h"

namespace weft::conformance {
namespace {

class Threads : public Conformance {};
WEFT_EVERY_TRANSPORT(Threads);

TEST_P(Threads, SeveralSendersOnOneSocketLoseAndDoubleNothingAndKeepTheirOrder) {
  constexpr int kSenders = 4;
  constexpr int kEach = 3000;
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::send_high_water_mark, 50));
  connect(push, bind(pull));
  std::vector<std::thread> senders;
  for (int t = 0; t < kSenders; ++t) {
    senders.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        send(push, std::to_string(t) + ' ' + std::to_string(i));
      }
    });
  }
  std::vector<int> next(kSenders, 0);
  for (int n = 0; n < kSenders * kEach; ++n) {
    const std::string text = recv_text(pull);
    int& expected = next[static_cast<std::size_t>(text[0] - '0')];
    ASSERT_EQ(std::stoi(text.substr(2)), expected++) << "from sender " << text[0];
  }
  for (std::thread& sender : senders) {
    sender.join();
  }
}

TEST_P(Threads, SeveralReceiversOnOneSocketGetEverythingExactlyOnce) {
  constexpr int kReceivers = 4;
  constexpr int kCount = 8000;
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  std::vector<std::atomic<int>> seen(kCount);
  std::atomic<bool> in_order{true};
  std::vector<std::thread> receivers;
  for (int t = 0; t < kReceivers; ++t) {
    receivers.emplace_back([&] {
      int last = -1;
      for (;;) {
        const std::string text = recv_text(pull);
        if (HasFailure() || text == "end") {
          return;
        }
        const int number = std::stoi(text);
        seen[static_cast<std::size_t>(number)].fetch_add(1);
        in_order = in_order && number > last;
        last = number;
      }
    });
  }
  for (int i = 0; i < kCount; ++i) {
    send(push, std::to_string(i));
  }
  for (int t = 0; t < kReceivers; ++t) {
    send(push, "end");
  }
  for (std::thread& receiver : receivers) {
    receiver.join();
  }
  EXPECT_TRUE(in_order.load());
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(seen[static_cast<std::size_t>(i)].load(), 1) << i;
  }
}

TEST_P(Threads, ABurstIsSharedByAllReceiversThatSleep) {
  constexpr int kReceivers = 3;
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> entered{0};
    std::atomic<int> got{0};
    std::vector<std::thread> receivers;
    for (int t = 0; t < kReceivers; ++t) {
      receivers.emplace_back([&] {
        entered.fetch_add(1);
        EXPECT_EQ(recv_text(pull), "x");  // one message for each thread; no thread needs a second wake-up
        got.fetch_add(1);
      });
    }
    while (entered.load() < kReceivers) {
      std::this_thread::yield();
    }
    for (int i = 0; i < kReceivers; ++i) {
      send(push, "x");
    }
    for (std::thread& receiver : receivers) {
      receiver.join();
    }
    ASSERT_EQ(got.load(), kReceivers) << "in round " << round;
  }
}

TEST_P(Threads, SendersAndReceiversOnEverySocketAtOnce) {
  constexpr int kThreads = 3;
  constexpr int kEach = 1500;
  Socket pulls[2] = {make(SocketType::pull), make(SocketType::pull)};
  Socket push = make(SocketType::push);
  for (Socket& pull : pulls) {
    connect(push, bind(pull));
  }
  std::vector<std::atomic<int>> seen(kThreads * kEach);
  std::atomic<int> total{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const int number = t * kEach + i;
        send(push, {std::to_string(number), std::string(number % 3 == 0 ? 2000 : 5, 'x')});
      }
    });
    threads.emplace_back([&, t] {
      Socket& pull = pulls[t % 2];
      while (total.load() < kThreads * kEach && !HasFailure()) {
        const auto first = pull.recv_until(sys::now() + 2ms);
        if (!first) {
          continue;
        }
        // Another thread may take the second part: each part goes to the next thread that receives.
        if (first->more()) {
          seen[static_cast<std::size_t>(std::stoi(std::string(first->text())))].fetch_add(1);
          total.fetch_add(1);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    ASSERT_EQ(seen[i].load(), 1) << i;
  }
}

TEST_P(Threads, ASocketHandedFromThreadToThreadKeepsItsOrder) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  constexpr int kThreads = 50;
  constexpr int kEach = 40;
  std::thread reader([&] { EXPECT_EQ(recv_many(pull, kThreads * kEach), numbered("", 0, kThreads * kEach)); });
  for (int t = 0; t < kThreads; ++t) {
    std::thread([&] {
      for (int i = 0; i < kEach; ++i) {
        send(push, std::to_string(t * kEach + i));
      }
    }).join();
  }
  reader.join();
}

TEST_P(Threads, ReceivingMovesFromThreadToThreadInOrder) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  std::thread sender([&] {
    for (int i = 0; i < 2000; ++i) {
      send(push, std::to_string(i));
    }
  });
  for (int t = 0; t < 50; ++t) {
    std::thread([&] { EXPECT_EQ(recv_many(pull, 40), numbered("", t * 40, 40)); }).join();
  }
  sender.join();
}

TEST_P(Threads, OneThreadSendsWhileAnotherReceivesOnTheSameSocket) {
  Socket one = make(SocketType::dealer);
  Socket two = make(SocketType::dealer);
  connect(two, bind(one));
  constexpr int kCount = 3000;
  const auto sender = [](Socket& socket) {
    for (int i = 0; i < kCount; ++i) {
      send(socket, std::to_string(i));
    }
  };
  const auto receiver = [](Socket& socket) { EXPECT_EQ(recv_many(socket, kCount), numbered("", 0, kCount)); };
  std::thread threads[4] = {std::thread([&] { sender(one); }), std::thread([&] { sender(two); }),
                            std::thread([&] { receiver(one); }), std::thread([&] { receiver(two); })};
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_P(Threads, ManySocketsConnectSendAndCloseAtOnce) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  constexpr int kThreads = 4;
  constexpr int kRounds = 25;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        Socket push = make(SocketType::push);
        EXPECT_TRUE(push.set(option::linger, Duration(-1)));  // on a busy machine 100 handshakes take long
        connect(push, endpoint);
        send(push, std::to_string(t * kRounds + i));
      }
    });
  }
  std::set<std::string> seen;
  for (int n = 0; n < kThreads * kRounds; ++n) {
    seen.insert(recv_text(pull));
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kThreads * kRounds));
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_P(Threads, OptionsChangeWhileOthersConnectAndSend) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int i = 0; !stop.load(); ++i) {
      EXPECT_TRUE(pull.set(option::routing_id, std::string(static_cast<std::size_t>(i % 255), 'r')));
      EXPECT_TRUE(pull.set(option::receive_high_water_mark, 100 + i % 100));
      EXPECT_TRUE(pull.set(option::receive_timeout, kLong + i * 1ms));
    }
  });
  for (int i = 0; i < 30; ++i) {
    Socket push = make(SocketType::push);
    connect(push, endpoint);
    send(push, std::to_string(i));
    EXPECT_EQ(recv_text(pull), std::to_string(i));
  }
  stop = true;
  changer.join();
}

TEST_P(Threads, BindConnectAndCloseMayRace) {
  const std::string endpoint = free_endpoint();
  for (int round = 0; round < 50; ++round) {
    Context context;
    Socket pull = make_in(context, SocketType::pull);
    Socket push = make_in(context, SocketType::push);
    ASSERT_TRUE(push.set(option::linger, 0ms));
    secure_server(pull);
    secure_client(push);
    std::thread binder([&] { (void)pull.bind(endpoint); });
    std::thread connector([&] {
      (void)push.connect(endpoint);
      (void)push.try_send(as_bytes("x"));
    });
    std::thread closer([&] { round % 2 == 0 ? pull.close() : push.close(); });
    binder.join();
    connector.join();
    closer.join();
    // The context's end waits for all that the test left behind, so every leftover must end.
  }
}

TEST_P(Threads, SubscriptionsChangeWhileMessagesAreSentAndReceived) {
  Socket pub = make(SocketType::pub);
  Socket sub = make(SocketType::sub);
  ASSERT_TRUE(pub.set(option::send_high_water_mark, 0));  // a subscriber that waits for its processor loses nothing
  ASSERT_TRUE(sub.set(option::receive_high_water_mark, 0));
  connect(sub, bind(pub));
  ASSERT_TRUE(sub.subscribe("keep"));
  synchronize(pub, sub);
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    while (!stop.load()) {
      EXPECT_TRUE(sub.subscribe("other"));
      EXPECT_TRUE(sub.unsubscribe("other"));
    }
  });
  std::thread sender([&] {
    for (int i = 0; i < 900; ++i) {
      send(pub, {"other", "x"});
      send(pub, {"keep", std::to_string(i)});
    }
  });
  for (int i = 0; i < 900;) {
    const Texts got = recv(sub);
    if (got.size() != 2 || (got[0] == "keep" && got[1] != std::to_string(i))) {
      ADD_FAILURE() << "message " << i << ": " << got.back();
      break;
    }
    i += got[0] == "keep" ? 1 : 0;
  }
  sender.join();
  stop = true;
  changer.join();
}

TEST_P(Threads, EventsAndStatisticsMayBeAskedForAtAnyTime) {
  Socket pub = make(SocketType::pub);
  ASSERT_TRUE(pub.watch_events());
  const std::string endpoint = bind(pub);
  std::atomic<bool> stop{false};
  std::thread asker([&] {
    while (!stop.load()) {
      (void)pub.next_event(0ms);
      EXPECT_TRUE(pub.statistics());
      EXPECT_TRUE(pub.options());
    }
  });
  for (int i = 0; i < 20; ++i) {
    Socket sub = make(SocketType::sub);
    connect(sub, endpoint);
    ASSERT_TRUE(sub.subscribe("t"));
    synchronize(pub, sub);
    send(pub, "t");
    EXPECT_EQ(recv_text(sub), "t");
  }
  stop = true;
  asker.join();
}

}  // namespace
}  // namespace weft::conformance
