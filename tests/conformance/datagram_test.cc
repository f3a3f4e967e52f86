// SPDX-License-Identifier: MIT
// udp: RADIO and DISH, and DGRAM.
#include "weft/sys/datagram.h"

#include <atomic>
#include <string>
#include <thread>

#include "tests/conformance/conformance.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/net/transport/udp.h"

namespace weft::conformance {
namespace {

constexpr Duration kLong = 20s;
constexpr char kSomewhere[] = "udp://127.0.0.1:*";

class Datagrams : public testing::Test {
 protected:
  Socket make(SocketType type) {
    auto socket = context_.socket(type);
    EXPECT_TRUE(socket) << socket.error().message();
    EXPECT_TRUE(socket->set(option::receive_timeout, kLong));
    EXPECT_TRUE(socket->set(option::send_timeout, kLong));
    return std::move(socket).value();
  }
  static std::string bind(Socket& socket, std::string_view endpoint = kSomewhere) {
    const auto exact = socket.bind(endpoint);
    EXPECT_TRUE(exact) << exact.error().message();
    return exact ? *exact : std::string();
  }
  // The address after "udp://".
  static std::string place_of(const std::string& endpoint) { return endpoint.substr(6); }
  static void send_to(Socket& dgram, std::string_view address, std::string_view body) {
    EXPECT_TRUE(dgram.send(address, More::yes));
    EXPECT_TRUE(dgram.send(body));
  }
  // "address: body"
  static std::string recv_from(Socket& dgram) {
    auto parts = dgram.recv_all();
    EXPECT_TRUE(parts) << parts.error().message();
    if (!parts || parts->size() != 2) {
      return "not a datagram";
    }
    std::string address((*parts)[0].text());
    EXPECT_TRUE(address.ends_with('\0'));  // as libzmq has it
    return std::string(address.c_str()) + ": " + std::string((*parts)[1].text());
  }
  static Statistics statistics(Socket& socket) { return socket.statistics().value(); }
  // A message arrives before the thread that sent it has counted it.
  static void wait_until_sent(Socket& socket, std::uint64_t messages) {
    const Instant end = sys::now() + kLong;
    while (statistics(socket).sent != messages && sys::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_EQ(statistics(socket).sent, messages);
  }
  // The thread that took a message from the kernel counts it after it can be received.
  static void expect_balance(Socket& socket, std::uint64_t sent, std::uint64_t received) {
    const Instant end = sys::now() + kLong;
    Statistics now = statistics(socket);
    const auto in = [&] { return sent + now.arrived; };
    const auto out = [&] { return now.sent + received + now.dropped + now.queued_in + now.queued_out; };
    while (in() != out() && sys::now() < end) {
      std::this_thread::yield();
      now = statistics(socket);
    }
    EXPECT_EQ(in(), out());
  }

  Context context_;
};

// Stranger: sends datagrams that no RADIO would.
class Stranger {
 public:
  explicit Stranger(const std::string& endpoint)
      : udp_(net::open_udp(net::parse_endpoint(endpoint, false).value(), false, {}, {}).value()) {}
  bool send(std::string_view bytes) const {
    const sys::OutgoingDatagram datagram{udp_.to.raw(), udp_.to.raw_size(), {as_bytes(bytes), Bytes()}};
    return sys::send_datagrams(udp_.fd.fd(), {&datagram, 1}).count == 1;
  }

