// SPDX-License-Identifier: MIT
// Against a peer that sends without pause frames that bring the application nothing: the I/O thread and the calls of
// the application still serve all other peers, and no message after the flood is lost.
#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"
#include "weft/msg/connection/turn.h"
#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/rt/loop/test_signal.h"
#include "weft/sys/poll.h"

namespace weft::conformance {
namespace {

using zmtp::kCommand;
using zmtp::kMore;

std::string repeat(const std::string& frames, int times) {
  std::string all;
  all.reserve(frames.size() * static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i) {
    all += frames;
  }
  return all;
}

// Flood: a thread that writes the same frames to a socket for as long as the object lives.
class Flood {
 public:
  Flood(const std::string& endpoint, zmtp::WireType type, const std::string& frames)
      : peer_(WirePeer::dial(endpoint, type)), thread_([this, bytes = repeat(frames, 16 * 1024)] {
          for (std::string_view rest; !over_.load(std::memory_order_relaxed);) {
            rest = rest.empty() ? std::string_view(bytes) : rest;
            rest.remove_prefix(peer_.write_until_full(rest, std::chrono::milliseconds(20)));
          }
        }) {}
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;
  ~Flood() {
    over_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  WirePeer peer_;
  std::thread thread_;
};

class Floods : public Conformance {
 protected:
  // No call lasts longer, though the flood does not end. A turn takes about a millisecond; the rest is for a machine
  // that does much besides.
  static constexpr Duration kShort = 15s;

