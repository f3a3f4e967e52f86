// SPDX-License-Identifier: MIT
// Peers of a tcp fleet that lie, flood, have no keys, or are not handles of topics.
#include <algorithm>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "weft/sys/path.h"
#include "weft/topic/fleet/test_peer.h"
#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include "weft/topic/wire/control.h"
#include "weft/zmtp/curve.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class Peers : public testing::Test {
 protected:
  TopicsOptions options() { return fleet_.options(); }
  // Returns when `done`, which is tried again whenever the handle has answered.
  template <typename Done>
  static bool eventually(Topics& topics, Done done) {
    const Instant end = soon();
    while (!done()) {
      if (sys::now() > end) {
        return false;
      }
      (void)topics.sync(sys::now() + 10ms);
    }
    return true;
  }

  TestFleet fleet_{"tcp"};
  Context context_;
  Context second_;
};

TEST_F(Peers, GarbageIsCountedAndDisturbsNobody) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(second_);
  Subscription s = *b.subscribe("a");
  Publisher p = *a.publisher("a");
  ASSERT_TRUE(p.wait_subscribers(1, soon()));
  ControlSender sender(second_, a.endpoint());
  const std::string good = *encode_control({.kind = Control::Kind::probe, .from = 5, .texts = {"a"}});
  std::uint64_t garbage = 0;
  for (std::size_t size = 2; size < good.size(); ++size, ++garbage) {
    sender.send_bytes(good.substr(0, size));
  }
  for (const char* text : {"", "o", "s", "px", "hx", "qx", "otopic", "e"}) {  // "e" alone is an endpoint of nothing
    sender.send_roster(5, {text});
    garbage += text == std::string("e") ? 0 : 1;
  }
  for (const std::string& text :
       {'n' + std::string(256, 'n'), 'e' + std::string(513, 'e'), 's' + std::string(300, 's') + std::string(1, '\0'),
        std::string("ot") + '\0' + std::to_string(kEpochMax + 1)}) {
    sender.send_roster(5, {text});
    ++garbage;
  }
  sender.send({.kind = Control::Kind::probe, .from = 5, .texts = {}});
  sender.send({.kind = Control::Kind::probe, .from = 5, .texts = {std::string(256, 'x')}});
  sender.send({.kind = Control::Kind::claim, .from = 5, .number = ~std::uint64_t{0}, .texts = {"t"}});
  sender.send({.kind = Control::Kind::claim, .from = 5, .number = 0, .texts = {"t"}});
  sender.send(
      {.kind = Control::Kind::claim_answer, .from = 5, .id = 1, .number = ~std::uint64_t{0}, .texts = {"taken"}});
  garbage += 5;
  EXPECT_TRUE(eventually(a, [&] { return a.statistics().control_malformed >= garbage; }))
      << a.statistics().control_malformed << " of " << garbage;
  EXPECT_EQ(a.statistics().control_malformed, garbage);
  ASSERT_TRUE(p.publish("still here"));
  EXPECT_EQ(s.next_until(soon())->text(), "still here");
}

TEST_F(Peers, RostersAreBoundedInBytes) {
  Topics a = fleet_.open(context_);
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i) {
    texts.push_back('s' + std::to_string(i) + std::string(250, 'x') + '\0' + std::string(250, 'g'));
  }
  constexpr std::uint64_t kRosters = 150;
  std::vector<std::unique_ptr<ControlSender>> senders;  // a connection speaks for one handle
  for (std::uint64_t from = 1; from <= kRosters; ++from) {
    senders.push_back(std::make_unique<ControlSender>(second_, a.endpoint()));
    senders.back()->send_roster(from, texts);
  }
  EXPECT_TRUE(eventually(a, [&] { return a.statistics().peers + a.statistics().control_refused >= kRosters; }));
  const std::uint64_t taken = a.statistics().peers;
  EXPECT_GT(taken, 64u);
  EXPECT_LT(taken, 140u);  // 64 MiB of 500 KB each
}

