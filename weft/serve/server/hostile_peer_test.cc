// SPDX-License-Identifier: MIT
// Peers that stop in the middle, and owed replies: each bound ends its own session, and the others are served.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/serve/server/test_client.h"
#include "weft/serve/session/shard.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using std::chrono::milliseconds;
using test::Client;
using test::echo;
using test::frame_of;
using test::HeaderSession;
using test::kLong;
using test::Signal;

class HostilePeers : public test::ServerTest {
 protected:
  void SetUp() override {
    start_runtime(1);
    watch_close();
    script_.on_frame = echo;
  }
  // Lets the core's time pass, and its timers fire.
  void pass(Duration time) {
    Instant now{};
    rt::test::on_core(*runtime_, 0, [&] { now = runtime_->core(0).loop().now(); });
    for (const Instant end = now + time; now < end;) {
      std::this_thread::yield();
      rt::test::on_core(*runtime_, 0, [&] { now = runtime_->core(0).loop().now(); });
    }
  }
  bool any_closed() { return server_->counters().closed_total() != 0; }
};

// A layer that gives one byte in each read and reports more bytes; or nothing, again and again.
class CutStream final : public net::ByteStream {
 public:
  CutStream(std::unique_ptr<net::ByteStream> inner, std::atomic<bool>& endless) noexcept
      : inner_(std::move(inner)), endless_(endless) {}
  [[nodiscard]] int fd() const override { return inner_->fd(); }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override {
    if (endless_.load()) {
      return {.status = sys::IoResult::Status::done, .cut = true};
    }
    MutableBytes one = into[0].first(1);
    sys::IoResult result = inner_->read({&one, 1});
    result.cut = result.status == sys::IoResult::Status::done;
    return result;
  }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override { return inner_->write(from); }
  void shutdown_write() override { inner_->shutdown_write(); }
  [[nodiscard]] std::string peer_address() const override { return inner_->peer_address(); }

 private:
  std::unique_ptr<net::ByteStream> inner_;
  std::atomic<bool>& endless_;
};

TEST_F(HostilePeers, AReadThatWasCutGoesOnInTheNextTurnAndNeverWithoutEnd) {
  std::atomic<bool> endless{false};
  ListenerOptions options;
  options.wrap = [&endless](std::unique_ptr<net::ByteStream> stream) -> Result<std::unique_ptr<net::ByteStream>> {
    return std::unique_ptr<net::ByteStream>(std::make_unique<CutStream>(std::move(stream), endless));
  };
  script_.on_frame = [&endless](HeaderSession& session, const HeaderCodec::Frame& frame) {
    echo(session, frame);
    if (frame.body.size() == 4) {
      endless = true;
      session.close();
    }
  };
  Client client(listen(options));
  client.send(1, "one after the other");
  EXPECT_EQ(client.receive(), "one after the other");
  client.send(2, "last");
  EXPECT_EQ(client.receive(), "last");
  EXPECT_EQ(client.read_to_end(), "");
  ASSERT_TRUE(closed_.take());
}

// Sessions of a server with a small budget, with clients that do not read.
class SilentReaders : public HostilePeers {
 protected:
  static constexpr std::size_t kBudget = 8 * 1024 * 1024;

  void SetUp() override {
    HostilePeers::SetUp();
    ServerOptions options;
    options.memory_max = options.core_memory_max = kBudget;
    make_server(options);
    script_.on_frame = [this](HeaderSession& session, const HeaderCodec::Frame& frame) {
      ids_.push_back(session.id());
      echo(session, frame);
    };
    const std::string endpoint = listen();
    for (int i = 0; i < 32; ++i) {
      clients_.emplace_back(endpoint);
      clients_.back().send(1, "in");
      EXPECT_EQ(clients_.back().receive(), "in");
    }
  }
  static SharedFrame frame_of_size(std::size_t body) {
    return std::move(SharedFrame::encode(HeaderCodec(), {7, 0}, as_bytes(std::string(body, 'f')))).value();
  }

  std::vector<SessionId> ids_;
  std::deque<Client> clients_;
};

// --- frames that begin and do not end ---

TEST_F(HostilePeers, AFrameThatBeganMustBeWholeInTimeHoweverItsBytesDripIn) {
  ListenerOptions options;
  options.limits.frame_timeout = milliseconds(50);
  Client client(listen(options));
  client.send(1, "the first is whole");
  EXPECT_EQ(client.receive(), "the first is whole");
  const std::string frame = frame_of(1, std::string(1'000'000, 's'));
  client.write(std::string_view(frame).substr(0, 10));
  std::size_t sent = 10;
  for (const Instant limit = sys::now() + kLong; !any_closed() && sys::now() < limit; ++sent) {
    pass(milliseconds(1));
    (void)client.write_some(std::string_view(frame).substr(sent, 1), kLong);
  }
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::frame_timeout);
}

