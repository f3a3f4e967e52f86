// SPDX-License-Identifier: MIT
#include "weft/serve/web/websocket_service.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/rt/task/async_event.h"
#include "weft/serve/web/test_site.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using serve::test::Client;
using serve::test::kLong;
using serve::test::Signal;
using test::client_frame;
using test::close_body;
using test::Echo;
using test::read_frame;
using test::read_head;
using test::request_of;
using test::server_frame;
using test::status_of_head;
using test::WebSocketTest;

TEST_F(WebSocketTest, ARequestBecomesAWebSocketThatEchoesTextAndBinary) {
  ASSERT_TRUE(router_.get("/", [] { return "hello"; }));
  const std::string endpoint = listen_echo();
  Client client(endpoint);
  client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n" + request_of("/echo"));
  EXPECT_EQ(status_of_head(read_head(client)), 200);
  EXPECT_EQ(client.read(5), "hello");
  EXPECT_EQ(read_head(client),
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
  for (const std::size_t size : {0, 1, 125, 126, 65'536, 1'048'576}) {
    const std::string body(size, 'x');
    client.write(client_frame(0x81, body) + client_frame(0x82, body));
    EXPECT_EQ(read_frame(client), server_frame(0x81, body));
    EXPECT_EQ(read_frame(client), server_frame(0x82, body));
  }
  until_counted([](const WebCounts& counts) { return counts.websockets_opened == 1 && counts.messages == 12; });
}

TEST_F(WebSocketTest, FramesMayComeWithTheRequest) {
  Client client(listen_echo());
  client.write(request_of("/echo") + client_frame(0x81, "one") + client_frame(0x81, "two").substr(0, 3));
  EXPECT_EQ(status_of_head(read_head(client)), 101);
  EXPECT_EQ(read_frame(client), server_frame(0x81, "one"));
  client.write(client_frame(0x81, "two").substr(3));
  EXPECT_EQ(read_frame(client), server_frame(0x81, "two"));
}

TEST_F(WebSocketTest, FragmentsAreOneMessageAndPingsAreAnsweredBetween) {
  Client client(listen_echo());
  upgrade(client);
  client.write(client_frame(0x01, "frag") + client_frame(0x89, "ping") + client_frame(0x8A, "pong") +
               client_frame(0x00, "men") + client_frame(0x80, "ts") + client_frame(0x82, "whole"));
  EXPECT_EQ(read_frame(client), server_frame(0x8A, "ping"));
  EXPECT_EQ(read_frame(client), server_frame(0x81, "fragments"));
  EXPECT_EQ(read_frame(client), server_frame(0x82, "whole"));
  until_counted([](const WebCounts& counts) { return counts.messages == 2 && counts.pings == 1; });
}

TEST_F(WebSocketTest, ACloseIsAnsweredWithItsStatusAndTheEnd) {
  const std::string endpoint = listen_echo();
  for (const std::string& body : {close_body(1000, "bye"), close_body(4242), std::string()}) {
    Client client(endpoint);
    upgrade(client);
    client.write(client_frame(0x88, body) + client_frame(0x81, "late"));
    EXPECT_EQ(client.read_to_end(), server_frame(0x88, body.substr(0, 2)));
    EXPECT_FALSE(client.reset());
  }
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::peer_closed) == 3; });
}