TEST_F(Peers, AConnectionSpeaksForOneHandleAndWhatThatToldEndsWithIt) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(second_);
  ASSERT_TRUE(b.sync(soon()));
  {
    ControlSender sender(second_, a.endpoint());
    constexpr std::uint64_t kRosters = 300;
    for (std::uint64_t from = 100; from < 100 + kRosters; ++from) {
      sender.send_roster(
          from, {"n" + std::to_string(from), std::string("sservice") + '\0', std::string("oworld") + '\0' + "7"});
    }
    sender.send_roster(b.instance(), {"nb"}, 1'000'000);  // for a handle that is there
    ASSERT_TRUE(eventually(a, [&] { return a.statistics().control_refused >= kRosters; }));
    EXPECT_EQ(a.statistics().control_refused, kRosters);
    EXPECT_EQ(a.statistics().peers, 2u);
    EXPECT_EQ(a.create("world", soon()).error(), Errc::conflict);
  }
  ASSERT_TRUE(eventually(a, [&] { return a.statistics().peers == 1; }));
  EXPECT_TRUE(a.create("world", soon()));
  EXPECT_EQ(a.request("service", "x", soon()).error(), Errc::unreachable);
  EXPECT_EQ(a.sync(soon())->front().instance, b.instance());
}

// A peer sends the endpoints of others. Whatever they are, the handle connects only to tcp.
TEST_F(Peers, AnEndpointOfAnotherKindIsRefused) {
  Topics a = fleet_.open(context_);
  ControlSender sender(second_, a.endpoint());
  const auto peer = [](std::uint64_t instance, const std::string& endpoint) {
    return 'p' + instance_text(instance) + '\0' + endpoint;
  };
  sender.send_roster(5, {"n", "eipc:///tmp/some.sock", peer(6, "inproc://elsewhere"), peer(7, "shm:///x"),
                         peer(8, "nonsense"), peer(9, "udp://127.0.0.1:1")});
  EXPECT_TRUE(eventually(a, [&] { return a.statistics().control_refused == 5; })) << a.statistics().control_refused;
}

// Forged answers of a handle that does not exist do not end a claim early, nor make a count that is beyond all filters.
TEST_F(Peers, ForgedAnswersAreBounded) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(second_);
  ASSERT_TRUE(b.sync(soon()));
  ControlSender sender(second_, a.endpoint());
  Publisher p = *a.publisher("a");
  for (std::uint64_t from = 100; from < 1000; ++from) {
    for (std::uint64_t id = 1; id < 4; ++id) {
      sender.send({.kind = Control::Kind::ready, .from = from, .id = id, .number = ~std::uint64_t{0}});
      sender.send({.kind = Control::Kind::claim_answer, .from = from, .id = id});
    }
    sender.send({.kind = Control::Kind::probe, .from = from, .id = from, .number = ~std::uint64_t{0}, .texts = {"a"}});
    sender.send({.kind = Control::Kind::probe, .from = from, .id = 1, .number = ~std::uint64_t{0}, .texts = {"a"}});
    sender.send({.kind = Control::Kind::roster_wanted, .from = from, .id = ~std::uint64_t{0}});
  }
  EXPECT_TRUE(eventually(a, [&] { return a.statistics().control_refused >= 900 * 2 - 1024; }));
  Owned mine = *a.create("world", soon());
  EXPECT_TRUE(mine.here());
  EXPECT_EQ(b.create("world", soon()).error(), Errc::conflict);
}

// Epochs follow the time. One that is far ahead would leave none for the owners after it.
TEST_F(Peers, AnEpochFarAheadIsMalformedAndUsesUpNoTopic) {
  Topics a = fleet_.open(context_);
  ControlSender sender(second_, a.endpoint());
  for (const std::uint64_t epoch : {kEpochMax, std::uint64_t{1} << 61U}) {
    sender.send_roster(5, {"n", std::string("oworld") + '\0' + std::to_string(epoch)});
    sender.send({.kind = Control::Kind::claim, .from = 5, .id = 1, .number = epoch, .texts = {"world"}});
  }
  ASSERT_TRUE(eventually(a, [&] { return a.statistics().control_malformed == 4; }));
  EXPECT_TRUE(a.create("world", soon()));
}

