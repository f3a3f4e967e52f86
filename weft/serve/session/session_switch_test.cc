// SPDX-License-Identifier: MIT
// A connection that goes on with another codec and its service.
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/rt/task/async_event.h"
#include "weft/serve/frame/delimiter_codec.h"
#include "weft/serve/server/test_client.h"
#include "weft/serve/session/shard.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::frame_of;
using test::HeaderSession;
using test::kLong;
using test::Signal;
using LineSession = SessionOf<DelimiterCodec>;

// The calls of the services, on any core.
class Story {
 public:
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
  }
  [[nodiscard]] std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

std::string name_of(const Error& error) {
  return error == Errc::ok              ? "ok"
         : error == Errc::invalid_state ? "invalid_state"
         : error == Errc::closed        ? "closed"
                                        : "another error";
}

struct LineService {
  Story* story;
  std::atomic<std::uint64_t>* first;  // the id that the session had before

  void on_open(LineSession& session) const {
    story->add(session.id().value == first->load() ? "line open, the same id" : "line open, another id");
    (void)session.join(GroupId{2});
  }
  void on_frame(LineSession& session, const DelimiterCodec::Frame& frame) const {
    story->add("line " + std::string(as_text(frame.body)));
    (void)session.send({}, frame.body);
  }
  void on_close(LineSession&, const Error& why) const { story->add("line close, " + name_of(why)); }
};

// A stream whose socket cannot be watched any more from a moment on.
class LosableStream final : public net::ByteStream {
 public:
  LosableStream(std::unique_ptr<net::ByteStream> inner, const std::atomic<bool>& lost)
      : inner_(std::move(inner)), lost_(lost) {}
  [[nodiscard]] int fd() const override { return lost_ ? -1 : inner_->fd(); }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override { return inner_->read(into); }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override { return inner_->write(from); }
  void shutdown_write() override { inner_->shutdown_write(); }
  [[nodiscard]] std::string peer_address() const override { return inner_->peer_address(); }

 private:
  std::unique_ptr<net::ByteStream> inner_;
  const std::atomic<bool>& lost_;
};

class SessionSwitch : public test::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    start_runtime(1);
    static const SessionOps ops = ServiceCalls<DelimiterCodec, LineService>::ops();
    lines_ = {&story_, &first_};
    slot_.ops = &ops;
    slot_.service = &lines_;
    slot_.codec = &codec_;
    script_.on_open = [](HeaderSession& session) { (void)session.join(GroupId{1}); };
    script_.on_frame = [this](HeaderSession& session, const HeaderCodec::Frame& frame) {
      const std::string text(as_text(frame.body));
      (void)session.send(frame.header, frame.body);
      if (text == "switch") {
        first_ = session.id().value;
        slot_.layered = session.slot().layered;
        story_.add("switch, " + name_of(session.switch_to(slot_).error()));
        story_.add("again, " + name_of(session.switch_to(slot_).error()));
        story_.add("send, " + name_of(session.send(frame.header, frame.body).error()));
      } else if (text == "busy") {
        session.begin_reply();
        story_.add("switch, " + name_of(session.switch_to(slot_).error()));
        session.end_reply();
      }
    };
    script_.on_close = [this](HeaderSession&, const Error& why) { story_.add("header close, " + name_of(why)); };
  }

  Story story_;
  LineService lines_{};  // outlives the server, as the slot: see TearDown()
  DelimiterCodec codec_;
  ServiceSlot slot_;
  std::atomic<std::uint64_t> first_{0};
};

TEST_F(SessionSwitch, TheNextSessionHasTheConnectionAndTheBytesBehindTheLastFrame) {
  Client client(listen());
  client.write(frame_of(1, "one") + frame_of(1, "switch") + "early\nha");
  EXPECT_EQ(client.receive(), "one");
  EXPECT_EQ(client.receive(), "switch");
  EXPECT_EQ(client.read(6), "early\n");
  client.write("lf\n");
  EXPECT_EQ(client.read(5), "half\n");
  client.end_writing();
  EXPECT_EQ(client.read_to_end(), "");
  until([](const CounterValues& counters) { return counters.closed_total() == 1; });
  EXPECT_EQ(story_.lines(), (std::vector<std::string>{"switch, ok", "again, invalid_state", "send, closed",
                                                      "header close, ok", "line open, the same id", "line early",
                                                      "line half", "line close, another error"}));
  EXPECT_EQ(server_->counters().opened, 1u);
  until([this](const CounterValues& /*counters*/) { return server_->sessions() == 0; });
}

