// SPDX-License-Identifier: MIT
// The counters of a socket balance: each sent and each arrived message was handed over, delivered, dropped for a
// reason, or waits (docs/metrics.md). One test for each place where a message can vanish.
#include <functional>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"

namespace weft::conformance {
namespace {

using zmtp::kMore;

class Balance : public Conformance {
 protected:
  static Statistics numbers(Socket& socket) {
    const auto result = socket.statistics();
    EXPECT_TRUE(result);
    return result.value_or(Statistics());
  }
  // Waits until `holds`, since the I/O thread counts too.
  static Statistics wait_until(Socket& socket, const std::function<bool(const Statistics&)>& holds) {
    const Instant end = sys::now() + kLong;
    Statistics now = numbers(socket);
    while (!holds(now) && sys::now() < end) {
      std::this_thread::yield();
      now = numbers(socket);
    }
    EXPECT_TRUE(holds(now)) << "sent " << now.sent << ", arrived " << now.arrived << ", dropped " << now.dropped
                            << ", queued out " << now.queued_out << ", queued in " << now.queued_in;
    return now;
  }
  // The application sent `given` messages, and received `taken`.
  static Statistics expect_balance(Socket& socket, std::uint64_t given, std::uint64_t taken) {
    const Statistics now = wait_until(socket, [&](const Statistics& at) {
      return given + at.arrived == at.sent + taken + at.dropped + at.queued_out + at.queued_in;
    });
    const std::vector<std::uint64_t> values = sync::read_counters(now);
    std::uint64_t reasons = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      reasons += kSocketTable.rows[i].metric == "messages_dropped_total" ? values[i] : 0;
    }
    EXPECT_EQ(now.dropped, reasons) << "`dropped` is the sum of all reasons";
    return now;
  }
  // The same once everything is handed over: a peer may have a message before its sender has counted that.
  static Statistics expect_all_sent(Socket& socket, std::uint64_t given, std::uint64_t taken) {
    (void)wait_until(socket, [](const Statistics& now) { return now.queued_out == 0; });
    return expect_balance(socket, given, taken);
  }
};
WEFT_EVERY_TRANSPORT(Balance);
class BalanceInProcess : public Balance {};
WEFT_TRANSPORTS_WHERE(BalanceInProcess, in_process);

// --- outgoing messages ---

class BalanceWire : public Balance {
 protected:
  static WirePeer dial(const std::string& endpoint, zmtp::WireType type) {
    return GetParam().encrypted
               ? WirePeer::dial(endpoint, type,
                                zmtp::make_curve_client(zmtp::make_curve_key_pair().value(), server_keys().public_key))
               : WirePeer::dial(endpoint, type);
  }
  static std::string sealed(WirePeer& peer, std::uint8_t flags, std::string_view body) {
    return GetParam().encrypted ? peer.sealed_frame(flags, body) : wire_frame(flags, body);
  }
};
WEFT_TRANSPORTS_WHERE(BalanceWire, over_streams);
class BalanceWireInTheClear : public BalanceWire {};
WEFT_TRANSPORTS_WHERE(BalanceWireInTheClear, in_the_clear);

TEST_P(BalanceWire, WhatWasQueuedForAPeerThatLeavesIsLost) {
  for (const int mark : {10, 0}) {
    Socket push = make(SocketType::push);
    ASSERT_TRUE(push.watch_events());
    ASSERT_TRUE(push.set(option::send_high_water_mark, mark));
    const std::string endpoint = bind(push);
    std::uint64_t given = 0;
    {
      const WirePeer peer = dial(endpoint, zmtp::WireType::pull);
      wait_for_event(push, EventKind::handshake_succeeded);
      // The kernel never takes all of the first message, so the next ones stay queued.
      ASSERT_TRUE(push.send(std::string(16'000'000, 'x')));
      ++given;
      while (given < 100 && push.try_send("behind")) {
        ++given;
      }
      EXPECT_GT(expect_balance(push, given, 0).queued_out, 0u);
    }
    wait_for_event(push, EventKind::disconnected);
    const Statistics end = expect_balance(push, given, 0);
    EXPECT_EQ(end.queued_out, 0u);
    EXPECT_GT(end.dropped_lost, 0u);
    EXPECT_EQ(end.dropped, end.dropped_lost);
  }
}

TEST_P(BalanceWireInTheClear, AHalfWrittenBigPartIsLostAtTheReconnect) {
  auto listener = net::Listener::open(*net::parse_endpoint(new_endpoint(), true), {});
  ASSERT_TRUE(listener);
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.connect((*listener)->bound_endpoint()));
  {
    WirePeer first = WirePeer::accept(**listener, zmtp::WireType::pull);
    ASSERT_TRUE(push.send(std::string(16'000'000, 'x')));
    EXPECT_EQ(first.read(100).size(), 100u);
    EXPECT_EQ(expect_balance(push, 1, 0).queued_out, 1u);
  }
  WirePeer second = WirePeer::accept(**listener, zmtp::WireType::pull);
  ASSERT_TRUE(push.send("next"));
  EXPECT_EQ(second.read_frame().body, "next");
  const Statistics end = wait_until(push, [](const Statistics& now) { return now.sent == 1; });
  EXPECT_EQ(end.dropped_lost, 1u);
  (void)expect_balance(push, 2, 0);
}

