// SPDX-License-Identifier: MIT
#include "weft/net/ws/ws_stream.h"

#include "weft/net/stream/test_pipe.h"
#include "weft/net/ws/test_frames.h"
#include "weft/zmtp/greeting.h"
#include <gtest/gtest.h>

namespace weft::net::ws {
namespace {

using net::test::numbered;
using net::test::Pipe;
using net::test::PipeStream;
using net::test::read_all;
using net::test::Status;
using net::test::touch;
using net::test::write;

// Our end's greeting, which the stream swallows, and a command.
const std::string kReady("\4\6\5READY");
const std::string kGreeting = std::string(zmtp::kGreetingSize, 'g') + kReady;

std::string short_frame(std::string_view body) {
  return std::string{'\0', static_cast<char>(body.size())}.append(body);
}

class WsStreamTest : public testing::Test {
 protected:
  void begin(Random* random = nullptr, ZwsOptions server = {}) {
    ZwsOptions client;
    client.client = true;
    client.mechanism = server.mechanism;
    client.host = "h:1";
    client.path = "/x";
    up_ = down_ = {};
    server_ = *make_zws_stream(std::make_unique<PipeStream>(up_, down_, random), server);
    client_ = *make_zws_stream(std::make_unique<PipeStream>(down_, up_, random), client);
  }
  void shake_hands() {
    for (int i = 0; i < 10'000 && !(server_->state().established && client_->state().established); ++i) {
      (void)server_->write({});
      (void)client_->write({});
      (void)touch(*server_);
      (void)touch(*client_);
    }
    ASSERT_TRUE(server_->state().established && client_->state().established);
  }
  // Both ends have each other's greeting.
  void connect(Random* random = nullptr) {
    begin(random);
    shake_hands();
    std::string sent[2];
    std::string got[2];
    for (int i = 0; i < 1000 && got[0].size() + got[1].size() < 2 * kGreeting.size(); ++i) {
      int side = 0;
      for (ByteStream* stream : {server_.get(), client_.get()}) {
        sent[side] += kGreeting.substr(sent[side].size(), write(*stream, kGreeting.substr(sent[side].size())).bytes);
        got[side++] += read_all(*stream);
      }
    }
    for (const std::string& one : got) {
      EXPECT_EQ(zmtp::parse_greeting(as_bytes(one)).greeting.mechanism(), "NULL");
      EXPECT_EQ(one.substr(zmtp::kGreetingSize), kReady);
    }
  }
  // A server whose client is this test.
  void accept_by_hand() {
    begin();
    (void)touch(*server_);
    EXPECT_TRUE(server_->state().established);
    (void)write(*server_, kGreeting);
    EXPECT_EQ(read_all(*server_).size(), zmtp::kGreetingSize);
    down_.bytes.clear();
  }
  // The first fragment of a message.
  static std::string frame_of_many() { return test::frame(true, 0x02, '\0' + std::string(300'000, 'x')); }
  std::string take(Pipe& pipe) { return std::exchange(pipe.bytes, {}); }

  Pipe up_;
  Pipe down_;
  std::unique_ptr<ByteStream> server_;
  std::unique_ptr<ByteStream> client_;
};

TEST_F(WsStreamTest, NothingIsTakenBeforeTheUpgradeIsOver) {
  begin();
  EXPECT_EQ(up_.bytes.substr(0, 20), "GET /x HTTP/1.1\r\nHos");
  EXPECT_FALSE(client_->state().established);
  EXPECT_EQ(write(*client_, "early").status, Status::would_block);
  shake_hands();
  EXPECT_EQ(write(*client_, kGreeting).bytes, kGreeting.size());
}

TEST_F(WsStreamTest, FramesArriveInOrderHoweverTheTransportCutsAndStopsThem) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Random random(seed);
    connect(&random);
    up_.room = down_.room = 1 + random.below(40'000);
    for (auto [from, to] : {std::pair(client_.get(), server_.get()), std::pair(server_.get(), client_.get())}) {
      std::string sent;
      while (sent.size() < 300'000) {
        const std::string body = numbered(random.below(3) == 0 ? random.below(60'000) : random.below(300));
        std::uint8_t header[zmtp::kFrameHeaderSizeMax];
        sent.append(as_text(Bytes(header, zmtp::write_frame_header(header, 0, body.size())))).append(body);
      }
      std::string got;
      for (std::size_t taken = 0, turns = 0; got.size() < sent.size(); ++turns) {
        ASSERT_LT(turns, 1'000'000u);
        taken += write(*from, std::string_view(sent).substr(taken, 1 + random.below(50'000))).bytes;
        got += read_all(*to, nullptr, 1 + random.below(30'000));
      }
      ASSERT_TRUE(got == sent);
    }
  }
}

TEST_F(WsStreamTest, BytesThatTheTransportDoesNotTakeAreHeldAndShown) {
  connect();
  down_.room = 4;
  EXPECT_EQ(write(*server_, short_frame("abc")).bytes, 5u);
  EXPECT_TRUE(server_->state().unsent);
  EXPECT_EQ(write(*server_, short_frame("next")).status, Status::would_block);
  down_.room = 100;
  EXPECT_EQ(write(*server_, short_frame("next")).bytes, 6u);
  EXPECT_FALSE(server_->state().unsent);
  EXPECT_EQ(read_all(*client_), short_frame("abc") + short_frame("next"));
}

TEST_F(WsStreamTest, APeerThatIsNotAdmittedMakesTheStreamHoldLittle) {
  accept_by_hand();
  const std::string flood = frame_of_many();
  up_.bytes = flood;
  Status last = Status::done;
  EXPECT_EQ(read_all(*server_, &last), "");
  EXPECT_EQ(last, Status::failed);
  EXPECT_EQ(server_->state().failure.code(), Errc::message_too_large);
  EXPECT_EQ(take(down_), test::frame(false, 0x88, "\x03\xF1"));
  EXPECT_GT(up_.bytes.size(), flood.size() - kUnadmittedMax);
}

TEST_F(WsStreamTest, AMessageInFragmentsRightBehindTheHandshakeWaitsForAdmission) {
  accept_by_hand();
  up_.bytes = test::message(true, 2, "\5READY") + frame_of_many() + test::frame(true, 0x80, "end");
  std::uint8_t room[100];
  MutableBytes into(room);
  const sys::IoResult first = server_->read({&into, 1});
  EXPECT_EQ(as_text(Bytes(room).first(first.bytes)), kReady);
  EXPECT_FALSE(server_->state().ended);
  server_->admit();
  EXPECT_EQ(read_all(*server_).substr(9), std::string(300'000, 'x') + "end");
}

TEST_F(WsStreamTest, APingIsAnsweredAndIsASignOfLife) {
  accept_by_hand();
  up_.bytes = test::frame(true, 0x89, "one") + test::frame(true, 0x89, "");
  EXPECT_EQ(touch(*server_), Status::done);  // without room nothing is read
  std::uint8_t byte = 0;
  MutableBytes into(&byte, 1);
  const sys::IoResult result = server_->read({&into, 1});
  EXPECT_EQ(result.status, Status::done);
  EXPECT_EQ(result.bytes, 0u);
  EXPECT_EQ(take(down_), test::frame(false, 0x8A, "one") + test::frame(false, 0x8A, ""));
  EXPECT_EQ(server_->read({&into, 1}).status, Status::would_block);
}

TEST_F(WsStreamTest, APongWaitsForTheEndOfTheFrameThatIsUnderWay) {
  accept_by_hand();
  (void)write(*server_, std::string_view("\0\3a", 3));
  up_.bytes = test::frame(true, 0x89, "p");
  (void)read_all(*server_);
  EXPECT_EQ(take(down_), test::message(false, 0, "abc").substr(0, 4));
  EXPECT_FALSE(server_->state().unsent);
  EXPECT_EQ(write(*server_, "bc").bytes, 2u);
  EXPECT_EQ(take(down_), "bc" + test::frame(false, 0x8A, "p"));
}

TEST_F(WsStreamTest, AFloodOfPingsIsAnsweredWithinABound) {
  accept_by_hand();
  down_.room = 0;
  for (int i = 0; i < 10'000; ++i) {
    up_.bytes += test::frame(true, 0x89, std::string(125, 'p'));
  }
  std::uint8_t byte = 0;
  MutableBytes into(&byte, 1);
  while (server_->read({&into, 1}).status == Status::done) {
  }
  EXPECT_TRUE(server_->state().unsent);
  down_.room = 1 << 20;
  (void)server_->write({});
  EXPECT_LT(down_.bytes.size(), 10'000u);
}

TEST_F(WsStreamTest, AReadThatAFloodOfPingsStopsSaysThatMoreIsThere) {
  accept_by_hand();
  server_->admit();
  const std::string ping = test::frame(true, 0x89, std::string(125, 'p'));
  while (up_.bytes.size() < 1 << 20) {
    up_.bytes += ping;
  }
  up_.bytes += test::message(true, 0, "behind");
  std::uint8_t room[100];
  MutableBytes into(room);
  sys::IoResult result = server_->read({&into, 1});
  EXPECT_TRUE(result.status == Status::done && result.bytes == 0 && result.cut);
  EXPECT_FALSE(up_.bytes.empty());
  EXPECT_FALSE(server_->state().ended);
  for (int i = 0; i < 100 && result.bytes == 0; ++i) {
    result = server_->read({&into, 1});
  }
  EXPECT_EQ(as_text(Bytes(room).first(result.bytes)), short_frame("behind"));
  EXPECT_FALSE(result.cut);
  EXPECT_EQ(server_->read({&into, 1}).status, Status::would_block);
}

TEST_F(WsStreamTest, MoreControlFramesAndEmptyFragmentsThanTheLimitEndTheStream) {
  const std::string begin[] = {"", test::frame(true, 0x02, "")};
  const std::string idle[] = {test::frame(true, 0x89, ""), test::frame(true, 0x00, "")};
  for (int kind = 0; kind < 2; ++kind) {
    accept_by_hand();
    up_.bytes = begin[kind];
    for (int i = 0; i < 50'000; ++i) {
      up_.bytes += idle[kind];
    }
    std::uint8_t byte = 0;
    MutableBytes into(&byte, 1);
    sys::IoResult result{.status = Status::done};
    for (int i = 0; i < 1000 && result.status == Status::done; ++i) {
      result = server_->read({&into, 1});
    }
    EXPECT_EQ(result.status, Status::failed);
    EXPECT_STREQ(server_->state().failure.text(), "more WebSocket control frames and empty fragments than the limit");
    EXPECT_TRUE(down_.bytes.ends_with(test::frame(false, 0x88, "\x03\xF0")));
  }
}

TEST_F(WsStreamTest, AReadThatEmptiedTheTransportIsNotCut) {
  accept_by_hand();
  up_.bytes = test::message(true, 0, "all");
  std::uint8_t room[100];
  MutableBytes into(room);
  const sys::IoResult result = server_->read({&into, 1});
  EXPECT_EQ(result.bytes, 5u);
  EXPECT_FALSE(result.cut);
}

// A TLS below announces its end with its last bytes, and no event of the socket need follow.
TEST_F(WsStreamTest, AnEndThatOnlyTheLayerBelowKnowsIsShown) {
  class EndingLayer final : public ByteStream {
   public:
    EndingLayer(Pipe& in, Pipe& out) : in_(in), socket_(in, out, nullptr) {}
    [[nodiscard]] int fd() const override { return -1; }
    [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override { return socket_.read(into); }
    [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override { return socket_.write(from); }
    void shutdown_write() override { socket_.shutdown_write(); }
    [[nodiscard]] std::string peer_address() const override { return {}; }
    [[nodiscard]] StreamState state() const noexcept override { return {.ended = in_.ended && in_.bytes.empty()}; }

   private:
    Pipe& in_;
    PipeStream socket_;
  };
  begin();
  server_ = *make_zws_stream(std::make_unique<EndingLayer>(up_, down_), {});
  (void)touch(*server_);
  (void)write(*server_, kGreeting);
  (void)read_all(*server_);
  up_.bytes = test::message(true, 0, "last");
  up_.ended = true;
  std::uint8_t room[100];
  MutableBytes into(room);
  EXPECT_EQ(server_->read({&into, 1}).bytes, 6u);
  EXPECT_TRUE(server_->state().ended);
  EXPECT_EQ(server_->read({&into, 1}).status, Status::end_of_stream);
}

TEST_F(WsStreamTest, OurPingIsAFrameAndThePeersPongASignOfLife) {
  connect();
  EXPECT_TRUE(server_->ping());
  EXPECT_EQ(down_.bytes, test::frame(false, 0x89, ""));
  std::uint8_t byte = 0;
  MutableBytes into(&byte, 1);
  EXPECT_EQ(client_->read({&into, 1}).status, Status::done);
  EXPECT_EQ(server_->read({&into, 1}).status, Status::done);
  EXPECT_EQ(server_->read({&into, 1}).status, Status::would_block);
}

TEST_F(WsStreamTest, ThePeersCloseIsAnsweredAndTheEnd) {
  accept_by_hand();
  up_.bytes = test::message(true, 0, "last") + test::frame(true, 0x88,
                                                           "\x03\xE9"
                                                           "going");
  Status last = Status::done;
  EXPECT_EQ(read_all(*server_, &last), short_frame("last"));
  EXPECT_EQ(last, Status::end_of_stream);
  EXPECT_TRUE(server_->state().ended);
  EXPECT_EQ(take(down_), test::frame(false, 0x88, "\x03\xE9"));
  EXPECT_EQ(write(*server_, short_frame("x")).status, Status::failed);
}

TEST_F(WsStreamTest, ShutdownSendsCloseAndThePeerReadsTheEnd) {
  connect();
  (void)write(*server_, short_frame("last"));
  server_->shutdown_write();
  server_->shutdown_write();
  Status last = Status::done;
  EXPECT_EQ(read_all(*client_, &last), short_frame("last"));
  EXPECT_EQ(last, Status::end_of_stream);
  (void)read_all(*server_, &last);
  EXPECT_EQ(last, Status::end_of_stream);
  EXPECT_TRUE(down_.ended);
}

TEST_F(WsStreamTest, ABrokenRuleEndsWithItsStatusAndItsReason) {
  accept_by_hand();
  up_.bytes = test::message(true, 0, "good") + test::frame(true, 0x81, "text");
  Status last = Status::done;
  EXPECT_EQ(read_all(*server_, &last), short_frame("good"));
  EXPECT_EQ(last, Status::failed);
  EXPECT_EQ(server_->state().failure.code(), Errc::protocol_error);
  EXPECT_STREQ(server_->state().failure.text(), "a WebSocket text message");
  EXPECT_EQ(take(down_), test::frame(false, 0x88, "\x03\xEB"));
}

TEST_F(WsStreamTest, ARefusedUpgradeIsAFailureWithItsReason) {
  begin(nullptr, {.mechanism = "CURVE"});
  up_.bytes = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  EXPECT_EQ(touch(*server_), Status::failed);
  EXPECT_STREQ(server_->state().failure.text(), "the request asks for no WebSocket");
  EXPECT_EQ(down_.bytes.substr(0, 12), "HTTP/1.1 426");
  EXPECT_EQ(touch(*client_), Status::failed);
  EXPECT_EQ(client_->state().failure.code(), Errc::connection_failed);
}

TEST_F(WsStreamTest, MechanismsThatDifferDoNotConnect) {
  ZwsOptions plain;
  plain.mechanism = "PLAIN";
  begin(nullptr, plain);
  up_.bytes.replace(up_.bytes.find("ZWS2.0/PLAIN"), 12, "ZWS2.0/NULL,");
  EXPECT_EQ(touch(*server_), Status::failed);
  EXPECT_STREQ(server_->state().failure.text(), "the client offers no WebSocket sub-protocol of ours");
}

TEST_F(WsStreamTest, AnEndInsideTheUpgradeOrAFrameIsTheEnd) {
  begin();
  up_.bytes.resize(20);
  up_.ended = true;
  EXPECT_EQ(touch(*server_), Status::end_of_stream);

  accept_by_hand();
  up_.bytes = test::message(true, 0, "cut").substr(0, 8);
  up_.ended = true;
  Status last = Status::done;
  EXPECT_EQ(read_all(*server_, &last).substr(0, 2), std::string("\0\3", 2));
  EXPECT_EQ(last, Status::end_of_stream);
}

}  // namespace
}  // namespace weft::net::ws
