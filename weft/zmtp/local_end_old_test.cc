// SPDX-License-Identifier: MIT
// Conversations with peers of ZMTP 2.0 and 1.0, written from RFC 15, RFC 13 and RFC 23 "Backwards
// Interoperability".
#include <algorithm>
#include <string>
#include <utility>

#include "weft/zmtp/local_end.h"
#include "weft/zmtp/plain.h"
#include "weft/zmtp/test_security.h"
#include "weft/zmtp/test_support.h"
#include <gtest/gtest.h>

namespace weft::zmtp::test {
namespace {

using enum WireType;

constexpr std::string_view kSignature = "FF 00000000 00000001 7F";

Buffer greeting_2(WireType type) { return wire(kSignature) + Buffer{1, static_cast<std::uint8_t>(type)}; }

LocalEndConfig named(WireType type, std::string identity = "me") {
  LocalEndConfig config = config_of(type);
  config.identity = std::move(identity);
  return config;
}

LocalEnd in_steps(LocalEndConfig config) { return started(std::move(config), kStart, Opening::signature); }

// Checks that the outcome is the same whole, cut in two at every byte, and byte by byte.
Outcome converse(const LocalEndConfig& config, const Buffer& input) {
  LocalEnd peer = in_steps(config);
  Outcome whole = run_whole(peer, input);
  for (std::size_t first = 1; first < input.size(); ++first) {
    peer.start(kStart, Opening::signature);
    EXPECT_EQ(run(peer, input, [first, n = 0, &input]() mutable { return n++ == 0 ? first : input.size(); }), whole);
  }
  peer.start(kStart, Opening::signature);
  EXPECT_EQ(run(peer, input, [] { return std::size_t{1}; }), whole);
  return whole;
}

void expect_conversation(const LocalEndConfig& config, const Buffer& input, std::string_view log,
                         const Buffer& output) {
  const Outcome outcome = converse(config, input);
  EXPECT_EQ(outcome.log, log);
  EXPECT_EQ(outcome.output, output);
  EXPECT_EQ(outcome.taken, input.size());
}

void expect_fault(const LocalEndConfig& config, const Buffer& input, Errc code, std::string_view text) {
  (void)converse(config, input);
  LocalEnd peer = in_steps(config);
  (void)run_whole(peer, input);
  ASSERT_TRUE(peer.fault()) << text;
  EXPECT_EQ(peer.fault()->code, code);
  EXPECT_EQ(peer.fault()->text.c_str(), text);
  EXPECT_FALSE(peer.greeted_too_much());
}

TEST(PeerOld, ConversationWithA20Dealer) {
  expect_conversation(named(router), greeting_2(dealer) + wire("00 02 'id' 01 01 'm' 02 0000000000000001 'n' 00 00"),
                      "0 0  message 1\n0 0  message 1\n0 0  message 0\n"
                      "ready minor 0 identity id Socket-Type=DEALER Identity=id",
                      wire("FF 00000000 00000003 7F 03 06 00 02 'me'"));
}

TEST(PeerOld, ConversationWithA20SubscriberThatHasNoIdentity) {
  expect_conversation(config_of(xpub), greeting_2(sub) + wire("00 00 00 02 01 'a' 00 01 01 00 02 00 'a'"),
                      "1 0 a message 2\n1 0  message 1\n2 0 a message 2\nready minor 0 identity  Socket-Type=SUB",
                      wire(kSignature) + wire("03 01 00 00"));
}

TEST(PeerOld, ConversationWithA20PeerOfTheSignatureInTheGrammar) {
  // Padding of zeros, the other number for 2.0, a long frame for the identity.
  expect_conversation(config_of(pull), wire("FF 00000000 00000000 7F 02 08 02 0000000000000001 'i' 00 01 'x'"),
                      "0 0  message 1\nready minor 0 identity i Socket-Type=PUSH Identity=i",
                      wire(kSignature) + wire("03 07 00 00"));
}

TEST(PeerOld, ConversationWithAnAnonymous10Peer) {
  expect_conversation(named(router), wire("01 00 03 01 'ab' 01 01 02 00 'c' FF 00000000 00000002 00 'd'"),
                      "0 0  message 2\n0 0  message 0\n0 0  message 1\n0 0  message 1\nready minor 0 identity ",
                      wire("FF 00000000 00000003 7F 'me'"));
}

TEST(PeerOld, ConversationWithANamed10PeerThatSetsReservedFlags) {
  expect_conversation(config_of(pull), wire("03 7E 'id' 02 7F 'a' 02 7E 'b'"),
                      "0 0  message 1\n0 0  message 1\nready minor 0 identity id Identity=id", wire(kSignature));
}

TEST(PeerOld, ConversationWithA10PeerWhoseIdentityTakesALongFrame) {
  const std::string name(255, 'n');
  Buffer input = wire("FF 00000000 00000100 7E");
  input.insert(input.end(), name.begin(), name.end());
  expect_conversation(named(pull, name), input + wire("01 00"),
                      "0 0  message 0\nready minor 0 identity " + name + " Identity=" + name,
                      wire("FF 00000000 00000100 7F") + copy_of(as_bytes(name)));
}

TEST(PeerOld, ConversationWithAPeerOfRevision0) {
  expect_conversation(named(pull), wire(kSignature) + wire("00 08 03 00 'id' 02 00 'a'"),
                      "0 0  message 1\nready minor 0 identity id Socket-Type=PUSH Identity=id",
                      wire("FF 00000000 00000003 7F 03 07 03 00 'me'"));
}

TEST(PeerOld, NothingIsSentThatThePeerCouldNotUnderstand) {
  const auto output_after = [](std::string_view input) {
    LocalEnd peer = in_steps(config_of(pull));
    EXPECT_EQ(peer.handle_input(wire(input), kStart), 0U);
    return copy_of(peer.pending_output());
  };
  EXPECT_EQ(output_after(""), wire(kSignature));
  EXPECT_EQ(output_after("FF 00000000 00000001"), wire(kSignature));
  EXPECT_EQ(output_after("FF 00000000 00000001 7F"), wire(kSignature) + wire("03"));
  EXPECT_EQ(output_after("FF 00000000 00000001 7F 01"), wire(kSignature) + wire("03 07 00 00"));
}

TEST(PeerOld, AWholeGreetingIsTooMuchAndTheNextConnectionCanDoBetter) {
  for (const Buffer& input : {wire("01 00"), greeting_2(push) + wire("00 00")}) {
    LocalEnd peer = started(config_of(pull));
    (void)run_whole(peer, input);
    ASSERT_TRUE(peer.fault());
    EXPECT_STREQ(peer.fault()->text, "peer speaks ZMTP 2.0 or older");
    EXPECT_TRUE(peer.greeted_too_much());
    EXPECT_TRUE(is_old(peer.version()));
    peer.start(kStart, Opening::signature);
    EXPECT_FALSE(peer.greeted_too_much());
    EXPECT_EQ(peer.version(), Version::unknown);
    (void)run_whole(peer, input);
    EXPECT_TRUE(peer.ready());
  }
}

TEST(PeerOld, SecurityRefusesThem) {
  for (const Buffer& input : {wire("01 00"), greeting_2(push) + wire("00 00")}) {
    LocalEndConfig config = config_of(pull);
    config.takes_old_peers = false;
    expect_fault(config, input, Errc::protocol_error, "peer speaks ZMTP 2.0 or older, which knows no security");
    LocalEnd plain(config_of(pull), std::make_unique<PlainServer>());
    plain.start(kStart, Opening::signature);
    (void)run_whole(plain, input);
    ASSERT_TRUE(plain.fault());
    EXPECT_FALSE(plain.ready());
    EXPECT_FALSE(plain.greeted_too_much());
  }
}

TEST(PeerOld, WithoutThemTheWholeGreetingGoesOutAtOnce) {
  LocalEndConfig config = config_of(pull);
  config.takes_old_peers = false;
  EXPECT_EQ(in_steps(config).pending_output().size(), kGreetingSize);
}

TEST(PeerOld, AnIdentityThatBeginsWithZeroIsRefused) {
  for (const Buffer& input :
       {wire("03 00 00 'a'"), greeting_2(push) + wire("00 01 00"), wire(kSignature) + wire("00 08 03 00 00 'a'")}) {
    expect_fault(config_of(pull), input, Errc::protocol_error, "peer's identity begins with a zero byte");
  }
}

TEST(PeerOld, SocketTypesMustFit) {
  expect_fault(config_of(pull), greeting_2(pub), Errc::incompatible_peer, "peer's socket type cannot talk to ours");
  expect_fault(config_of(pull), wire(kSignature) + wire("01 15"), Errc::incompatible_peer,
               "peer's socket type is unknown");
}

TEST(PeerOld, RefusesAMalformedIdentity) {
  constexpr std::string_view kText = "malformed identity of a peer that speaks ZMTP 2.0 or older";
  for (const std::string_view frame : {"01 01 'i'", "04 01 'i'", "08 01", "02 0000000000000100"}) {
    expect_fault(config_of(pull), greeting_2(push) + wire(frame), Errc::protocol_error, kText);
  }
  expect_fault(config_of(pull), wire(kSignature) + wire("00 08 00"), Errc::protocol_error, kText);
}

TEST(PeerOld, RefusesCommands) {
  expect_fault(config_of(pull), greeting_2(push) + wire("00 00 04 07 04 'PING' 0000"), Errc::protocol_error,
               "a command from a peer whose version has none");
}

TEST(PeerOld, HoldsMessagesToTheLimit) {
  LocalEndConfig config = config_of(pull);
  config.limits.frame_bytes_max = 3;
  expect_fault(config, wire("01 00 04 00 'abc' FF 00000000 00000005 00"), Errc::message_too_large,
               "message exceeds its limit");
}

TEST(PeerOld, GetsNoHeartbeats) {
  LocalEndConfig config = config_of(pull);
  config.heartbeat_interval = std::chrono::seconds(1);
  for (const Buffer& input :
       {wire("01 00"), greeting_2(push) + wire("00 00"), greeting_bytes(3, 1) + ready_frame("PUSH")}) {
    LocalEnd peer = in_steps(config);
    (void)run_whole(peer, input);
    ASSERT_TRUE(peer.ready());
    EXPECT_EQ(peer.next_deadline(kStart) == kNever, is_old(peer.version()));
  }
}

TEST(PeerOld, APeerThatGreetsAndSaysNoMoreRunsOutOfTime) {
  for (const Buffer& input :
       {Buffer(), wire("05 00 'id'"), wire(kSignature), greeting_2(push), greeting_2(push) + wire("00 02 'i'")}) {
    LocalEndConfig config = config_of(pull);
    config.handshake_timeout = std::chrono::seconds(2);
    LocalEnd peer = in_steps(config);
    (void)run_whole(peer, input);
    const Instant end = kStart + std::chrono::seconds(2);
    EXPECT_EQ(peer.next_deadline(kStart), end);
    EXPECT_EQ(peer.handle_time(end - Duration(1), kStart), TimeAction::none);
    EXPECT_EQ(peer.handle_time(end, kStart), TimeAction::expired);
  }
}

TEST(PeerOld, OnlyA10SubscriberChoosesForItself) {
  LocalEnd first = in_steps(config_of(pub));
  (void)run_whole(first, wire("01 00"));
  EXPECT_FALSE(first.subscribes_by_itself());
  for (const Buffer& input : {greeting_2(sub) + wire("00 00"), greeting_bytes(3, 0) + ready_frame("SUB")}) {
    LocalEnd later = in_steps(config_of(pub));
    (void)run_whole(later, input);
    ASSERT_TRUE(later.ready());
    EXPECT_TRUE(later.subscribes_by_itself());
  }
}

// The number of flights of bytes, each way in turn, until both ends are ready. The connecting side begins.
int flights(Opening connecting, Opening accepting) {
  LocalEnd client = started(config_of(push), kStart, connecting);
  LocalEnd server = started(config_of(pull), kStart, accepting);
  Buffer to_server;
  Buffer to_client;
  int count = 0;
  while (!(client.ready() && server.ready()) && count < 20) {
    carry(count % 2 == 0 ? client : server, count % 2 == 0 ? server : client, 1000,
          count % 2 == 0 ? to_server : to_client);
    ++count;
  }
  return count;
}

TEST(PeerOld, BeingReadyForThemCostsNothingWhenTheConnectingSideGreetsAsAWholeAndElseOneFlight) {
  EXPECT_EQ(flights(Opening::whole, Opening::whole), 3);
  EXPECT_EQ(flights(Opening::whole, Opening::signature), 3);
  EXPECT_EQ(flights(Opening::signature, Opening::signature), 4);
}

TEST(PeerOld, APeerThatShowsZmtp3GetsAllOfOurHandshake) {
  LocalEnd peer = in_steps(config_of(pull));
  EXPECT_EQ(peer.handle_input(wire(kSignature) + wire("03"), kStart), 0U);
  EXPECT_EQ(copy_of(peer.pending_output()), copy_of(started(config_of(pull)).pending_output()) + ready_frame("PULL"));
  const Outcome outcome = converse(config_of(pull), greeting_bytes(3, 1) + ready_frame("PUSH") + wire("00 01 'x'"));
  EXPECT_EQ(outcome.log, "0 0  message 1\nready minor 1 identity  Socket-Type=PUSH");
  EXPECT_EQ(outcome.output, copy_of(peer.pending_output()));
}

}  // namespace
}  // namespace weft::zmtp::test