TEST_F(WebSocketTest, ABrokenRuleHasAStatusACounterAndTheEnd) {
  WebSocketOptions options;
  options.limits.message_max = 100;
  const std::string endpoint = listen_echo(options);
  using Member = std::uint64_t WebCounts::*;
  const struct {
    std::string bytes;
    std::uint16_t status;
    Member counter;
  } cases[] = {
      {client_frame(0x83, ""), 1002, &WebCounts::protocol},
      {server_frame(0x81, "bare"), 1002, &WebCounts::protocol},
      {client_frame(0x80, "x"), 1002, &WebCounts::protocol},
      {client_frame(0x81, "\xFF"), 1007, &WebCounts::text},
      {client_frame(0x82, std::string(101, 'x')), 1009, &WebCounts::size},
      {client_frame(0x02, std::string(60, 'x')) + client_frame(0x80, std::string(60, 'x')), 1009, &WebCounts::size},
  };
  for (const auto& [bytes, status, counter] : cases) {
    Client client(endpoint);
    upgrade(client);
    client.write(client_frame(0x81, "good") + bytes + client_frame(0x81, "late"));
    EXPECT_EQ(read_frame(client), server_frame(0x81, "good"));
    EXPECT_EQ(client.read_to_end(), server_frame(0x88, close_body(status)));
    EXPECT_FALSE(client.reset());
    client.close();  // the session counts when it has seen this end
    until_counted([&, member = counter](const WebCounts& counts) { return counts.*member != 0; });
  }
  until_counted([](const WebCounts& counts) { return counts.protocol == 3 && counts.text == 1 && counts.size == 2; });
}

TEST_F(WebSocketTest, ARequestThatIsNoneIsRefusedAndTheConnectionStays) {
  Client client(listen_echo());
  const std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const std::string version = "Sec-WebSocket-Version: 13\r\n";
  const std::string wish = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
  const std::string line = "GET /echo HTTP/1.1\r\nHost: x\r\n";
  const std::pair<std::string, int> cases[] = {
      {line + "\r\n", 426},
      {line + key + version + "Upgrade: websocket\r\n\r\n", 426},
      {line + key + version + "Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n", 426},
      {line + key + wish + "Sec-WebSocket-Version: 8\r\n\r\n", 426},
      {line + wish + version + "\r\n", 400},
      {line + wish + version + "Sec-WebSocket-Key: short\r\n\r\n", 400},
      {line + wish + version + key + key + "\r\n", 400},
      {line + wish + version + key + "Content-Length: 1\r\n\r\nx", 400},
      {"GET /echo HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n" + wish + version + key + "\r\n", 400},
      {"POST /echo HTTP/1.1\r\nHost: x\r\n" + wish + version + key + "Content-Length: 0\r\n\r\n", 405},
  };
  for (const auto& [request, status] : cases) {
    client.write(request);
    const std::string head = read_head(client);
    EXPECT_EQ(status_of_head(head), status) << request;
    EXPECT_EQ(head.find("Upgrade: websocket\r\nConnection: Upgrade\r\n") != std::string::npos, status == 426);
    EXPECT_EQ(head.find("Sec-WebSocket-Version: 13\r\n") != std::string::npos, status == 426);
    (void)client.read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
  }
  upgrade(client);
  until_counted([](const WebCounts& counts) { return counts.upgrade_request == 9; });
}

TEST_F(WebSocketTest, OriginsAndTheProgramDecideWhoIsTaken) {
  WebSocketOptions options;
  options.origins = {"https://example.com"};
  options.refuse = [](const Request& request) -> std::optional<Response> {
    if (request["Authorization"] == "throw") {
      throw std::runtime_error("no");
    }
    if (request["Authorization"] == "old") {
      return Response(426);
    }
    return request["Authorization"] == "good" ? std::nullopt : std::optional(Response(401));
  };
  Client client(listen_echo(options));
  const std::pair<std::string, int> cases[] = {
      {"", 403},
      {"Origin: https://example.com.evil\r\nAuthorization: good\r\n", 403},
      {"Origin: https://example.com\r\nOrigin: https://evil.com\r\nAuthorization: good\r\n", 403},
      {"Origin: https://example.com\r\n", 401},
      {"Origin: https://example.com\r\nAuthorization: old\r\n", 426},
      {"Origin: https://example.com\r\nAuthorization: throw\r\n", 500},
      {"Origin: https://EXAMPLE.com\r\nAuthorization: good\r\n", 101},
  };
  for (const auto& [fields, status] : cases) {
    client.write(request_of("/echo", fields));
    const std::string head = read_head(client);
    EXPECT_EQ(status_of_head(head), status) << fields;
    EXPECT_EQ(head.find("Upgrade: websocket") != std::string::npos, status == 101) << fields;
    if (status != 101) {
      (void)client.read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
    }
  }
  until_counted([](const WebCounts& counts) {
    return counts.upgrade_origin == 3 && counts.upgrade_route == 2 && counts.thrown == 1;
  });
}

