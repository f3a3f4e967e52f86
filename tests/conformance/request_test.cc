// SPDX-License-Identifier: MIT
// REQ and REP: envelopes, and the order of requests and replies.
#include <utility>

#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

class RequestReply : public Conformance {};
WEFT_EVERY_TRANSPORT(RequestReply);

TEST_P(RequestReply, RequestsAndRepliesAlternate) {
  Socket rep = make(SocketType::rep);
  Socket req = make(SocketType::req);
  connect(req, bind(rep));
  for (int i = 0; i < 100; ++i) {
    send(req, std::to_string(i));
    EXPECT_EQ(recv_text(rep), std::to_string(i));
    send(rep, "re " + std::to_string(i));
    EXPECT_EQ(recv_text(req), "re " + std::to_string(i));
  }
}

TEST_P(RequestReply, MultipartAndEmptyAndLargeBodiesTravelBothWays) {
  Socket rep = make(SocketType::rep);
  Socket req = make(SocketType::req);
  connect(req, bind(rep));
  const std::string big(300'000, 'q');
  for (const Texts& body : {Texts{"a", "b"}, Texts{""}, Texts{"", ""}, Texts{big}, Texts{big, "", big}}) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      ASSERT_TRUE(req.send(body[i], i + 1 < body.size() ? More::yes : More::no));
    }
    ASSERT_TRUE(recv(rep) == body);
    for (std::size_t i = 0; i < body.size(); ++i) {
      ASSERT_TRUE(rep.send(body[i], i + 1 < body.size() ? More::yes : More::no));
    }
    ASSERT_TRUE(recv(req) == body);
  }
}

TEST_P(RequestReply, OutOfTurnCallsAreRefusedAndHarmNothing) {
  Socket rep = make(SocketType::rep);
  Socket req = make(SocketType::req);
  connect(req, bind(rep));
  EXPECT_EQ(req.recv().error(), Errc::invalid_state);
  EXPECT_EQ(rep.send("nobody asked").error(), Errc::invalid_state);
  send(req, "one");
  EXPECT_EQ(req.send("two").error(), Errc::invalid_state);
  EXPECT_EQ(req.try_send(as_bytes("two")).error(), Errc::invalid_state);
  EXPECT_EQ(recv_text(rep), "one");
  EXPECT_EQ(rep.recv().error(), Errc::invalid_state);
  send(rep, "re one");
  EXPECT_EQ(rep.send("again").error(), Errc::invalid_state);
  EXPECT_EQ(recv_text(req), "re one");
  EXPECT_EQ(req.recv().error(), Errc::invalid_state);
}

TEST_P(RequestReply, AReplyHalfReceivedStillForbidsTheNextRequest) {
  Socket rep = make(SocketType::rep);
  Socket req = make(SocketType::req);
  connect(req, bind(rep));
  send(req, "ask");
  EXPECT_EQ(recv_text(rep), "ask");
  send(rep, {"a", "b"});
  const auto first = req.recv();
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->more());
  EXPECT_EQ(req.send("next").error(), Errc::invalid_state);
  EXPECT_EQ(recv_text(req), "b");
  EXPECT_TRUE(req.send("next"));
}

TEST_P(RequestReply, RepServesSeveralRequestersAndRepliesToTheRightOne) {
  Socket rep = make(SocketType::rep);
  const std::string endpoint = bind(rep);
  std::vector<Socket> reqs;
  for (int i = 0; i < 4; ++i) {
    reqs.push_back(make(SocketType::req));
    connect(reqs.back(), endpoint);
    send(reqs.back(), std::to_string(i));
  }
  for (int i = 0; i < 4; ++i) {
    const std::string question = recv_text(rep);
    send(rep, "re " + question);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(recv_text(reqs[i]), "re " + std::to_string(i));
  }
}

TEST_P(RequestReply, ReqAsksItsRepliersInTurn) {
  Socket first = make(SocketType::rep);
  Socket second = make(SocketType::rep);
  Socket req = make(SocketType::req);
  connect(req, bind(first));
  connect(req, bind(second));
  for (const auto& [text, rep] : {std::pair{"1", &first}, {"2", &second}, {"3", &first}, {"4", &second}}) {
    send(req, text);
    EXPECT_EQ(recv_text(*rep), text);
    send(*rep, "re");
    EXPECT_EQ(recv_text(req), "re");
  }
}

