// SPDX-License-Identifier: MIT
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "weft/zmtp/greeting.h"
#include "weft/zmtp/local_end.h"
#include "weft/zmtp/null.h"
#include "weft/zmtp/test_support.h"
#include <gtest/gtest.h>

namespace weft::zmtp::test {
namespace {

using enum WireType;

constexpr std::string_view kGreeting31 =
    "FF 00 00 00 00 00 00 00 01 7F 03 01 'NULL' 00000000000000000000000000000000 00"
    "00000000000000000000000000000000000000000000000000000000000000";
constexpr std::string_view kGreeting30 =
    "FF 00 00 00 00 00 00 00 06 7F 03 00 'NULL' 00000000000000000000000000000000 00"
    "00000000000000000000000000000000000000000000000000000000000000";

// The fault of a LocalEnd that was fed `input` as a whole. Checks that byte by byte the fault is the same.
Fault fault_after(const LocalEndConfig& config, const Buffer& input) {
  LocalEnd whole = started(config);
  const Outcome at_once = run_whole(whole, input);
  LocalEnd single = started(config);
  EXPECT_EQ(run(single, input, [] { return std::size_t{1}; }), at_once);
  EXPECT_TRUE(whole.fault().has_value()) << at_once.log;
  EXPECT_FALSE(whole.ready());
  EXPECT_EQ(whole.handle_input(greeting_bytes(3, 1), kStart), 0U) << "took input after a fault";
  return whole.fault().value_or(Fault{Errc::ok, "no fault"});
}

void expect_fault(const LocalEndConfig& config, const Buffer& input, Errc code, std::string_view text) {
  const Fault fault = fault_after(config, input);
  EXPECT_EQ(fault.code, code) << fault.text;
  EXPECT_EQ(fault.text.c_str(), text);
}

// Checks that a conversation gives the same outcome whole, cut in two at every byte, and byte by byte.
void expect_conversation(const LocalEndConfig& config, const Buffer& input, const Outcome& expected) {
  LocalEnd peer = started(config);
  const Outcome whole = run_whole(peer, input);
  EXPECT_EQ(whole.log, expected.log);
  EXPECT_EQ(whole.output, expected.output);
  EXPECT_EQ(whole.taken, expected.taken);
  for (std::size_t first = 1; first < input.size(); ++first) {
    peer.start(kStart);
    EXPECT_EQ(run(peer, input, [first, n = 0, &input]() mutable { return n++ == 0 ? first : input.size(); }), whole);
  }
  peer.start(kStart);
  EXPECT_EQ(run(peer, input, [] { return std::size_t{1}; }), whole);
}

TEST(PeerHandshake, APeerOfNullCompletesItsPartWithoutAnAnswer) {
  LocalEnd asks(config_of(pull), std::make_unique<NullMechanism>(true));
  asks.start(kStart);
  ASSERT_EQ(asks.handle_input(wire(kGreeting31), kStart), kGreetingSize);
  ASSERT_NE(asks.question(), nullptr);
  const Buffer ready = wire("04 1A 05 'READY' 0B 'Socket-Type' 00000004 'PUSH'");
  const Buffer message = wire("00 01 'm'");
  const Buffer all = ready + message;
  for (std::size_t size = 0; size <= ready.size(); ++size) {
    EXPECT_FALSE(asks.completes(Bytes(all).first(size))) << size;
  }
  EXPECT_TRUE(asks.completes(Bytes(all).first(ready.size() + 1)));
  EXPECT_FALSE(asks.completes(wire("04 FF 05 'READY'"))) << "of a longer command";
  asks.answer(kAdmitted, kStart);
  EXPECT_EQ(asks.handle_input(all, kStart), ready.size());
  EXPECT_TRUE(asks.ready());
}

TEST(PeerHandshake, ConversationWithA31Subscriber) {
  const Buffer input = wire(kGreeting31) + wire(
                                               "04 19 05 'READY' 0B 'Socket-Type' 00000003 'SUB'"
                                               "04 0B 09 'SUBSCRIBE' 'a'"
                                               "04 09 04 'PING' 0064 'hi'"
                                               "01 03 'abc'"           // a message whose parts ...
                                               "04 07 04 'PONG' 'yo'"  // ... have a command between them
                                               "00 00"
                                               "04 04 03 'FOO'"  // a command of a later version
                                               "06 0000000000000008 06 'CANCEL' 'a'"
                                               "00 02 01 'b'"  // the old form is valid too
                                               "04 0A 05 'ERROR' 03 '400'");
  Outcome expected;
  expected.log =
      "1 0 a\n4 100 hi\n0 0  message 3\n5 0 yo\n0 0  message 0\n0 0 \n2 0 a\n1 0 b message 2\n6 0 400\n"
      "ready minor 1 identity  Socket-Type=SUB";
  expected.output = wire(kGreeting31) + wire(
                                            "04 2D 05 'READY' 0B 'Socket-Type' 00000004 'XPUB'"
                                            "0D 'X-Weft-Filter' 00000001 '1'");
  expected.taken = input.size();
  expect_conversation(config_of(xpub), input, expected);
}

TEST(PeerHandshake, ConversationWithA30Subscriber) {
  const Buffer input = wire(kGreeting30) + wire(
                                               "04 26 05 'READY' 0B 'Socket-Type' 00000003 'SUB'"
                                               "08 'Identity' 00000000"
                                               "00 02 01 'a'"
                                               "00 01 01"
                                               "00 02 00 'a'");
  Outcome expected;
  expected.log =
      "1 0 a message 2\n1 0  message 1\n2 0 a message 2\n"
      "ready minor 0 identity  Socket-Type=SUB Identity=";
  expected.output = wire(kGreeting31) + wire(
                                            "04 2C 05 'READY' 0B 'Socket-Type' 00000003 'PUB'"
                                            "0D 'X-Weft-Filter' 00000001 '1'");
  expected.taken = input.size();
  expect_conversation(config_of(pub), input, expected);
}

TEST(PeerHandshake, ConversationWithA30DealerInLongFrames) {
  const Buffer input = wire(kGreeting30) + wire(
                                               "06 0000000000000039 05 'READY' 08 'IDENTITY' 00000002 'id'"
                                               "0B 'socket-type' 00000006 'DEALER' 03 'X-A' 00000006 'either'"
                                               "03 0000000000000001 'm' 00 01 'n' 00 05 'cut'");
  Outcome expected;
  expected.log =
      "0 0  message 1\n0 0  message 1\n"
      "ready minor 0 identity id IDENTITY=id socket-type=DEALER X-A=either";
  expected.output = wire(kGreeting31) + wire(
                                            "04 2B 05 'READY' 0B 'Socket-Type' 00000006 'ROUTER'"
                                            "08 'Identity' 00000002 'me' ");
  expected.output[8] = 3;  // ZMTP 1.0 peers read it as the size of flags and identity
  expected.taken = input.size() - 5;
  LocalEndConfig config = config_of(router);
  config.identity = "me";
  expect_conversation(config, input, expected);
}

TEST(PeerHandshake, OffersItsWholeGreetingBeforeAnyInput) {
  const LocalEnd peer = started(config_of(rep));
  EXPECT_EQ(copy_of(peer.pending_output()), wire(kGreeting31));
  EXPECT_FALSE(peer.ready());
}

TEST(PeerHandshake, OutputIsConsumedInPieces) {
  LocalEnd peer = started(config_of(rep));
  Buffer seen;
  EXPECT_EQ(peer.handle_input(greeting_bytes(3, 1), kStart), kGreetingSize);
  while (!peer.pending_output().empty()) {
    const Bytes next = peer.pending_output().first(std::min<std::size_t>(7, peer.pending_output().size()));
    seen.insert(seen.end(), next.begin(), next.end());
    peer.consume_output(next.size());
  }
  EXPECT_EQ(seen, wire(kGreeting31) + wire("04 19 05 'READY' 0B 'Socket-Type' 00000003 'REP'"));
}

TEST(PeerHandshake, SendsExtraMetadataAndAnEmptyIdentity) {
  LocalEndConfig config = config_of(req);
  config.metadata = {{"X-A", "1"}, {"X-B", ""}};
  LocalEnd peer = started(config);
  EXPECT_EQ(peer.handle_input(greeting_bytes(3, 1), kStart), kGreetingSize);
  EXPECT_EQ(copy_of(peer.pending_output()),
            wire(kGreeting31) + wire("04 37 05 'READY' 0B 'Socket-Type' 00000003 'REQ' 08 'Identity' 00000000"
                                     "03 'X-A' 00000001 '1' 03 'X-B' 00000000"));
}

TEST(PeerHandshake, NullNeverClaimsTheServerRole) {
  LocalEndConfig config = config_of(rep);
  config.as_server = true;
  EXPECT_EQ(copy_of(started(config).pending_output()), wire(kGreeting31));
}

TEST(PeerHandshake, StopsAtReadyAndLeavesTrafficToTheCaller) {
  LocalEnd peer = started(config_of(rep));
  const Buffer handshake = greeting_bytes(3, 1) + ready_frame("REQ");
  EXPECT_EQ(peer.handle_input(handshake + wire("00 01 'x'"), kStart), handshake.size());
  EXPECT_TRUE(peer.ready());
  EXPECT_EQ(peer.handle_input(wire("00 01 'x'"), kStart), 0U);
}

TEST(PeerHandshake, VersionsFoldIntoTwo) {
  struct Case {
    std::uint8_t major;
    std::uint8_t minor;
    int folded;
  };
  for (const Case& c : {Case{3, 0, 0}, Case{3, 1, 1}, Case{3, 9, 1}, Case{4, 0, 1}, Case{255, 0, 1}}) {
    LocalEnd peer = started(config_of(rep));
    EXPECT_EQ(peer.handle_input(greeting_bytes(c.major, c.minor), kStart), kGreetingSize);
    EXPECT_EQ(peer.minor_version(), c.folded) << int{c.major} << '.' << int{c.minor};
  }
}

TEST(PeerHandshake, RefusesWhatIsNotZmtp) {
  const LocalEndConfig config = config_of(rep);
  expect_fault(config, wire("'GET / HTTP/1.1'"), Errc::protocol_error, "not ZMTP: peer sent text, as HTTP or SSH do");
  expect_fault(config, wire("00 00"), Errc::protocol_error, "not ZMTP: bad signature");
}

TEST(PeerHandshake, RefusesAnotherMechanism) {
  const LocalEndConfig config = config_of(rep);
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"CURVE", "peer's security mechanism is CURVE, not ours"},
      {"PLAIN", "peer's security mechanism is PLAIN, not ours"},
      {"null", "peer's security mechanism is not ours"},
      {"NULLX", "peer's security mechanism is not ours"},
      {"", "peer's security mechanism is not ours"},
  };
  for (const auto& [mechanism, text] : cases) {
    expect_fault(config, greeting_bytes(3, 1, mechanism), Errc::protocol_error, text);
  }
}

