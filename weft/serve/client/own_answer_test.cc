// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/serve/client/test_serve_client.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/frame/length_codec.h"
#include "weft/serve/frame/numbered_codec.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::ask;
using test::ask_into;
using test::HeaderSession;
using test::open_client;
using Session = SessionOf<NumberedCodec>;
using Frame = NumberedCodec::Frame;
using Lines = LengthCodec<std::uint16_t>;
using LinesSession = SessionOf<Lines>;

// A service from a function.
template <typename Codec>
struct Script {
  std::function<void(SessionOf<Codec>&, const typename Codec::Frame&)> frame;
  std::function<void(SessionOf<Codec>&)> open = [](SessionOf<Codec>&) {};
  void on_open(SessionOf<Codec>& session) { open(session); }
  void on_frame(SessionOf<Codec>& session, const typename Codec::Frame& got) { frame(session, got); }
};

class OwnAnswer : public test::ClientFixture {
 protected:
  template <typename Codec>
  std::string listen_for(Script<Codec> script, const ListenerOptions& options = {}) {
    if (server_ == nullptr) {
      make_server();
    }
    const auto bound = server_->listen<Codec>("tcp://127.0.0.1:0", options, [script] { return script; });
    EXPECT_TRUE(bound) << bound.error().message();
    return bound ? *bound : "";
  }
};

template <typename Codec>
Result<std::string> listen_with_many_handlers(Server& server) {
  ListenerOptions options;
  options.limits.handlers_max = 2;
  return server.listen<Codec>("tcp://127.0.0.1:0", options, [] { return Script<Codec>{}; });
}
TEST_F(OwnAnswer, ManyHandlersOfASessionAreRefusedWhereAnswersHaveNoNumber) {
  make_server();
  const auto refused = listen_with_many_handlers<HeaderCodec>(*server_);
  EXPECT_EQ(refused.error(), Errc::invalid_argument);
  EXPECT_STREQ(refused.error().text(),
               "handlers_max above 1 needs a codec with request numbers, such as NumberedCodec");
  EXPECT_EQ(listen_with_many_handlers<Lines>(*server_).error(), Errc::invalid_argument);
  EXPECT_EQ(listen_with_many_handlers<DelimiterCodec>(*server_).error(), Errc::invalid_argument);
  EXPECT_TRUE(listen_with_many_handlers<NumberedCodec>(*server_));
}

// All requests have one id; handlers answer in the reverse order.
rt::Task<void> ask_three(std::string endpoint) {
  const auto client = open_client<serve::Client<>>(endpoint);
  EXPECT_TRUE(co_await client->connected());
  std::vector<Result<std::string>> answers(3);
  rt::TaskScope scope(*rt::Loop::current());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_TRUE(scope.spawn(ask_into(client.get(), {1, 0}, std::to_string(i), &answers[i])));
  }
  EXPECT_TRUE(co_await scope.join());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i], std::to_string(i));
  }
  const auto unknown = co_await client->request({99, 0}, {});
  EXPECT_EQ(unknown.error(), frame_error(ErrorCode::unknown_message, "")) << "an error frame has the number, too";
}
TEST_F(OwnAnswer, HandlersThatOvertakeEachOtherAnswerTheirOwnRequests) {
  Dispatcher<Session> dispatcher;
  std::vector<rt::AsyncEvent> turns(4);
  ASSERT_TRUE(dispatcher.on(1, [&turns](Session& session, const Frame& frame) -> rt::Task<> {
    const std::size_t i = as_text(frame.body)[0] - '0';
    if (i == 2) {
      turns[3].set();
    }
    const auto come = co_await turns[i + 1].wait();
    EXPECT_TRUE(come);
    (void)session.send(frame.header, frame.body);
    turns[i].set();
  }));
  ListenerOptions options;
  options.limits.handlers_max = 3;
  run(ask_three(listen_for<NumberedCodec>(
      {[&](Session& session, const Frame& frame) { dispatcher.dispatch(session, frame); }}, options)));
  (void)stop_now();  // before the dispatcher ends
}

template <typename C>
rt::Task<void> ask_between_pushes(std::string endpoint, std::uint64_t pushes) {
  const auto client = open_client<C>(endpoint);
  EXPECT_TRUE(co_await client->connected());
  const auto answer = co_await ask(client.get(), {1, 0}, "mine");
  EXPECT_EQ(answer, "mine");
  EXPECT_EQ(client->requests().pushes.value(), pushes);
  EXPECT_EQ(client->requests().answered.value(), 1u);
}
TEST_F(OwnAnswer, WhatAPeerSendsUnaskedIsNoAnswerThoughItHasTheIdOfTheRequest) {
  run(ask_between_pushes<serve::Client<>>(
      listen_for<NumberedCodec>({[](Session& session, const Frame& frame) {
                                   (void)session.send({1, 0}, as_bytes("news"));
                                   (void)session.send(frame.header, frame.body);
                                 },
                                 [](Session& session) { (void)session.send({1, 0}, as_bytes("welcome")); }}),
      2));
}
// A service that answers frame 1 at the test's command, and all others at once.
class LaterAnswer : public OwnAnswer {
 protected:
  template <typename Codec>
  std::string listen_later(const ListenerOptions& options = {}) {
    Script<Codec> script;
    script.frame = [this](SessionOf<Codec>& session, const typename Codec::Frame& frame) {
      if (as_text(frame.body) == "first") {
        session.begin_reply();
        header_ = frame.header;
        id_ = session.id();
      } else {
        (void)session.send(frame.header, frame.body);
      }
      handled_.give();
    };
    return listen_for<Codec>(script, options);
  }
  template <typename Codec>
  void answer_first() {
    EXPECT_TRUE(server_->post_to<Codec>(id_, [this](SessionOf<Codec>& session) {
      EXPECT_TRUE(session.send(header_, as_bytes("first")));
      session.end_reply();
    }));
  }