TEST_F(Peers, AStrangerWithAHigherEpochDeposesNoOwnerThatLives) {
  Topics a = fleet_.open(context_);
  const Owned world = *a.create("world", soon());
  ControlSender sender(second_, a.endpoint());
  sender.send_roster(
      5, {"n", 'l' + instance_text(a.instance()), std::string("oworld") + '\0' + std::to_string(world.epoch() + 1)});
  ASSERT_TRUE(eventually(a, [&] { return a.statistics().peers == 1; }));
  EXPECT_TRUE(world.here());
}

// Regression: an owner that left before its roster arrived did not raise the epoch.
TEST_F(Peers, AnOwnerWhoseRosterNeverCameRaisesTheEpoch) {
  Topics a = fleet_.open(context_);
  ASSERT_TRUE(a.instance() != 0);
  std::uint64_t claimed = 0;
  {
    ControlSender owner(second_, a.endpoint());
    claimed = static_cast<std::uint64_t>(
                  std::chrono::duration_cast<std::chrono::microseconds>(sys::wall_now().time_since_epoch()).count()) +
              1'000'000'000;
    owner.send_roster(5, {"nowner"});
    owner.send({.kind = Control::Kind::claim, .from = 5, .id = 1, .number = claimed, .texts = {"world"}});
    ASSERT_TRUE(eventually(a, [&] { return a.statistics().peers == 1; }));
    owner.send_bytes("\x02 garbage behind the claim");
    ASSERT_TRUE(eventually(a, [&] { return a.statistics().control_malformed == 1; }));
    owner.send_roster(5, {"nowner"}, 2);
  }
  Topics b = fleet_.open(second_);  // a peer that answers a's claim
  ASSERT_TRUE(b.sync(soon()));
  Result<Owned> next = b.create("world", sys::now() + 200ms);
  if (!next) {  // the sender that is gone does not answer: b's claim goes to a only
    next = b.create("world", soon());
  }
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_GT(next->epoch(), claimed);
}

TEST_F(Peers, AFilterOfAPeerOverItsBudgetNeverReachesTheProgram) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(second_);
  Subscription s = *b.subscribe("end");
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(s.add(Filter::glob("*b" + std::to_string(i) + "*")));
  }
  Publisher p = *a.publisher(std::string(200, 'a'));
  Publisher end = *a.publisher("end", {.when_full = WhenFull::wait});
  ASSERT_TRUE(end.wait_subscribers(1, soon()));
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(p.publish("not asked for"));
  }
  ASSERT_TRUE(end.publish("end"));
  EXPECT_EQ(s.next_until(soon())->topic(), "end");
  EXPECT_EQ(s.try_next().error(), Errc::would_block);
  EXPECT_EQ(b.statistics().delivered, 1u);
  EXPECT_EQ(b.statistics().dropped(), 0u);
}

// Regression: a roster that was handled after the end of its handle's connection brought the handle back, until its
// lease ran out. Both ways of a peer: one that a roster named, and one that was given.
TEST_F(Peers, ALateRosterBringsNoLostHandleBackAndTheHandleComesBackItself) {
  for (const bool given : {false, true}) {
    SCOPED_TRACE(given);
    TestFleet fleet("tcp");
    Topics a = fleet.open(context_);
    auto receiver = std::make_unique<ControlReceiver>(second_, unused_endpoint());
    const std::string endpoint = receiver->endpoint();
    if (given) {
      ASSERT_TRUE(a.add_peer(endpoint));
    }
    ControlSender sender(second_, a.endpoint());
    std::uint64_t revision = 0;
    const auto announce = [&] {
      constexpr std::uint64_t kLease = 60'000'000'000;  // ns
      sender.send({.kind = Control::Kind::roster,
                   .from = ControlReceiver::kInstance,
                   .id = ++revision,
                   .number = kLease,
                   .texts = {"nlate", 'e' + endpoint}});
    };
    announce();
    ASSERT_TRUE(receiver->linked());
    const auto there = a.watch_nodes({}, soon());
    ASSERT_TRUE(there) << there.error().message();
    receiver.reset();
    const auto left = a.watch_nodes(*there, soon());
    ASSERT_TRUE(left) << left.error().message();
    EXPECT_TRUE(left->empty());
    announce();
    sender.send_bytes("\x02 garbage behind the roster");
    ASSERT_TRUE(eventually(a, [&] { return a.statistics().control_malformed == 1; }));
    EXPECT_TRUE(a.nodes().empty());
    EXPECT_EQ(a.statistics().peers, 0u);

    receiver = std::make_unique<ControlReceiver>(second_, endpoint);
    ASSERT_TRUE(receiver->linked());
    announce();
    const auto back = a.watch_nodes({}, soon());
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(back->front().instance, ControlReceiver::kInstance);
  }
}