  template <typename Call>
  void expect_short(const char* name, Call call) {
    const Instant begun = sys::now();
    call();
    EXPECT_LT(sys::now() - begun, kShort) << name;
  }
};
WEFT_TRANSPORTS_WHERE(Floods, in_the_clear);

TEST_P(Floods, OfMessagesThatNobodyTakesHoldUpNoHandshake) {
  Socket push = make(SocketType::push);
  const std::string endpoint = bind(push);
  const Flood flood(endpoint, zmtp::WireType::pull, wire_frame(0, ""));
  for (int i = 0; i < 3; ++i) {
    expect_short("the handshake", [&] { (void)WirePeer::dial(endpoint, zmtp::WireType::pull); });
  }
}

TEST_P(Floods, OfSubscriptionsHoldUpNoHandshake) {
  Socket publisher = make(SocketType::pub);
  const std::string endpoint = bind(publisher);
  const Flood flood(endpoint, zmtp::WireType::sub, wire_frame(0, "\1a") + wire_frame(0, std::string("\0a", 2)));
  expect_short("the handshake", [&] { (void)WirePeer::dial(endpoint, zmtp::WireType::sub); });
}

TEST_P(Floods, OfMessagesThatAreFilteredOutEndNoCallLate) {
  Socket sub = make(SocketType::sub);
  ASSERT_TRUE(sub.subscribe("wanted"));
  const std::string endpoint = bind(sub);
  const Flood first(endpoint, zmtp::WireType::pub, wire_frame(0, "no"));
  const Flood second(endpoint, zmtp::WireType::pub, wire_frame(0, "no"));
  WirePeer other = WirePeer::dial(endpoint, zmtp::WireType::pub);
  for (int i = 0; i < 20; ++i) {
    expect_short("try_recv", [&] { EXPECT_EQ(sub.try_recv().error(), Errc::would_block); });
  }
  ASSERT_TRUE(sub.set(option::receive_timeout, 50ms));
  expect_short("recv", [&] { EXPECT_EQ(sub.recv().error(), Errc::timed_out); });
  PollItem item{.socket = &sub, .want_input = true};
  expect_short("poll", [&] { EXPECT_EQ(poll({&item, 1}, 50ms).value(), 0U); });
  ASSERT_TRUE(sub.set(option::receive_timeout, kLong));
  other.write(wire_frame(0, "wanted"));
  expect_short("recv beside the flood", [&] { EXPECT_EQ(recv_text(sub), "wanted"); });
}

// The frames never leave the connection: they are not messages for this type of socket.
TEST_P(Floods, OfDiscardedMessagesEndNoCallLate) {
  Socket gather = make(SocketType::gather);
  const std::string endpoint = bind(gather);
  const std::string frames = wire_frame(kMore, "a") + wire_frame(0, "b");
  const Flood first(endpoint, zmtp::WireType::scatter, frames);
  const Flood second(endpoint, zmtp::WireType::scatter, frames);
  WirePeer other = WirePeer::dial(endpoint, zmtp::WireType::scatter);
  for (int i = 0; i < 20; ++i) {
    expect_short("try_recv", [&] { EXPECT_EQ(gather.try_recv().error(), Errc::would_block); });
  }
  ASSERT_TRUE(gather.set(option::receive_timeout, 50ms));
  expect_short("recv", [&] { EXPECT_EQ(gather.recv().error(), Errc::timed_out); });
  PollItem item{.socket = &gather, .want_input = true};
  expect_short("poll", [&] { EXPECT_EQ(poll({&item, 1}, 50ms).value(), 0U); });
  ASSERT_TRUE(gather.set(option::receive_timeout, kLong));
  other.write(wire_frame(0, "wanted"));
  expect_short("recv beside the flood", [&] { EXPECT_EQ(recv_text(gather), "wanted"); });
}

TEST_P(Floods, OfUnknownCommandsEndTheConnectionWithAReason) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  const std::string endpoint = bind(pull);
  const Flood flood(endpoint, zmtp::WireType::push, wire_frame(kCommand, "\3FOO"));
  for (const Instant end = sys::now() + kLong;;) {
    (void)pull.try_recv();
    const auto event = pull.next_event(time_left(end, sys::now()));
    ASSERT_TRUE(event);
    if (event->kind == EventKind::disconnected) {
      EXPECT_EQ(event->reason, Errc::protocol_error);
      EXPECT_NE(event->reason.message().find("unknown commands"), std::string::npos) << event->reason.message();
      break;
    }
  }
}

// The calls of one thread, each of which may end before its connection has no more: the message arrives by any of them.
TEST_P(Floods, WhatStandsBehindAFloodArrives) {
  Socket sub = make(SocketType::sub);
  ASSERT_TRUE(sub.subscribe("wanted"));
  WirePeer peer = WirePeer::dial(bind(sub), zmtp::WireType::pub);
  const std::string flood = repeat(wire_frame(0, "no"), 20'000) + wire_frame(0, "wanted");
  std::thread writer([&] { peer.write(repeat(flood, 4)); });
  EXPECT_EQ(recv_text(sub), "wanted") << "by a call that waits";
  PollItem item{.socket = &sub, .want_input = true};
  EXPECT_EQ(poll({&item, 1}, kLong).value(), 1U) << "by poll";
  EXPECT_EQ(sub.try_recv().value().text(), "wanted");
  const int fd = sub.core()->descriptor().value();
  for (int found = 0; found < 2;) {
    sys::PollFd polled{.fd = fd, .want = sys::Interest::readable};
    ASSERT_EQ(sys::poll_fds({&polled, 1}, kLong).value(), 1U) << "by the descriptor, and receiving until it would wait";
    while (const auto message = sub.try_recv()) {
      EXPECT_EQ(message->text(), "wanted");
      ++found;
    }
  }
  writer.join();
}

// A call that ends with its turn leaves bytes in the reader. No event reports those, and the application never comes
// back for them.
TEST_P(Floods, WhatACallLeavesTheOtherThreadTakes) {
  for (const int frames : {3'000, 20'000}) {
    Socket publisher = make(SocketType::xpub);
    ASSERT_TRUE(publisher.set(option::heartbeat_interval, 0ms));  // a heartbeat would take them, too
    ASSERT_TRUE(publisher.watch_events());
    WirePeer peer = WirePeer::dial(bind(publisher), zmtp::WireType::sub);
    wait_for_peers(publisher);
    peer.write(repeat(wire_frame(0, std::string("\0a", 2)), frames) + wire_frame(0, "\1t"));
    (void)publisher.try_recv();
    (void)publisher.try_recv();
    const Instant deadline = sys::now() + kLong;
    while (publisher.core()->subscribers().value() == 0 && sys::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_EQ(publisher.core()->subscribers().value(), 1U) << frames;
  }
}

TEST_P(Floods, WhatAPeerSentBeforeItLeftArrivesInManyTurns) {
  constexpr int kCount = 20'000;
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::receive_high_water_mark, 0));
  const std::string endpoint = bind(pull);
  {
    WirePeer peer = WirePeer::dial(endpoint, zmtp::WireType::push);
    peer.write(repeat(wire_frame(0, "one"), kCount));
  }
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(recv_text(pull), "one") << i;
  }
}

// A peer that connects, sends much and leaves, over and over: its leftovers are bounded.
TEST_P(Floods, NobodyIsAcceptedWhileEndedConnectionsHoldTooMuch) {
  constexpr std::size_t kPart = 16 << 20;
  constexpr std::size_t kParts = 17;  // together more than the bound of 256 MB
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  const std::string endpoint = bind(pull);
  {
    WirePeer peer = WirePeer::dial(endpoint, zmtp::WireType::push);
    const std::string part = wire_frame(0, std::string(kPart, 'x'));
    for (std::size_t i = 0; i < kParts; ++i) {
      peer.write(part);
    }
  }
  wait_for_event(pull, EventKind::disconnected);
  EXPECT_EQ(WirePeer::dial(endpoint).read_to_end(), "") << "a connection that nobody accepts says nothing";
  wait_for_event(pull, EventKind::accept_failed);
  for (std::size_t i = 0; i < kParts; ++i) {
    EXPECT_EQ(pull.recv().value().size(), kPart);
  }
  EXPECT_EQ(pull.try_recv().error(), Errc::would_block);
  WirePeer peer = WirePeer::dial(endpoint, zmtp::WireType::push);
  peer.write(wire_frame(0, "next"));
  EXPECT_EQ(recv_text(pull), "next");
}

// Many peers flood one I/O thread, which queues their messages. Their bytes are there before the new peer connects.
class ManyFloods : public Conformance {
 protected:
  static constexpr std::size_t kPeers = 64;
  static constexpr std::size_t kFrames = 8 * msg::Turn::kFrames;  // of each