  test::Signal handled_;
  FrameHeader header_;
  SessionId id_;
};

TEST_F(LaterAnswer, IsNotOvertakenWhereAnswersHaveNoNumber) {
  test::Client client(listen_later<HeaderCodec>());
  client.write(test::frame_of(1, "first") + test::frame_of(2, "second"));
  client.send(3, "third");
  ASSERT_TRUE(handled_.take());
  for (int turn = 0; turn < 5; ++turn) {
    rt::test::on_core(*runtime_, id_.core(), [] {});
  }
  answer_first<HeaderCodec>();
  for (const char* const expected : {"first", "second", "third"}) {
    EXPECT_EQ(client.receive(), expected);
  }
}

TEST_F(LaterAnswer, IsOvertakenWhereTheListenerSaysSo) {
  ListenerOptions options;
  options.limits.reply_order = ReplyOrder::any;
  test::Client client(listen_later<HeaderCodec>(options));
  client.write(test::frame_of(1, "first") + test::frame_of(2, "second"));
  EXPECT_EQ(client.receive(), "second");
  answer_first<HeaderCodec>();
  EXPECT_EQ(client.receive(), "first");
}

rt::Task<void> ask_first_and_second(std::string endpoint, rt::AsyncEvent* answered, rt::TaskScope* scope,
                                    Result<std::string>* first) {
  const auto client = open_client<serve::Client<>>(endpoint);
  EXPECT_TRUE(co_await client->connected());
  EXPECT_TRUE(scope->spawn(ask_into(client.get(), {1, 0}, "first", first)));
  const auto second = co_await ask(client.get(), {1, 0}, "second");
  EXPECT_EQ(second, "second");
  answered->set();
  EXPECT_TRUE(co_await scope->join());
}
TEST_F(LaterAnswer, IsOvertakenWhereAnswersHaveNumbers) {
  const std::string endpoint = listen_later<NumberedCodec>();
  Result<std::string> first = Error(Errc::closed, "");
  const auto ask_both = [&]() -> rt::Task<void> {
    rt::AsyncEvent answered;
    rt::TaskScope scope(*rt::Loop::current());
    rt::TaskScope own(*rt::Loop::current());
    EXPECT_TRUE(own.spawn(ask_first_and_second(endpoint, &answered, &scope, &first)));
    const auto come = co_await answered.wait();
    EXPECT_TRUE(come);
    answer_first<NumberedCodec>();
    EXPECT_TRUE(co_await own.join());
  };
  run(ask_both());
  EXPECT_EQ(first, "first");
}

TEST_F(OwnAnswer, AFrameThatIsMarkedAsAPushIsNoAnswerThoughItHasTheIdOfTheRequest) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    (void)session.send({1, kFlagPush}, as_bytes("news"));
    (void)session.send(frame.header, frame.body);
  };
  run(ask_between_pushes<test::HeaderClient>(listen(), 1));
}

// Where only the order finds the request, a frame without a request would shift all answers after it.
rt::Task<void> ask_the_talkative(std::string endpoint) {
  const auto client = open_client<serve::Client<Lines>>(endpoint);
  rt::AsyncEvent came;
  client->on_push([&](const Lines::Frame&) { came.set(); });
  EXPECT_TRUE(co_await came.wait());
  const auto refused = co_await ask(client.get(), {}, "who?");
  EXPECT_EQ(refused.error(), Errc::protocol_error);
  EXPECT_EQ(client->requests().sent.value(), 0u);
}
TEST_F(OwnAnswer, WhereOnlyTheOrderFindsTheRequestAPeerThatSpeaksUnaskedIsNotAsked) {
  run(ask_the_talkative(
      listen_for<Lines>({[](LinesSession&, const Lines::Frame&) {},
                         [](LinesSession& session) { (void)session.send({}, as_bytes("welcome")); }})));
}

rt::Task<void> ask_the_double_tongued(std::string endpoint) {
  const auto client = open_client<serve::Client<Lines>>(endpoint);
  EXPECT_TRUE(co_await client->connected());
  const auto first = co_await ask(client.get(), {}, "one");
  EXPECT_EQ(first, "one");
  while (client->connections().lost.value() == 0) {
    EXPECT_TRUE(co_await rt::yield());
  }
}
TEST_F(OwnAnswer, WhereOnlyTheOrderFindsTheRequestASecondAnswerEndsTheConnection) {
  run(ask_the_double_tongued(listen_for<Lines>({[](LinesSession& session, const Lines::Frame& frame) {
    (void)session.send({}, frame.body);
    (void)session.send({}, frame.body);
  }})));
}

}  // namespace
}  // namespace weft::serve