TEST_F(HostilePeers, AFrameHasItsTimeAnewAfterAPauseOfTheService) {
  constexpr Duration kTime = milliseconds(30);
  ListenerOptions options;
  options.limits.frame_timeout = kTime;
  SessionId id;
  Signal paused;
  Instant resumed;
  Instant ended;
  script_.on_close = [&, watched = script_.on_close](HeaderSession& session, const Error& why) {
    ended = runtime_->core(0).loop().now();
    watched(session, why);
  };
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    echo(session, frame);
    if (!id) {
      id = session.id();
      session.pause_reading();
      paused.give();
    }
  };
  Client client(listen(options));
  const std::string second = frame_of(2, std::string(1000, 'b'));
  client.write(frame_of(1, "pause") + second.substr(0, 500));
  ASSERT_TRUE(paused.take());
  pass(milliseconds(100));
  EXPECT_FALSE(any_closed());
  client.write(second.substr(500) + frame_of(3, "never whole").substr(0, 15));
  pass(milliseconds(1));  // the core has these bytes, and reads them when the service does
  ASSERT_TRUE(server_->post_to(id, [&](Session& session) {
    resumed = runtime_->core(0).loop().now();
    session.resume_reading();
  }));
  EXPECT_EQ(client.receive(), "pause");
  EXPECT_EQ(client.receive(), std::string(1000, 'b'));
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::frame_timeout);
  EXPECT_GE(ended - resumed, kTime);
}

// Each sends a part of a frame and then nothing. They do not keep others from sending and receiving frames.
TEST_F(HostilePeers, PeersThatSendAPartOfAFrameDoNotStarveTheOthers) {
  ServerOptions options;
  options.memory_max = options.core_memory_max = 8 * 1024 * 1024;
  make_server(options);
  const std::string endpoint = listen();
  const std::string part = frame_of(1, std::string(4 * 1024 * 1024, 'p')).substr(0, 1024 * 1024);
  std::deque<Client> stopped;
  for (int i = 0; i < 12; ++i) {
    stopped.emplace_back(endpoint);
    (void)stopped.back().write_some(part, kLong);
    Client good(endpoint);
    const std::string body(200'000, static_cast<char>('a' + i));
    const std::string frame = frame_of(2, body);
    good.write(std::string_view(frame).substr(0, 100'000));
    good.write(std::string_view(frame).substr(100'000));
    ASSERT_EQ(good.receive(), body) << i;
  }
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::out_of_memory) != 0; });
}

TEST_F(HostilePeers, AFrameAboveTheSessionsBoundIsRefusedWhenItsSizeIsKnown) {
  ListenerOptions options;
  options.limits.input_max = 1000;
  Client client(listen(options));
  client.write(frame_of(1, std::string(988, 'x')) + frame_of(1, std::string(989, 'x')).substr(0, 20));
  EXPECT_EQ(client.read_to_end(), frame_of(1, std::string(988, 'x')));
  client.close();
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::refused_frame);
}

// --- replies that come late ---

TEST_F(HostilePeers, ASessionThatOwesAReplyIsNotIdle) {
  ListenerOptions options;
  options.limits.idle_timeout = milliseconds(20);
  SessionId id;
  Signal asked;
  script_.on_open = [](HeaderSession& session) { session.begin_reply(); };  // not idle before its frame, however late
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    id = session.id();
    asked.give();
  };
  Client client(listen(options));
  client.send(1, "question");
  ASSERT_TRUE(asked.take());
  pass(milliseconds(200));
  EXPECT_FALSE(any_closed());
  ASSERT_TRUE(server_->post_to(id, [](Session& session) {
    EXPECT_TRUE(session.send_bytes(as_bytes("answer")));
    session.end_reply();
  }));
  EXPECT_EQ(client.read_to_end(), "answer") << "and then the session is idle";
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::idle_timeout);
}

TEST_F(HostilePeers, AReplyThatIsOwedForTooLongEndsTheSession) {
  ListenerOptions options;
  options.limits.idle_timeout = options.limits.reply_timeout = milliseconds(20);
  script_.on_open = [](HeaderSession& session) { session.begin_reply(); };  // before it can be idle
  Client client(listen(options));
  EXPECT_EQ(client.read_to_end(), "");
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::reply_timeout);
}

// --- frames for peers that do not read ---

// In one turn: all frames are queued before the first is written.
TEST_F(SilentReaders, DistinctSharedFramesCountAsMemoryOfTheServer) {
  constexpr std::size_t kBody = 64 * 1024;
  std::size_t queued = 0;
  std::size_t refused = 0;
  rt::test::on_core(*runtime_, 0, [&] {
    for (const SessionId id : ids_) {
      for (int i = 0; i < 12; ++i) {
        const auto sent = server_->send_to(id, frame_of_size(kBody));
        refused += sent ? 0 : 1;
        queued += sent ? kBody : 0;
      }
    }
  });
  EXPECT_LE(queued, kBudget);
  EXPECT_GT(queued, kBudget / 4);
  EXPECT_EQ(server_->counters().refused_memory, refused);
}

