// SPDX-License-Identifier: MIT
#include "weft/msg/connection/security.h"

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/socket_events.h"
#include "weft/msg/context.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/message/options.h"
#include "weft/msg/socket.h"
#include "weft/msg/socket/test_support.h"
#include "weft/msg/socket/zap.h"
#include "weft/zmtp/curve.h"
#include "weft/zmtp/test_security.h"
#include <gtest/gtest.h>

namespace weft::msg::test {
namespace {

using namespace std::chrono_literals;

// --- the reply of an authenticator ---

std::vector<Message> reply_of(std::vector<std::string> texts) {
  std::vector<Message> parts;
  for (const std::string& text : texts) {
    parts.push_back(std::move(Message::copy_of(text)).value());
  }
  return parts;
}

TEST(Zap, AReplyIsTakenApart) {
  ZapReply reply;
  const std::string metadata(
      "\x05"
      "Level"
      "\0\0\0\x02"
      "42",
      12);
  EXPECT_EQ(parse_zap_reply(reply_of({"", "1.0", "1", "200", "OK", "alice", metadata}), "1", reply), nullptr);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.text, "OK");
  EXPECT_EQ(reply.user_id, "alice");
  EXPECT_EQ(reply.metadata, (zmtp::Metadata{{"Level", "42"}}));
}

TEST(Zap, WhatIsNoReplyAdmitsNobody) {
  const std::vector<std::vector<std::string>> bad = {
      {},
      {""},
      {"", "1.0", "1", "200", "OK", "alice"},
      {"", "1.0", "1", "200", "OK", "alice", "", ""},
      {"x", "1.0", "1", "200", "OK", "alice", ""},
      {"", "1.1", "1", "200", "OK", "alice", ""},
      {"", "1.0", "2", "200", "OK", "alice", ""},
      {"", "1.0", "1", "201", "OK", "alice", ""},
      {"", "1.0", "1", "", "OK", "alice", ""},
      {"", "1.0", "1", "2000", "OK", "alice", ""},
      {"", "1.0", "1", "200", "OK", "alice", "\x05Lev"},
  };
  for (const auto& texts : bad) {
    ZapReply reply;
    EXPECT_NE(parse_zap_reply(reply_of(texts), "1", reply), nullptr);
    EXPECT_EQ(reply.status, 0);
  }
}

// --- sockets that ask ---

class Authentication : public ::testing::Test {
 protected:
  static constexpr Duration kLong = 20s;