 private:
  net::UdpSocket udp_;
};

TEST_F(Datagrams, ADishGetsTheGroupsItJoinedAndNothingElse) {
  Socket dish = make(SocketType::dish);
  Socket radio = make(SocketType::radio);
  ASSERT_TRUE(dish.join("news"));
  ASSERT_TRUE(radio.connect(bind(dish)));
  for (const std::string_view group : {"news", "sport", "new", "newss", "", "news"}) {
    ASSERT_TRUE(tell(radio, group, "of " + std::string(group)));
  }
  EXPECT_EQ(hear(dish), "news: of news");
  EXPECT_EQ(hear(dish), "news: of news");
  ASSERT_TRUE(dish.join("sport"));
  ASSERT_TRUE(dish.leave("news"));
  ASSERT_TRUE(tell(radio, "news", "no more"));
  ASSERT_TRUE(tell(radio, "sport", "at last"));
  EXPECT_EQ(hear(dish), "sport: at last");
  EXPECT_EQ(dish.try_recv().error(), Errc::would_block);
  EXPECT_EQ(statistics(dish).dropped_unexpected, 5u);
  expect_balance(dish, 0, 3);
  wait_until_sent(radio, 8);
  expect_balance(radio, 8, 0);
}

TEST_F(Datagrams, ARadioSendsToEveryAddressItConnectedTo) {
  Socket radio = make(SocketType::radio);
  std::vector<Socket> dishes;
  for (int i = 0; i < 3; ++i) {
    dishes.push_back(make(SocketType::dish));
    ASSERT_TRUE(dishes.back().join("news"));
    ASSERT_TRUE(radio.connect(bind(dishes.back())));
  }
  Socket over_tcp = make(SocketType::dish);
  ASSERT_TRUE(over_tcp.join("news"));
  ASSERT_TRUE(over_tcp.connect(bind(radio, "tcp://127.0.0.1:*")));
  const Instant end = sys::now() + kLong;
  while (radio.core()->subscribers().value() < 4 && sys::now() < end) {
    std::this_thread::yield();
  }
  ASSERT_TRUE(tell(radio, "news", "for all"));
  for (Socket& dish : dishes) {
    EXPECT_EQ(hear(dish), "news: for all");
  }
  EXPECT_EQ(hear(over_tcp), "news: for all");
}

TEST_F(Datagrams, MessagesOfEverySizeArrive) {
  Socket dish = make(SocketType::dish);
  Socket radio = make(SocketType::radio);
  ASSERT_TRUE(dish.set(option::receive_buffer, 1 << 20));
  ASSERT_TRUE(dish.join("g"));
  ASSERT_TRUE(radio.connect(bind(dish)));
  for (const std::size_t size : {0u, 1u, 47u, 48u, 112u, 113u, 255u, 256u, 1500u, 8192u, 32'768u, 40'000u, 65'505u}) {
    const std::string body(size, static_cast<char>('a' + size % 26));
    ASSERT_TRUE(tell(radio, "g", body));
    EXPECT_EQ(hear(dish), "g: " + body);
  }
  ASSERT_TRUE(tell(radio, "g", std::string(65'506, 'x')));  // one byte more than a datagram takes
  ASSERT_TRUE(tell(radio, "g", "next"));
  EXPECT_EQ(hear(dish), "g: next");
  wait_until_sent(radio, 14);
  EXPECT_EQ(statistics(radio).dropped_too_long, 1u);
  expect_balance(radio, 15, 0);
}

TEST_F(Datagrams, ALongGroupArrives) {
  Socket dish = make(SocketType::dish);
  Socket radio = make(SocketType::radio);
  const std::string group(Message::kGroupMax, 'g');
  ASSERT_TRUE(dish.join(group));
  ASSERT_TRUE(radio.connect(bind(dish)));
  ASSERT_TRUE(tell(radio, group, "body"));
  EXPECT_EQ(hear(dish), group + ": body");
}

TEST_F(Datagrams, OnlyTheRightTypesInTheRightDirection) {
  for (const SocketType type : {SocketType::pub, SocketType::push, SocketType::pair, SocketType::radio}) {
    Socket socket = make(type);
    EXPECT_EQ(socket.bind(kSomewhere).error(), Errc::incompatible_peer);
  }
  for (const SocketType type : {SocketType::sub, SocketType::router, SocketType::dish, SocketType::dgram}) {
    Socket socket = make(type);
    EXPECT_EQ(socket.connect("udp://127.0.0.1:5555").error(), Errc::incompatible_peer);
  }
  Socket dgram = make(SocketType::dgram);
  EXPECT_EQ(dgram.bind("tcp://127.0.0.1:*").error(), Errc::incompatible_peer);
  EXPECT_EQ(dgram.connect("inproc://nobody").error(), Errc::incompatible_peer);
}

TEST_F(Datagrams, ASocketThatAuthenticatesItsPeersHasNoUdp) {
  Socket dish = make(SocketType::dish);
  ASSERT_TRUE(dish.set(option::plain_server, true));
  EXPECT_EQ(dish.bind(kSomewhere).error(), Errc::incompatible_peer);
  Socket radio = make(SocketType::radio);
  ASSERT_TRUE(radio.set(option::zap_domain, "global"));
  EXPECT_EQ(radio.connect("udp://127.0.0.1:5555").error(), Errc::incompatible_peer);
}

TEST_F(Datagrams, EveryMemberOfAGroupOnThisHostGetsAMessage) {
  Socket probe = make(SocketType::dish);
  const std::string exact = bind(probe);
  ASSERT_TRUE(probe.unbind(exact));
  const std::string group = "udp://lo;239.12.34.58" + exact.substr(exact.rfind(':'));
  Socket radio = make(SocketType::radio);
  Socket first = make(SocketType::dish);
  Socket second = make(SocketType::dish);
  if (!first.bind(group) || !second.bind(group) || !radio.connect(group)) {
    GTEST_SKIP() << "no multicast here";
  }
  ASSERT_TRUE(first.join("news"));
  ASSERT_TRUE(second.join("news"));
  ASSERT_TRUE(tell(radio, "news", "for all"));
  if (statistics(radio).dropped_refused != 0) {
    GTEST_SKIP() << "no multicast here";
  }
  EXPECT_EQ(hear(first), "news: for all");
  EXPECT_EQ(hear(second), "news: for all");
}

TEST_F(Datagrams, Ipv6) {
  Socket dish = make(SocketType::dish);
  ASSERT_TRUE(dish.set(option::ipv6, true));
  ASSERT_TRUE(dish.join("news"));
  const auto exact = dish.bind("udp://[::1]:*");
  if (!exact) {
    GTEST_SKIP() << "no IPv6 here: " << exact.error().message();
  }
  Socket radio = make(SocketType::radio);
  ASSERT_TRUE(radio.set(option::ipv6, true));
  ASSERT_TRUE(radio.connect(*exact));
  ASSERT_TRUE(tell(radio, "news", "six"));
  EXPECT_EQ(hear(dish), "news: six");

  Socket dgram = make(SocketType::dgram);
  ASSERT_TRUE(dgram.set(option::ipv6, true));
  const std::string place = place_of(bind(dgram, "udp://[::1]:*"));
  send_to(dgram, place, "to itself");
  EXPECT_EQ(recv_from(dgram), place + ": to itself");
}

TEST_F(Datagrams, WhatNoMessageCanBeIsDroppedAndCounted) {
  Socket dish = make(SocketType::dish);
  ASSERT_TRUE(dish.set(option::max_message_size, 100));
  ASSERT_TRUE(dish.join("news"));
  const Stranger stranger(bind(dish));
  const std::string zero_in_group("\4ne\0sbody", 9);
  for (const std::string& bytes : {std::string(), std::string("\5news"), std::string("\xFF"), zero_in_group,
                                   "\4news" + std::string(101, 'x'), std::string(65'507, '\4')}) {
    ASSERT_TRUE(stranger.send(bytes));
  }
  ASSERT_TRUE(stranger.send("\4newsgood"));
  EXPECT_EQ(hear(dish), "news: good");
  EXPECT_EQ(statistics(dish).dropped_unexpected, 6u);
  expect_balance(dish, 0, 1);
}

TEST_F(Datagrams, AFloodOfAStrangerDoesNotStarveOtherPeers) {
  Socket dish = make(SocketType::dish);
  ASSERT_TRUE(dish.join("news"));
  const std::string place = bind(dish);
  Socket radio = make(SocketType::radio);
  ASSERT_TRUE(dish.connect(bind(radio, "tcp://127.0.0.1:*")));
  const Instant end = sys::now() + kLong;
  while (radio.core()->subscribers().value() == 0 && sys::now() < end) {
    std::this_thread::yield();
  }
  std::atomic<bool> stop{false};
  std::thread flood([&] {
    const Stranger stranger(place);
    while (!stop.load()) {
      (void)stranger.send("");
      (void)stranger.send("\5sportgoal");
    }
  });
  bool flooded = false;
  for (int i = 0; (i < 200 || !flooded) && sys::now() < end; ++i) {
    EXPECT_TRUE(tell(radio, "news", std::to_string(i)));
    EXPECT_EQ(hear(dish), "news: " + std::to_string(i));
    flooded = flooded || statistics(dish).dropped_unexpected > 0;
  }
  stop = true;
  flood.join();
  EXPECT_TRUE(flooded);
}

// The application is busy: the I/O thread reads.
TEST_F(Datagrams, WhatNoMessageCanBeTakesNoPlaceOfTheMark) {
  constexpr int kMark = 10;
  const std::string too_long(101, 'x');
  const std::string zero_in_group("\4ne\0sbody", 9);
  for (const SocketType type : {SocketType::dish, SocketType::dgram}) {
    const bool groups = type == SocketType::dish;
    Socket socket = make(type);
    ASSERT_TRUE(socket.set(option::receive_high_water_mark, kMark));
    ASSERT_TRUE(socket.set(option::max_message_size, 100));
    ASSERT_TRUE(!groups || socket.join("news"));
    const Stranger stranger(bind(socket));
    const std::vector<std::string> garbage =
        groups ? Texts{"", "\5news", "\xFF", "\5sportgoal", zero_in_group, "\4news" + too_long} : Texts{too_long};
    const Instant end = sys::now() + kLong;
    for (std::uint64_t sent = 0; sent < 10 * kMark;) {
      for (const std::string& bytes : garbage) {
        ASSERT_TRUE(stranger.send(bytes));
        ++sent;
      }
      while (statistics(socket).dropped_unexpected < sent && sys::now() < end) {
        std::this_thread::yield();
      }
      ASSERT_EQ(statistics(socket).dropped_unexpected, sent);
    }
    for (int i = 0; i < kMark; ++i) {
      ASSERT_TRUE(stranger.send((groups ? "\4news" : "") + std::to_string(i)));
    }
    while (statistics(socket).queued_in < kMark && sys::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_EQ(statistics(socket).queued_in, static_cast<std::uint64_t>(kMark));
    for (int i = 0; i < kMark; ++i) {
      EXPECT_EQ(groups ? hear(socket) : std::string(socket.recv_all()->back().text()),
                (groups ? "news: " : "") + std::to_string(i));
    }
    expect_balance(socket, 0, kMark);
  }
}

TEST_F(Datagrams, AFloodThatNobodyReceivesHoldsNoMoreThanTheMark) {
  Socket dish = make(SocketType::dish);
  ASSERT_TRUE(dish.set(option::receive_high_water_mark, 10));
  ASSERT_TRUE(dish.join("news"));
  const Stranger stranger(bind(dish));
  for (int i = 0; i < 5000; ++i) {
    (void)stranger.send("\4newsbody");
  }
  const Statistics now = statistics(dish);
  EXPECT_LE(now.queued_in, 11u);
  ASSERT_TRUE(dish.recv());
  // The datagrams that the system had no room for are counted once more of them come.
  const Instant end = sys::now() + kLong;
  while (statistics(dish).dropped_overflow == 0 && sys::now() < end) {
    (void)stranger.send("\4newsbody");
    while (dish.try_recv()) {
    }
  }
  EXPECT_GT(statistics(dish).dropped_overflow, 0u);
}

// A Stranger's datagram has arrived when its call returns. A RADIO may send later, on the I/O thread.
TEST_F(Datagrams, UnbindFreesThePortAndKeepsWhatArrived) {
  Socket dish = make(SocketType::dish);
  ASSERT_TRUE(dish.join("news"));
  ASSERT_TRUE(dish.watch_events());
  const std::string exact = bind(dish);
  const Stranger stranger(exact);
  ASSERT_TRUE(stranger.send("\4newsbefore"));
  ASSERT_TRUE(dish.unbind(exact));
  EXPECT_EQ(hear(dish), "news: before");
  EXPECT_EQ(dish.unbind(exact).error(), Errc::no_such_endpoint);
  EXPECT_EQ(dish.next_event(kLong)->kind, EventKind::listening);
  const auto closed = dish.next_event(kLong);
  EXPECT_EQ(closed->kind, EventKind::closed);
  EXPECT_EQ(closed->endpoint, exact);
  (void)stranger.send("\4newsto nobody");
  ASSERT_TRUE(dish.bind(exact));
  Socket radio = make(SocketType::radio);
  ASSERT_TRUE(radio.connect(exact));
  ASSERT_TRUE(tell(radio, "news", "after"));
  EXPECT_EQ(hear(dish), "news: after");
  ASSERT_TRUE(radio.disconnect(exact));
  ASSERT_TRUE(tell(radio, "news", "to nobody"));
  EXPECT_EQ(radio.disconnect(exact).error(), Errc::no_such_endpoint);
  EXPECT_EQ(dish.try_recv().error(), Errc::would_block);
}

TEST_F(Datagrams, UnbindTakesTheExactNameOnly) {
  Socket dish = make(SocketType::dish);
  const std::string exact = bind(dish);
  EXPECT_EQ(dish.unbind(kSomewhere).error(), Errc::no_such_endpoint);
  EXPECT_TRUE(dish.unbind(exact));
}

TEST_F(Datagrams, WhatWasSentBeforeCloseArrives) {
  Socket dish = make(SocketType::dish);
  ASSERT_TRUE(dish.join("news"));
  const std::string exact = bind(dish);
  for (int round = 0; round < 20; ++round) {
    Socket radio = make(SocketType::radio);
    ASSERT_TRUE(radio.connect(exact));
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(tell(radio, "news", std::to_string(i)));
    }
    radio.close();
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(hear(dish), "news: " + std::to_string(i));
    }
  }
}

TEST_F(Datagrams, AThreadThatSleepsWakesForADatagram) {
  Socket dish = make(SocketType::dish);
  ASSERT_TRUE(dish.join("news"));
  const std::string exact = bind(dish);
  std::thread sender([&] {
    Socket radio = make(SocketType::radio);
    ASSERT_TRUE(radio.connect(exact));
    std::this_thread::yield();
    ASSERT_TRUE(tell(radio, "news", "wake"));
  });
  EXPECT_EQ(hear(dish), "news: wake");
  sender.join();
}

TEST_F(Datagrams, SocketsCloseInTheMiddleOfTraffic) {
  for (int round = 0; round < 20; ++round) {
    Socket dish = make(SocketType::dish);
    ASSERT_TRUE(dish.join("news"));
    const std::string exact = bind(dish);
    std::atomic<bool> stop{false};
    std::thread sender([&] {
      Socket radio = make(SocketType::radio);
      ASSERT_TRUE(radio.connect(exact));
      while (!stop.load()) {
        ASSERT_TRUE(tell(radio, "news", "more"));
      }
    });
    std::thread receiver([&] {
      while (dish.recv()) {
      }
    });
    ASSERT_TRUE(round % 2 == 0 ? dish.unbind(exact).has_value() : true);
    dish.close();
    receiver.join();
    stop = true;
    sender.join();
  }
}

TEST_F(Datagrams, QuestionAndAnswerOfDgram) {
  Socket here = make(SocketType::dgram);
  Socket there = make(SocketType::dgram);
  const std::string at_here = place_of(bind(here));
  const std::string at_there = place_of(bind(there));
  send_to(here, at_there, "is anybody there?");
  auto question = there.recv_all();
  ASSERT_TRUE(question);
  EXPECT_EQ((*question)[0].text(), at_here + '\0');
  EXPECT_EQ((*question)[1].text(), "is anybody there?");
  send_to(there, (*question)[0].text(), "yes");  // the address as it came
  EXPECT_EQ(recv_from(here), at_there + ": yes");
  send_to(here, at_here, "");
  EXPECT_EQ(recv_from(here), at_here + ": ");
}

TEST_F(Datagrams, ADgramMessageIsAnAddressAndABody) {
  Socket dgram = make(SocketType::dgram);
  const std::string place = place_of(bind(dgram));
  EXPECT_EQ(dgram.send("alone").error(), Errc::invalid_argument);
  ASSERT_TRUE(dgram.send(place, More::yes));
  EXPECT_EQ(dgram.send("a third would follow", More::yes).error(), Errc::invalid_argument);
  ASSERT_TRUE(dgram.send("body"));
  EXPECT_EQ(recv_from(dgram), place + ": body");
  std::uint64_t bad = 0;
  for (const std::string_view address :
       {"", "localhost:5555", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:x", ":5555", "[::1:5"}) {
    send_to(dgram, address, "to nobody");
    EXPECT_EQ(statistics(dgram).dropped_no_peer, ++bad) << address;
  }
  send_to(dgram, "[::1]:9", "another family");
  const Instant end = sys::now() + kLong;
  while (statistics(dgram).dropped_refused == 0 && sys::now() < end) {  // the I/O thread may send it
    std::this_thread::yield();
  }
  wait_until_sent(dgram, 1);
  expect_balance(dgram, 1 + bad + 1, 1);
}

TEST_F(Datagrams, ADgramThatIsNotBoundCannotSend) {
  Socket dgram = make(SocketType::dgram);
  EXPECT_EQ(dgram.try_send(as_bytes("127.0.0.1:5555"), More::yes).error(), Errc::would_block);
  EXPECT_EQ(dgram.try_recv().error(), Errc::would_block);
  const std::string first = bind(dgram);
  send_to(dgram, place_of(first), "to itself");
  EXPECT_EQ(recv_from(dgram), place_of(first) + ": to itself");
  ASSERT_TRUE(dgram.unbind(first));
  EXPECT_EQ(dgram.try_send(as_bytes("127.0.0.1:5555"), More::yes).error(), Errc::would_block);
  const std::string third = bind(dgram);
  send_to(dgram, place_of(third), "again");
  EXPECT_EQ(recv_from(dgram), place_of(third) + ": again");
}

TEST_F(Datagrams, ADgramWithAnEndpointRefusesAnotherAndLeavesItsPortFree) {
  Socket dgram = make(SocketType::dgram);
  Socket other = make(SocketType::dgram);
  const std::string second = bind(other);
  ASSERT_TRUE(other.unbind(second));
  const std::string first = bind(dgram);
  ASSERT_TRUE(dgram.watch_events());
  for (const std::string_view endpoint : {std::string_view(second), std::string_view(kSomewhere)}) {
    EXPECT_EQ(dgram.bind(endpoint).error(), Errc::incompatible_peer);
    EXPECT_EQ(dgram.next_event(kLong)->kind, EventKind::bind_failed);
  }
  EXPECT_TRUE(other.bind(second));
  send_to(other, place_of(first), "hello");
  EXPECT_EQ(recv_from(dgram), place_of(second) + ": hello");
  ASSERT_TRUE(dgram.unbind(first));
  EXPECT_TRUE(dgram.bind(first));
}

TEST_F(Datagrams, OfTwoThreadsThatBindADgramAtOnceOneGetsAnEndpointThatWorks) {
  for (int round = 0; round < 50; ++round) {
    Socket dgram = make(SocketType::dgram);
    std::vector<std::string> bound(3);
    std::vector<std::thread> binders;
    for (std::string& exact : bound) {
      binders.emplace_back([&] { exact = dgram.bind(kSomewhere).value_or(std::string()); });
    }
    for (std::thread& binder : binders) {
      binder.join();
    }
    std::erase(bound, "");
    ASSERT_EQ(bound.size(), 1u);
    send_to(dgram, place_of(bound[0]), "to itself");
    EXPECT_EQ(recv_from(dgram), place_of(bound[0]) + ": to itself");
  }
}

TEST_F(Datagrams, UnbindInTheMiddleOfAMessageDropsIt) {
  Socket dgram = make(SocketType::dgram);
  const std::string first = bind(dgram);
  ASSERT_TRUE(dgram.send(place_of(first), More::yes));
  ASSERT_TRUE(dgram.unbind(first));
  ASSERT_TRUE(dgram.send("body"));
  EXPECT_EQ(statistics(dgram).dropped_no_peer, 1u);
  const std::string second = bind(dgram);
  send_to(dgram, place_of(second), "whole");
  EXPECT_EQ(recv_from(dgram), place_of(second) + ": whole");
}

}  // namespace
}  // namespace weft::conformance