// Each peer asks for as much as its session may queue, and reads nothing.
TEST_F(HostilePeers, PeersThatReadNothingDoNotKeepOthersFromTheirAnswers) {
  ServerOptions options;
  options.memory_max = options.core_memory_max = 4 * 1024 * 1024;
  make_server(options);
  std::size_t refused = 0;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    const std::string body(8 * 1024, 'q');
    while (frame.header.id == 1 && session.queued() < 500u * 1024 && session.send(frame.header, as_bytes(body))) {
    }
    for (int i = 0; frame.header.id == 2 && i < 10; ++i) {
      refused += session.send(frame.header, as_bytes(body)) ? 0 : 1;
    }
  };
  const std::string endpoint = listen({}, "ipc://*");
  std::deque<Client> silent;
  Client good(endpoint);
  std::uint64_t asked = 0;
  for (int i = 0; i < 12; ++i) {
    silent.emplace_back(endpoint);
    for (const char* const text : {"much", "more"}) {  // the second one after the kernel has become full
      silent.back().send(1, text);
      ++asked;
      until([asked](const CounterValues& counters) { return counters.frames_in == asked; });
    }
  }
  pass(Shard::kReliefEvery);
  good.send(2, "may be refused");
  pass(2 * Shard::kReliefEvery);
  rt::test::on_core(*runtime_, 0, [&] { refused = 0; });
  good.send(2, "is answered");
  good.end_writing();
  EXPECT_TRUE(good.read_to_end().ends_with(frame_of(2, std::string(8 * 1024, 'q'))));
  rt::test::on_core(*runtime_, 0, [&] { EXPECT_EQ(refused, 0u); });
  EXPECT_GT(closed_for(CloseReason::slow_consumer), 0u);
}

TEST_F(SilentReaders, ASharedFrameForAllIsChargedOnce) {
  const SharedFrame frame = frame_of_size(kBudget / 4);
  std::size_t taken = 0;
  rt::test::on_core(*runtime_, 0, [&] {
    for (const SessionId id : ids_) {
      taken += server_->send_to(id, frame) ? 1 : 0;
    }
  });
  EXPECT_EQ(taken, ids_.size());
}

// More than the window of the peer has room for, and less than the server's kernel takes.
TEST_F(HostilePeers, APeerThatReadsAndSpeaksLongAfterTheCloseGetsEverything) {
  constexpr std::size_t kMuch = 300'000;
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    EXPECT_TRUE(session.send(frame.header, as_bytes(std::string(kMuch, 'm'))));
    session.close();
  };
  ListenerOptions options;
  options.limits.close_timeout = kLong;
  options.socket.send_buffer = 1 << 20;
  sys::SocketOptions small;
  small.receive_buffer = 32 * 1024;
  Client client(listen(options), small);
  client.send(1, "question");
  pass(milliseconds(1500));
  EXPECT_FALSE(any_closed()) << "the session closed with bytes in its kernel";
  client.send(1, "after");  // to a closed descriptor: a reset
  const auto answer = client.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->size(), kMuch);
  EXPECT_EQ(client.receive(), std::nullopt);
  EXPECT_FALSE(client.reset());
  client.close();
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::service);
}

// --- a new peer beside many that flood the only core: their bytes are there before it connects ---

constexpr std::size_t kFloodingPeers = 64;
constexpr std::size_t kFloodOfEach = 4 * Session::kReadMax;
constexpr std::uint32_t kFloods = 1;
constexpr std::uint32_t kAsks = 2;

class FloodTest : public test::ServerTest {
 protected:
  void SetUp() override { start_runtime(1); }
};

TEST_F(FloodTest, ANewPeerIsServedBeforeThoseThatFloodHaveHadTwoTurns) {
  struct Counts {
    std::size_t flooded = 0;
    std::atomic<std::size_t> before{0};
  };
  const auto counts = std::make_shared<Counts>();  // the flood goes on after the test
  script_.on_frame = [counts](HeaderSession& session, const HeaderCodec::Frame& frame) {
    counts->flooded += frame.body.size();
    if (frame.header.id == kAsks) {
      counts->before = counts->flooded;
      test::echo(session, frame);
    }
  };
  const std::string endpoint = listen();
  std::vector<std::unique_ptr<Client>> many;
  for (std::size_t i = 0; i < kFloodingPeers; ++i) {
    many.push_back(std::make_unique<Client>(endpoint));
  }
  until([](const CounterValues& counters) { return counters.opened == kFloodingPeers; });
  const std::string frame = frame_of(kFloods, std::string(1000, 'f'));
  std::string bytes;
  while (bytes.size() < kFloodOfEach) {
    bytes += frame;
  }
  std::optional<Client> fresh;
  rt::test::on_core(*runtime_, 0, [&] {
    for (const auto& client : many) {
      ASSERT_EQ(client->write_some(bytes, Duration::zero()), bytes.size());
    }
    fresh.emplace(endpoint);
    fresh->send(kAsks, "fresh");
  });
  EXPECT_EQ(fresh->receive(), "fresh");
  EXPECT_LT(counts->before.load(), kFloodingPeers * Session::kReadMax * 3 / 2);
}

}  // namespace
}  // namespace weft::serve