  [[nodiscard]] Socket make(SocketType type) {
    Socket socket = std::move(context_.socket(type)).value();
    EXPECT_TRUE(socket.set(option::receive_timeout, kLong));
    EXPECT_TRUE(socket.set(option::handshake_timeout, kLong));  // a test may be slow to answer
    EXPECT_TRUE(socket.set(option::linger, 0s));
    return socket;
  }
  // Answers `count` questions with the parts that `answer` makes of the request.
  void answer(int count, std::function<std::vector<std::string>(const std::vector<std::string>&)> answer) {
    handler_ = make(SocketType::rep);
    ASSERT_TRUE(handler_.bind("inproc://zeromq.zap.01"));
    thread_ = std::thread([this, count, answer = std::move(answer)] {
      for (int i = 0; i < count; ++i) {
        auto request = handler_.recv_all();
        if (!request) {
          return;
        }
        std::vector<std::string> texts;
        for (const Message& part : *request) {
          texts.emplace_back(part.text());
        }
        const std::vector<std::string> reply = answer(texts);
        for (std::size_t part = 0; part < reply.size(); ++part) {
          (void)handler_.send(reply[part], part + 1 < reply.size() ? More::yes : More::no);
        }
        requests_.push_back(std::move(texts));
      }
    });
  }
  void TearDown() override {
    context_.shut_down();
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  static MonitorEvent wait_for(Socket& socket, EventKind kind) {
    return weft::test::wait_for_event(socket, kind, kLong);
  }
  // A PLAIN server and a client, connected, with events.
  void connect_plain() {
    server_ = make(SocketType::pull);
    client_ = make(SocketType::push);
    ASSERT_TRUE(server_.set(option::plain_server, true));
    ASSERT_TRUE(server_.set(option::zap_domain, "here"));
    ASSERT_TRUE(client_.set(option::plain_username, "admin"));
    ASSERT_TRUE(client_.set(option::plain_password, "secret"));
    connect();
  }
  void connect() {
    ASSERT_TRUE(server_.watch_events());
    ASSERT_TRUE(client_.watch_events());
    ASSERT_TRUE(client_.set(option::reconnect_interval, Duration(-1)));  // one attempt
    auto endpoint = server_.bind("tcp://127.0.0.1:*");
    ASSERT_TRUE(endpoint);
    ASSERT_TRUE(client_.connect(*endpoint));
  }

  Context context_;
  Socket handler_;
  Socket server_;
  Socket client_;
  std::vector<std::vector<std::string>> requests_;
  std::thread thread_;
};

TEST_F(Authentication, ThePlainServerAsksAndLetsTheClientIn) {
  answer(1,
         [](const auto& request) -> std::vector<std::string> { return {"1.0", request[1], "200", "OK", "alice", ""}; });
  connect_plain();
  ASSERT_TRUE(client_.send("hello"));
  const auto got = server_.recv();
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->text(), "hello");
  thread_.join();
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(requests_[0], (std::vector<std::string>{"1.0", "1", "here", "127.0.0.1", "", "PLAIN", "admin", "secret"}));
}

TEST_F(Authentication, ARefusalIsAnEventWithItsStatusAtBothEnds) {
  answer(1, [](const auto& request) -> std::vector<std::string> { return {"1.0", request[1], "400", "no", "", ""}; });
  connect_plain();
  const MonitorEvent refused = wait_for(server_, EventKind::handshake_failed);
  EXPECT_EQ(refused.reason, Errc::handshake_refused);
  EXPECT_EQ(refused.detail, 400u);
  EXPECT_EQ(wait_for(client_, EventKind::handshake_failed).detail, 400u);
}

TEST_F(Authentication, ATimeOutAfterARefusalHasIt) {
  answer(1, [](const auto& request) -> std::vector<std::string> { return {"1.0", request[1], "400", "no", "", ""}; });
  connect_plain();
  (void)wait_for(client_, EventKind::handshake_failed);
  const auto got = server_.recv(1ms);
  EXPECT_EQ(got.error(), Errc::timed_out);
  EXPECT_NE(got.error().message().find("handshake refused"), std::string::npos) << got.error().message();
}

TEST_F(Authentication, AClientWithAWrongServerKeyIsAskedWhetherItIsRight) {
  if (!zmtp::curve_available()) {
    GTEST_SKIP() << "this build has no libsodium";
  }
  const auto server = zmtp::make_curve_key_pair().value();
  const auto other = zmtp::make_curve_key_pair().value();
  const auto client = zmtp::make_curve_key_pair().value();
  const auto text = [](const auto& key) { return std::string(as_text(Bytes(key))); };
  server_ = make(SocketType::push);
  client_ = make(SocketType::pull);
  ASSERT_TRUE(server_.set(option::curve_secret_key, text(server.secret_key)));
  ASSERT_TRUE(server_.set(option::curve_server, true));
  ASSERT_TRUE(client_.set(option::curve_server_key, text(other.public_key)));
  ASSERT_TRUE(client_.set(option::curve_public_key, text(client.public_key)));
  ASSERT_TRUE(client_.set(option::curve_secret_key, text(client.secret_key)));
  connect();
  (void)wait_for(client_, EventKind::handshake_failed);
  const auto got = client_.recv(1ms);
  EXPECT_EQ(got.error(), Errc::timed_out);
  EXPECT_NE(got.error().message().find("is the server's key right?"), std::string::npos) << got.error().message();
}

TEST_F(Authentication, ARefusalForNowIsAnEventAtTheServerOnly) {
  answer(1,
         [](const auto& request) -> std::vector<std::string> { return {"1.0", request[1], "300", "later", "", ""}; });
  connect_plain();
  EXPECT_EQ(wait_for(server_, EventKind::handshake_failed).detail, 300u);
  ASSERT_TRUE(client_.disconnect(wait_for(client_, EventKind::connected).endpoint));
  const auto last = server_.next_event(kLong);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->kind, EventKind::disconnected) << "the client leaves, it is not sent away";
  EXPECT_EQ(client_.next_event(0ms).error(), Errc::timed_out);
}

