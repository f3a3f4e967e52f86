// SPDX-License-Identifier: MIT
#include "weft/serve/web_client/websocket_client.h"

#include <memory>
#include <string>
#include <vector>

#include "weft/net/ws/deflate.h"
#include "weft/net/ws/handshake.h"
#include "weft/serve/web_client/test_web_client.h"
#include "weft/serve/web_client/websocket_client_counts.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using serve::test::kLong;
using test::answer;
using test::answer_and_end;
using test::RawSession;
using test::server_frame;
using Socket = std::unique_ptr<WebSocketClient>;

class WebSocketClientTest : public test::HttpClientFixture {
 protected:
  std::string serve_echo(WebSocketOptions options = {}) {
    EXPECT_TRUE(router_.websocket("/echo", [] { return test::Echo(); }, std::move(options)));
    return "ws" + serve_site().substr(4) + "/echo";
  }
  // A peer that accepts the WebSocket, sends these bytes with its answer, and ends the stream at the next read.
  std::string serve_frames(const std::string& bytes, const std::string& fields = "") {
    const std::string url = serve_lies([bytes, fields](RawSession& session, const std::string& text) {
      if (text.starts_with("GET ")) {
        answer(session, accepted(text, fields) + bytes);
      } else {
        session.close();
      }
    });
    return "ws" + url.substr(4);
  }
  // The answer 101 to that request.
  static std::string accepted(const std::string& request, const std::string& fields) {
    net::ws::HandshakeFields of;
    EXPECT_TRUE(of.take(std::string_view(request).substr(request.find("\r\n") + 2)));
    std::string head = net::ws::accept_head(of, "");
    return head.insert(head.size() - 2, fields);
  }
};

WebSocketClientOptions patient_socket() {
  WebSocketClientOptions options;
  options.connect_timeout = options.close_timeout = kLong;
  return options;
}

rt::Task<Result<Socket>> open_socket(std::string url, WebSocketClientOptions options = patient_socket()) {
  auto socket =
      co_await WebSocketClient::connect(std::make_shared<ClientHost>(*rt::Core::current()), url, std::move(options));
  co_return socket;
}
rt::Task<std::string> receive_text(WebSocketClient* socket) {
  const auto message = co_await socket->receive();
  co_return message ? (message->kind == Opcode::text ? "text " : "binary ") + message->body
                    : std::string(describe(message.error().code()));
}

// --- messages ---

