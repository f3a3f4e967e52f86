// SPDX-License-Identifier: MIT
#include "weft/serve/session/session.h"

#include <string>
#include <vector>

#include "weft/base/random.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::echo;
using test::frame_of;
using test::HeaderSession;
using test::Signal;

class SessionTest : public test::ServerTest {
 protected:
  void SetUp() override { start_runtime(1); }
};

std::string random_text(Random& random, std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(text.data() + i, &word, std::min<std::size_t>(8, size - i));
  }
  return text;
}

TEST_F(SessionTest, AFrameIsAnswered) {
  script_.on_frame = echo;
  Client client(listen());
  client.send(7, "hello");
  EXPECT_EQ(client.read(17), frame_of(7, "hello"));
}

TEST_F(SessionTest, FramesThatAreCutAnywhereArriveWhole) {
  script_.on_frame = echo;
  Client client(listen());
  const std::string frames = frame_of(1, "first") + frame_of(2, "") + frame_of(3, std::string(300, 'x'));
  for (const char byte : frames) {
    client.write(std::string_view(&byte, 1));
  }
  EXPECT_EQ(client.read(frames.size()), frames);
}

// A buffer for received bytes must not bound the frames: the codec's maximum does.
TEST_F(SessionTest, FramesUpToTheCodecsMaximumWork) {
  script_.on_frame = echo;
  Client client(listen());
  Random random(1);
  for (const std::size_t size : {8u * 1024u, 9000u, 70'000u, 1'000'000u, 16u * 1024u * 1024u}) {
    const std::string frame = frame_of(9, random_text(random, size));
    std::thread writer([&] { client.write(frame); });
    const std::string answer = client.read(frame.size());
    writer.join();
    ASSERT_EQ(answer.size(), frame.size());
    ASSERT_TRUE(answer == frame) << size;
  }
}

// Overlapping writes would put bytes out of place.
class SlowReader : public SessionTest, public testing::WithParamInterface<std::pair<int, std::size_t>> {};
TEST_P(SlowReader, GetsWhatWasSentBackToBackByteForByte) {
  const auto [count, size] = GetParam();
  Random random(3);
  std::vector<std::string> bodies;
  for (int i = 0; i < count; ++i) {
    bodies.push_back(random_text(random, size));
  }
  ListenerOptions options;
  options.limits.write_budget = 64u * 1024 * 1024;
  options.limits.close_timeout = test::kLong;  // the client may need that long to read
  Signal sent;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      EXPECT_TRUE(session.send({static_cast<std::uint32_t>(i), 0}, as_bytes(bodies[i])));
    }
    session.close();
    sent.give();
  };
  Client client(listen(options));
  client.send(1, "go");
  ASSERT_TRUE(sent.take());  // the kernel is full, the rest is queued, and the session is closed
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    ASSERT_TRUE(client.read(12 + size) == frame_of(static_cast<std::uint32_t>(i), bodies[i])) << i;
  }
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_FALSE(client.reset());
}
INSTANTIATE_TEST_SUITE_P(SessionTest, SlowReader,
                         testing::Values(std::pair(500, std::size_t{64 * 1024}), std::pair(8, std::size_t{4 << 20})));

TEST_F(SessionTest, APeerThatDoesNotReadItsEchoesIsSlowedDownAndLosesNothing) {
  script_.on_frame = echo;
  Client client(listen());
  Random random(4);
  std::string sent;
  for (int i = 0; i < 4000; ++i) {
    sent += frame_of(static_cast<std::uint32_t>(i), random_text(random, random.below(4096)));
  }
  // The client stops when all buffers are full.
  const std::size_t taken = client.write_some(sent, std::chrono::milliseconds(1));
  std::thread writer([&] { client.write(std::string_view(sent).substr(taken)); });
  const std::string received = client.read(sent.size());
  writer.join();
  EXPECT_TRUE(received == sent);
  EXPECT_EQ(server_->counters().closed_total(), 0u);
}

TEST_F(SessionTest, CloseInsideACallbackDeliversWhatWasQueued) {
  watch_close();
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    EXPECT_TRUE(session.send(frame.header, frame.body));
    session.close();
    EXPECT_FALSE(session.is_open());
    EXPECT_EQ(session.send(frame.header, frame.body).error(), Errc::closed);
    session.close();
  };
  Client client(listen());
  client.write(frame_of(1, "one") + frame_of(2, "two"));
  EXPECT_EQ(client.read_to_end(), frame_of(1, "one"));
  EXPECT_FALSE(client.reset());
  client.close();
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::service);
}