TEST(PeerHandshake, RefusesMalformedHandshakeFrames) {
  const LocalEndConfig config = config_of(rep);
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"08", "malformed frame header in the handshake"},
      {"05 01 'x'", "malformed frame header in the handshake"},
      {"06 8000000000000000", "malformed frame header in the handshake"},
      {"00 01 'x'", "peer sent a message before the handshake was over"},
      {"04 00", "malformed handshake command"},
      {"04 01 00", "malformed handshake command"},
      {"04 03 05 'RE'", "malformed handshake command"},
      {"04 07 04 'PING' 0000", "peer sent another command than READY in a NULL handshake"},
      {"04 06 05 'ready'", "peer sent another command than READY in a NULL handshake"},
      {"04 06 05 'ERROR'", "malformed ERROR command"},
      {"04 07 05 'ERROR' 01", "malformed ERROR command"},
  };
  for (const auto& [frame, text] : cases) {
    expect_fault(config, greeting_bytes(3, 1) + wire(frame), Errc::protocol_error, text);
  }
}

TEST(PeerHandshake, RefusesMalformedMetadata) {
  const LocalEndConfig config = config_of(rep);
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "peer sent no Socket-Type"},
      {"08 'Identity' 00000000", "peer sent no Socket-Type"},
      {"00", "malformed metadata"},
      {"0B 'Socket-Type' 000000", "malformed metadata"},
      {"0B 'Socket-Type' 00000004 'REQ'", "malformed metadata"},
      {"0B 'Socket-Type' 80000003 'REQ'", "malformed metadata"},
      {"0B 'Socket-Type' 00000003 'REQ' 0B 'Socket-Type' 00000003 'REQ'", "peer sent Socket-Type twice"},
      {"0B 'Socket-Type' 00000003 'REQ' 0B 'SOCKET-TYPE' 00000003 'REQ'", "peer sent Socket-Type twice"},
      {"08 'Identity' 00000000 08 'identity' 00000000", "peer sent Identity twice"},
      {"08 'Identity' 00000005 00 'abcd'", "peer's identity begins with a zero byte"},
      {"08 'Identity' 00000001 00", "peer's identity begins with a zero byte"},
  };
  for (const auto& [properties, text] : cases) {
    expect_fault(config, greeting_bytes(3, 1) + command_frame(wire("05 'READY'") + wire(properties)),
                 Errc::protocol_error, text);
  }
}