TEST_P(Balance, AMessageWithoutAPeerIsCountedOnce) {
  Socket router = make(SocketType::router);
  send(router, {"nobody", "has", "this", "name"});
  send(router, "an id alone");
  EXPECT_EQ(expect_balance(router, 2, 0).dropped_no_peer, 2u);
}

TEST_P(Balance, WhatAFullPeerMissesIsFull) {
  Socket router = make(SocketType::router);
  Socket dealer = make(SocketType::dealer);
  ASSERT_TRUE(router.set(option::send_high_water_mark, 2));
  ASSERT_TRUE(dealer.set(option::receive_high_water_mark, 2));
  ASSERT_TRUE(dealer.set(option::routing_id, "d"));
  connect(dealer, bind(router));
  send(dealer, "here");
  EXPECT_EQ(recv(router).back(), "here");
  const std::string text(100'000, 'x');
  std::uint64_t given = 0;
  while (numbers(router).dropped == 0 && given < 10'000) {
    send(router, {"d", text});
    ++given;
  }
  const Statistics end = expect_balance(router, given, 1);
  EXPECT_EQ(end.dropped, end.dropped_full);
  EXPECT_GT(end.dropped_full, 0u);
}

TEST_P(Balance, AClosedSocketStillTellsWhatNobodyGot) {
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::linger, 0ms));
  ASSERT_TRUE(push.connect(GetParam().streams ? free_endpoint() : new_endpoint()));
  for (int i = 0; i < 3; ++i) {
    send(push, "waits");
  }
  EXPECT_EQ(expect_balance(push, 3, 0).queued_out, 3u);
  push.close();
  EXPECT_EQ(wait_until(push, [](const Statistics& now) { return now.queued_out == 0; }).dropped_lost, 3u);
  (void)expect_balance(push, 3, 0);
}

TEST_P(Balance, AnEndpointThatIsGivenUpLosesItsQueue) {
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::linger, 0ms));
  const std::string endpoint = GetParam().streams ? free_endpoint() : new_endpoint();
  ASSERT_TRUE(push.connect(endpoint));
  send(push, "waits");
  ASSERT_TRUE(push.disconnect(endpoint));
  EXPECT_EQ(wait_until(push, [](const Statistics& now) { return now.queued_out == 0; }).dropped_lost, 1u);
  (void)expect_balance(push, 1, 0);
}

TEST_P(BalanceInProcess, WhatWaitsForASocketThatBindsIsQueued) {
  for (const bool leaves : {false, true}) {
    const std::string endpoint = new_endpoint();
    Socket push = make(SocketType::push);
    ASSERT_TRUE(push.connect(endpoint));
    send(push, "one");
    send(push, "two");
    if (leaves) {
      ASSERT_TRUE(push.disconnect(endpoint));
    }
    EXPECT_EQ(expect_balance(push, 2, 0).queued_out, 2u);
    Socket pull = make(SocketType::pull);
    ASSERT_TRUE(pull.bind(endpoint));
    EXPECT_EQ(expect_balance(push, 2, 0).sent, 2u);
    EXPECT_EQ(expect_balance(pull, 0, 0).queued_in, 2u);
    EXPECT_EQ(recv_many(pull, 2), (Texts{"one", "two"}));
    EXPECT_EQ(expect_balance(pull, 0, 2).arrived, 2u);
  }
}

// --- incoming messages ---

TEST_P(BalanceWire, MessagesToASocketThatReceivesNoneAreUnexpected) {
  for (const auto& [type, peer_type] :
       {std::pair{SocketType::push, zmtp::WireType::pull}, {SocketType::pub, zmtp::WireType::xsub}}) {
    Socket socket = make(type);
    WirePeer peer = dial(bind(socket), peer_type);
    peer.write(sealed(peer, 0, "message"));
    peer.write(sealed(peer, kMore, "and"));
    peer.write(sealed(peer, 0, "one more"));
    const Statistics end = wait_until(socket, [](const Statistics& now) { return now.dropped == 2; });
    EXPECT_EQ(end.dropped_unexpected, 2u);
    EXPECT_EQ(expect_balance(socket, 0, 0).arrived, 2u);
  }
}