TEST_F(SessionTest, AbortInsideEveryCallbackEndsItOnce) {
  int opened = 0;
  int closed = 0;
  script_.on_open = [&](HeaderSession& session) {
    if (++opened == 1) {
      session.abort();
      session.abort();
    }
  };
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame&) { session.abort(); };
  script_.on_close = [&](HeaderSession& session, const Error& why) {
    EXPECT_EQ(why, Errc::closed);
    session.abort();
    session.close();
    session.resume_reading();
    EXPECT_FALSE(session.send({}, {}));
    EXPECT_FALSE(session.join(GroupId{1}));
    ++closed;
    closed_.give();
  };
  const std::string endpoint = listen();
  Client first(endpoint);
  ASSERT_TRUE(closed_.take());
  Client second(endpoint);
  second.send(1, "x");
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(second.read_to_end(), "");
  EXPECT_TRUE(server_->stop(sys::now() + test::kLong));
  EXPECT_EQ(opened, 2);
  EXPECT_EQ(closed, 2);
}

TEST_F(SessionTest, AFrameThatTheCodecRefusesLeavesNothingBehind) {
  make_server();
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    EXPECT_EQ(session.send(frame.header, as_bytes(std::string(101, 'l'))).error(), Errc::message_too_large);
    EXPECT_EQ(session.send(frame.header, as_bytes(std::string(100'000, 'l'))).error(), Errc::message_too_large);
    EXPECT_EQ(session.queued(), 0u);
    echo(session, frame);
  };
  const auto endpoint = server_->listen<HeaderCodec>(
      "tcp://127.0.0.1:0", {}, [this] { return test::ScriptService{&script_}; }, HeaderCodec(100));
  ASSERT_TRUE(endpoint);
  Client client(*endpoint);
  client.send(1, "small");
  EXPECT_EQ(client.receive(), "small");
  client.close();
  ASSERT_TRUE(server_->stop(sys::now() + test::kLong));
  EXPECT_EQ(server_->counters().writes, 1u);
}

TEST_F(SessionTest, APeerThatEndsItsStreamGetsItsAnswers) {
  watch_close();
  script_.on_frame = echo;
  Client client(listen());
  client.send(1, std::string(100'000, 'a'));
  client.end_writing();
  EXPECT_EQ(client.read_to_end(), frame_of(1, std::string(100'000, 'a')));
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::peer_closed);
}

TEST_F(SessionTest, AReplyThatComesAfterTheEndOfThePeersStreamIsDelivered) {
  watch_close();
  SessionId id;
  Signal asked;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    session.begin_reply();
    id = session.id();
    asked.give();
  };
  ListenerOptions options;
  options.limits.peer_left = PeerLeft::answer;
  Client client(listen(options));
  client.send(1, "question");
  client.end_writing();
  ASSERT_TRUE(asked.take());
  ASSERT_TRUE(server_->post_to(id, [](Session& session) {
    EXPECT_TRUE(session.send_bytes(as_bytes("answer")));
    session.end_reply();
  }));
  EXPECT_EQ(client.read_to_end(), "answer");
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::peer_closed);
}

TEST_F(SessionTest, AStreamThatEndsInsideAFrameIsAFailureOfThePeer) {
  watch_close();
  Client client(listen());
  client.write(frame_of(1, "whole") + frame_of(2, "half").substr(0, 14));
  client.end_writing();
  client.read_to_end();
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::peer_failed);
}

TEST_F(SessionTest, EndWritingIsReadAsTheEndBehindWhatIsQueuedAndFramesStillCome) {
  std::string heard;
  script_.on_open = [](HeaderSession& session) {
    EXPECT_TRUE(session.send({1, 0}, as_bytes("last")));
    session.end_writing();
    EXPECT_EQ(session.send({2, 0}, {}).error(), Errc::closed);
  };
  script_.on_frame = [&](HeaderSession&, const HeaderCodec::Frame& frame) { heard += as_text(frame.body); };
  watch_close();
  Client client(listen());
  EXPECT_EQ(client.read_to_end(), frame_of(1, "last"));
  client.send(1, "still ");
  client.send(2, "here");
  client.end_writing();
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(heard, "still here");
}

struct Talker {  // has on_end(): the service closes the session itself
  Signal* ended;
  SessionId* id;
  void on_end(HeaderSession& session) {
    *id = session.id();
    ended->give();
  }
};
TEST_F(SessionTest, AServiceWithOnEndKeepsSendingUntilItCloses) {
  make_server();
  Signal ended;
  SessionId id;
  const auto endpoint = server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [&] { return Talker{&ended, &id}; });
  ASSERT_TRUE(endpoint);
  Client client(*endpoint);
  client.end_writing();
  ASSERT_TRUE(ended.take());
  ASSERT_TRUE(server_->post_to(id, [](Session& session) { EXPECT_TRUE(session.send_bytes(as_bytes("more"))); }));
  EXPECT_EQ(client.read(4), "more");
  ASSERT_TRUE(server_->post_to(id, [](Session& session) { session.close(); }));
  EXPECT_EQ(client.read_to_end(), "");
}

TEST_F(SessionTest, PausedFramesWaitInOrder) {
  std::string heard;
  Signal first;
  Signal all;
  SessionId id;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    heard += as_text(frame.body);
    id = session.id();
    session.pause_reading();
    (heard.size() == 3 ? all : first).give();
  };
  Client client(listen());
  client.write(frame_of(1, "a") + frame_of(2, "b") + frame_of(3, "c"));
  ASSERT_TRUE(first.take());
  EXPECT_EQ(heard, "a");
  ASSERT_TRUE(server_->post_to(id, [](Session& session) { session.resume_reading(); }));
  ASSERT_TRUE(first.take());
  ASSERT_TRUE(server_->post_to(id, [](Session& session) { session.resume_reading(); }));
  ASSERT_TRUE(all.take());
  EXPECT_EQ(heard, "abc");
}

TEST_F(SessionTest, TheEndOfThePeersStreamWaitsBehindPausedFrames) {
  watch_close();
  Signal paused;
  SessionId id;
  int frames = 0;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    EXPECT_TRUE(session.send(frame.header, frame.body));
    if (++frames == 1) {
      id = session.id();
      session.pause_reading();
      paused.give();
    }
  };
  Client client(listen());
  client.write(frame_of(1, "a") + frame_of(2, "b"));
  client.end_writing();
  ASSERT_TRUE(paused.take());
  ASSERT_TRUE(server_->post_to(id, [](Session& session) { session.resume_reading(); }));
  EXPECT_EQ(client.read_to_end(), frame_of(1, "a") + frame_of(2, "b"));
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::peer_closed);
}