TEST(PeerHandshake, TellsAPeerOfTheWrongTypeAndGivesUp) {
  for (const auto& [type, text] :
       {std::pair{"PUB", "peer's socket type cannot talk to ours"}, std::pair{"req", "peer's socket type is unknown"},
        std::pair{"", "peer's socket type is unknown"}}) {
    expect_fault(config_of(rep), greeting_bytes(3, 1) + ready_frame(type), Errc::incompatible_peer, text);
    LocalEnd peer = started(config_of(rep));
    (void)run_whole(peer, greeting_bytes(3, 1) + ready_frame(type));
    const Buffer output = copy_of(peer.pending_output());
    Buffer error;
    append_error_frame(error, "Socket-Type cannot talk to this socket");
    EXPECT_EQ(output, wire(kGreeting31) + ready_frame("REP") + error);
  }
}

TEST(PeerHandshake, ReportsTheReasonOfARefusal) {
  LocalEnd peer = started(config_of(rep));
  (void)run_whole(peer, greeting_bytes(3, 1) + wire("04 0A 05 'ERROR' 03 '400'"));
  ASSERT_TRUE(peer.fault());
  EXPECT_EQ(peer.fault()->code, Errc::handshake_refused);
  EXPECT_EQ(peer.refusal(), "400");
  peer.start(kStart);
  EXPECT_EQ(peer.refusal(), "");
}