TEST_F(WebSocketTest, TheFirstSubProtocolOfTheClientThatTheRouteHasIsTaken) {
  WebSocketOptions options;
  options.protocols = {"chat.v1", "chat.v2"};
  const std::string endpoint = listen_echo(options);
  const std::pair<std::string, std::string> cases[] = {
      {"Sec-WebSocket-Protocol: other, chat.v2\r\nSec-WebSocket-Protocol: chat.v1\r\n", "chat.v2"},
      {"Sec-WebSocket-Protocol: CHAT.V1\r\n", ""},
      {"", ""},
  };
  for (const auto& [fields, chosen] : cases) {
    Client client(endpoint);
    client.write(request_of("/echo", fields + "Sec-WebSocket-Extensions: permessage-deflate\r\n"));
    const std::string head = read_head(client);
    EXPECT_EQ(head.find("Sec-WebSocket-Protocol") != std::string::npos, !chosen.empty());
    EXPECT_NE(head.find(chosen), std::string::npos);
    EXPECT_EQ(head.find("Sec-WebSocket-Extensions"), std::string::npos);
  }
}

struct Greeter {
  static void on_open(WebSocketSession& session, const Request& request) {
    const std::string text = request.param("room") + " " + request.query("as").value_or("-") + " " +
                             std::string(request["Cookie"]) + " " + std::string(session.codec().protocol());
    (void)session.send(Opcode::text, as_bytes(text));
  }
  static void on_message(WebSocketSession& session, const Message& message) {
    web::close(session, 4001, message.text());
  }
};

TEST_F(WebSocketTest, AHandlerGetsTheRequestAndClosesWithAStatus) {
  WebSocketOptions options;
  options.protocols = {"p"};
  ASSERT_TRUE(router_.websocket("/rooms/{room}", [] { return Greeter(); }, options));
  Client client(listen_web());
  upgrade(client, "/rooms/a%20b?as=Ada", "Cookie: c\r\nSec-WebSocket-Protocol: p\r\n");
  EXPECT_EQ(read_frame(client), server_frame(0x81, "a b Ada c p"));
  client.write(client_frame(0x81, "enough"));
  EXPECT_EQ(client.read_to_end(), server_frame(0x88, close_body(4001, "enough")));
}

struct Slow {
  Signal* started;
  rt::AsyncEvent* go;
  rt::Task<> on_message(WebSocketSession& session, const Message& message) {
    started->give();
    (void)co_await go->wait();
    (void)session.send(message.kind, message.body);
  }
};

TEST_F(WebSocketTest, ACoroutineKeepsItsMessageAndLaterOnesWaitForIt) {
  Signal started;
  rt::AsyncEvent go;
  start_runtime(1);
  make_server();
  ASSERT_TRUE(router_.websocket("/slow", [&] { return Slow{&started, &go}; }));
  Client client(listen_web());
  upgrade(client, "/slow");
  client.write(client_frame(0x01, "fir") + client_frame(0x80, "st") + client_frame(0x82, "second"));
  ASSERT_TRUE(started.take());
  ASSERT_TRUE(runtime_->post(0, [&go] { go.set(); }));
  EXPECT_EQ(read_frame(client), server_frame(0x81, "first"));
  EXPECT_EQ(read_frame(client), server_frame(0x82, "second"));
}

