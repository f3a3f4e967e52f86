// SPDX-License-Identifier: MIT
#include "weft/net/ws/inbound.h"

#include "weft/net/ws/test_frames.h"
#include "weft/zmtp/greeting.h"
#include <gtest/gtest.h>

namespace weft::net::ws {
namespace {

using test::frame;
using test::message;

struct Outcome {
  std::string made;
  std::string controls;  // "ping:body;"
  std::string end;
  bool operator==(const Outcome&) const = default;
};

// Translates `input` in pieces, into room of `room` bytes at a time.
Outcome run(const WsInbound::Config& config, std::string_view input, std::size_t piece, std::size_t room) {
  WsInbound in;
  in.start(config);
  Outcome outcome;
  std::vector<std::uint8_t> output(room);
  std::size_t taken = 0;
  for (;;) {
    const auto moved = in.translate(as_bytes(input.substr(taken, piece)), output);
    taken += moved.taken;
    outcome.made += as_text(Bytes(output).first(moved.made));
    switch (in.control()) {
      case WsInbound::Control::none: break;
      case WsInbound::Control::ping: outcome.controls += "ping:"; break;
      case WsInbound::Control::pong: outcome.controls += "pong:"; break;
      case WsInbound::Control::close: outcome.controls += "close:"; break;
    }
    if (in.control() != WsInbound::Control::none) {
      outcome.controls.append(as_text(in.control_body())).append(";");
    } else if (in.fault()) {
      outcome.end = std::to_string(static_cast<int>(in.fault()->status)) + ' ' + in.fault()->error.text();
      return outcome;
    } else if (moved.taken == 0 && moved.made == 0) {
      return outcome;
    }
  }
}

// The same however input and output are cut; the greeting is checked, and left out.
Outcome run_every_way(const WsInbound::Config& config, std::string_view input) {
  Outcome whole = run(config, input, input.size() + 1, 100'000);
  const bool large = input.size() > 2000;
  for (const std::size_t piece : large ? std::vector<std::size_t>{999} : std::vector<std::size_t>{1, 2, 3, 13, 1000}) {
    for (const std::size_t room : large ? std::vector<std::size_t>{777} : std::vector<std::size_t>{1, 2, 7, 1000}) {
      EXPECT_EQ(run(config, input, piece, room), whole);
    }
  }
  if (whole.made.size() >= zmtp::kGreetingSize) {
    const auto greeting = zmtp::parse_greeting(as_bytes(whole.made));
    EXPECT_EQ(greeting.greeting.mechanism(), config.mechanism);
    EXPECT_EQ(greeting.greeting.minor, 0);
    whole.made.erase(0, zmtp::kGreetingSize);
  }
  return whole;
}

constexpr WsInbound::Config kOfServer{.masked = false, .mechanism = "NULL"};
constexpr WsInbound::Config kOfClient{.masked = true, .mechanism = "NULL"};

TEST(WsInbound, AMessageBecomesAFrame) {
  for (const auto& config : {kOfServer, kOfClient}) {
    const bool masked = config.masked;
    EXPECT_EQ(run_every_way(config, message(masked, 0, "abc")).made, std::string("\0\3abc", 5));
    EXPECT_EQ(run_every_way(config, message(masked, 0, "")).made, std::string("\0\0", 2));
    EXPECT_EQ(run_every_way(config, message(masked, kMoreFlag, "a") + message(masked, 0, "b")).made,
              std::string("\1\1a\0\1b", 6));
    EXPECT_EQ(run_every_way(config, message(masked, kCommandFlag, "\5READY")).made, std::string("\4\6\5READY", 8));
    const std::string body(70'000, 'x');
    EXPECT_EQ(run_every_way(config, message(masked, 0, body)).made, std::string("\2\0\0\0\0\0\1\x11\x70", 9) + body);
  }
}

TEST(WsInbound, FragmentsAreJoined) {
  const std::string whole = frame(true, 0x02, std::string("\1he", 3)) + frame(true, 0x89, "now") +
                            frame(true, 0x00, "") + frame(true, 0x80, "llo") + message(true, 0, "!");
  const Outcome outcome = run_every_way(kOfClient, whole);
  EXPECT_EQ(outcome.made, std::string("\1\5hello\0\1!", 10));
  EXPECT_EQ(outcome.controls, "ping:now;");
  EXPECT_EQ(run_every_way(kOfClient, frame(true, 0x02, "") + frame(true, 0x80, std::string("\0", 1))).made,
            std::string("\0\0", 2));
}

TEST(WsInbound, AMessageInFragmentsHasABound) {
  WsInbound::Config config = kOfClient;
  config.message_max = 100'000;
  const std::string half(50'000, 'x');
  const std::string first = frame(true, 0x02, '\0' + half);
  EXPECT_EQ(run_every_way(config, first + frame(true, 0x80, half)).end, "");
  EXPECT_EQ(run_every_way(config, first + frame(true, 0x80, half + "y")).end,
            "1009 a WebSocket message in fragments exceeds its limit");
  WsInbound endless;
  endless.start(kOfClient);
  std::vector<std::uint8_t> output(100);
  const std::string piece = frame(true, 0x00, std::string(1 << 20, 'x'));
  (void)endless.translate(as_bytes(frame(true, 0x02, std::string("\0", 1))), output);
  for (int i = 0; i < 16; ++i) {
    (void)endless.translate(as_bytes(piece), output);
    EXPECT_FALSE(endless.fault());
  }
  (void)endless.translate(as_bytes(frame(true, 0x00, "y")), output);
  ASSERT_TRUE(endless.fault());
  EXPECT_EQ(endless.fault()->error.code(), Errc::message_too_large);
}

TEST(WsInbound, AMessageInFragmentsWaitsForAdmissionAtABound) {
  WsInbound::Config config = kOfClient;
  config.unadmitted_max = 1000;
  const std::string body = std::string(999, 'x') + std::string(5000, 'y');
  const std::string begin = message(true, kCommandFlag, "\5READY") + frame(true, 0x02, '\0' + body.substr(0, 600));
  const std::string bytes = begin + frame(true, 0x80, body.substr(600)) + message(true, 0, "next");
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
    WsInbound in;
    in.start(config);
    std::vector<std::uint8_t> output(10'000);
    std::string made;
    std::size_t taken = 0;
    const auto run = [&] {
      for (WsInbound::Moved moved{1, 0}; moved.taken + moved.made != 0;) {
        moved = in.translate(as_bytes(bytes).subspan(taken, std::min(piece, bytes.size() - taken)), output);
        taken += moved.taken;
        made += as_text(Bytes(output).first(moved.made));
      }
    };
    run();
    EXPECT_TRUE(in.waits());
    EXPECT_FALSE(in.fault());
    EXPECT_EQ(made.substr(zmtp::kGreetingSize), std::string("\4\6\5READY", 8));
    EXPECT_EQ(taken, begin.size() + 8 + 399);  // a header, and the bytes up to the bound
    in.admit();
    EXPECT_FALSE(in.waits());
    run();
    EXPECT_EQ(made.substr(zmtp::kGreetingSize + 8),
              std::string("\2\0\0\0\0\0\0\x17\x6F", 9) + body + std::string("\0\4next", 6));
  }
}

TEST(WsInbound, ABrokenRuleIsAFaultWithItsStatus) {
  const auto after = [](std::string_view bytes) { return message(false, 0, "before") + std::string(bytes); };
  const struct {
    std::string input;
    const char* end;
  } cases[] = {
      {frame(false, 0x81, "text"), "1003 a WebSocket text message"},
      {frame(false, 0x82, ""), "1002 a WebSocket message without its byte of flags"},
      {frame(false, 0x02, "") + frame(false, 0x80, ""), "1002 a WebSocket message without its byte of flags"},
      {frame(false, 0x80, "x"), "1002 a WebSocket continuation of no message"},
      {frame(false, 0x02, "x") + frame(false, 0x82, "y"), "1002 a WebSocket message inside another"},
      {message(false, 4, "x"), "1002 a reserved flag of ZWS"},
      {message(false, 3, "x"), "1002 a command with more parts"},
      {frame(false, 0xC2, "x"), "1002 a WebSocket frame with a reserved bit"},
      {frame(true, 0x82, "x"), "1002 a WebSocket server's frame with a mask"},
      {frame(false, 0x09, ""), "1002 a fragmented WebSocket control frame"},
      {frame(false, 0x88, "x"), "1002 a WebSocket close frame with a wrong status"},
      {frame(false, 0x88, "\x03\xED"), "1002 a WebSocket close frame with a wrong status"},
      {frame(false, 0x88, "\x03\xE8\xFF"), "1007 the reason of a WebSocket close frame is not UTF-8"},
      {"HTTP/1.1 400 Bad Request", "1002 a WebSocket frame with a reserved bit"},
  };
  for (const auto& [input, end] : cases) {
    const Outcome outcome = run_every_way(kOfServer, after(input));
    EXPECT_EQ(outcome.end, end);
    EXPECT_EQ(outcome.made, std::string("\0\6before", 8));
  }
}

TEST(WsInbound, ControlFramesAreHandedOver) {
  const Outcome outcome = run_every_way(kOfClient, frame(true, 0x89, "") + frame(true, 0x8A, std::string(125, 'p')) +
                                                       frame(true, 0x88,
                                                             "\x03\xE8"
                                                             "bye"));
  EXPECT_EQ(outcome.controls, "ping:;pong:" + std::string(125, 'p') +
                                  ";close:\x03\xE8"
                                  "bye;");
  EXPECT_EQ(outcome.end, "");
  for (const int status : {1000, 1001, 1002, 1003, 1007, 1014, 3000, 4999}) {
    const std::string body{static_cast<char>(status >> 8), static_cast<char>(status)};
    EXPECT_EQ(run_every_way(kOfClient, frame(true, 0x88, body)).end, "") << status;
  }
  for (const int status : {0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 65535}) {
    const std::string body{static_cast<char>(status >> 8), static_cast<char>(status)};
    EXPECT_NE(run_every_way(kOfClient, frame(true, 0x88, body)).end, "") << status;
  }
}

TEST(WsInbound, WithTheBareProtocolTheFirstMessageIsTheIdentity) {
  WsInbound::Config config = kOfClient;
  config.bare = true;
  config.ours = zmtp::WireType::xpub;
  const std::string ready = std::string("\4\x28\5READY\13Socket-Type\0\0\0\3SUB\10Identity\0\0\0", 39);
  EXPECT_EQ(run_every_way(config, message(true, 0, "me") + message(true, 0, "\1topic")).made,
            ready + std::string("\2me\0\6\1topic", 11));
  EXPECT_EQ(run_every_way(config, frame(true, 0x02, std::string("\0", 1)) + frame(true, 0x80, "me")).made,
            ready + std::string("\2me", 3));
  EXPECT_EQ(run_every_way(config, message(true, 0, std::string(256, 'i'))).end,
            "1009 an identity of more than 255 bytes");
  EXPECT_EQ(run_every_way(config, message(true, kCommandFlag, "\5READY")).end,
            "1002 the first message of ZWS2.0 is no identity");
}

// The server chose ZWS2.0 of the two sub-protocols that our client offers: only the first message is an identity.
TEST(WsInbound, TheSecondMessageIsNoIdentityWhateverTheServerMightHaveSpoken) {
  WsInbound::Config config = kOfServer;
  config.bare = config.maybe_bare = true;
  config.ours = zmtp::WireType::xpub;
  const std::string ready = std::string("\4\x28\5READY\13Socket-Type\0\0\0\3SUB\10Identity\0\0\0", 39);
  for (const std::string& identity :
       {message(false, 0, "me"), frame(false, 0x02, std::string(1, '\0')) + frame(false, 0x80, "me")}) {
    EXPECT_EQ(run_every_way(config, identity + message(false, 0, "one") + message(false, 0, "two")).made,
              ready + std::string("\2me\0\3one\0\3two", 13));
  }
}

TEST(WsInbound, AServerThatAgreesToAnyProtocolMaySpeakTheBareOne) {
  WsInbound::Config config = kOfServer;
  config.maybe_bare = true;
  config.ours = zmtp::WireType::xpub;
  const std::string ready = std::string("\4\x28\5READY\13Socket-Type\0\0\0\3SUB\10Identity\0\0\0", 39);
  EXPECT_EQ(run_every_way(config, message(false, 0, "") + message(false, 0, "x")).made,
            std::string("\4\x26") + ready.substr(2) + std::string("\0\0\1x", 4));
  EXPECT_EQ(run_every_way(config, message(false, 0, "me") + message(false, 0, "x")).made.size(), ready.size() + 3 + 3);
  const std::string in_fragments = frame(false, 0x02, std::string("\0m", 2)) + frame(false, 0x80, "e");
  EXPECT_EQ(run_every_way(config, in_fragments + message(false, 0, "x")).made, ready + std::string("\2me\0\1x", 6));
  EXPECT_EQ(
      run_every_way(config, frame(false, 0x02, std::string(1, '\0')) + frame(false, 0x80, std::string(256, 'i'))).end,
      "1009 an identity of more than 255 bytes");
  EXPECT_EQ(run_every_way(config, message(false, kCommandFlag, "\5READY") + message(false, 0, "x")).made,
            std::string("\4\6\5READY\0\1x", 11));
  EXPECT_EQ(run_every_way(config, message(false, 0, std::string(256, 'i'))).end,
            "1009 an identity of more than 255 bytes");
}

TEST(WsInbound, ABodyMayBeReadToItsPlace) {
  const std::string bytes = message(true, 0, "0123456789");
  WsInbound in;
  in.start(kOfClient);
  std::vector<std::uint8_t> output(100);
  const auto moved = in.translate(as_bytes(bytes).first(bytes.size() - 6), output);
  EXPECT_EQ(in.body_rest(), 6u);
  std::string rest = bytes.substr(bytes.size() - 6);
  in.pass({reinterpret_cast<std::uint8_t*>(rest.data()), 4});
  EXPECT_EQ(rest.substr(0, 4), "4567");
  EXPECT_EQ(in.body_rest(), 2u);
  const auto last = in.translate(as_bytes(rest).subspan(4), MutableBytes(output).subspan(moved.made));
  EXPECT_EQ(as_text(Bytes(output).subspan(moved.made, last.made)), "89");
  EXPECT_EQ(in.body_rest(), 0u);
}

}  // namespace
}  // namespace weft::net::ws