TEST_F(Peers, NobodyWaitsForAPeerThatWasHeardOfAndLeftWithoutAWord) {
  Topics a = fleet_.open(context_);
  auto receiver = std::make_unique<ControlReceiver>(second_, unused_endpoint());
  ControlSender sender(second_, a.endpoint());
  sender.send_roster(ControlReceiver::kInstance, {"n", 'e' + receiver->endpoint()});
  ASSERT_TRUE(receiver->linked());
  sender.send_roster(ControlReceiver::kInstance, {"n", 'e' + receiver->endpoint()}, 2);
  ASSERT_TRUE(eventually(a, [&] { return a.statistics().peers == 1; }));
  receiver.reset();
  ASSERT_TRUE(eventually(a, [&] { return a.statistics().peers == 0; }));
  const auto all = a.sync(soon());
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_TRUE(all->empty());
}

// Makes the handle's roster 250 KB long.
std::vector<Owned> own_much(Topics& topics) {
  std::vector<Owned> owned;
  for (int i = 0; i < 1000; ++i) {
    owned.push_back(*topics.create(std::to_string(i) + std::string(240, 'x'), soon()));
  }
  return owned;
}

TEST_F(Peers, APeerThatDidNotReadGetsTheNewestRosterWhenItReads) {
  TopicsOptions options = fleet_.options();
  options.peer_messages_max = 1;
  Topics a = fleet_.open(context_, options);
  const std::vector<Owned> owned = own_much(a);
  ControlReceiver receiver(second_, unused_endpoint(), 1);
  ControlSender sender(second_, a.endpoint());
  sender.send_roster(ControlReceiver::kInstance, {"n", 'e' + receiver.endpoint()});
  ASSERT_TRUE(receiver.linked());
  ASSERT_TRUE(eventually(a, [&] {  // until both systems hold no more
    sender.send({.kind = Control::Kind::roster_wanted, .from = ControlReceiver::kInstance});
    return a.statistics().control_unsent >= 3;
  }));
  const Service last = *a.serve("last", {}, [](const TopicMessage&) { return Message::copy_of(std::string_view()); });
  EXPECT_TRUE(receiver.receives([](const Control& control) {
    return control.kind == Control::Kind::roster &&
           std::find(control.texts.begin(), control.texts.end(), std::string("slast") + '\0') != control.texts.end();
  }));
}

// The rule is Resend's.
TEST_F(Peers, AQueueForOneMessageGetsTheMessagesBehindALargeRoster) {
  TopicsOptions options = fleet_.options();
  options.peer_messages_max = 1;
  Topics a = fleet_.open(context_, options);
  const std::vector<Owned> owned = own_much(a);
  ControlReceiver receiver(second_, unused_endpoint(), 1);
  ControlSender sender(second_, a.endpoint());
  sender.send_roster(ControlReceiver::kInstance, {"n", 'e' + receiver.endpoint()});
  ASSERT_TRUE(receiver.linked());
  ASSERT_TRUE(eventually(a, [&] {  // until both systems hold no more
    sender.send({.kind = Control::Kind::roster_wanted, .from = ControlReceiver::kInstance});
    return a.statistics().control_unsent >= 3;
  }));
  constexpr std::uint64_t kProbes = 30;
  for (std::uint64_t probe = 1; probe <= kProbes; ++probe) {
    sender.send({.kind = Control::Kind::probe,
                 .from = ControlReceiver::kInstance,
                 .id = probe,
                 .number = 600'000'000'000,  // ns
                 .texts = {"a"}});
  }
  std::set<std::uint64_t> counted;
  EXPECT_TRUE(receiver.receives([&](const Control& control) {
    if (control.kind == Control::Kind::ready) {
      counted.insert(control.id);
    }
    return counted.size() == kProbes;
  })) << counted.size();
}