rt::Task<void> talk(std::string url) {
  auto opened = co_await open_socket(url);
  EXPECT_TRUE(opened) << opened.error().message();
  if (!opened) {
    co_return;
  }
  const Socket& socket = *opened;
  EXPECT_TRUE(co_await socket->send("hello"));
  const std::string hello = co_await receive_text(socket.get());
  EXPECT_EQ(hello, "text hello");
  for (const std::size_t size : {0u, 1u, 125u, 126u, 65535u, 65536u, 900'000u}) {
    const std::string body(size, 'b');
    EXPECT_TRUE(co_await socket->send(Opcode::binary, as_bytes(body)));
    const std::string back = co_await receive_text(socket.get());
    EXPECT_EQ(back, "binary " + body);
  }
  EXPECT_TRUE(socket->ping());
  EXPECT_EQ((co_await socket->send("\xFF")).error(), Errc::invalid_argument);
  EXPECT_EQ((co_await socket->send(Opcode::close, {})).error(), Errc::invalid_argument);
  EXPECT_TRUE(co_await socket->send("still open"));
  const std::string last = co_await receive_text(socket.get());
  EXPECT_EQ(last, "text still open");
  EXPECT_FALSE(socket->is_compressed());
  EXPECT_TRUE(co_await socket->close(4001, "enough"));
  EXPECT_EQ(socket->peer_status(), 4001);
  EXPECT_FALSE(socket->is_open());
  EXPECT_EQ((co_await socket->send("late")).error(), Errc::connection_closed);
  EXPECT_TRUE(co_await socket->close());  // again
}
TEST_F(WebSocketClientTest, MessagesComeBackUntilTheCloseHandshake) { run(talk(serve_echo())); }

rt::Task<void> echo_two(std::string url, WebSocketClientOptions options, Errc end) {
  auto opened = co_await open_socket(url, options);
  EXPECT_TRUE(opened) << opened.error().message();
  if (!opened) {
    co_return;
  }
  const Socket& socket = *opened;
  for (int i = 0; i < 2; ++i) {
    const auto message = co_await socket->receive();
    EXPECT_TRUE(message);
    if (message) {
      const auto sent = co_await socket->send(message->body);
      EXPECT_TRUE(sent);
    }
  }
  const auto broken = co_await socket->receive();
  EXPECT_EQ(broken.error(), end);
  const auto closed = co_await socket->close();  // after the server has read all
  EXPECT_FALSE(closed);
}
// A peer that sends two messages and bad bytes, and reads the echoes of both and a close frame.
class WebSocketFaultTest : public WebSocketClientTest {
 protected:
  void expect_echoes_before(const std::string& bytes, const std::string& fields = "", Errc end = Errc::protocol_error) {
    constexpr std::size_t kEchoes = 2 * (2 + 4 + 5);  // head, mask, body
    std::string got;
    const std::string url = serve_lies([&](RawSession& session, const std::string& text) {
      if (text.starts_with("GET ")) {
        return answer(session,
                      accepted(text, fields) + server_frame(0x81, "first") + server_frame(0x81, "other") + bytes);
      }
      got += text;
      if (got.size() > kEchoes) {
        session.close();
      }
    });
    WebSocketClientOptions options = patient_socket();
    if (!fields.empty()) {
      options.deflate.emplace();
      options.limits.message_max = 1000;
    }
    run(echo_two("ws" + url.substr(4), options, end));
    ASSERT_GT(got.size(), kEchoes);
    EXPECT_EQ(got[0], '\x81');
    EXPECT_EQ(got[kEchoes / 2], '\x81');
    EXPECT_EQ(got[kEchoes], '\x88');
  }
};
const std::string kAgreed = "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n";

TEST_F(WebSocketFaultTest, OfAFrameEndsTheConnectionAfterTheAnswersToTheMessagesBeforeIt) {
  expect_echoes_before(std::string("\x83\x00", 2));
}
TEST_F(WebSocketFaultTest, OfACompressedMessageEndsTheConnectionAfterTheAnswersToTheMessagesBeforeIt) {
  if (!net::ws::deflate_available()) {
    GTEST_SKIP() << "this build has no zlib";
  }
  expect_echoes_before(server_frame(0xC2, "\xFF\xFF") + server_frame(0x81, "late"), kAgreed);
}
TEST_F(WebSocketFaultTest, OfAMessageThatGrowsTooLargeEndsTheConnectionAfterThem) {
  if (!net::ws::deflate_available()) {
    GTEST_SKIP() << "this build has no zlib";
  }
  std::vector<std::uint8_t> room;
  const auto deflater = net::ws::Deflater::make(15, 6, 8);
  const std::string payload(as_text(deflater->compress(as_bytes(std::string(1001, 'x')), room)));
  expect_echoes_before(server_frame(0xC2, payload), kAgreed, Errc::message_too_large);
}

rt::Task<void> never_ask(std::string url, bool compresses) {
  WebSocketClientOptions options = patient_socket();
  if (compresses) {
    options.deflate.emplace();
  }
  options.session.frame_timeout = std::chrono::milliseconds(10);
  auto opened = co_await open_socket(url, options);
  EXPECT_TRUE(opened) << opened.error().message();
  if (!opened) {
    co_return;
  }
  const Socket& socket = *opened;
  while (socket->is_open()) {
    const auto slept = co_await rt::sleep(std::chrono::milliseconds(1));
    if (!slept) {
      co_return;
    }
  }
  const std::string first = co_await receive_text(socket.get());
  EXPECT_EQ(first, "text first");
  const auto end = co_await socket->receive();
  EXPECT_EQ(end.error(), Errc::protocol_error);
}
TEST_F(WebSocketFaultTest, EndsAlsoTheConnectionOfAProgramThatDoesNotAsk) {
  run(never_ask(serve_frames(server_frame(0x81, "first") + std::string("\x83\x00", 2)), false));
}
TEST_F(WebSocketFaultTest, OfACompressedMessageEndsAlsoTheConnectionOfAProgramThatDoesNotAsk) {
  if (!net::ws::deflate_available()) {
    GTEST_SKIP() << "this build has no zlib";
  }
  run(never_ask(serve_frames(server_frame(0x81, "first") + server_frame(0xC2, "\xFF\xFF"), kAgreed), true));
}

rt::Task<void> choose(std::string url) {
  WebSocketClientOptions options = patient_socket();
  options.protocols = {"new", "old"};
  options.fields = {{"Authorization", "Bearer x"}};
  auto chosen = co_await open_socket(url, options);
  EXPECT_TRUE(chosen) << chosen.error().message();
  if (chosen) {
    EXPECT_EQ((*chosen)->protocol(), "old");
  }
  options.protocols = {"other"};
  auto none = co_await open_socket(url, options);
  EXPECT_TRUE(none) << none.error().message();
  if (none) {
    EXPECT_EQ((*none)->protocol(), "");
  }
  options.fields.clear();
  const auto refused = co_await open_socket(url, options);
  EXPECT_EQ(refused.error(), Errc::handshake_refused);
  EXPECT_NE(refused.error().message().find("401"), std::string::npos) << refused.error().message();
  options.fields = {{"Host", "x"}};
  EXPECT_EQ((co_await open_socket(url, options)).error(), Errc::invalid_argument);
  options.fields = {{"X", "1\r\nY: 2"}};
  EXPECT_EQ((co_await open_socket(url, options)).error(), Errc::invalid_argument);
  EXPECT_EQ((co_await open_socket("http" + url.substr(2))).error(), Errc::invalid_argument);
}
TEST_F(WebSocketClientTest, TheHandshakeHasSubProtocolsAndFields) {
  WebSocketOptions options;
  options.protocols = {"old"};
  options.refuse = [](const Request& request) {
    return request["Authorization"] == "Bearer x" ? std::nullopt : std::optional(Response(401));
  };
  run(choose(serve_echo(options)));
}

rt::Task<void> compress(std::string url, bool keeps) {
  WebSocketClientOptions options = patient_socket();
  options.deflate.emplace();
  options.deflate->context_takeover = keeps;
  options.deflate->window_bits = keeps ? 15 : 10;
  auto opened = co_await open_socket(url, options);
  EXPECT_TRUE(opened) << opened.error().message();
  if (!opened) {
    co_return;
  }
  const Socket& socket = *opened;
  EXPECT_TRUE(socket->is_compressed());
  for (int i = 0; i < 3; ++i) {
    std::string text;
    for (int word = 0; word < 5000; ++word) {
      text.append(std::to_string(word * (i + 7))).append(" and ");
    }
    EXPECT_TRUE(co_await socket->send(text));
    const std::string whole = co_await receive_text(socket.get());
    EXPECT_EQ(whole, "text " + text);
    EXPECT_TRUE(co_await socket->send("short"));
    const std::string brief = co_await receive_text(socket.get());
    EXPECT_EQ(brief, "text short");
  }
  EXPECT_TRUE(co_await socket->close());
}
TEST_F(WebSocketClientTest, MessagesAreCompressedIfBothEndsWantIt) {
  if (!net::ws::deflate_available()) {
    GTEST_SKIP() << "no zlib in this build";
  }
  WebSocketOptions options;
  options.deflate.emplace();
  options.deflate->context_takeover = true;
  const std::string url = serve_echo(options);
  run(compress(url, false));
  run(compress(url, true));
}

rt::Task<void> read_slowly(std::string url) {
  WebSocketClientOptions options = patient_socket();
  options.inbox_max = 100'000;
  auto opened = co_await open_socket(url, options);
  EXPECT_TRUE(opened) << opened.error().message();
  if (!opened) {
    co_return;
  }
  const Socket& socket = *opened;
  EXPECT_TRUE(co_await socket->send("go"));
  const std::string first = co_await receive_text(socket.get());
  EXPECT_EQ(first, "binary 0" + std::string(9'999, 'x'));
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(co_await rt::yield());
    EXPECT_LE(socket->waiting(), 11u);
  }
  for (int i = 1; i < 100; ++i) {
    const std::string number = std::to_string(i);
    const std::string message = co_await receive_text(socket.get());
    EXPECT_EQ(message.substr(0, message.find('x')), "binary " + number);
    EXPECT_EQ(message.size(), 10'007u);
  }
}
TEST_F(WebSocketClientTest, AProgramThatReadsSlowlySlowsTheServerDown) {
  EXPECT_TRUE(router_.websocket("/flood", [](WebSocketSession& session, const Message&) {
    const auto flood = [](WebSocketSession* to) -> rt::Task<void> {
      for (int i = 0; i < 100; ++i) {
        std::string body = std::to_string(i);
        body.append(10'000 - body.size(), 'x');
        if (!to->send(Opcode::binary, as_bytes(body))) {
          co_return;
        }
        while (to->queued() > 50'000) {
          const Result<void> waited = co_await to->written().wait();
          if (!waited) {
            co_return;
          }
        }
      }
    };
    EXPECT_TRUE(session.spawn(flood(&session)));
  }));
  run(read_slowly("ws" + serve_site().substr(4) + "/flood"));
}

rt::Task<void> upload_much(std::string url) {
  auto opened = co_await open_socket(url);
  EXPECT_TRUE(opened) << opened.error().message();
  if (!opened) {
    co_return;
  }
  const Socket& socket = *opened;
  const std::string body(100'000, 'u');
  for (int i = 0; i < 100; ++i) {
    const auto sent = co_await socket->send(Opcode::binary, as_bytes(body));
    EXPECT_TRUE(sent) << sent.error().message();
  }
  EXPECT_TRUE(co_await socket->send("end"));
  const std::string total = co_await receive_text(socket.get());
  EXPECT_EQ(total, "text 10000000");
}
TEST_F(WebSocketClientTest, SendWaitsForRoom) {
  auto total = std::make_shared<std::size_t>(0);
  EXPECT_TRUE(router_.websocket("/count", [total](WebSocketSession& session, const Message& message) {
    if (message.kind == Opcode::binary) {
      *total += message.body.size();
    } else {
      const std::string text = std::to_string(*total);
      EXPECT_TRUE(session.send(Opcode::text, as_bytes(text)));
    }
  }));
  run(upload_much("ws" + serve_site().substr(4) + "/count"));
}

// --- the ends of a connection ---

// The messages that come, then the error.
rt::Task<void> receive_all(std::string url, std::vector<std::string>* into, WebSocketClientReading* counts) {
  WebSocketClientOptions options = patient_socket();
  options.limits.message_max = 100;
  auto opened = co_await open_socket(url, options);
  if (!opened) {
    into->push_back(std::string(describe(opened.error().code())));
    co_return;
  }
  for (;;) {
    const auto message = co_await (*opened)->receive();
    if (!message) {
      into->push_back(std::string(describe(message.error().code())) + " " + std::to_string((*opened)->peer_status()));
      break;
    }
    into->push_back(message->body);
  }
  CounterReadings readings;
  (*opened)->counter_source()("feed", readings);
  std::size_t row = 0;
  WebSocketClientReading::visit([&](auto& number) { number = readings[0].values[row++]; }, *counts);
}
using Texts = std::vector<std::string>;

class WebSocketLiarTest : public WebSocketClientTest {
 protected:
  Texts after(const std::string& bytes, const std::string& fields = "") {
    Texts seen;
    counts_ = {};
    run(receive_all(serve_frames(bytes, fields), &seen, &counts_));
    return seen;
  }
  WebSocketClientReading counts_;
};

TEST_F(WebSocketLiarTest, FramesThatComeWithTheAnswerAreTaken) {
  const std::string fragments = server_frame(0x01, "he") + server_frame(0x89, "ping") + server_frame(0x00, "ll") +
                                server_frame(0x80, "o") + server_frame(0x82, "bin");
  EXPECT_EQ(after(fragments + server_frame(0x88, test::close_body(1001, "bye"))),
            (Texts{"hello", "bin", "connection closed by peer 1001"}));
  EXPECT_EQ(counts_.messages, 2u);
  EXPECT_EQ(counts_.pings, 1u);
  EXPECT_EQ(after(server_frame(0x88, "")), (Texts{"connection closed by peer 0"}));
}

TEST_F(WebSocketLiarTest, AServerThatBreaksARuleEndsTheConnection) {
  EXPECT_EQ(after(test::client_frame(0x81, "masked")), (Texts{"protocol error 0"}));
  EXPECT_EQ(after(server_frame(0xC1, "compressed")), (Texts{"protocol error 0"}));
  EXPECT_EQ(after(server_frame(0x80, "of nothing")), (Texts{"protocol error 0"}));
  EXPECT_EQ(after(server_frame(0x83, "")), (Texts{"protocol error 0"}));
  EXPECT_EQ(counts_.protocol, 1u);
  EXPECT_EQ(after(server_frame(0x81, "\xFF")), (Texts{"protocol error 0"}));
  EXPECT_EQ(counts_.text, 1u);
  EXPECT_EQ(after(server_frame(0x82, std::string(101, 'x'))), (Texts{"message too large 0"}));
  EXPECT_EQ(counts_.size, 1u);
}

TEST_F(WebSocketLiarTest, AnAnswerThatDoesNotFitTheRequestIsRefused) {
  EXPECT_EQ(after("", "Sec-WebSocket-Protocol: x\r\n"), (Texts{"protocol error"}));
  EXPECT_EQ(after("", "Sec-WebSocket-Extensions: permessage-deflate\r\n"), (Texts{"protocol error"}));
  EXPECT_EQ(after("", "Sec-WebSocket-Accept: x\r\n"), (Texts{"protocol error"}));
  const auto answers = [this](const std::string& head) {
    Texts seen;
    const std::string url =
        serve_lies([head](RawSession& session, const std::string&) { answer_and_end(session, head); });
    run(receive_all("ws" + url.substr(4), &seen, &counts_));
    return seen;
  };
  const std::string upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
  EXPECT_EQ(answers(upgrade + "\r\n"), (Texts{"protocol error"}));
  EXPECT_EQ(answers(upgrade + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"), (Texts{"protocol error"}));
  EXPECT_EQ(answers("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"), (Texts{"handshake refused"}));
  EXPECT_EQ(answers("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"), (Texts{"handshake refused"}));
  EXPECT_EQ(answers("SSH-2.0-x\r\n\r\n"), (Texts{"protocol error"}));
  EXPECT_EQ(answers(""), (Texts{"connection closed by peer"}));
}

rt::Task<void> wait_in_vain(std::string url) {
  WebSocketClientOptions options = patient_socket();
  options.connect_timeout = std::chrono::milliseconds(1);
  EXPECT_EQ((co_await open_socket(url + "/never", options)).error(), Errc::timed_out);
  options = patient_socket();
  options.close_timeout = std::chrono::milliseconds(1);
  auto opened = co_await open_socket(url, options);
  EXPECT_TRUE(opened) << opened.error().message();
  if (!opened) {
    co_return;
  }
  const Instant soon = rt::Loop::current()->now() + std::chrono::milliseconds(1);
  EXPECT_EQ((co_await (*opened)->receive(soon)).error(), Errc::timed_out);
  EXPECT_EQ((co_await (*opened)->close()).error(), Errc::timed_out);
  EXPECT_EQ((co_await (*opened)->receive()).error(), Errc::closed);
}
TEST_F(WebSocketClientTest, EachWaitHasItsEnd) {
  const std::string url = serve_lies([](RawSession& session, const std::string& text) {
    if (text.starts_with("GET / ")) {
      answer(session, accepted(text, ""));
    }
  });
  run(wait_in_vain("ws" + url.substr(4)));
}

rt::Task<void> leave(std::string url) {
  auto opened = co_await open_socket(url);
  EXPECT_TRUE(opened) << opened.error().message();
  if (!opened) {
    co_return;
  }
  Result<WebSocketMessage> last;
  const auto wait = [](WebSocketClient* socket, Result<WebSocketMessage>* into) -> rt::Task<void> {
    *into = co_await socket->receive();
  };
  rt::TaskScope scope(*rt::Loop::current());
  EXPECT_TRUE(scope.spawn(wait(opened->get(), &last)));
  opened->reset();
  EXPECT_TRUE(co_await scope.join());
  EXPECT_EQ(last.error(), Errc::closed) << last.error().message();
}
TEST_F(WebSocketClientTest, TheDestructorEndsTheCallsThatWait) { run(leave(serve_echo())); }

}  // namespace
}  // namespace weft::serve::web