  // The I/O thread waits for release().
  void hold() {
    context().core()->io().loop().post([this] { EXPECT_TRUE(released_.take()); });
  }
  void release() { released_.give(); }
  // Calls check() in each turn of the I/O thread, until it returns true.
  void in_each_turn(std::function<bool()> check) {
    context().core()->io().loop().post(
        [this, check = std::move(check)]() mutable { check() ? seen_.give() : in_each_turn(std::move(check)); });
  }

  rt::test::Signal released_;
  rt::test::Signal seen_;
};
WEFT_TRANSPORTS_WHERE(ManyFloods, [](const Transport& row) { return row.name == std::string_view("tcp"); });

TEST_P(ManyFloods, HaveFewTurnsBeforeANewPeerIsServed) {
  Socket flooded = make(SocketType::pull);
  ASSERT_TRUE(flooded.set(option::receive_high_water_mark, 0));
  ASSERT_TRUE(flooded.set(option::address_connections_max, 0));
  const std::string endpoint = bind(flooded);
  Socket pull = make(SocketType::pull);
  const std::string own_endpoint = bind(pull);
  std::vector<WirePeer> peers;
  for (std::size_t i = 0; i < kPeers; ++i) {
    peers.push_back(WirePeer::dial(endpoint, zmtp::WireType::push));
  }
  const std::string bytes = repeat(wire_frame(0, "flood"), kFrames);
  hold();
  for (WirePeer& peer : peers) {
    ASSERT_EQ(peer.write_until_full(bytes, Duration::zero()), bytes.size());
  }
  BytePeer fresh = BytePeer::dial(own_endpoint);
  fresh.write(first_words_of_push() + wire_frame(0, "fresh"));
  std::uint64_t before = 0;
  in_each_turn([&] {
    before = flooded.statistics()->arrived;
    return pull.statistics()->arrived != 0;
  });
  release();
  ASSERT_TRUE(seen_.take());
  EXPECT_LT(before, 2 * kPeers * msg::Turn::kFrames) << "messages";
  EXPECT_EQ(recv_text(pull), "fresh");
}

}  // namespace
}  // namespace weft::conformance
