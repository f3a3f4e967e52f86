// SPDX-License-Identifier: MIT
// The client against peers that send anything else than an answer.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/serve/web_client/test_web_client.h"
#include "weft/sync/kept_text.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using test::answer;
using test::answer_and_end;
using test::open_http;
using test::outcome_text;
using test::patient;
using test::RawSession;

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class HttpLiarTest : public test::HttpClientFixture {
 protected:
  // The outcome of a GET whose peer sends these bytes, then ends the stream.
  std::string outcome_of(const std::string& bytes, const std::string& method = "GET") {
    const std::string url =
        serve_lies([bytes](RawSession& session, const std::string&) { answer_and_end(session, bytes); });
    std::string outcome;
    run(ask(url, method, &outcome, &cut_, &refused_));
    return outcome;
  }
  static rt::Task<void> ask(std::string url, std::string method, std::string* outcome, std::uint64_t* cut,
                            std::uint64_t* refused) {
    const auto http = open_http();
    const auto answer = co_await http->request(ClientRequest(std::move(method), std::move(url)));
    *outcome = outcome_text(answer);
    const HttpClientCounts& counts = http->counts();
    *cut = counts.cut.value();
    *refused = counts.malformed.value() + counts.framing.value() + counts.chunk.value() + counts.coding.value() +
               counts.version.value() + counts.interims_many.value();
  }

  std::uint64_t cut_ = 0;      // answers, in the last outcome_of()
  std::uint64_t refused_ = 0;  // the same
};

TEST_F(HttpLiarTest, ABodyThatIsCutIsAnErrorAndNeverAShortSuccess) {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& bytes :
       {std::string("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"), chunked, chunked + "2\r\nok",
        chunked + "2\r\nok\r\n", chunked + "2\r\nok\r\n0\r\n", chunked + "2\r\nok\r\n0\r\nX: y\r\n"}) {
    EXPECT_EQ(outcome_of(bytes), "connection closed by peer, answered") << bytes;
    EXPECT_EQ(cut_, 1u) << bytes;
  }
  for (const char* bytes : {"", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"}) {
    EXPECT_EQ(outcome_of(bytes), "connection closed by peer, unknown") << bytes;
    EXPECT_EQ(cut_, 1u) << bytes;
  }
  EXPECT_EQ(outcome_of("HTTP/1.1 200 OK\r\n\r\nto the end"), "200 to the end");  // that is its end
  EXPECT_EQ(outcome_of("HTTP/1.0 200 OK\r\n\r\n"), "200 ");
}