TEST_F(SessionSwitch, ASessionThatOwesAReplyStays) {
  Client client(listen());
  client.write(frame_of(1, "busy") + frame_of(1, "after"));
  EXPECT_EQ(client.receive(), "busy");
  EXPECT_EQ(client.receive(), "after");
  EXPECT_EQ(story_.lines(), (std::vector<std::string>{"switch, invalid_state"}));
}

TEST_F(SessionSwitch, FramesReachTheSessionsOfTheirCodecAndTheGroupsOfTheNextOne) {
  const std::string endpoint = listen();
  Client client(endpoint);
  Client other(endpoint);
  other.write(frame_of(1, "here"));
  EXPECT_EQ(other.receive(), "here");
  client.write(frame_of(1, "switch") + "line\n");
  EXPECT_EQ(client.receive(), "switch");
  EXPECT_EQ(client.read(5), "line\n");
  const auto frame = SharedFrame::encode(HeaderCodec(), FrameHeader{1, 0}, as_bytes("frame"));
  const auto line = SharedFrame::encode(DelimiterCodec(), {}, as_bytes("all"));
  ASSERT_TRUE(frame && line);
  EXPECT_TRUE(server_->publish(GroupId{1}, *frame));
  EXPECT_TRUE(server_->broadcast(*frame));
  EXPECT_TRUE(server_->publish(GroupId{2}, *line));
  EXPECT_TRUE(server_->broadcast(*line));
  EXPECT_EQ(client.read(8), "all\nall\n");
  EXPECT_EQ(other.receive(), "frame");
  EXPECT_EQ(other.receive(), "frame");
  Signal reached;
  EXPECT_TRUE(server_->post_to<DelimiterCodec>(SessionId{first_}, [&](LineSession& session) {
    (void)session.send({}, as_bytes("posted"));
    reached.give();
  }));
  EXPECT_TRUE(reached.take());
  EXPECT_EQ(client.read(7), "posted\n");
}

TEST_F(SessionSwitch, ACoroutineOfTheFirstSessionHoldsItBack) {
  rt::AsyncEvent go;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    first_ = session.id().value;
    story_.add("switch, " + name_of(session.switch_to(slot_).error()));
    EXPECT_TRUE(session.spawn([](rt::AsyncEvent& event, Story& story) -> rt::Task<void> {
      (void)co_await event.wait();
      story.add("coroutine ended");
    }(go, story_)));
    (void)frame;
  };
  Client client(listen());
  client.write(frame_of(1, "x") + "line\n");
  until([](const CounterValues& counters) { return counters.frames_in == 1; });
  ASSERT_TRUE(runtime_->post(0, [&go] { go.set(); }));
  EXPECT_EQ(client.read(5), "line\n");
  EXPECT_EQ(story_.lines(), (std::vector<std::string>{"switch, ok", "coroutine ended", "header close, ok",
                                                      "line open, the same id", "line line"}));
}

TEST_F(SessionSwitch, TheNextServiceHearsOfASessionThatCannotGoOn) {
  std::atomic<bool> lost{false};
  script_.on_close = [&lost](HeaderSession&, const Error&) { lost = true; };
  ListenerOptions options;
  options.wrap = [&lost](std::unique_ptr<net::ByteStream> stream) -> Result<std::unique_ptr<net::ByteStream>> {
    return std::unique_ptr<net::ByteStream>(std::make_unique<LosableStream>(std::move(stream), lost));
  };
  Client client(listen(options));
  client.write(frame_of(1, "switch"));
  EXPECT_EQ(client.receive(), "switch");
  EXPECT_EQ(client.read_to_end(), "");
  until([this](const CounterValues& counters) {
    return counters.closed_for(CloseReason::out_of_memory) == 1 && server_->sessions() == 0;
  });
  EXPECT_EQ(story_.lines(), (std::vector<std::string>{"switch, ok", "again, invalid_state", "send, closed",
                                                      "line open, the same id", "line close, another error"}));
}

TEST_F(SessionSwitch, AStopDrainsTheNextSession) {
  Client client(listen());
  client.write(frame_of(1, "switch") + "line\n");
  EXPECT_EQ(client.receive(), "switch");
  EXPECT_EQ(client.read(5), "line\n");
  server_->begin_stop(sys::now() + kLong);
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_FALSE(client.reset());
  client.close();
  EXPECT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(closed_for(CloseReason::server_stopped), 1u);
}

}  // namespace
}  // namespace weft::serve