TEST_P(BalanceWire, MessagesThatNobodySubscribedToAreUnexpected) {
  Socket sub = make(SocketType::sub);
  ASSERT_TRUE(sub.subscribe("asked"));
  WirePeer pub = dial(bind(sub), zmtp::WireType::pub);
  for (const char* text : {"unasked", "asked", "more of that"}) {
    pub.write(sealed(pub, 0, text));
  }
  EXPECT_EQ(recv_text(sub), "asked");
  (void)wait_until(sub, [&sub](const Statistics& now) {
    (void)sub.try_recv();  // the filter runs as the application receives
    return now.arrived == 3 && now.queued_in == 0;
  });
  EXPECT_EQ(expect_balance(sub, 0, 1).dropped_unexpected, 2u);
}

TEST_P(Balance, RepliesThatAReqDidNotAskForAreUnexpected) {
  Socket router = make(SocketType::router);
  Socket req = make(SocketType::req);
  connect(req, bind(router));
  send(req, "question");
  const std::string id = recv(router).front();
  send(router, {id, "not a delimiter", "x"});
  send(router, {id, "lone"});
  send(router, {id, "", "answer"});
  EXPECT_EQ(recv_text(req), "answer");
  EXPECT_EQ(expect_balance(req, 1, 1).dropped_unexpected, 2u);
  (void)expect_balance(router, 3, 1);
}

TEST_P(Balance, RepliesToARequestThatAnotherOneReplacedAreUnexpected) {
  Socket router = make(SocketType::router);
  Socket req = make(SocketType::req);
  ASSERT_TRUE(req.set(option::req_relaxed, true));
  connect(req, bind(router));
  send(req, "first");
  const std::string id = recv(router).front();
  send(router, {id, "", "too", "late"});
  (void)wait_until(req, [](const Statistics& now) { return now.arrived == 1; });
  send(req, "second");
  EXPECT_EQ(recv(router).back(), "second");
  send(router, {id, "", "in time"});
  EXPECT_EQ(recv_text(req), "in time");
  EXPECT_EQ(expect_balance(req, 2, 1).dropped_unexpected, 1u);
}

TEST_P(Balance, RequestsWithoutADelimiterAreUnexpected) {
  Socket dealer = make(SocketType::dealer);
  Socket rep = make(SocketType::rep);
  connect(dealer, bind(rep));
  send(dealer, "no delimiter");
  send(dealer, {"no", "delimiter", "either"});
  send(dealer, {"", "question"});
  EXPECT_EQ(recv_text(rep), "question");
  send(rep, "answer");
  EXPECT_EQ(expect_balance(rep, 1, 1).dropped_unexpected, 2u);
}

TEST_P(Balance, MessagesThatANewerOneReplacedAreConflated) {
  constexpr std::uint64_t kCount = 50;
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  ASSERT_TRUE(pull.set(option::conflate, true));
  ASSERT_TRUE(push.set(option::conflate, true));
  connect(push, bind(pull));
  for (std::uint64_t i = 0; i < kCount; ++i) {
    send(push, std::to_string(i));
  }
  std::uint64_t taken = 0;
  while (!HasFailure()) {
    ++taken;
    if (recv_text(pull) == std::to_string(kCount - 1)) {
      break;
    }
  }
  const Statistics out = expect_all_sent(push, kCount, 0);
  const Statistics in = expect_balance(pull, 0, taken);
  EXPECT_EQ(out.sent, in.arrived);
  EXPECT_EQ(out.dropped_conflated + in.dropped_conflated, kCount - taken);
}

TEST_P(Balance, WhatIsUnreadAtADisconnectIsLost) {
  Socket push = make(SocketType::push);
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(push);
  connect(pull, endpoint);
  for (int i = 0; i < 3; ++i) {
    send(push, "unread");
  }
  (void)wait_until(pull, [](const Statistics& now) { return now.arrived == 3; });
  ASSERT_TRUE(pull.disconnect(endpoint));
  EXPECT_EQ(pull.try_recv().error(), Errc::would_block);
  (void)wait_until(pull, [](const Statistics& now) { return now.dropped_lost == 3; });
  EXPECT_EQ(expect_balance(pull, 0, 0).dropped_lost, 3u);
  EXPECT_EQ(expect_all_sent(push, 3, 0).sent, 3u);
}

TEST_P(Balance, NoticesOfAnXpubAreMessagesThatArrived) {
  Socket xpub = make(SocketType::xpub);
  Socket xsub = make(SocketType::xsub);
  connect(xsub, bind(xpub));
  send(xsub, "\1a");
  EXPECT_EQ(recv_text(xpub), "\1a");
  send(xsub, "\1b");
  send(xsub, "upstream");
  (void)wait_until(xpub, [](const Statistics& now) { return now.arrived == 3; });
  EXPECT_EQ(expect_balance(xpub, 0, 1).queued_in, 2u);
  EXPECT_EQ(expect_all_sent(xsub, 1, 0).sent, 1u) << "subscriptions are no messages";
}

}  // namespace
}  // namespace weft::conformance