TEST_P(RequestReply, TheRequestHasAnEmptyDelimiterInFrontAndTheReplyNeedsOne) {
  Socket dealer = make(SocketType::dealer);
  Socket rep = make(SocketType::rep);
  connect(dealer, bind(rep));
  send(dealer, {"no delimiter"});               // dropped
  send(dealer, {"no", "delimiter", "either"});  // dropped
  send(dealer, {"", "question"});
  EXPECT_EQ(recv_text(rep), "question");
  send(rep, "answer");
  EXPECT_EQ(recv(dealer), (Texts{"", "answer"}));
  send(dealer, {"hop 1", "hop 2", "", "deep", "question"});
  EXPECT_EQ(recv(rep), (Texts{"deep", "question"}));
  send(rep, {"deep", "answer"});
  EXPECT_EQ(recv(dealer), (Texts{"hop 1", "hop 2", "", "deep", "answer"}));
}

TEST_P(RequestReply, ReqTakesNoReplyWithoutADelimiterAndWaitsForTheProperOne) {
  Socket router = make(SocketType::router);
  Socket req = make(SocketType::req);
  connect(req, bind(router));
  send(req, "question");
  const Texts got = recv(router);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[1], "");
  EXPECT_EQ(got[2], "question");
  const std::string& id = got[0];
  send(router, {id, "not a delimiter", "x"});
  send(router, {id, "lone"});
  send(router, {id, "", "answer"});
  EXPECT_EQ(recv_text(req), "answer");
}

TEST_P(RequestReply, ReqIgnoresMessagesOfPeersItDidNotAsk) {
  Socket asked = make(SocketType::router);
  Socket other = make(SocketType::router);
  Socket req = make(SocketType::req);
  connect(req, bind(asked));
  connect(req, bind(other));
  // A first round with each, so that both know the id of the requester.
  send(req, "1");
  const std::string id_at_asked = recv(asked)[0];
  send(asked, {id_at_asked, "", "re 1"});
  EXPECT_EQ(recv_text(req), "re 1");
  send(req, "2");
  const std::string id_at_other = recv(other)[0];
  send(other, {id_at_other, "", "re 2"});
  EXPECT_EQ(recv_text(req), "re 2");
  send(req, "3");
  EXPECT_EQ(recv(asked).back(), "3");
  send(other, {id_at_other, "", "nobody asked"});
  send(other, {id_at_other, "", "me", "neither"});
  send(asked, {id_at_asked, "", "re 3"});
  EXPECT_EQ(recv_text(req), "re 3");
}

TEST_P(RequestReply, AReplyToARequesterThatLeftBeforeItsRequestWasReceivedIsDropped) {
  Socket rep = make(SocketType::rep);
  const std::string endpoint = bind(rep);
  ASSERT_TRUE(rep.watch_events());
  for (int i = 0; i < 3; ++i) {
    {
      Socket req = make(SocketType::req);
      connect(req, endpoint);
      send(req, "last words");
      if (GetParam().streams) {
        wait_for_event(rep, EventKind::handshake_succeeded);
      }
    }
    if (GetParam().streams) {
      wait_for_event(rep, EventKind::disconnected);
    }
    EXPECT_EQ(recv_text(rep), "last words");
    EXPECT_EQ(rep.try_recv().error(), Errc::invalid_state);  // the socket forgets the connection
    send(rep, "to nobody");
  }
  EXPECT_EQ(rep.statistics()->dropped, 3u);
}

TEST_P(RequestReply, AReplyToARequesterThatIsGoneIsACountedDropAndTheNextIsServed) {
  Socket rep = make(SocketType::rep);
  ASSERT_TRUE(rep.watch_events());
  const std::string endpoint = bind(rep);
  Socket gone = make(SocketType::req);
  connect(gone, endpoint);
  send(gone, "question");
  EXPECT_EQ(recv_text(rep), "question");
  gone.close();
  if (GetParam().streams) {
    wait_for_event(rep, EventKind::disconnected);
  }
  send(rep, "answer");
  EXPECT_EQ(rep.statistics()->dropped, 1u);
  Socket next = make(SocketType::req);
  connect(next, endpoint);
  send(next, "question");
  EXPECT_EQ(recv_text(rep), "question");
  send(rep, "answer");
  EXPECT_EQ(recv_text(next), "answer");
}

}  // namespace
}  // namespace weft::conformance
