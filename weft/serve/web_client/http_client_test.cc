// SPDX-License-Identifier: MIT
#include "weft/serve/web_client/http_client.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/rt/task/task_time.h"
#include "weft/serve/web_client/test_web_client.h"
#include <gtest/gtest.h>

// The client against the server of this library.
namespace weft::serve::web {
namespace {

using serve::test::kLong;
using test::open_http;
using test::outcome_text;
using test::patient;

class HttpClientTest : public test::HttpClientFixture {};

rt::Task<void> get_into(HttpClient* http, std::string url, std::string* into) {
  const auto answer = co_await http->get(std::move(url));
  *into = outcome_text(answer);
}

// --- requests and answers ---

rt::Task<void> get_and_post(std::string url) {
  const auto http = open_http();
  const auto hello = co_await http->get(url + "/hello/Ada?times=2");
  EXPECT_EQ(outcome_text(hello), "200 Ada 2");
  if (hello) {
    EXPECT_EQ((*hello)["content-type"], kPlainText);
    EXPECT_EQ(hello->reason(), "OK");
    EXPECT_EQ(hello->url(), url + "/hello/Ada?times=2");
    EXPECT_FALSE((*hello)["Date"].empty());
  }
  const std::string big(1'000'000, 'b');
  const auto echo = co_await http->post(url + "/echo", big, "text/plain");
  EXPECT_EQ(outcome_text(echo), "200 " + big);
  const auto none = co_await http->get(url + "/none");
  EXPECT_EQ(outcome_text(none), "404 404 Not Found\n");
  const auto empty = co_await http->post(url + "/echo", "", "text/plain");
  EXPECT_EQ(outcome_text(empty), "200 ");
  EXPECT_EQ(http->counts().connected.value(), 1u);
  EXPECT_EQ(http->counts().reused.value(), 3u);
  EXPECT_EQ(http->counts().status_2xx.value(), 3u);
  EXPECT_EQ(http->counts().status_4xx.value(), 1u);
}
TEST_F(HttpClientTest, RequestsAreAnsweredOverOneConnection) {
  ASSERT_TRUE(router_.get("/hello/{name}", [](const Request& request) {
    return request.param("name") + " " + request.query("times").value_or("");
  }));
  ASSERT_TRUE(router_.post("/echo", [](const Request& request) { return std::string(request.body()); }));
  run(get_and_post(serve_site()));
}

rt::Task<void> ask_without_bodies(std::string url) {
  const auto http = open_http();
  for (int i = 0; i < 2; ++i) {  // the next answer begins where this one ends
    const auto head = co_await http->request(ClientRequest::head(url + "/"));
    EXPECT_EQ(outcome_text(head), "200 ");
    if (head) {
      EXPECT_EQ((*head)["Content-Length"], "5");
    }
    const auto none = co_await http->request(ClientRequest::del(url + "/gone"));
    EXPECT_EQ(outcome_text(none), "204 ");
  }
  EXPECT_EQ(http->counts().connected.value(), 1u);
}
TEST_F(HttpClientTest, AnswersWithoutABodyEndWithTheirHead) {
  ASSERT_TRUE(router_.get("/", [] { return "hello"; }));
  ASSERT_TRUE(router_.del("/gone", [] { return Response(204); }));
  run(ask_without_bodies(serve_site()));
}

rt::Task<void> send_fields(std::string url) {
  const auto http = open_http();
  ClientRequest request = ClientRequest::get(url + "/fields");
  request.set("X-One", "1").add("X-One", "2").set("Accept", "text/plain");
  const auto fields = co_await http->request(request);
  EXPECT_EQ(outcome_text(fields), "200 1,text/plain," + url.substr(7));
  for (const char* name : {"Host", "Content-Length", "Transfer-Encoding", "Connection", "X Y", "Expect"}) {
    ClientRequest wrong = ClientRequest::get(url + "/fields");
    wrong.set(name, "1");
    EXPECT_EQ(outcome_text(co_await http->request(wrong)), "invalid argument, not sent") << name;
  }
  ClientRequest split = ClientRequest::get(url + "/fields");
  split.set("X", "1\r\nY: 2");
  EXPECT_EQ(outcome_text(co_await http->request(split)), "invalid argument, not sent");
  EXPECT_EQ(outcome_text(co_await http->request(ClientRequest("CONNECT", url))), "invalid argument, not sent");
  EXPECT_EQ(outcome_text(co_await http->request(ClientRequest("GET /", url))), "invalid argument, not sent");
  EXPECT_EQ(outcome_text(co_await http->get("ws" + url.substr(4))), "invalid argument, not sent");
  EXPECT_EQ(outcome_text(co_await http->get(url + "/a b")), "invalid argument, not sent");
  EXPECT_EQ(http->counts().refused_mistake.value(), 11u);
  EXPECT_EQ(http->counts().attempts.value(), 1u);
}
TEST_F(HttpClientTest, FieldsReachTheServerAndNoneCanBeginAnotherLine) {
  ASSERT_TRUE(router_.get("/fields", [](const Request& request) {
    return std::string(request["X-One"]).append(",").append(request["Accept"]).append(",").append(request.host());
  }));
  run(send_fields(serve_site()));
}

// --- bodies in pieces ---

Response count_to(int last) {
  return Response::stream([last](BodyWriter& out) -> rt::Task<Result<void>> {
    const std::string line(10'000, 'x');
    for (int i = 0; i < last; ++i) {
      const auto sent = co_await out.write(line);
      if (!sent) {
        co_return sent.error();
      }
    }
    co_return Result<void>();
  });
}

rt::Task<void> download(std::string url) {
  const auto http = open_http();
  const auto whole = co_await http->get(url + "/count");
  EXPECT_TRUE(whole && whole->body().size() == 1'000'000u) << outcome_text(whole);
  auto pieces = co_await http->stream(ClientRequest::get(url + "/count"));
  EXPECT_TRUE(pieces) << outcome_text(pieces);
  if (!pieces) {
    co_return;
  }
  EXPECT_EQ((*pieces)["Transfer-Encoding"], "chunked");
  std::size_t size = 0;
  std::size_t parts = 0;
  for (;;) {
    const Result<Bytes> part = co_await pieces->reader().read();
    EXPECT_TRUE(part) << part.error().message();
    if (!part || part->empty()) {
      break;
    }
    size += part->size();
    ++parts;
  }
  EXPECT_EQ(size, 1'000'000u);
  EXPECT_GT(parts, 1u);
  EXPECT_TRUE(pieces->reader().ended());
  EXPECT_EQ(http->counts().connected.value(), 1u);  // the connection is kept
  const auto after = co_await http->get(url + "/count");
  EXPECT_TRUE(after && after->body().size() == 1'000'000u) << outcome_text(after);
  EXPECT_EQ(http->counts().connected.value(), 1u);
}
TEST_F(HttpClientTest, ABodyIsCollectedOrReadInPieces) {
  ASSERT_TRUE(router_.get("/count", [] { return count_to(100); }));
  run(download(serve_site()));
}

rt::Task<void> read_nothing(std::string url) {
  const auto http = open_http();
  {
    auto answer = co_await http->stream(ClientRequest::get(url + "/count"));
    EXPECT_TRUE(answer) << outcome_text(answer);
    const auto hello = co_await http->get(url + "/hello");  // over another connection
    EXPECT_EQ(outcome_text(hello), "200 hello");
  }
  EXPECT_EQ(http->counts().given_up.value(), 1u);
  const auto hello = co_await http->get(url + "/hello");
  EXPECT_EQ(outcome_text(hello), "200 hello");
  EXPECT_EQ(http->counts().connected.value(), 2u);
}
TEST_F(HttpClientTest, ABodyThatIsNotReadIsNotTakenAndEndsItsConnection) {
  ASSERT_TRUE(router_.get("/count", [] { return count_to(100'000); }));  // 1 GB
  ASSERT_TRUE(router_.get("/hello", [] { return "hello"; }));
  run(read_nothing(serve_site()));
}

rt::Task<void> upload(std::string url) {
  const auto http = open_http();
  const auto produce = [](BodyWriter& out) -> rt::Task<Result<void>> {
    const std::string piece(100'000, 'u');
    for (int i = 0; i < 50; ++i) {
      const auto sent = co_await out.write(piece);
      if (!sent) {
        co_return sent.error();
      }
    }
    co_return Result<void>();
  };
  ClientRequest chunks("POST", url + "/size");
  chunks.stream_body(produce);
  EXPECT_EQ(outcome_text(co_await http->request(chunks)), "200 5000000");
  ClientRequest measured("POST", url + "/size");
  measured.stream_body(produce, "text/plain", 5'000'000);
  EXPECT_EQ(outcome_text(co_await http->request(measured)), "200 5000000");
  EXPECT_EQ(http->counts().connected.value(), 1u);
  ClientRequest less("POST", url + "/size");
  less.stream_body(produce, "text/plain", 5'000'001);
  EXPECT_EQ(outcome_text(co_await http->request(less)), "not allowed in this state, unknown");
  ClientRequest throws("POST", url + "/size");
  throws.stream_body([](BodyWriter&) -> rt::Task<Result<void>> {
    throw std::runtime_error("no more");
    co_return Result<void>();
  });
  EXPECT_EQ(outcome_text(co_await http->request(throws)), "an exception ended the job or the task, unknown");
}
rt::Task<Result<Response>> size_of_body(const Request& /*request*/, BodyReader& body) {
  std::size_t size = 0;
  for (;;) {
    const Result<Bytes> part = co_await body.read();
    if (!part) {
      co_return part.error();
    }
    if (part->empty()) {
      co_return Response(std::to_string(size));
    }
    size += part->size();
  }
}
TEST_F(HttpClientTest, ACoroutineWritesTheBodyOfARequest) {
  ASSERT_TRUE(router_.post("/size", size_of_body));
  run(upload(serve_site()));
}

rt::Task<void> answer_early(std::string url) {
  const auto http = open_http();
  ClientRequest endless("POST", url + "/none");
  endless.stream_body([](BodyWriter& out) -> rt::Task<Result<void>> {
    const std::string part(64 * 1024, 'u');
    for (;;) {  // the server resets a connection that goes on with much more than it discards
      const auto sent = co_await out.write(part);
      if (!sent) {
        co_return sent.error();
      }
    }
  });
  EXPECT_EQ(outcome_text(co_await http->request(endless)), "404 404 Not Found\n");
  EXPECT_EQ(outcome_text(co_await http->get(url + "/hello")), "200 hello");
  EXPECT_EQ(http->counts().connected.value(), 2u);  // the first one did not end its request
}
TEST_F(HttpClientTest, AnAnswerBeforeTheEndOfTheRequestEndsTheConnection) {
  ASSERT_TRUE(router_.get("/hello", [] { return "hello"; }));
  ASSERT_TRUE(router_.post(
      "/none", [](const Request&, BodyReader&) -> rt::Task<Result<Response>> { co_return status_response(404); }));
  run(answer_early(serve_site()));
}

// --- bounds ---

rt::Task<void> exceed_bounds(std::string url) {
  HttpClientOptions options = patient();
  options.limits.body_max = 5;
  options.limits.streamed_max = 7;
  const auto http = open_http(options);
  EXPECT_EQ(outcome_text(co_await http->get(url + "/5")), "200 xxxxx");
  EXPECT_EQ(outcome_text(co_await http->get(url + "/6")), "message too large, answered");
  auto seven = co_await http->stream(ClientRequest::get(url + "/7"));
  EXPECT_TRUE(seven) << outcome_text(seven);
  if (seven) {
    const auto rest = co_await seven->reader().read_rest(7);
    EXPECT_EQ(rest.value_or(""), "xxxxxxx");
  }
  EXPECT_EQ(outcome_text(co_await http->stream(ClientRequest::get(url + "/8"))), "message too large, answered");
  EXPECT_EQ(http->counts().body_large.value(), 2u);
}
TEST_F(HttpClientTest, ABodyHasABound) {
  ASSERT_TRUE(router_.get("/{size}", [](const Request& request) {
    return std::string(static_cast<std::size_t>(std::atoi(request.param("size").c_str())), 'x');
  }));
  run(exceed_bounds(serve_site()));
}

// A server that answers after `open` is set.
struct Gate {
  std::atomic<int> waiting{0};
  std::atomic<bool> open{false};
};
rt::Task<void> crowd(std::string url, Gate* gate) {
  HttpClientOptions options = patient();
  options.connections_max = 2;
  options.waiting_max = 1;
  const auto http = open_http(options);
  rt::TaskScope scope(*rt::Loop::current());
  std::vector<std::string> outcomes(3);
  for (std::string& outcome : outcomes) {
    EXPECT_TRUE(scope.spawn(get_into(http.get(), url + "/gate", &outcome)));
  }
  EXPECT_EQ(http->counts().waiting.value(), 1u);
  const auto refused = co_await http->get(url + "/gate");
  EXPECT_EQ(outcome_text(refused), "resource exhausted, not sent");
  gate->open = true;
  EXPECT_TRUE(co_await scope.join());
  EXPECT_EQ(outcomes, std::vector<std::string>(3, "200 open"));
  EXPECT_EQ(http->counts().connected.value(), 2u);
  EXPECT_EQ(http->counts().refused_waiting.value(), 1u);
  EXPECT_EQ(http->counts().waited.value(), 1u);
}
TEST_F(HttpClientTest, ConnectionsOfAnOriginAndWaitingRequestsAreBounded) {
  const auto gate = std::make_shared<Gate>();  // a handler may outlive this function
  ASSERT_TRUE(router_.get("/gate", [gate](const Request&) -> rt::Task<Result<Response>> {
    ++gate->waiting;
    while (!gate->open) {
      const auto turn = co_await rt::yield();
      if (!turn) {
        co_return turn.error();
      }
    }
    co_return Response("open");
  }));
  run(crowd(serve_site(), gate.get()));
}

rt::Task<void> be_late(std::string url) {
  HttpClientOptions options = patient();
  options.head_timeout = std::chrono::milliseconds(1);
  const auto impatient = open_http(options);
  EXPECT_EQ(outcome_text(co_await impatient->get(url + "/never")), "timed out, unknown");
  EXPECT_EQ(impatient->counts().late_head.value(), 1u);
  options = patient();
  options.body_timeout = std::chrono::milliseconds(1);
  const auto slow = open_http(options);
  EXPECT_EQ(outcome_text(co_await slow->get(url + "/half")), "timed out, answered");
  EXPECT_EQ(slow->counts().late_body.value(), 1u);
  const auto http = open_http();
  const Instant soon = rt::Loop::current()->now() + std::chrono::milliseconds(1);
  EXPECT_EQ(outcome_text(co_await http->get(url + "/never", soon)).substr(0, 9), "timed out");
  EXPECT_EQ(http->counts().late_total.value(), 1u);
  EXPECT_EQ(outcome_text(co_await http->get(url + "/never", Instant::min())), "timed out, not sent");
}
// Until the gate opens, or the handler is cancelled.
rt::Task<Result<void>> wait_at(std::shared_ptr<Gate> gate) {
  while (!gate->open) {
    const auto turn = co_await rt::yield();
    if (!turn) {
      co_return turn;
    }
  }
  co_return Result<void>();
}
TEST_F(HttpClientTest, EachWaitHasItsEnd) {
  const auto gate = std::make_shared<Gate>();
  ASSERT_TRUE(router_.get("/never", [gate](const Request&) -> rt::Task<Result<Response>> {
    const Result<void> waited = co_await wait_at(gate);
    co_return waited ? Result<Response>(Response("late")) : Result<Response>(waited.error());
  }));
  ASSERT_TRUE(router_.get("/half", [gate] {
    return Response::stream([gate](BodyWriter& out) -> rt::Task<Result<void>> {
      const auto sent = co_await out.write(std::string_view("half"));
      EXPECT_TRUE(sent);
      co_return co_await wait_at(gate);
    });
  }));
  run(be_late(serve_site()));
  gate->open = true;  // a body that has begun does not end with its client
}

rt::Task<void> rest(std::string url) {
  HttpClientOptions options = patient();
  options.idle_timeout = std::chrono::milliseconds(1);
  const auto http = open_http(options);
  EXPECT_EQ(outcome_text(co_await http->get(url + "/")), "200 hello");
  while (http->counts().connections.value() != 0) {
    EXPECT_TRUE(co_await rt::sleep(std::chrono::milliseconds(1)));
  }
  EXPECT_EQ(http->counts().idled.value(), 1u);
}
TEST_F(HttpClientTest, AnIdleConnectionEndsAfterItsTime) {
  ASSERT_TRUE(router_.get("/", [] { return "hello"; }));
  run(rest(serve_site()));
}

rt::Task<void> find_nobody() {
  const auto http = open_http();
  EXPECT_EQ(outcome_text(co_await http->get("http://127.0.0.1:1/")), "connection failed, not sent");
  EXPECT_EQ(http->counts().refused_connect.value(), 1u);
  const auto answer = co_await http->get("http://127.0.0.1:1/");
  EXPECT_NE(answer.error().message().find("http://127.0.0.1:1"), std::string::npos) << answer.error().message();
}
TEST_F(HttpClientTest, ARequestToNobodyIsNotSent) { run(find_nobody()); }

// --- redirects ---

rt::Task<void> follow_redirects(std::string url) {
  const auto http = open_http();
  const auto seen = co_await http->get(url + "/see");
  EXPECT_EQ(outcome_text(seen), "302 ");  // off by default
  if (seen) {
    EXPECT_EQ((*seen)["Location"], "/here?x=1");
  }
  ClientRequest follows = ClientRequest::get(url + "/see");
  follows.follow_redirects(3);
  const auto here = co_await http->request(follows);
  EXPECT_EQ(outcome_text(here), "200 GET  ");
  if (here) {
    EXPECT_EQ(here->url(), url + "/here?x=1");
  }
  ClientRequest loops = ClientRequest::get(url + "/loop");
  loops.follow_redirects(3);
  EXPECT_EQ(outcome_text(co_await http->request(loops)), "not permitted, answered");
  EXPECT_EQ(http->counts().redirects.value(), 4u);
  EXPECT_EQ(http->counts().redirects_refused.value(), 1u);

  ClientRequest posts = ClientRequest::post(url + "/see", "body", "text/plain");
  posts.follow_redirects(1);
  EXPECT_EQ(outcome_text(co_await http->request(posts)), "200 GET  ");
  ClientRequest keeps = ClientRequest::post(url + "/same", "body", "text/plain");
  keeps.follow_redirects(1);
  EXPECT_EQ(outcome_text(co_await http->request(keeps)), "200 POST body ");

  ClientRequest lost = ClientRequest::post(url + "/gone", "body", "text/plain");  // the second server refuses
  lost.follow_redirects(1);
  const auto refused = co_await http->request(lost);
  EXPECT_EQ(refused.error().fate(), Fate::answered) << outcome_text(refused);

  ClientRequest secret = ClientRequest::get(url + "/see");
  secret.set("Authorization", "Bearer x").set("Cookie", "a=b").follow_redirects(1);
  EXPECT_EQ(outcome_text(co_await http->request(secret)), "200 GET  Bearer xa=b");
  EXPECT_EQ(http->counts().credentials_dropped.value(), 0u);
  ClientRequest stolen = ClientRequest::get(url + "/other");
  stolen.set("Authorization", "Bearer x").set("Cookie", "a=b").follow_redirects(1);
  EXPECT_EQ(outcome_text(co_await http->request(stolen)), "200 GET  ");
  EXPECT_EQ(http->counts().credentials_dropped.value(), 1u);
  ClientRequest bad = ClientRequest::get(url + "/bad");
  bad.follow_redirects(1);
  EXPECT_EQ(outcome_text(co_await http->request(bad)), "protocol error, answered");
}
TEST_F(HttpClientTest, RedirectsAreFollowedOnlyWhereTheRequestSaysSo) {
  auto other = std::make_shared<std::string>();
  const auto here = [](const Request& request) {
    return std::string(request.method())
        .append(" ")
        .append(request.body())
        .append(" ")
        .append(std::string(request["Authorization"]).append(request["Cookie"]));
  };
  ASSERT_TRUE(router_.get("/here", here));
  ASSERT_TRUE(router_.post("/here", here));
  const auto to = [](unsigned status, std::string where) {
    return [status, where] { return Response(status).set("Location", where); };
  };
  ASSERT_TRUE(router_.get("/see", to(302, "/here?x=1")));
  ASSERT_TRUE(router_.post("/see", to(303, "here")));
  ASSERT_TRUE(router_.post("/same", to(307, "/here")));
  ASSERT_TRUE(router_.post("/gone", to(307, "http://127.0.0.1:1/")));
  ASSERT_TRUE(router_.get("/loop", to(301, "loop")));
  ASSERT_TRUE(router_.get("/bad", to(301, "ftp://x/")));
  ASSERT_TRUE(router_.get("/other", [other] { return Response(302).set("Location", *other + "/here"); }));
  const std::string url = serve_site();
  ListenerOptions options;
  const auto second = server_->listen<HttpCodec>("tcp://127.0.0.1:0", options, site_->services(), site_->codec());
  ASSERT_TRUE(second) << second.error().message();
  *other = url_of(*second);
  run(follow_redirects(url));
}

// --- the end ---

rt::Task<void> close_gently(std::string url, Gate* gate) {
  const auto http = open_http();
  std::string outcome;
  rt::TaskScope scope(*rt::Loop::current());
  EXPECT_TRUE(scope.spawn(get_into(http.get(), url + "/gate", &outcome)));
  while (gate->waiting < 1) {
    EXPECT_TRUE(co_await rt::yield());
  }
  const auto late = co_await http->close(rt::Loop::current()->now());
  EXPECT_EQ(late.error(), Errc::timed_out);
  EXPECT_TRUE(co_await scope.join());
  EXPECT_EQ(outcome, "closed, unknown");
  EXPECT_EQ(outcome_text(co_await http->get(url + "/gate")), "closed, not sent");

  const auto second = open_http();
  std::string answered;
  EXPECT_TRUE(scope.spawn(get_into(second.get(), url + "/gate", &answered)));
  while (gate->waiting < 2) {
    EXPECT_TRUE(co_await rt::yield());
  }
  gate->open = true;
  EXPECT_TRUE(co_await second->close(sys::now() + kLong));
  EXPECT_TRUE(co_await scope.join());
  EXPECT_EQ(answered, "200 open");
  EXPECT_EQ(second->counts().connections.value(), 0u);

  const auto streaming = open_http();
  auto whole = co_await streaming->stream(ClientRequest::get(url + "/gate"));
  EXPECT_TRUE(whole);
  for (bool more = static_cast<bool>(whole); more;) {
    const Result<Bytes> part = co_await whole->reader().read();
    more = part && !part->empty();
  }
  EXPECT_TRUE(co_await streaming->close(sys::now() + kLong)) << "a whole answer that lives is not under way";

  auto third = open_http();
  std::string lost;
  EXPECT_EQ(outcome_text(co_await third->get(url + "/gate")), "200 open");
  gate->open = false;
  EXPECT_TRUE(scope.spawn(get_into(third.get(), url + "/gate", &lost)));
  while (gate->waiting < 5) {  // that of `streaming` and the first one of `third` are answered
    EXPECT_TRUE(co_await rt::yield());
  }
  third.reset();
  EXPECT_TRUE(co_await scope.join());
  EXPECT_EQ(lost, "closed, unknown");

  const auto fourth = open_http();
  std::string cancelled;
  rt::TaskScope cancels(*rt::Loop::current());
  EXPECT_TRUE(cancels.spawn(get_into(fourth.get(), url + "/gate", &cancelled)));
  while (gate->waiting < 6) {
    EXPECT_TRUE(co_await rt::yield());
  }
  cancels.cancel();
  EXPECT_TRUE(co_await cancels.join());
  EXPECT_EQ(cancelled, "cancelled, unknown");
  EXPECT_EQ(fourth->counts().given_up.value(), 1u);
  gate->open = true;
}
TEST_F(HttpClientTest, TheEndOfAClientEndsItsRequests) {
  const auto gate = std::make_shared<Gate>();  // a handler may outlive this function
  ASSERT_TRUE(router_.get("/gate", [gate](const Request&) -> rt::Task<Result<Response>> {
    ++gate->waiting;
    while (!gate->open) {
      const auto turn = co_await rt::yield();
      if (!turn) {
        co_return turn.error();
      }
    }
    co_return Response("open");
  }));
  run(close_gently(serve_site(), gate.get()));
}

TEST_F(HttpClientTest, AClientIsUsedOnItsCore) {
  const auto elsewhere = [](std::unique_ptr<HttpClient>* http) -> rt::Task<void> {
    *http = open_http();
    co_return;
  };
  std::unique_ptr<HttpClient> http;
  run(elsewhere(&http));
  const auto use = [](HttpClient* of) -> rt::Task<void> {
    EXPECT_EQ(outcome_text(co_await of->get("http://127.0.0.1:1/")), "not allowed in this state, not sent");
  };
  auto used = rt::spawn(runtime_->core(1).loop(), use(http.get()));
  ASSERT_TRUE(used.wait_until(sys::now() + kLong));
  http.reset();  // in this thread
}

}  // namespace
}  // namespace weft::serve::web