// Regression: while one peer did not read, each handle asked all peers for their rosters every second.
TEST_F(Peers, WhileAPeerDoesNotReadTheOthersAreNotAskedAgain) {
  TopicsOptions options = fleet_.options();
  options.peer_messages_max = 8;
  Topics a = fleet_.open(context_, options);
  const std::vector<Owned> owned = own_much(a);
  const std::string every_ask = 'h' + instance_text(a.instance()) + '\0' + std::to_string(~std::uint64_t{0});
  ControlReceiver blocked(second_, unused_endpoint(), 1);
  ControlReceiver receiver(second_, unused_endpoint(), 1000, 6);
  ControlSender sender_of_blocked(second_, a.endpoint());
  ControlSender sender(second_, a.endpoint());
  sender_of_blocked.send_roster(ControlReceiver::kInstance, {"n", 'e' + blocked.endpoint(), every_ask});
  sender.send_roster(6, {"n", 'e' + receiver.endpoint(), every_ask});
  ASSERT_TRUE(blocked.linked());
  ASSERT_TRUE(receiver.linked());
  const auto receives_roster = [&](int& asked) {
    return receiver.receives([&](const Control& control) {
      asked += control.kind == Control::Kind::roster_wanted && (control.to == 0 || control.to == 6) ? 1 : 0;
      return control.kind == Control::Kind::roster;
    });
  };
  // The blocked peer misses a roster: `sender` asks for rosters until the queue of the blocked peer is full.
  const auto misses_one = [&](int& asks) {
    for (const std::uint64_t before = a.statistics().control_unsent; a.statistics().control_unsent == before;) {
      sender.send({.kind = Control::Kind::roster_wanted, .from = 6});
      if (!receives_roster(asks)) {
        return false;
      }
    }
    return true;
  };
  int at_first = 0;
  ASSERT_TRUE(misses_one(at_first));
  int asked = 0;
  for (int told = 0; told < 5; ++told) {  // the system may take more from the queue at any time
    ASSERT_TRUE(receives_roster(asked)) << "the handle repeats the missed roster by itself";
    ASSERT_TRUE(misses_one(asked));
  }
  EXPECT_EQ(asked, 0);
}

// Regression: the second answer to a repeated claim reported the claim's own epoch as known, and the handle claimed
// again.
TEST_F(Peers, TheSecondAnswerOfAPeerSpoilsNoClaim) {
  Topics a = fleet_.open(context_);
  ControlReceiver receiver(second_, unused_endpoint());
  ControlSender sender(second_, a.endpoint());
  ControlSender other(second_, a.endpoint());
  const std::string every_ask = std::to_string(~std::uint64_t{0});
  sender.send_roster(ControlReceiver::kInstance,
                     {"n", 'e' + receiver.endpoint(), 'h' + instance_text(a.instance()) + '\0' + every_ask});
  other.send_roster(6, {"n"});
  ASSERT_TRUE(receiver.linked());
  ASSERT_TRUE(eventually(a, [&] { return a.statistics().peers == 2; }));
  auto created = std::async(std::launch::async, [&] { return a.create("world", soon()); });
  Control claim;
  ASSERT_TRUE(receiver.receives([&](const Control& control) {
    claim = control;
    return control.kind == Control::Kind::claim;
  }));
  for (const std::uint64_t objection : {std::uint64_t{0}, claim.number}) {
    sender.send(
        {.kind = Control::Kind::claim_answer, .from = ControlReceiver::kInstance, .id = claim.id, .number = objection});
  }
  sender.send_bytes("\x02 garbage behind the answers");
  ASSERT_TRUE(eventually(a, [&] { return a.statistics().control_malformed == 1; }));
  other.send({.kind = Control::Kind::claim_answer, .from = 6, .id = claim.id});
  const auto world = created.get();
  ASSERT_TRUE(world) << world.error().message();
  EXPECT_EQ(world->epoch(), claim.number);
}

