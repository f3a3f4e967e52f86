// SPDX-License-Identifier: MIT
// RADIO and DISH (RFC 48): the dishes that get a message, and its form on the wire (RFC 37).
#include <array>
#include <atomic>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"

namespace weft::conformance {
namespace {

using zmtp::kCommand;
using zmtp::kMore;

class RadioDish : public Conformance {
 protected:
  // Returns once `dish` gets messages of `radio`: the radio then has its earlier groups, too.
  void tune_in(Socket& radio, Socket& dish) {
    const std::string group = "~" + std::to_string(++tunings_);
    ASSERT_TRUE(dish.join(group));
    const Instant end = sys::now() + kLong;
    for (;;) {
      ASSERT_LT(sys::now(), end) << "the join does not arrive";
      ASSERT_TRUE(tell(radio, group, "on the air"));
      if (const auto got = dish.recv_until(sys::now() + 1ms); got && got->group() == group) {
        break;
      }
    }
    send_without_drop(
        radio, [&] { EXPECT_TRUE(tell(radio, group, "end")); }, [&] { (void)dish.recv_until(sys::now() + 1ms); });
    while (hear(dish) != group + ": end" && !HasFailure()) {
    }
    ASSERT_TRUE(dish.leave(group));
  }

 private:
  int tunings_ = 0;
};
WEFT_EVERY_TRANSPORT(RadioDish);

// Against a peer that speaks the protocol by hand.
class RadioWire : public RadioDish {};
WEFT_TRANSPORTS_WHERE(RadioWire, in_the_clear);

TEST_P(RadioDish, ADishGetsTheGroupsItJoinedAndNothingElse) {
  Socket radio = make(SocketType::radio);
  Socket dish = make(SocketType::dish);
  connect(dish, bind(radio));
  ASSERT_TRUE(dish.join("news"));
  ASSERT_TRUE(dish.join("weather"));
  tune_in(radio, dish);
  for (const std::string_view group : {"news", "sport", "weather", "new", "newss", "", "news"}) {
    ASSERT_TRUE(tell(radio, group, "of " + std::string(group)));
  }
  EXPECT_EQ(hear(dish), "news: of news");
  EXPECT_EQ(hear(dish), "weather: of weather");
  EXPECT_EQ(hear(dish), "news: of news");
  EXPECT_EQ(dish.try_recv().error(), Errc::would_block);
}

TEST_P(RadioDish, EachDishGetsItsOwn) {
  Socket radio = make(SocketType::radio);
  const std::string endpoint = bind(radio);
  std::vector<Socket> dishes;
  for (int i = 0; i < 7; ++i) {
    dishes.push_back(make(SocketType::dish));
    connect(dishes.back(), endpoint);
    ASSERT_TRUE(dishes.back().join("all"));
    ASSERT_TRUE(dishes.back().join(std::to_string(i)));
    tune_in(radio, dishes.back());
  }
  const std::string large(100'000, 'l');
  ASSERT_TRUE(tell(radio, "all", large));
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(tell(radio, std::to_string(i), "own"));
  }
  for (int i = 0; i < 7; ++i) {
    EXPECT_TRUE(hear(dishes[static_cast<std::size_t>(i)]) == "all: " + large);
    EXPECT_EQ(hear(dishes[static_cast<std::size_t>(i)]), std::to_string(i) + ": own");
  }
}

TEST_P(RadioDish, GroupsAndMessagesMayBeOfEverySize) {
  Socket radio = make(SocketType::radio);
  Socket dish = make(SocketType::dish);
  connect(radio, bind(dish));
  for (const std::size_t group : {0u, 1u, 112u, 113u, 255u}) {
    const std::string name(group, 'g');
    ASSERT_TRUE(dish.join(name));
    tune_in(radio, dish);
    for (const std::size_t size : {0u, 1u, 48u, 49u, 112u, 113u, 4096u, 40'000u, 300'000u}) {
      const std::string text(size, 't');
      ASSERT_TRUE(tell(radio, name, text));
      EXPECT_TRUE(hear(dish) == name + ": " + text) << group << " " << size;
    }
    ASSERT_TRUE(dish.leave(name));
  }
}

TEST_P(RadioDish, BytesWithoutAMessageAreOfTheEmptyGroup) {
  Socket radio = make(SocketType::radio);
  Socket dish = make(SocketType::dish);
  connect(dish, bind(radio));
  ASSERT_TRUE(dish.join(""));
  tune_in(radio, dish);
  send(radio, "plain");
  EXPECT_EQ(hear(dish), ": plain");
  send(radio, "plain");
  std::array<std::uint8_t, 8> bytes;
  EXPECT_EQ(dish.recv_into(bytes)->size, 5u);
}

TEST_P(RadioDish, AGroupThatWasLeftIsHeardNoMore) {
  Socket radio = make(SocketType::radio);
  Socket dish = make(SocketType::dish);
  connect(dish, bind(radio));
  ASSERT_TRUE(dish.join("a"));
  ASSERT_TRUE(dish.join("b"));
  tune_in(radio, dish);
  ASSERT_TRUE(tell(radio, "a", "on its way"));
  ASSERT_TRUE(dish.leave("a"));
  ASSERT_TRUE(tell(radio, "a", "lost"));
  ASSERT_TRUE(tell(radio, "b", "heard"));
  EXPECT_EQ(hear(dish), "b: heard");
}

TEST_P(RadioDish, JoinAndLeaveRefuseMisuse) {
  Socket radio = make(SocketType::radio);
  Socket dish = make(SocketType::dish);
  Socket sub = make(SocketType::sub);
  ASSERT_TRUE(dish.join("group"));
  EXPECT_EQ(dish.join("group").error(), Errc::invalid_argument);
  EXPECT_EQ(dish.leave("other").error(), Errc::invalid_argument);
  EXPECT_TRUE(dish.join(std::string(255, 'g')));
  EXPECT_EQ(dish.join(std::string(256, 'g')).error(), Errc::invalid_argument);
  EXPECT_EQ(dish.join({"a\0b", 3}).error(), Errc::invalid_argument);
  EXPECT_EQ(dish.subscribe("group").error(), Errc::not_supported);
  EXPECT_EQ(radio.join("group").error(), Errc::not_supported);
  EXPECT_EQ(sub.join("group").error(), Errc::not_supported);
  EXPECT_TRUE(dish.leave("group"));
  EXPECT_EQ(dish.leave("group").error(), Errc::invalid_argument);
  EXPECT_EQ(dish.send("a").error(), Errc::not_supported);
  EXPECT_EQ(radio.try_recv().error(), Errc::not_supported);
  EXPECT_EQ(radio.send("first", More::yes).error(), Errc::invalid_argument);
}

TEST_P(RadioDish, ARadioThatComesBackIsToldOfEveryGroup) {
  Socket dish = make(SocketType::dish);
  ASSERT_TRUE(dish.join("a"));
  ASSERT_TRUE(dish.join("b"));
  const std::string endpoint = free_endpoint();
  connect(dish, endpoint);
  for (int round = 0; round < 2; ++round) {
    Socket radio = make(SocketType::radio);
    ASSERT_TRUE(radio.watch_events());
    secure_server(radio);
    ASSERT_TRUE(radio.bind(endpoint)) << round;
    tune_in(radio, dish);
    ASSERT_TRUE(tell(radio, "b", std::to_string(round)));
    EXPECT_EQ(hear(dish), "b: " + std::to_string(round));
    if (!GetParam().streams) {
      break;  // inproc does not reconnect
    }
  }
}

TEST_P(RadioDish, ADishThatDoesNotReadMissesMessagesAndTheyAreCounted) {
  Socket radio = make(SocketType::radio);
  Socket dish = make(SocketType::dish);
  ASSERT_TRUE(radio.set(option::send_high_water_mark, 2));
  ASSERT_TRUE(dish.set(option::receive_high_water_mark, 2));
  connect(dish, bind(radio));
  ASSERT_TRUE(dish.join("g"));
  tune_in(radio, dish);
  const std::string large(200'000, 'x');
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(tell(radio, "g", large));
  }
  EXPECT_GT(radio.statistics()->dropped, 0u);
  ASSERT_TRUE(radio.set(option::xpub_no_drop, true));
  Result<void> sent;
  Message message;
  for (int i = 0; i < 200 && sent; ++i) {  // the kernel may still take some of the queued messages
    message = std::move(Message::copy_of(large)).value();
    ASSERT_TRUE(message.set_group("g"));
    sent = radio.try_send(std::move(message));
  }
  EXPECT_EQ(sent.error(), Errc::would_block);
  EXPECT_EQ(message.group(), "g");  // NOLINT(bugprone-use-after-move): a refused message stays the caller's
}

TEST_P(RadioDish, ADishIsReadyWhenThereIsSomethingForIt) {
  Socket radio = make(SocketType::radio);
  Socket dish = make(SocketType::dish);
  connect(dish, bind(radio));
  ASSERT_TRUE(dish.join("g"));
  tune_in(radio, dish);
  PollItem item{.socket = &dish, .want_input = true};
  EXPECT_EQ(poll({&item, 1}, 0ms).value(), 0u);
  ASSERT_TRUE(tell(radio, "nobody", "x"));
  ASSERT_TRUE(tell(radio, "g", "x"));
  EXPECT_EQ(poll({&item, 1}, kLong).value(), 1u);
  EXPECT_EQ(hear(dish), "g: x");
}

TEST_P(RadioWire, JoinsAndLeavesAreCommands) {
  Socket dish = make(SocketType::dish);
  ASSERT_TRUE(dish.join("before"));
  WirePeer radio = WirePeer::dial(bind(dish), zmtp::WireType::radio);
  WirePeer::Frame frame = radio.read_frame();
  EXPECT_EQ(frame.flags, kCommand);
  EXPECT_EQ(frame.body, std::string("\4JOIN") + "before");
  ASSERT_TRUE(dish.join("after"));
  frame = radio.read_frame();
  EXPECT_EQ(frame.flags, kCommand);
  EXPECT_EQ(frame.body, std::string("\4JOIN") + "after");
  ASSERT_TRUE(dish.leave("before"));
  frame = radio.read_frame();
  EXPECT_EQ(frame.flags, kCommand);
  EXPECT_EQ(frame.body, std::string("\5LEAVE") + "before");
}

TEST_P(RadioWire, AMessageIsTwoFramesItsGroupAndItself) {
  Socket radio = make(SocketType::radio);
  WirePeer dish = WirePeer::dial(bind(radio), zmtp::WireType::dish);
  dish.write(wire_frame(kCommand, "\4JOINgroup") + wire_frame(kCommand, "\4JOINother") +
             wire_frame(kCommand, "\5LEAVEother") + wire_frame(kCommand, "\4JOIN~"));
  WirePeer::Frame frame;
  std::atomic<bool> heard{false};
  std::thread talker([&] {
    while (!heard) {
      EXPECT_TRUE(tell(radio, "~", "on the air"));
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(dish.read_frame().body, "~");
  heard = true;
  talker.join();
  ASSERT_TRUE(tell(radio, "other", "lost"));
  send_without_drop(radio, [&] { EXPECT_TRUE(tell(radio, "group", "body")); }, [&] { (void)dish.read_frame(); });
  do {
    frame = dish.read_frame();
  } while (frame.body == "on the air" || frame.body == "~");
  EXPECT_EQ(frame.flags, kMore);
  EXPECT_EQ(frame.body, "group");
  frame = dish.read_frame();
  EXPECT_EQ(frame.flags, 0);
  EXPECT_EQ(frame.body, "body");
}

TEST_P(RadioWire, ADishTakesMessagesOfAGroupAndAPartAndDiscardsOthers) {
  Socket dish = make(SocketType::dish);
  ASSERT_TRUE(dish.join("g"));
  WirePeer radio = WirePeer::dial(bind(dish), zmtp::WireType::radio);
  radio.write(wire_frame(kMore, "g") + wire_frame(0, "1") + wire_frame(0, "g") + wire_frame(kMore, "g") +
              wire_frame(kMore, "a") + wire_frame(0, "b") + wire_frame(kMore, "not joined") + wire_frame(0, "x") +
              wire_frame(kMore, std::string(5000, 'g')) + wire_frame(0, "x") + wire_frame(kMore, "g") +
              wire_frame(0, "2"));
  EXPECT_EQ(hear(dish), "g: 1");
  EXPECT_EQ(hear(dish), "g: 2");
  EXPECT_EQ(dish.statistics()->dropped_unexpected, 4u);
}

// Over WebSocket a heartbeat is a frame of the layer.
class RadioHeartbeats : public RadioDish {
 protected:
  // Answers the socket's PINGs, and sends some itself. Their answers follow the peer's earlier bytes.
  static void exchange_heartbeats(WirePeer& peer) {
    bool answered = false;
    for (int pings = 0; pings < 3 || !answered;) {
      const WirePeer::Frame frame = peer.read_frame();
      ASSERT_NE(frame.flags, WirePeer::Frame().flags) << "the connection ended";
      answered |= frame.body == "\4PONGcontext";
      if (frame.body.starts_with("\4PING")) {
        peer.write(wire_frame(kCommand, "\4PONG") + wire_frame(kCommand, std::string("\4PING\0\0context", 14)));
        ++pings;
      }
    }
  }
  [[nodiscard]] Socket make_with_heartbeats(SocketType type) {
    Socket socket = make(type);
    EXPECT_TRUE(socket.set(option::heartbeat_interval, 5ms));
    EXPECT_TRUE(socket.set(option::heartbeat_timeout, kLong));
    return socket;
  }
};
WEFT_TRANSPORTS_WHERE(RadioHeartbeats, without_websocket);

TEST_P(RadioHeartbeats, HeartbeatsDisturbNeitherARadioNorADish) {
  Socket dish = make_with_heartbeats(SocketType::dish);
  ASSERT_TRUE(dish.join("g"));
  WirePeer foreign_radio = WirePeer::dial(bind(dish), zmtp::WireType::radio);
  exchange_heartbeats(foreign_radio);
  foreign_radio.write(wire_frame(kMore, "g") + wire_frame(0, "news"));
  EXPECT_EQ(hear(dish), "g: news");
  EXPECT_EQ(dish.statistics()->disconnected, 0u);

  Socket radio = make_with_heartbeats(SocketType::radio);
  WirePeer foreign_dish = WirePeer::dial(bind(radio), zmtp::WireType::dish);
  foreign_dish.write(wire_frame(kCommand, "\4JOINg"));
  exchange_heartbeats(foreign_dish);
  ASSERT_TRUE(tell(radio, "g", "news"));
  WirePeer::Frame frame;
  do {
    frame = foreign_dish.read_frame();
  } while ((frame.flags & kCommand) != 0 && frame.flags != WirePeer::Frame().flags);
  EXPECT_EQ(frame.body, "g");
  EXPECT_EQ(foreign_dish.read_frame().body, "news");
  EXPECT_EQ(radio.statistics()->disconnected, 0u);
}

TEST_P(RadioWire, AGroupThatIsTooLongEndsTheConnection) {
  Socket radio = make(SocketType::radio);
  ASSERT_TRUE(radio.watch_events());
  WirePeer dish = WirePeer::dial(bind(radio), zmtp::WireType::dish);
  dish.write(wire_frame(kCommand, "\4JOIN" + std::string(256, 'g')));
  EXPECT_EQ(dish.read_frame().flags, 0xff) << "the end of the stream";
  wait_for_event(radio, EventKind::disconnected);
}

}  // namespace
}  // namespace weft::conformance