TEST_F(Authentication, ANonsenseReplyLetsNobodyIn) {
  answer(1, [](const auto&) -> std::vector<std::string> { return {"what?"}; });
  connect_plain();
  const MonitorEvent refused = wait_for(server_, EventKind::handshake_failed);
  EXPECT_EQ(refused.reason, Errc::handshake_refused);
  EXPECT_EQ(refused.detail, static_cast<std::uint32_t>(ZapBreach::malformed_reply));
}

TEST_F(Authentication, PlainWithoutAnAuthenticatorLetsNobodyIn) {
  connect_plain();
  EXPECT_EQ(wait_for(server_, EventKind::handshake_failed).detail, 0u);
  EXPECT_EQ(wait_for(client_, EventKind::handshake_failed).detail, 0u);
}

TEST_F(Authentication, WithAnEnforcedDomainWhoProvesNothingNeedsAnAuthenticator) {
  for (const bool enforced : {false, true}) {
    server_ = make(SocketType::pull);
    client_ = make(SocketType::push);
    ASSERT_TRUE(server_.set(option::zap_domain, "here"));
    ASSERT_TRUE(server_.set(option::zap_enforce_domain, enforced));
    connect();
    wait_for(server_, enforced ? EventKind::handshake_failed : EventKind::handshake_succeeded);
  }
}

TEST_F(Authentication, AnAuthenticatorThatNeverAnswersEndsWithTheHandshakeTimeout) {
  handler_ = make(SocketType::rep);
  ASSERT_TRUE(handler_.bind("inproc://zeromq.zap.01"));
  server_ = make(SocketType::pull);
  client_ = make(SocketType::push);
  ASSERT_TRUE(server_.set(option::zap_domain, "here"));
  ASSERT_TRUE(server_.set(option::handshake_timeout, 20ms));
  connect();
  EXPECT_EQ(wait_for(server_, EventKind::handshake_failed).reason, Errc::timed_out);
}

TEST_F(Authentication, ClosingWhileAQuestionIsOpenHangsNobody) {
  handler_ = make(SocketType::rep);
  ASSERT_TRUE(handler_.bind("inproc://zeromq.zap.01"));
  connect_plain();
  ASSERT_TRUE(handler_.recv());  // the first part: the question is there
  server_.close();
  client_.close();
}

// --- sealed traffic ---

class Sealed : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!zmtp::curve_available()) {
      GTEST_SKIP() << "this build has no libsodium";
    }
    const auto server = zmtp::make_curve_key_pair().value();
    const auto client = zmtp::make_curve_key_pair().value();
    ours_ = std::make_unique<zmtp::LocalEnd>(
        zmtp::test::secured(zmtp::WireType::dealer, zmtp::make_curve_client(client, server.public_key)));
    theirs_ = std::make_unique<zmtp::LocalEnd>(
        zmtp::test::secured(zmtp::WireType::router, zmtp::make_curve_server(server.secret_key)));
    zmtp::test::shake(*ours_, *theirs_, 4096, zmtp::kAdmitted);
    ASSERT_TRUE(ours_->ready() && theirs_->ready());
    writer_.open(&stream_, ours_->cipher());
    reader_.set_cipher(theirs_->cipher());
  }
  // Reads until a frame or a refusal, looking at each frame twice, as a connection may.
  MessageReader::Step next(MessageReader::Frame& frame) {
    for (;;) {
      MessageReader::Step step = reader_.look(frame);
      const bool header = step == MessageReader::Step::header_only;
      if (step == MessageReader::Step::need_more || header) {
        bool drained = false;
        const zmtp::ZmtpFrameHeader partial = frame.header;
        if (reader_.fill(stream_, header ? &partial : nullptr, drained).status != sys::IoResult::Status::done) {
          return step;
        }
        continue;
      }
      frame = {};
      return reader_.look(frame);
    }
  }

  FakeStream stream_;
  std::unique_ptr<zmtp::LocalEnd> ours_;
  std::unique_ptr<zmtp::LocalEnd> theirs_;
  MessageWriter writer_;
  MessageReader reader_;
};