// Two that know each other were apart, and both created the topic: the higher epoch stays.
TEST_F(Peers, AfterAPartitionThatBothRememberTheHigherEpochStays) {
  const std::string every_ask = std::to_string(~std::uint64_t{0});
  for (const bool remembers : {false, true}) {
    SCOPED_TRACE(remembers);
    TestFleet fleet("tcp");
    Topics a = fleet.open(context_);
    auto receiver = std::make_unique<ControlReceiver>(second_, unused_endpoint());
    const std::string endpoint = receiver->endpoint();
    ControlSender sender(second_, a.endpoint());
    sender.send_roster(ControlReceiver::kInstance, {"n", 'e' + endpoint});
    ASSERT_TRUE(receiver->linked());
    sender.send_roster(ControlReceiver::kInstance, {"n", 'e' + endpoint}, 2);
    ASSERT_TRUE(eventually(a, [&] { return a.statistics().peers == 1; }));
    receiver.reset();
    ASSERT_TRUE(eventually(a, [&] { return a.statistics().peers == 0; }));
    const Owned world = *a.create("world", soon());
    receiver = std::make_unique<ControlReceiver>(second_, endpoint);
    ASSERT_TRUE(receiver->linked());
    // As a handle does, again and again: `a` takes no word before its connection to the receiver has shown its proof.
    ASSERT_TRUE(eventually(a, [&, number = 3]() mutable {
      sender.send_roster(ControlReceiver::kInstance,
                         {"n", 'e' + endpoint, 'h' + instance_text(a.instance()) + '\0' + every_ask,
                          remembers ? 'l' + instance_text(a.instance()) : std::string("n"),
                          std::string("oworld") + '\0' + std::to_string(world.epoch() + 1)},
                         number++);
      return a.statistics().peers == 1;
    }));
    EXPECT_EQ(world.here(), !remembers);
  }
}

// --- keys ---

struct Keys {
  zmtp::CurveKeyPair fleet = *zmtp::make_curve_key_pair();
  [[nodiscard]] FleetSecurity member() const {
    const zmtp::CurveKeyPair own = *zmtp::make_curve_key_pair();
    return {text(fleet.public_key), text(fleet.secret_key), text(own.public_key), text(own.secret_key)};
  }
  template <typename Key>
  static std::string text(const Key& key) {
    return {key.begin(), key.end()};
  }
};

class SecretFleet : public Peers {
 protected:
  void SetUp() override {
    if (!zmtp::make_curve_key_pair()) {
      GTEST_SKIP() << "built without libsodium";
    }
  }
  Topics open_member(Context& context, const Keys& keys) {
    TopicsOptions options = fleet_.options();
    options.security = keys.member();
    return fleet_.open(context, options);
  }
};

TEST_F(SecretFleet, HandlesWithTheKeysMeetAndOthersAreRefusedAndCounted) {
  const Keys keys;
  Topics a = open_member(context_, keys);
  Topics b = open_member(second_, keys);
  Subscription s = *b.subscribe("a");
  Publisher p = *a.publisher("a");
  ASSERT_TRUE(p.wait_subscribers(1, soon()));
  ASSERT_TRUE(p.publish("secret"));
  EXPECT_EQ(s.next_until(soon())->text(), "secret");
  EXPECT_EQ(a.statistics().peers_refused, 0u);

  Context third;
  TopicsOptions other = fleet_.options();
  other.security = Keys().member();  // of another fleet
  Topics stranger = *Topics::open(third, other);
  Subscription none = *stranger.subscribe(">");
  EXPECT_TRUE(eventually(a, [&] { return a.statistics().peers_refused >= 1; }));
  Topics plain = *Topics::open(third, fleet_.options());
  Subscription nothing = *plain.subscribe(">");
  const std::uint64_t refused = a.statistics().peers_refused;
  EXPECT_TRUE(eventually(a, [&] { return a.statistics().peers_refused >= refused + 2; }));
  Socket sub = *third.socket(SocketType::sub);  // a plain subscriber, as libzmq has it
  ASSERT_TRUE(sub.subscribe(""));
  ASSERT_TRUE(sub.connect(a.endpoint()));
  ASSERT_TRUE(p.publish("secret"));
  EXPECT_EQ(s.next_until(soon())->text(), "secret");
  EXPECT_EQ(none.try_next().error(), Errc::would_block);
  EXPECT_EQ(nothing.try_next().error(), Errc::would_block);
  EXPECT_EQ(sub.try_recv().error(), Errc::would_block);
  EXPECT_EQ(a.statistics().peers, 1u);
}