TEST_F(HttpLiarTest, AnAnswerThatTwoProgramsCouldReadDifferentlyIsRefused) {
  for (const char* fields :
       {"Content-Length: 2\r\nContent-Length: 2\r\n", "Content-Length: 2\r\nContent-Length: 3\r\n",
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 2, 2\r\n", "Content-Length: +2\r\n",
        "Content-Length: -2\r\n", "Content-Length: 0x2\r\n", "Content-Length : 2\r\n", "Content-Length: 2\n",
        "Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding: gzip\r\n", "X: y\r\n Content-Length: 2\r\n",
        "X: \rContent-Length: 2\r\n"}) {
    EXPECT_EQ(outcome_of(std::string("HTTP/1.1 200 OK\r\n") + fields + "\r\nok"), "protocol error, unknown") << fields;
    EXPECT_EQ(refused_, 1u) << fields;
  }
  for (const char* bytes : {"HTTP/2.0 200 OK\r\n\r\n", "\r\nHTTP/1.1 200 OK\r\n\r\n", "ok\r\n\r\n",
                            "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n"}) {
    EXPECT_EQ(outcome_of(bytes), "protocol error, unknown") << bytes;
    EXPECT_EQ(refused_, 1u) << bytes;
  }
  EXPECT_EQ(outcome_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nok"), "protocol error, answered");
  EXPECT_EQ(refused_, 1u);
}

TEST_F(HttpLiarTest, InterimAnswersAreSkippedAndAHeadHasNoBody) {
  EXPECT_EQ(outcome_of("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + kOk), "200 ok");
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
  EXPECT_EQ(outcome_of(head, "HEAD"), "200 ");
  EXPECT_EQ(cut_, 0u);
}

// --- connections that are kept ---

// The answers of a peer: `answers[c][r]` to the request r of the connection c; after the last one it ends the stream at
// the next request, without a byte. A NUL at the end of an answer ends the stream after it.
struct Kept {
  std::vector<std::vector<std::string>> answers;
  std::map<std::uint64_t, std::pair<std::size_t, std::size_t>> at{};  // the connection and its next request, by session

  void say(RawSession& session, const std::string& /*text*/) {
    const auto [place, fresh] = at.try_emplace(session.id().value, std::pair{at.size(), std::size_t{0}});
    auto& [connection, request] = place->second;
    if (connection >= answers.size() || request >= answers[connection].size()) {
      return session.abort();
    }
    std::string text = answers[connection][request++];
    const bool ends = text.ends_with('\0');
    text.resize(text.size() - (ends ? 1 : 0));
    ends ? answer_and_end(session, text) : answer(session, text);
  }
};

// Each request begins when the client has at most `kept` connections.
rt::Task<void> ask_in_turn(std::string url, std::vector<std::string> methods, std::uint64_t kept,
                           std::vector<std::string>* outcomes, std::uint64_t* repeated) {
  const auto http = open_http();
  for (const std::string& method : methods) {
    while (http->counts().connections.value() > kept) {
      EXPECT_TRUE(co_await rt::yield());
    }
    const auto answer = co_await http->request(ClientRequest(method, url));
    outcomes->push_back(outcome_text(answer));
  }
  *repeated = http->counts().repeated.value();
}

class HttpKeptTest : public HttpLiarTest {
 protected:
  std::vector<std::string> outcomes_of(const std::vector<std::string>& methods,
                                       std::vector<std::vector<std::string>> answers, std::uint64_t connections = 1) {
    auto kept = std::make_shared<Kept>(Kept{std::move(answers)});
    const std::string url =
        serve_lies([kept](RawSession& session, const std::string& text) { kept->say(session, text); });
    std::vector<std::string> outcomes;
    run(ask_in_turn(url, methods, connections, &outcomes, &repeated_));
    return outcomes;
  }

  std::uint64_t repeated_ = 0;
};
using Texts = std::vector<std::string>;

TEST_F(HttpKeptTest, ARequestThatLostAKeptConnectionBeforeTheAnswerIsSentAgainOnce) {
  EXPECT_EQ(outcomes_of({"GET", "GET"}, {{kOk}, {kOk}}), (Texts{"200 ok", "200 ok"}));
  EXPECT_EQ(repeated_, 1u);
  EXPECT_EQ(outcomes_of({"GET", "PUT"}, {{kOk}, {kOk}}), (Texts{"200 ok", "200 ok"}));
  EXPECT_EQ(repeated_, 1u);
  const Texts twice = outcomes_of({"GET", "GET"}, {{kOk}, {}, {kOk}});
  EXPECT_EQ(twice[1].substr(twice[1].find(',')), ", unknown") << twice[1];
  EXPECT_EQ(repeated_, 1u);
}

TEST_F(HttpKeptTest, NothingElseIsSentAgain) {
  const Texts post = outcomes_of({"GET", "POST"}, {{kOk}, {kOk}});  // it may have been carried out
  EXPECT_EQ(post[1].substr(post[1].find(',')), ", unknown") << post[1];
  EXPECT_EQ(repeated_, 0u);
  const Texts first = outcomes_of({"GET"}, {{}, {kOk}});  // the connection is new
  EXPECT_EQ(first[0].substr(first[0].find(',')), ", unknown") << first[0];
  EXPECT_EQ(repeated_, 0u);
  const std::string begun("HTTP/1.1 2\0", 11);
  EXPECT_EQ(outcomes_of({"GET", "GET"}, {{kOk, begun}, {kOk}}),
            (Texts{"200 ok", "connection closed by peer, unknown"}));
  EXPECT_EQ(repeated_, 0u);
}

TEST_F(HttpKeptTest, AConnectionThatEndsBetweenRequestsIsNotUsedAgain) {
  const std::string ends = kOk + std::string(1, '\0');
  EXPECT_EQ(outcomes_of({"POST", "POST"}, {{ends}, {kOk}}, 0), (Texts{"200 ok", "200 ok"}));
  const std::string closes = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
  EXPECT_EQ(outcomes_of({"POST", "POST"}, {{closes}, {kOk}}), (Texts{"200 ok", "200 ok"}));
}

TEST_F(HttpKeptTest, BytesThatAnswerNoRequestEndTheirConnection) {
  EXPECT_EQ(outcomes_of({"GET", "POST"}, {{kOk + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"}, {kOk}}),
            (Texts{"200 ok", "200 ok"}));
  EXPECT_EQ(repeated_, 0u);
}

// --- time ---

rt::Task<void> wait_for_a_slow_head(std::string url) {
  HttpClientOptions options = patient();
  options.head_timeout = std::chrono::milliseconds(20);
  const auto http = open_http(options);
  const auto answer = co_await http->get(url);
  EXPECT_EQ(outcome_text(answer), "timed out, unknown");
  EXPECT_EQ(http->counts().late_head.value(), 1u);
}
TEST_F(HttpLiarTest, AHeadThatComesByteByByteHasATime) {
  const std::string url = serve_lies([](RawSession& session, const std::string&) {
    const auto drip = [](RawSession* to) -> rt::Task<void> {
      answer(*to, "HTTP/1.1 200 OK\r\n");
      for (int i = 0; i < 2000 && to->is_open(); ++i) {
        answer(*to, "X: y\r\n");
        const Result<void> slept = co_await rt::sleep(std::chrono::milliseconds(1));
        if (!slept) {
          co_return;
        }
      }
    };
    EXPECT_TRUE(session.spawn(drip(&session)));
  });
  run(wait_for_a_slow_head(url));
}

rt::Task<void> follow_a_liar(std::string url) {
  const auto http = open_http();
  ClientRequest request = ClientRequest::get(url);
  request.follow_redirects(10);
  EXPECT_EQ(outcome_text(co_await http->request(request)), "not permitted, answered");
  EXPECT_EQ(http->counts().redirects.value(), 10u);
}
TEST_F(HttpLiarTest, AnEndlessWayEnds) {
  run(follow_a_liar(serve_lies([](RawSession& session, const std::string&) {
    answer(session, "HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n");
  })));
}

rt::Task<void> read_cut_pieces(std::string url) {
  const auto http = open_http();
  auto answer = co_await http->stream(ClientRequest::get(url));
  EXPECT_TRUE(answer) << outcome_text(answer);
  if (!answer) {
    co_return;
  }
  const auto rest = co_await answer->reader().read_rest(1000);
  EXPECT_EQ(rest.error(), Errc::connection_closed) << rest.error().message();
  EXPECT_EQ(rest.error().fate(), Fate::answered);
  EXPECT_FALSE(answer->reader().ended());
}
TEST_F(HttpLiarTest, ABodyInPiecesThatIsCutIsAnErrorToo) {
  run(read_cut_pieces(serve_lies([](RawSession& session, const std::string&) {
    answer_and_end(session, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok");
  })));
}

rt::Task<void> close_before_the_attempt_begins(std::string url) {
  HttpClientOptions options = patient();
  options.total_timeout = std::chrono::seconds(5);  // passes if the request waits for the attempt
  auto http = open_http(options);
  rt::TaskScope scope(rt::Core::current()->loop());
  Error outcome;
  EXPECT_TRUE(scope.spawn(serve::test::run_nested(&scope, [&]() -> rt::Task<void> {
    const auto answer = co_await http->get(url);
    outcome = answer ? Error() : answer.error();
  })));
  http.reset();
  EXPECT_TRUE(co_await scope.join());
  EXPECT_EQ(outcome, Errc::closed) << outcome.message();
}

TEST_F(HttpLiarTest, ARequestEndsWithItsClientAlthoughItsConnectionHasNotBegun) {
  run(close_before_the_attempt_begins(serve_lies([](RawSession& session, const std::string&) { session.close(); })));
}

// The texts that a program keeps have a table of their own, and a peer's take none of its room.
rt::Task<void> be_told_nonsense(std::string url) {
  const auto http = open_http();
  const auto got = co_await http->get(url);
  EXPECT_EQ(got.error(), Errc::protocol_error);
  const StaticText kept = sync::keep_peer_text({got.error().text()}, "no room");
  EXPECT_EQ(static_cast<const void*>(got.error().text()), static_cast<const void*>(Error(Errc::closed, kept).text()));
}

TEST_F(HttpLiarTest, AnErrorThatNamesAServerIsKeptWithTheTextsOfPeers) {
  run(be_told_nonsense(
      serve_lies([](RawSession& session, const std::string&) { answer_and_end(session, "nonsense\r\n\r\n"); })));
}

}  // namespace
}  // namespace weft::serve::web
