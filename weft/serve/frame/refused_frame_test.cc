// SPDX-License-Identifier: MIT
// A frame that a session refuses while replies to earlier frames are owed.
#include <chrono>
#include <string>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/async_event.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/frame/numbered_codec.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::kLong;
using test::Signal;
using TakenSession = SessionOf<NumberedCodec>;
using Frame = NumberedCodec::Frame;

std::string numbered_frame(std::uint32_t number, std::string_view body) {
  std::string frame(NumberedCodec::kHeaderSize + body.size(), '\0');
  EXPECT_TRUE(encode_frame(NumberedCodec(), FrameHeader{1, 0, number}, as_bytes(body),
                           MutableBytes(reinterpret_cast<std::uint8_t*>(frame.data()), frame.size())));
  return frame;
}
const std::string kBroken = "\x7F a wrong version";

// Handlers wait for `go_`, three at a time, and then answer.
class RefusedFrame : public test::ServerTest {
 protected:
  struct Service {
    RefusedFrame* test;
    void on_frame(TakenSession& session, const Frame& frame) { test->dispatcher_.dispatch(session, frame); }
    void on_close(TakenSession& session, const Error& why) {
      test->reason_ = session.reason();
      test->why_ = why;
      test->closed_.give();
    }
  };

  void SetUp() override {
    start_runtime(1);
    ASSERT_TRUE(dispatcher_.on(1, [this](TakenSession& session, const Frame& frame) -> rt::Task<> {
      begun_.give();
      const auto waited = co_await go_.wait();
      if (waited) {
        (void)session.send(frame.header, frame.body);
      }
    }));
    options_.limits.handlers_max = 3;
  }
  std::string listen_numbered() {
    if (server_ == nullptr) {
      make_server();
    }
    const auto bound = server_->listen<NumberedCodec>("tcp://127.0.0.1:0", options_, [this] { return Service{this}; });
    EXPECT_TRUE(bound) << bound.error().message();
    return bound ? *bound : "";
  }
  // Two requests whose handlers run, and a frame that no codec takes, in one read.
  void ask_twice(Client& client) {
    client.write(numbered_frame(7, "first") + numbered_frame(8, "second") + kBroken);
    ASSERT_TRUE(begun_.take());
    ASSERT_TRUE(begun_.take());
  }
  void go() {
    rt::test::on_core(*runtime_, 0, [this] { go_.set(); });
  }
  void expect_refused() {
    ASSERT_TRUE(closed_.take());
    EXPECT_EQ(reason_, CloseReason::refused_frame);
    rt::test::on_core(*runtime_, 0, [this] { EXPECT_EQ(why_, Errc::protocol_error) << why_.message(); });
  }

  Dispatcher<TakenSession> dispatcher_;
  ListenerOptions options_;
  rt::AsyncEvent go_;
  Signal begun_;
  SessionId id_;
  Error why_;
};

// Regression: it cancelled the handlers of the requests before it, and their answers were lost.
TEST_F(RefusedFrame, ClosesTheSessionAfterTheAnswersToTheRequestsBeforeIt) {
  Client client(listen_numbered());
  ask_twice(client);
  client.write(numbered_frame(9, "after it"));
  go();
  EXPECT_EQ(client.read_to_end(), numbered_frame(7, "first") + numbered_frame(8, "second"));
  EXPECT_FALSE(client.reset());
  client.close();
  expect_refused();
  EXPECT_EQ(server_->counters().unanswered, 0u);
}

TEST_F(RefusedFrame, ClosesTheSessionAfterAReplyThatWasAnnounced) {
  options_.limits.reply_order = ReplyOrder::any;
  script_.on_frame = [this](test::HeaderSession& session, const HeaderCodec::Frame&) {
    session.begin_reply();
    id_ = session.id();
    begun_.give();
  };
  watch_close();
  options_.limits.handlers_max = 1;
  Client client(listen(options_));
  client.write(test::frame_of(1, "question") + kBroken);
  ASSERT_TRUE(begun_.take());
  ASSERT_TRUE(server_->post_to(id_, [](Session& session) {
    EXPECT_TRUE(session.is_open());
    EXPECT_TRUE(session.send_bytes(as_bytes("answer")));
    session.end_reply();
  }));
  EXPECT_EQ(client.read_to_end(), "answer");
  client.close();
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::refused_frame);
}

TEST_F(RefusedFrame, IsTheReasonAlsoIfThePeerLeavesFirst) {
  for (const bool answers : {false, true}) {
    options_.limits.peer_left = answers ? PeerLeft::answer : PeerLeft::cancel;
    Client client(listen_numbered());
    ask_twice(client);
    client.end_writing();
    if (answers) {
      go();
    }
    EXPECT_EQ(client.read_to_end(), answers ? numbered_frame(7, "first") + numbered_frame(8, "second") : "");
    client.close();
    expect_refused();
  }
}

TEST_F(RefusedFrame, DoesNotHoldItsSessionForLongerThanAReplyMayTake) {
  options_.limits.reply_timeout = std::chrono::milliseconds(1);
  Client client(listen_numbered());
  ask_twice(client);
  EXPECT_EQ(client.read_to_end(), "");
  client.close();
  expect_refused();
}

TEST_F(RefusedFrame, LetsAStopWaitForTheAnswers) {
  Client client(listen_numbered());
  ask_twice(client);
  server_->begin_stop(sys::now() + kLong);
  go();
  EXPECT_EQ(client.read_to_end(), numbered_frame(7, "first") + numbered_frame(8, "second"));
  client.close();
  expect_refused();
}

}  // namespace
}  // namespace weft::serve