TEST_F(SecretFleet, APeerWithThePublicKeyAloneReceivesAndItsMessagesAreRefused) {
  const Keys keys;
  Topics a = open_member(context_, keys);
  Topics b = open_member(second_, keys);
  ASSERT_TRUE(b.sync(soon()));
  const Owned world = *a.create("world", soon());
  const Service service =
      *b.serve("svc", {}, [](const TopicMessage&) { return Message::copy_of(std::string_view("yes")); });
  Context third;
  for (const bool forges : {false, true}) {  // a proof of its own making
    Socket reader = *third.socket(SocketType::xsub);
    const zmtp::CurveKeyPair own = *zmtp::make_curve_key_pair();
    ASSERT_TRUE(reader.set(option::curve_public_key, Keys::text(own.public_key)));
    ASSERT_TRUE(reader.set(option::curve_secret_key, Keys::text(own.secret_key)));
    ASSERT_TRUE(reader.set(option::curve_server_key, Keys::text(keys.fleet.public_key)));
    if (forges) {
      ASSERT_TRUE(reader.set(option::metadata, "X-Weft-Fleet:" + *zmtp::curve_proof(own.secret_key, "x")));
    }
    ASSERT_TRUE(reader.connect(a.endpoint()));
    ASSERT_TRUE(reader.recv_until(soon()));  // the welcome
    const std::uint64_t before = a.statistics().control_refused;
    const auto send = [&](const Control& control) { ASSERT_TRUE(reader.send(*encode_control(control))); };
    send({.kind = Control::Kind::roster,
          .from = 5,
          .id = 1,
          .texts = {"n", std::string("oworld") + '\0' + std::to_string(world.epoch() + 1), std::string("ssvc") + '\0',
                    'h' + instance_text(a.instance()) + '\0' + "1"}});
    send({.kind = Control::Kind::claim, .from = 5, .id = 1, .number = world.epoch() + 1, .texts = {"free"}});
    send({.kind = Control::Kind::roster, .from = b.instance(), .id = 1'000'000, .texts = {"n"}});
    ASSERT_TRUE(eventually(a, [&] { return a.statistics().control_refused >= before + 3; }));
  }
  EXPECT_TRUE(world.here());
  EXPECT_TRUE(a.create("free", soon()));
  EXPECT_EQ(a.statistics().peers, 1u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(a.request("svc", "?", soon())->text(), "yes");
  }
}

TEST_F(SecretFleet, KeysThatWouldHaveNoEffectAreRefused) {
  const Keys keys;
  for (std::string FleetSecurity::* const missing :
       {&FleetSecurity::curve_server_public, &FleetSecurity::curve_server_secret, &FleetSecurity::curve_public,
        &FleetSecurity::curve_secret}) {
    TopicsOptions options = fleet_.options();
    options.security = keys.member();
    (options.security.*missing).clear();
    EXPECT_EQ(Topics::open(context_, options).error(), Errc::invalid_argument);
  }
  TopicsOptions options;
  options.fleet = "inproc:x";
  options.security = keys.member();
  EXPECT_EQ(Topics::open(context_, options).error(), Errc::invalid_argument);
  options = {};
  options.fleet = "tls+tcp://127.0.0.1:1";  // without a certificate
  EXPECT_EQ(Topics::open(context_, options).error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace weft::topic