TEST_F(WebSocketTest, AFailureOfACoroutineOrOfOnOpenClosesWith1011) {
  struct Failing {
    static void on_open(WebSocketSession& session) {
      (void)session.send(Opcode::text, as_bytes("open"));
      throw std::runtime_error("no");
    }
    static void on_message(WebSocketSession&, const Message&) {}
  };
  ASSERT_TRUE(router_.websocket("/open", [] { return Failing(); }));
  ASSERT_TRUE(router_.websocket("/task", [](WebSocketSession&, const Message& message) -> rt::Task<Result<void>> {
    if (message.text() == "throw") {
      throw std::runtime_error("no");
    }
    co_return Error(Errc::not_found, "no");
  }));
  const std::string endpoint = listen_web();
  for (const std::string text : {"", "throw", "fail"}) {
    Client client(endpoint);
    upgrade(client, text.empty() ? "/open" : "/task");
    if (text.empty()) {
      EXPECT_EQ(read_frame(client), server_frame(0x81, "open"));
    } else {
      client.write(client_frame(0x81, text));
    }
    EXPECT_EQ(client.read_to_end(), server_frame(0x88, close_body(1011))) << text;
  }
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::service_failed) == 3; });
}

TEST_F(WebSocketTest, AFunctionMayStandForAHandlerAndItsExceptionClosesWith1011) {
  ASSERT_TRUE(router_.websocket("/f", [](WebSocketSession& session, const Message& message) {
    if (message.text() == "throw") {
      throw std::runtime_error("no");
    }
    (void)session.send(Opcode::binary, message.body);
  }));
  Client client(listen_web());
  upgrade(client, "/f");
  client.write(client_frame(0x81, "x") + client_frame(0x81, "throw") + client_frame(0x81, "late"));
  EXPECT_EQ(client.read_to_end(), server_frame(0x82, "x") + server_frame(0x88, close_body(1011)));
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::service_failed) == 1; });
}

struct Member {
  static void on_open(WebSocketSession& session) {
    (void)session.join(GroupId{7});
    (void)session.send(Opcode::text, as_bytes("in"));
  }
  static void on_message(WebSocketSession&, const Message&) {}
};

TEST_F(WebSocketTest, AFrameThatIsEncodedOnceReachesAGroupAndNoHttpConnection) {
  ASSERT_TRUE(router_.websocket("/room", [] { return Member(); }));
  ASSERT_TRUE(router_.get("/", [](const Request& request) {
    (void)request.session().join(GroupId{7});
    return "hello";
  }));
  const std::string endpoint = listen_web();
  Client plain(endpoint);
  plain.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(status_of_head(read_head(plain)), 200);
  EXPECT_EQ(plain.read(5), "hello");
  std::vector<std::unique_ptr<Client>> members;
  for (int i = 0; i < 4; ++i) {
    members.push_back(std::make_unique<Client>(endpoint));
    upgrade(*members.back(), "/room");
    EXPECT_EQ(read_frame(*members.back()), server_frame(0x81, "in"));
  }
  const std::string body(3000, 'x');
  const auto frame = SharedFrame::encode(WebSocketCodec(), Opcode::text, as_bytes(body));
  ASSERT_TRUE(frame);
  ASSERT_TRUE(server_->publish(GroupId{7}, *frame));
  for (const auto& member : members) {
    EXPECT_EQ(read_frame(*member), server_frame(0x81, body));
  }
  plain.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(status_of_head(read_head(plain)), 200);
  EXPECT_EQ(plain.read_to_end(), "hello");
}

TEST_F(WebSocketTest, AProgramThatSendsACloseFrameItselfIsRefusedAndTheEndHasOne) {
  ASSERT_TRUE(router_.websocket("/f", [](WebSocketSession& session, const Message&) {
    EXPECT_EQ(session.send(Opcode::close, {}).error(), Errc::invalid_argument);
    session.close();
  }));
  Client client(listen_web());
  upgrade(client, "/f");
  client.write(client_frame(0x81, "x"));
  EXPECT_EQ(client.read_to_end(), server_frame(0x88, close_body(1000)));
}

