// SPDX-License-Identifier: MIT
#include "weft/net/ws/upgrade.h"

#include "weft/net/ws/accept_key.h"
#include <gtest/gtest.h>

namespace weft::net::ws {
namespace {

constexpr std::string_view kKey = "dGhlIHNhbXBsZSBub25jZQ==";
const std::string kRequest =
    "GET /chat HTTP/1.1\r\nHost: h:1\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: chat, ZWS2.0/NULL,ZWS2.0\r\n"
    "Sec-WebSocket-Version: 13\r\n\r\n";
const std::string kAnswer =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: ZWS2.0\r\n\r\n";

Upgrade server() { return Upgrade::as_server({"ZWS2.0", "ZWS2.0/NULL"}); }
Upgrade client() { return Upgrade::as_client("h:1", "/chat", {"ZWS2.0/NULL", "ZWS2.0"}, std::string(kKey)); }

std::string with(std::string text, std::string_view old, std::string_view fresh) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), fresh);
}

struct Outcome {
  std::size_t taken = 0;
  std::string output;
  std::string end;
  bool operator==(const Outcome&) const = default;
};

Outcome run(Upgrade end, std::string_view input, std::size_t piece) {
  Outcome outcome;
  while (outcome.taken < input.size()) {
    const std::size_t taken = end.handle_input(as_bytes(input.substr(outcome.taken, piece)));
    outcome.taken += taken;
    outcome.output += end.take_output();
    if (taken == 0 || end.done() || end.fault()) {
      break;
    }
  }
  outcome.end = end.done() ? "done " + end.protocol() : end.fault() ? end.fault()->text() : "waiting";
  return outcome;
}

Outcome run_every_way(Upgrade (*make)(), std::string_view input) {
  const Outcome whole = run(make(), input, input.size());
  for (const std::size_t piece : {1u, 2u, 3u, 7u, 50u}) {
    const Outcome pieces = run(make(), input, piece);
    EXPECT_EQ(pieces.end, whole.end);
    EXPECT_EQ(pieces.output, whole.output.substr(whole.output.size() - pieces.output.size()));
  }
  return whole;
}

