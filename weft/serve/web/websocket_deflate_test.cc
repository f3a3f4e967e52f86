// SPDX-License-Identifier: MIT
// permessage-deflate (RFC 7692) on the sessions of a server.
#include "weft/serve/web/websocket_deflate.h"

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/random.h"
#include "weft/rt/core/test_runtime.h"
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

constexpr int kTextBit = 0xC1;  // the first byte of a compressed text, and of a binary message
constexpr int kBinaryBit = 0xC2;
const std::string kOffer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
const std::string kForgetful = "server_no_context_takeover; client_no_context_takeover";

std::string random_bytes(std::size_t size) {
  Random random(42);
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random.below(256));
  }
  return bytes;
}

// The two streams of an end that compresses and expands.
class DeflateEnd {
 public:
  explicit DeflateEnd(bool keeps = false) : keeps_(keeps) {}

  std::string compress(std::string_view message) {
    std::string payload(as_text(deflater_->compress(as_bytes(message), room_)));
    if (!keeps_) {
      deflater_->reset();
    }
    return payload;
  }
  // The message in a frame of a server; the frame is compressed.
  std::string expand_frame(std::string_view frame) {
    const std::size_t front = frame.size() < 2 ? 0 : (frame[1] == 126 ? 4 : frame[1] == 127 ? 10 : 2);
    EXPECT_TRUE(front != 0 && (frame[0] & 0x40) != 0);
    return expand(frame.substr(front));
  }
  std::string expand(std::string_view payload) {
    inflater_->begin(std::size_t{64} << 20);
    if (!keeps_) {
      inflater_->reset();
    }
    EXPECT_EQ(inflater_->take(as_bytes(payload), room_), net::ws::Inflater::Outcome::ok);
    EXPECT_EQ(inflater_->finish(room_), net::ws::Inflater::Outcome::ok);
    return std::string(as_text(Bytes(room_).first(inflater_->size())));
  }

 private:
  bool keeps_;
  std::unique_ptr<net::ws::Deflater> deflater_ = net::ws::Deflater::make(15, 6, 8);
  std::unique_ptr<net::ws::Inflater> inflater_ = net::ws::Inflater::make(15);
  std::vector<std::uint8_t> room_;
};

std::string compressed_frame(int first, std::string_view payload) {
  return client_frame(static_cast<std::uint8_t>(first), payload);
}

class WebSocketDeflateTest : public test::WebSocketTest {
 protected:
  void SetUp() override {
    if (!net::ws::deflate_available()) {
      GTEST_SKIP() << "this build has no zlib";
    }
    test::WebSocketTest::SetUp();
    options_.deflate.emplace();
  }
  // Begins a WebSocket; the value of Sec-WebSocket-Extensions in the answer.
  static std::string begin(Client& client, const std::string& fields = kOffer) {
    client.write(request_of("/echo", fields));
    const std::string head = read_head(client);
    EXPECT_EQ(status_of_head(head), 101);
    const std::size_t at = head.find("Sec-WebSocket-Extensions: ");
    return at == std::string::npos ? "" : head.substr(at + 26, head.find("\r\n", at) - at - 26);
  }

  WebSocketOptions options_;
};