TEST(PeerHandshake, BoundsItsBytesFromTheHeaderOn) {
  LocalEndConfig config = config_of(rep);
  const Buffer ready = ready_frame("REQ");
  config.limits.handshake_bytes_max = static_cast<std::uint32_t>(ready.size() - 2);
  LocalEnd peer = started(config);
  EXPECT_EQ(run_whole(peer, greeting_bytes(3, 1) + ready).taken, kGreetingSize + ready.size());
  EXPECT_TRUE(peer.ready());
  config.limits.handshake_bytes_max -= 1;
  expect_fault(config, greeting_bytes(3, 1) + Buffer(ready.begin(), ready.begin() + 2), Errc::message_too_large,
               "handshake exceeds its limit");
  expect_fault(config_of(rep), greeting_bytes(3, 1) + wire("06 7FFFFFFFFFFFFFFF"), Errc::message_too_large,
               "handshake exceeds its limit");
}

TEST(PeerHandshake, BoundsTheNumberOfProperties) {
  LocalEndConfig config = config_of(rep);
  config.limits.metadata_properties_max = 3;
  Buffer properties = wire("01 'A' 00000000 01 'B' 00000000");
  LocalEnd peer = started(config);
  (void)run_whole(peer, greeting_bytes(3, 1) + ready_frame("REQ", properties));
  EXPECT_TRUE(peer.ready());
  properties = properties + wire("01 'C' 00000000");
  expect_fault(config, greeting_bytes(3, 1) + ready_frame("REQ", properties), Errc::message_too_large,
               "more metadata properties than the limit");
}

TEST(PeerHandshake, BoundsTheIdentity) {
  const auto input = [](std::size_t size) {
    Buffer property;
    append_property(property, "Identity", Buffer(size, 'i'));
    return greeting_bytes(3, 1) + ready_frame("REQ", property);
  };
  LocalEnd peer = started(config_of(rep));
  (void)run_whole(peer, input(255));
  EXPECT_TRUE(peer.ready());
  EXPECT_EQ(peer.peer_identity().size(), 255U);
  expect_fault(config_of(rep), input(256), Errc::protocol_error, "peer's identity is longer than 255 bytes");
}

TEST(PeerHandshake, StartForgetsTheConnectionBefore) {
  LocalEnd peer = started(config_of(router));
  (void)run_whole(peer, greeting_bytes(3, 0) + ready_frame("REQ", wire("08 'Identity' 00000001 'i'")));
  ASSERT_TRUE(peer.ready());
  peer.start(kStart);
  EXPECT_FALSE(peer.ready());
  EXPECT_TRUE(peer.peer_identity().empty());
  EXPECT_TRUE(peer.peer_metadata().empty());
  EXPECT_EQ(copy_of(peer.pending_output()), wire(kGreeting31));
  (void)run_whole(peer, wire("00"));
  ASSERT_TRUE(peer.fault());
  peer.start(kStart);
  EXPECT_FALSE(peer.fault());
  (void)run_whole(peer, greeting_bytes(3, 1) + ready_frame("DEALER"));
  EXPECT_TRUE(peer.ready());
  EXPECT_EQ(peer.peer_type(), dealer);
}

}  // namespace
}  // namespace weft::zmtp::test