TEST_F(Sealed, WhatTheWriterSealsTheReaderOpens) {
  std::vector<std::string> bodies = {"", "a", std::string(300, 'b'), std::string(200'000, 'c'), "d"};
  for (const std::string& body : bodies) {
    if (body.size() < MessageWriter::kBigPart) {
      ASSERT_TRUE(writer_.prepare(body.size()));
      writer_.append(zmtp::kMore, as_bytes(body));
    } else {
      ASSERT_TRUE(writer_.prepare(0));
      ASSERT_TRUE(writer_.lend_big(zmtp::kMore, as_bytes(body)));
    }
    writer_.flush();
  }
  std::uint8_t ping[zmtp::kPingFrameMax];
  const Bytes frame_of_ping(ping, zmtp::write_ping(ping, 1, {}));
  ASSERT_TRUE(writer_.prepare(writer_.raw_size(frame_of_ping)));
  writer_.append_raw(frame_of_ping);
  writer_.flush();
  EXPECT_EQ(stream_.output.find("PING"), std::string::npos);
  EXPECT_EQ(stream_.output.find("bbbb"), std::string::npos);
  stream_.input = stream_.output;
  stream_.read_max = 1000;
  MessageReader::Frame frame;
  for (const std::string& body : bodies) {
    ASSERT_EQ(next(frame), MessageReader::Step::frame);
    EXPECT_EQ(as_text(frame.body), body);
    EXPECT_EQ(frame.header.flags, zmtp::kMore);
    reader_.consume();
  }
  ASSERT_EQ(next(frame), MessageReader::Step::frame);
  EXPECT_EQ(frame.header.flags, zmtp::kCommand);
  EXPECT_EQ(as_text(frame.body.first(5)), "\4PING");
  reader_.consume();
}

TEST_F(Sealed, AChangedByteIsForged) {
  ASSERT_TRUE(writer_.prepare(5));
  writer_.append(0, as_bytes("hello"));
  writer_.flush();
  stream_.input = stream_.output;
  stream_.input.back() ^= 1;
  MessageReader::Frame frame;
  EXPECT_EQ(next(frame), MessageReader::Step::forged);
}

TEST_F(Sealed, WhatWasSealedForOneConnectionIsNotKeptForTheNext) {
  ASSERT_TRUE(writer_.prepare(5));
  writer_.append(0, as_bytes("hello"));
  EXPECT_EQ(writer_.close(true), 1u);
  EXPECT_TRUE(writer_.empty());
}

TEST_F(Sealed, TheKernelHasTheMessagesWhoseSealedFramesItTook) {
  ASSERT_TRUE(writer_.prepare(1000));
  const std::size_t frame_size = 2 + zmtp::kSealOverhead + 1;
  for (const std::uint8_t flags : {std::uint8_t{0}, zmtp::kMore, std::uint8_t{0}, std::uint8_t{0}, zmtp::kMore}) {
    writer_.append(flags, as_bytes("x"));
  }
  stream_.room = 3 * frame_size + 1;  // the first message, the two parts of the second, and a byte
  writer_.flush();
  EXPECT_EQ(writer_.pending_messages(), 3u) << "the batch is not over";
  EXPECT_EQ(writer_.close(true), 2u) << "the third message, and the one that was begun";
  EXPECT_EQ(writer_.sent(), 2u);
  EXPECT_EQ(writer_.pending_messages(), 0u);
}

}  // namespace
}  // namespace weft::msg::test