TEST(WsUpgrade, AServerTakesTheClientsFirstProtocolOfItsOwn) {
  const Outcome outcome = run_every_way(&server, kRequest + "frames");
  EXPECT_EQ(outcome.end, "done ZWS2.0/NULL");
  EXPECT_EQ(outcome.taken, kRequest.size());
  EXPECT_EQ(outcome.output,
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: ZWS2.0/NULL\r\n\r\n");
}

TEST(WsUpgrade, AServerRefusesWithAStatusAndAReason) {
  const struct {
    std::string request;
    const char* status;
    const char* why;
  } cases[] = {
      {with(kRequest, "13", "8"), "426", "the request is for another version of WebSocket than 13"},
      {with(kRequest, "Sec-WebSocket-Version: 13\r\n", ""), "426",
       "the request is for another version of WebSocket than 13"},
      {with(kRequest, "Upgrade: websocket\r\n", ""), "426", "the request asks for no WebSocket"},
      {with(kRequest, "keep-alive, Upgrade", "keep-alive"), "426", "the request asks for no WebSocket"},
      {with(kRequest, "websocket", "h2c"), "426", "the request asks for no WebSocket"},
      {with(kRequest, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""), "400",
       "the request for a WebSocket has no key"},
      {with(kRequest, "bXBsZSBub25jZQ==", "="), "400", "the request for a WebSocket has no key"},
      {with(kRequest, "Host: h:1\r\n", "Host: h:1\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"), "400",
       "the request for a WebSocket has no key"},
      {with(kRequest, "chat, ZWS2.0/NULL,ZWS2.0", "chat"), "400",
       "the client offers no WebSocket sub-protocol of ours"},
      {with(kRequest, "chat, ZWS2.0/NULL,ZWS2.0", "zws2.0"), "400",
       "the client offers no WebSocket sub-protocol of ours"},
      {with(kRequest, "GET", "POST"), "400", "the request for a WebSocket is no GET of HTTP/1.1 with a host"},
      {with(kRequest, "HTTP/1.1", "HTTP/1.0"), "400", "the request for a WebSocket is no GET of HTTP/1.1 with a host"},
      {with(kRequest, "Host: h:1\r\n", ""), "400", "the request for a WebSocket is no GET of HTTP/1.1 with a host"},
      {with(kRequest, "Host: h:1\r\n", "Host: h:1\r\nContent-Length: 5\r\n"), "400",
       "the request for a WebSocket has a body"},
      {with(kRequest, "Host: h:1\r\n", "Host: h:1\r\nTransfer-Encoding: chunked\r\n"), "400",
       "the request for a WebSocket has a body"},
      {with(kRequest, "Host: h:1\r\n", "Host: h:1\r\nContent-Length: 10\r\n"), "400",
       "the request for a WebSocket has a body"},
      {with(kRequest, "chat,", "\xC3\x28,"), "400", "a header of the WebSocket's upgrade is not UTF-8"},
      {"\xFF\x00\x00\x00\x00\x00\x00\x00\x01\x7F", "400", "the request for a WebSocket is no HTTP"},
      {"GET / FTP/1.1\r\n\r\n", "400", "the request for a WebSocket is no HTTP"},
      {with(kRequest, "Connection:", "Connection :"), "400", "the request for a WebSocket is no HTTP"},
      {with(kRequest, "\r\nUpgrade", "\nUpgrade"), "400", "the request for a WebSocket is no HTTP"},
      {with(kRequest, "keep-alive, ", "keep-alive,\r\n "), "400", "the request for a WebSocket is no HTTP"},
  };
  for (const auto& [request, status, why] : cases) {
    const Outcome outcome = run_every_way(&server, request);
    EXPECT_EQ(outcome.end, why) << request;
    EXPECT_EQ(outcome.output.substr(0, 12), std::string("HTTP/1.1 ") + status) << request;
    EXPECT_NE(outcome.output.find("Sec-WebSocket-Version: 13\r\n"), std::string::npos);
  }
}

TEST(WsUpgrade, BlanksAroundAValueAreNoPartOfIt) {
  const std::string spaced = with(
      with(with(with(with(kRequest, "websocket\r", "websocket \r"), "Upgrade\r", "Upgrade\t\r"), "==\r", "== \t \r"),
           "ZWS2.0\r", "ZWS2.0 \r"),
      " 13\r", "\t 13  \r");
  EXPECT_EQ(run_every_way(&server, spaced).end, "done ZWS2.0/NULL");
  EXPECT_EQ(run_every_way(&client, with(with(kAnswer, "xOo=\r", "xOo= \r"), "ZWS2.0\r", "ZWS2.0\t\r")).end,
            "done ZWS2.0");
}

TEST(WsUpgrade, AHeaderThatNobodyUsesMayHaveAnyBytes) {
  for (const char* const header : {"Cookie: name=Jos\xE9\r\n", "X: \xC3\x28\xFF\r\n", "Content-Length: 00\r\n"}) {
    EXPECT_EQ(run_every_way(&server, with(kRequest, "Host: h:1\r\n", std::string("Host: h:1\r\n") + header)).end,
              "done ZWS2.0/NULL")
        << header;
  }
  EXPECT_EQ(run_every_way(&client, with(kAnswer, "\r\n\r\n", "\r\nServer: caf\xE9\r\n\r\n")).end, "done ZWS2.0");
}

TEST(WsUpgrade, AHeadHasABoundInBytesAndInLines) {
  const std::string at = "Host: h:1\r\n";
  const std::size_t room = kUpgradeHeadMax - kRequest.size();
  const std::string fits = with(kRequest, at, at + "A: " + std::string(room - 5, 'x') + "\r\n");
  ASSERT_EQ(fits.size(), kUpgradeHeadMax);
  EXPECT_EQ(run_every_way(&server, fits).end, "done ZWS2.0/NULL");
  EXPECT_EQ(run_every_way(&server, with(fits, "A: ", "AA: ")).end, "the head of the WebSocket's upgrade is too long");
  EXPECT_EQ(run_every_way(&server, std::string(2 * kUpgradeHeadMax, 'G')).end,
            "the head of the WebSocket's upgrade is too long");

  std::string lines;
  for (std::size_t i = 6; i < kUpgradeHeadersMax; ++i) {
    lines += "A: b\r\n";
  }
  EXPECT_EQ(run_every_way(&server, with(kRequest, at, at + lines)).end, "done ZWS2.0/NULL");
  EXPECT_EQ(run_every_way(&server, with(kRequest, at, at + lines + "A: b\r\n")).end,
            "the head of the WebSocket's upgrade has too many lines");
}

TEST(WsUpgrade, AClientAsksAndChecksTheAnswer) {
  EXPECT_EQ(client().take_output(),
            "GET /chat HTTP/1.1\r\nHost: h:1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: ZWS2.0/NULL,ZWS2.0\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n");
  const Outcome outcome = run_every_way(&client, kAnswer + "frames");
  EXPECT_EQ(outcome.end, "done ZWS2.0");
  EXPECT_EQ(outcome.taken, kAnswer.size());

  const struct {
    std::string answer;
    const char* why;
  } cases[] = {
      {with(kAnswer, "101 Switching Protocols", "404 Not Found"),
       "the server's answer to the request for a WebSocket is not 101"},
      {with(kAnswer, "101", "200"), "the server's answer to the request for a WebSocket is not 101"},
      {with(kAnswer, "s3pPL", "s3pPl"), "the server's answer does not prove that it read the request"},
      {with(kAnswer, "Upgrade: websocket\r\n", ""), "the server's answer does not upgrade to a WebSocket"},
      {with(kAnswer, "Connection: Upgrade\r\n", ""), "the server's answer does not upgrade to a WebSocket"},
      {with(kAnswer, "ZWS2.0", "ZWS3.0"), "the server chose no WebSocket sub-protocol of ours"},
      {with(kAnswer, "Sec-WebSocket-Protocol: ZWS2.0\r\n", ""), "the server chose no WebSocket sub-protocol of ours"},
      {with(kAnswer, "\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
       "the server wants a WebSocket extension that was not offered"},
      {"SSH-2.0-OpenSSH\r\n", "the server's answer is no HTTP"},
      {with(kAnswer, "Connection: Upgrade", "Connection : Upgrade"), "the server's answer is no HTTP"},
      {with(kAnswer, "Upgrade\r\n", "Upgrade\n"), "the server's answer is no HTTP"},
      {with(kAnswer, "HTTP/1.1 101", "HTTP/2.0 101"), "the server's answer is no HTTP"},
  };
  for (const auto& [answer, why] : cases) {
    EXPECT_EQ(run_every_way(&client, answer).end, why) << answer;
  }
}

TEST(WsUpgrade, AServersRefusalIsNoBrokenProtocol) {
  Upgrade end = client();
  (void)end.handle_input(as_bytes("HTTP/1.1 503 Busy\r\n\r\n"));
  ASSERT_TRUE(end.fault());
  EXPECT_EQ(end.fault()->code(), Errc::connection_failed);  // the client tries again
}

TEST(WsUpgrade, BothEndsUnderstandEachOther) {
  Upgrade one = client();
  Upgrade other = server();
  (void)other.handle_input(as_bytes(one.take_output()));
  (void)one.handle_input(as_bytes(other.take_output()));
  EXPECT_TRUE(one.done());
  EXPECT_TRUE(other.done());
  EXPECT_EQ(one.protocol(), "ZWS2.0/NULL");
  EXPECT_EQ(other.protocol(), "ZWS2.0/NULL");
}

}  // namespace
}  // namespace weft::net::ws