TEST_F(WebSocketDeflateTest, MessagesAreCompressedForAClientThatOffersIt) {
  const std::string endpoint = listen_echo(options_);
  DeflateEnd end;
  Client client(endpoint);
  EXPECT_EQ(begin(client), "permessage-deflate; " + kForgetful);
  for (const std::size_t size : {256, 65'536, 1'048'576}) {
    const std::string message(size, 'x');
    client.write(compressed_frame(kTextBit, end.compress(message)) + client_frame(0x82, message));
    const std::string text = read_frame(client);
    EXPECT_LT(text.size(), size / 2);
    EXPECT_EQ(text[0], static_cast<char>(kTextBit));
    EXPECT_TRUE(end.expand_frame(text) == message);
    const std::string binary = read_frame(client);
    EXPECT_EQ(binary[0], static_cast<char>(kBinaryBit));
    EXPECT_TRUE(end.expand_frame(binary) == message);
  }
  // Short messages, and those that get no smaller, go out as they are.
  const std::string noise = random_bytes(1000);
  for (const std::string& message : {std::string(), std::string("x"), std::string(255, 'x'), noise}) {
    const std::string payload = message.empty() ? "" : end.compress(message);
    client.write(compressed_frame(kBinaryBit, payload));
    EXPECT_TRUE(read_frame(client) == server_frame(0x82, message));
  }
  Client plain(endpoint);
  EXPECT_EQ(begin(plain, "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=8\r\n"), "");
  plain.write(client_frame(0x81, std::string(1000, 'x')));
  EXPECT_EQ(read_frame(plain), server_frame(0x81, std::string(1000, 'x')));
  until_counted([](const WebCounts& counts) { return counts.websockets_compressed == 1 && counts.messages == 11; });
}

TEST_F(WebSocketDeflateTest, ARouteThatDoesNotCompressTakesNoOffer) {
  Client client(listen_echo());
  EXPECT_EQ(begin(client), "");
  client.write(compressed_frame(kTextBit, DeflateEnd().compress("x")));
  EXPECT_EQ(client.read_to_end(), server_frame(0x88, close_body(1002)));
}

TEST_F(WebSocketDeflateTest, FragmentsOfACompressedMessageAreOneMessage) {
  DeflateEnd end;
  Client client(listen_echo(options_));
  begin(client);
  const std::string text = "κόσμε " + std::string(300, 'x');
  const std::string payload = end.compress(text);
  std::string frames = compressed_frame(0x41, payload.substr(0, 1)) + client_frame(0x89, "between");
  for (std::size_t i = 1; i < payload.size(); ++i) {
    frames += client_frame(0x00, payload.substr(i, 1));
  }
  client.write(frames + client_frame(0x80, "") + client_frame(0x01, "pla") + client_frame(0x80, "in"));
  EXPECT_EQ(read_frame(client), server_frame(0x8A, "between"));
  EXPECT_EQ(end.expand_frame(read_frame(client)), text);
  EXPECT_EQ(read_frame(client), server_frame(0x81, "plain"));
}

TEST_F(WebSocketDeflateTest, MessagesReferToEarlierOnesIfBothEndsWantIt) {
  options_.deflate->context_takeover = true;
  options_.deflate->window_bits = 14;
  const std::string endpoint = listen_echo(options_);
  DeflateEnd end(true);
  Client client(endpoint);
  EXPECT_EQ(begin(client), "permessage-deflate; client_max_window_bits=14");
  const std::string noise = random_bytes(10'000);
  for (int i = 0; i < 3; ++i) {
    const std::string payload = end.compress(noise);
    EXPECT_EQ(payload.size() < 1000, i != 0);
    client.write(compressed_frame(kBinaryBit, payload));
    const std::string echoed = read_frame(client);
    EXPECT_EQ(echoed.size() < 1000, i != 0);
    EXPECT_TRUE(end.expand_frame(echoed) == noise);
    client.write(client_frame(0x82, "short"));  // no part of the stream
    EXPECT_EQ(read_frame(client), server_frame(0x82, "short"));
  }
  Client forgetful(endpoint);
  EXPECT_EQ(begin(forgetful, "Sec-WebSocket-Extensions: permessage-deflate; " + kForgetful + "\r\n"),
            "permessage-deflate; " + kForgetful);
  DeflateEnd other;
  for (int i = 0; i < 2; ++i) {
    forgetful.write(compressed_frame(kBinaryBit, other.compress(std::string(10'000, 'y'))));
    EXPECT_EQ(other.expand_frame(read_frame(forgetful)), std::string(10'000, 'y'));
  }
}

TEST_F(WebSocketDeflateTest, ASessionThatMayDropFramesSendsNoneThatRefersToThem) {
  options_.deflate->context_takeover = true;
  options_.session.slow_consumer = SlowConsumer::drop_oldest;
  Client client(listen_echo(options_));
  EXPECT_EQ(begin(client), "permessage-deflate; server_no_context_takeover");
}

// A client cannot refer to a message that send() refused.
TEST_F(WebSocketDeflateTest, AMessageThatIsNotSentIsForgotten) {
  RouteDeflate route(DeflateOptions{.context_takeover = true});
  PeerDeflate peer(route, {true, true, 15, 15}, 0);
  const std::string noise = random_bytes(1000);
  DeflateEnd end(true);
  const std::string first(as_text(peer.pack(as_bytes(noise))));
  peer.end_pack(true);
  EXPECT_TRUE(end.expand(first) == noise);
  (void)peer.pack(as_bytes(noise + "lost"));
  peer.end_pack(false);
  const std::string third(as_text(peer.pack(as_bytes(noise + "lost"))));
  peer.end_pack(true);
  EXPECT_TRUE(end.expand(third) == noise + "lost");
  EXPECT_GT(third.size(), noise.size()) << "it refers to nothing";
}

TEST_F(WebSocketDeflateTest, ABrokenRuleOrABombHasAStatusACounterAndTheEnd) {
  options_.limits.message_max = 1000;
  const std::string endpoint = listen_echo(options_);
  DeflateEnd end;
  using Member = std::uint64_t WebCounts::*;
  const std::string compressed = end.compress("abc");
  const struct {
    std::string bytes;
    std::uint16_t status;
    Member counter;
  } cases[] = {
      {compressed_frame(0xC9, ""), 1002, &WebCounts::protocol},
      {compressed_frame(0xC8, close_body(1000)), 1002, &WebCounts::protocol},
      {compressed_frame(0x41, compressed) + compressed_frame(0xC0, ""), 1002, &WebCounts::protocol},
      {compressed_frame(0xE1, compressed), 1002, &WebCounts::protocol},
      {compressed_frame(0xD1, compressed), 1002, &WebCounts::protocol},
      {compressed_frame(kBinaryBit, end.compress(std::string(1001, 'x'))), 1009, &WebCounts::expanded},
      {compressed_frame(kTextBit, end.compress(std::string(10'000'000, 'x')).substr(0, 900)), 1009,
       &WebCounts::expanded},
      {compressed_frame(0x42, end.compress(std::string(1001, 'x'))) + compressed_frame(0x80, ""), 1009,
       &WebCounts::expanded},
      {compressed_frame(kBinaryBit, std::string(1190, 'x')), 1009, &WebCounts::size},
      {compressed_frame(kBinaryBit, "\xFF\xFF"), 1007, &WebCounts::deflate},
      {compressed_frame(kTextBit, compressed.substr(0, compressed.size() - 2)), 1007, &WebCounts::deflate},
      {compressed_frame(kTextBit, end.compress("\xCE")), 1007, &WebCounts::text},
  };
  for (const auto& [bytes, status, counter] : cases) {
    Client client(endpoint);
    begin(client);
    const std::uint64_t before = site_->counts().*counter;
    client.write(client_frame(0x81, "good") + bytes + client_frame(0x81, "late"));
    EXPECT_EQ(read_frame(client), server_frame(0x81, "good"));
    EXPECT_EQ(client.read_to_end(), server_frame(0x88, close_body(status)))
        << testing::PrintToString(bytes.substr(0, 20));
    EXPECT_FALSE(client.reset());
    client.close();  // the session counts when it has seen this end
    until_counted([&, member = counter](const WebCounts& counts) { return counts.*member == before + 1; });
  }
  Client honest(endpoint);
  begin(honest);
  for (const std::string& largest : {random_bytes(1000), std::string(1000, 'x')}) {
    honest.write(compressed_frame(kBinaryBit, end.compress(largest)));
    const std::string echoed = read_frame(honest);
    EXPECT_TRUE((echoed[0] & 0x40) != 0 ? end.expand_frame(echoed) == largest : echoed == server_frame(0x82, largest));
  }
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::refused_frame) == 12; });
}

// With several handlers at a time a refusal comes while some of them run.
class RefusedMessageTest : public WebSocketDeflateTest {
 protected:
  void SetUp() override {
    WebSocketDeflateTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    start_runtime(1);
    options_.session.handlers_max = 4;
    EXPECT_TRUE(router_.websocket(
        "/echo",
        [this](WebSocketSession& session, const Message& message) -> rt::Task<> {
          begun_.give();
          const auto waited = co_await go_.wait();
          if (waited) {
            (void)session.send(message.kind, message.body);
          }
        },
        options_));
    endpoint_ = listen_web();
  }

  rt::AsyncEvent go_;
  Signal begun_;
  std::string endpoint_;
};

TEST_F(RefusedMessageTest, EndsTheConnectionAfterTheAnswersToTheMessagesBeforeIt) {
  DeflateEnd end;
  const std::pair<std::string, std::uint16_t> cases[] = {
      {client_frame(0x83, "reserved"), 1002},
      {client_frame(0x81, "\xFF"), 1007},
      {compressed_frame(kBinaryBit, "\xFF\xFF"), 1007},
      {compressed_frame(kTextBit, end.compress("\xCE")), 1007},
      {compressed_frame(kBinaryBit, end.compress(std::string(2'000'000, 'x'))), 1009},
  };
  for (const auto& [bytes, status] : cases) {
    rt::test::on_core(*runtime_, 0, [this] { go_.reset(); });
    Client client(endpoint_);
    begin(client);
    client.write(client_frame(0x81, "one") + client_frame(0x81, "two") + bytes + client_frame(0x81, "late"));
    ASSERT_TRUE(begun_.take());
    ASSERT_TRUE(begun_.take());
    rt::test::on_core(*runtime_, 0, [this] { go_.set(); });
    EXPECT_EQ(client.read_to_end(),
              server_frame(0x81, "one") + server_frame(0x81, "two") + server_frame(0x88, close_body(status)))
        << testing::PrintToString(bytes.substr(0, 20));
    EXPECT_FALSE(client.reset());
  }
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::refused_frame) == 5; });
}

TEST_F(WebSocketDeflateTest, WindowsCountAsMemoryOfTheServerAndAreNotPromisedWithoutIt) {
  ServerOptions memory;
  memory.memory_max = memory.core_memory_max = 512 * 1024;
  start_runtime(1);
  make_server(memory);
  options_.deflate->context_takeover = true;
  const std::string endpoint = listen_echo(options_);
  for (int i = 0; i < 3; ++i) {
    Client first(endpoint);
    EXPECT_EQ(begin(first), "permessage-deflate") << "the memory has come back";
    Client second(endpoint);
    EXPECT_EQ(begin(second), "permessage-deflate; " + kForgetful);
    second.write(client_frame(0x82, std::string(1000, 'x')));
    EXPECT_EQ(DeflateEnd().expand_frame(read_frame(second)), std::string(1000, 'x'));
    first.close();
    second.close();
    until([this](const CounterValues&) { return server_->sessions() == 0; });
  }
}

// A session whose messages grow does not hold its core while others wait.
class ExpandedInTurnsTest : public WebSocketDeflateTest {
 protected:
  static constexpr int kMessages = 40;

  void SetUp() override {
    WebSocketDeflateTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    start_runtime(1);
    make_server();
    EXPECT_TRUE(router_.websocket(
        "/echo",
        [this](WebSocketSession& session, const Message& message) {
          if (message.kind == Opcode::text) {
            seen_ = large_.load();
          } else if (++large_ == 1) {
            begun_.give();
            EXPECT_TRUE(go_.take());  // holds the core
          }
          (void)session.send(Opcode::text, as_bytes("taken"));
        },
        options_));
    endpoint_ = listen_web();
  }
  void write_large(Client& client) {
    const std::string frame = compressed_frame(kBinaryBit, DeflateEnd().compress(std::string(1'000'000, 'x')));
    std::string frames;
    for (int i = 0; i < kMessages; ++i) {
      frames += frame;
    }
    client.write(frames);  // one read of the session takes them all
  }

  std::atomic<int> large_{0};
  std::atomic<int> seen_{-1};
  Signal begun_;
  Signal go_;
  std::string endpoint_;
};

TEST_F(ExpandedInTurnsTest, AnotherSessionHasItsTurnBetweenThem) {
  Client other(endpoint_);
  begin(other);
  Client client(endpoint_);
  begin(client);
  write_large(client);
  ASSERT_TRUE(begun_.take());
  other.write(client_frame(0x81, "small"));
  go_.give();
  EXPECT_EQ(read_frame(other), server_frame(0x81, "taken"));
  EXPECT_LT(seen_, kMessages / 2);
  for (int i = 0; i < kMessages; ++i) {
    EXPECT_EQ(read_frame(client), server_frame(0x81, "taken"));
  }
}

TEST_F(ExpandedInTurnsTest, AStopTakesThemAllFirst) {
  Client client(endpoint_);
  begin(client);
  write_large(client);
  ASSERT_TRUE(begun_.take());
  server_->begin_stop(sys::now() + kLong);
  go_.give();
  for (int i = 0; i < kMessages; ++i) {
    EXPECT_EQ(read_frame(client), server_frame(0x81, "taken"));
  }
  EXPECT_EQ(client.read_to_end(), server_frame(0x88, close_body(1001)));
}

TEST_F(WebSocketDeflateTest, AFrameThatIsEncodedOnceAndAStateAreSentAsTheyAre) {
  const std::string body(1000, 'x');
  ASSERT_TRUE(router_.websocket(
      "/echo",
      [&body](WebSocketSession& session, const Message&) {
        const auto frame = SharedFrame::encode(session.codec(), Opcode::text, as_bytes(body));
        EXPECT_TRUE(frame && session.send_shared(*frame));
        EXPECT_TRUE(session.send_state(Opcode::binary, as_bytes(body)));
        EXPECT_TRUE(session.send(Opcode::text, as_bytes(body)));
        EXPECT_EQ(session.send(Opcode::text, as_bytes(body + "\xFF")).error(), Errc::invalid_argument);
        EXPECT_EQ(session.send(Opcode::continuation, as_bytes(body)).error(), Errc::invalid_argument);
      },
      options_));
  Client client(listen_web());
  begin(client);
  client.write(client_frame(0x81, "x"));
  EXPECT_EQ(read_frame(client), server_frame(0x81, body));
  EXPECT_EQ(read_frame(client), server_frame(0x82, body));
  EXPECT_EQ(DeflateEnd().expand_frame(read_frame(client)), body);
}

}  // namespace
}  // namespace weft::serve::web