TEST_F(WebSocketTest, EachCoreMakesItsHandlerWithACopyOfTheFunction) {
  std::atomic<int> sum{0};
  ASSERT_TRUE(router_.websocket("/echo", [&sum, calls = 0]() mutable {
    sum += ++calls;
    return Echo();
  }));
  start_runtime(4);
  make_server();
  (void)listen_web();
  EXPECT_EQ(sum, 4);
}

TEST_F(WebSocketTest, ARouteMaySendPings) {
  WebSocketOptions options;
  options.ping_every = std::chrono::milliseconds(1);
  Client client(listen_echo(options));
  upgrade(client);
  EXPECT_EQ(client.read(4), server_frame(0x89, "") + server_frame(0x89, ""));
}

TEST_F(WebSocketTest, AStopTellsClientsThatTheServerGoesAway) {
  const std::string endpoint = listen_echo();
  Client idle(endpoint);
  upgrade(idle);
  Client half(endpoint);
  upgrade(half);
  half.write(client_frame(0x01, "half") + client_frame(0x89, "here"));
  EXPECT_EQ(read_frame(half), server_frame(0x8A, "here"));
  server_->begin_stop(sys::now() + kLong);
  EXPECT_EQ(idle.read_to_end(), server_frame(0x88, close_body(1001)));
  EXPECT_EQ(half.read_to_end(), server_frame(0x88, close_body(1001)));
  idle.close();
  half.close();
}

TEST_F(WebSocketTest, AFrameOrAMessageThatIsNotWholeInTimeEndsTheConnection) {
  WebSocketOptions frames;
  frames.session.frame_timeout = std::chrono::milliseconds(1);
  ASSERT_TRUE(router_.websocket("/frame", [] { return Echo(); }, frames));
  WebSocketOptions messages;
  messages.limits.message_timeout = Duration(0);
  ASSERT_TRUE(router_.websocket("/message", [] { return Echo(); }, messages));
  const std::string endpoint = listen_web();
  Client frame(endpoint);
  upgrade(frame, "/frame");
  frame.write(client_frame(0x81, "text").substr(0, 7));
  EXPECT_EQ(frame.read_to_end(), server_frame(0x88, close_body(1008)));
  Client message(endpoint);
  upgrade(message, "/message");
  message.write(client_frame(0x01, "a"));
  EXPECT_EQ(message.read_to_end(), server_frame(0x88, close_body(1008, "the message took too long")));
  until_counted([](const WebCounts& counts) { return counts.messages_late == 2; });
}

TEST_F(WebSocketTest, FragmentsCountAsMemoryOfTheServer) {
  ServerOptions options;
  options.memory_max = 512 * 1024;
  options.core_memory_max = 512 * 1024;
  start_runtime(1);
  make_server(options);
  const std::string endpoint = listen_echo();
  Client client(endpoint);
  upgrade(client);
  const std::string part = client_frame(0x00, std::string(50'000, 'x'));
  std::string bytes = client_frame(0x02, "");
  for (int i = 0; i < 12; ++i) {
    bytes += part;
  }
  (void)client.write_some(bytes, kLong);
  EXPECT_EQ(client.read_to_end(), "");
  until([this](const CounterValues& counters) {
    return counters.closed_for(CloseReason::out_of_memory) == 1 && server_->sessions() == 0;
  });
  Client next(endpoint);
  upgrade(next);
  for (int i = 0; i < 8; ++i) {  // more than the memory, if it did not come back
    next.write(client_frame(0x02, "") + part + part + client_frame(0x80, ""));
    EXPECT_EQ(read_frame(next), server_frame(0x82, std::string(100'000, 'x')));
  }
}

}  // namespace
}  // namespace weft::serve::web