TEST_F(SessionTest, AnotherThreadIsRefusedBeforeItRaces) {
  Signal opened;
  std::atomic<HeaderSession*> session{nullptr};
  script_.on_open = [&](HeaderSession& own) {
    session = &own;
    opened.give();
  };
  script_.on_frame = echo;
  Client client(listen());
  ASSERT_TRUE(opened.take());
  HeaderSession& there = *session;
  const std::string expected = "not allowed in this state: session of core 0 used on a thread that is no core";
  EXPECT_EQ(there.send({1, 0}, as_bytes("small")).error().message(), expected);
  EXPECT_EQ(there.send({1, 0}, as_bytes(std::string(100'000, 'x'))).error().message(), expected);
  EXPECT_EQ(there.send_bytes({}).error().message(), expected);
  const auto shared = SharedFrame::encode(HeaderCodec(), {1, 0}, as_bytes(std::string(4096, 'x')));
  ASSERT_TRUE(shared);
  EXPECT_EQ(there.send_shared(*shared).error().message(), expected);
  EXPECT_EQ(there.join(GroupId{1}).error().message(), expected);
  EXPECT_EQ(there.spawn([]() -> rt::Task<> { co_return; }()).error().message(), expected);
  client.send(7, "hello");
  EXPECT_EQ(client.read(17), frame_of(7, "hello"));
}

TEST_F(SessionTest, AServiceThatThrowsLosesTheSessionAndNothingElse) {
  watch_close();
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (frame.header.id == 13) {
      throw std::runtime_error("bad day");
    }
    echo(session, frame);
  };
  const std::string endpoint = listen();
  Client good(endpoint);
  Client bad(endpoint);
  bad.send(13, "");
  bad.read_to_end();
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::service_failed);
  good.send(1, "still served");
  EXPECT_EQ(good.receive(), "still served");
}

// One read and one write for each burst. Without TCP_NODELAY a delayed acknowledgement would cost 40 ms.
TEST_F(SessionTest, AnEchoOf8KbIsOneReadAndOneWriteWithNoDelaySet) {
  script_.on_frame = echo;
  Client client(listen());
  const std::string frame = frame_of(1, std::string(8 * 1024, 'e'));
  constexpr int kRounds = 50;
  for (int i = 0; i < kRounds; ++i) {
    client.write(frame);
    ASSERT_EQ(client.read(frame.size()), frame);
  }
  client.close();
  ASSERT_TRUE(server_->stop(sys::now() + test::kLong));
  const CounterValues counters = server_->counters();
  EXPECT_EQ(counters.writes, std::uint64_t{kRounds});
  EXPECT_LE(counters.reads, std::uint64_t{2 * kRounds});  // the kernel may cut the client's bytes in two
  EXPECT_EQ(counters.bytes_out, frame.size() * kRounds);
}

TEST_F(SessionTest, ABurstIsAnsweredWithOneWriteForEachRead) {
  script_.on_frame = echo;
  Client client(listen());
  std::string burst;
  for (int i = 0; i < 500; ++i) {
    burst += frame_of(1, std::string(64, 'b'));
  }
  client.write(burst);
  ASSERT_EQ(client.read(burst.size()), burst);
  client.close();
  ASSERT_TRUE(server_->stop(sys::now() + test::kLong));
  const CounterValues counters = server_->counters();
  EXPECT_LE(counters.writes, counters.reads + 1);
  EXPECT_EQ(counters.frames_in, 500u);
  EXPECT_EQ(counters.frames_out, 500u);
}

TEST_F(SessionTest, AClientThatFloodsDoesNotKeepOthersFromTheirTurn) {
  constexpr std::size_t kFlood = 4u * 1024 * 1024;
  std::size_t before_other = 0;
  std::size_t flooded = 0;
  Signal other_heard;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (frame.header.id == 1) {
      flooded += frame.body.size();
    } else {
      before_other = flooded;
      other_heard.give();
      echo(session, frame);
    }
  };
  const std::string endpoint = listen();
  Client flood(endpoint);
  Client other(endpoint);
  until([](const CounterValues& counters) { return counters.opened == 2; });
  std::string bytes;
  while (bytes.size() < kFlood) {
    bytes += frame_of(1, std::string(1000, 'f'));
  }
  std::size_t waiting = 0;
  {
    const rt::test::Blocked blocked(*runtime_, 0);  // both have sent when the core reads
    waiting = flood.write_some(bytes, Duration::zero());
    other.send(2, "me too");
  }
  EXPECT_EQ(other.receive(), "me too");
  flood.write(std::string_view(bytes).substr(waiting));
  flood.end_writing();
  EXPECT_EQ(flood.read_to_end(), "");  // all of the flood was read: on_frame is not called any more
  ASSERT_TRUE(other_heard.take());
  EXPECT_LT(before_other, waiting / 2);
}

TEST_F(SessionTest, APauseInsideAFrameThatCameInTwoReadsHoldsTheNextOne) {
  std::string heard;
  SessionId id;
  Signal paused;
  Signal second;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    heard += as_text(frame.body);
    if (heard == "a") {
      id = session.id();
      session.pause_reading();
      paused.give();
    } else {
      second.give();
    }
  };
  Client client(listen());
  const std::string frames = frame_of(1, "a") + frame_of(1, "b");
  const std::size_t most = frame_of(1, "a").size() - 1;
  client.write(frames.substr(0, most));
  until([most](const CounterValues& counters) { return counters.bytes_in == most; });
  client.write(frames.substr(most));
  ASSERT_TRUE(paused.take());
  ASSERT_TRUE(server_->post_to(id, [&](Session& session) {
    EXPECT_EQ(heard, "a");
    session.resume_reading();
  }));
  ASSERT_TRUE(second.take());
  EXPECT_EQ(heard, "ab");
}

}  // namespace
}  // namespace weft::serve
