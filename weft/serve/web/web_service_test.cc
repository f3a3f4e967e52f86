// SPDX-License-Identifier: MIT
#include "weft/serve/web/web_service.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web/test_site.h"
#include "weft/sys/poll.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using serve::test::Client;
using serve::test::kLong;
using serve::test::Signal;
using test::get;
using test::kHost;
using test::post;
using test::read_reply;
using test::Reply;

class WebServiceTest : public test::SiteTest {
 protected:
  void add_hello() {
    ASSERT_TRUE(router_.get("/", [] { return "hello"; }));
    ASSERT_TRUE(router_.post("/echo", [](const Request& request) { return Response(std::string(request.body())); }));
  }
};

TEST_F(WebServiceTest, RequestsAreAnsweredInTheirOrderOverOneConnection) {
  add_hello();
  Client client(listen_web());
  client.write(get("/") + post("/echo", "one") + get("/none") + post("/echo", "") + post("/", "x"));
  const Reply hello = read_reply(client);
  EXPECT_EQ(hello.head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(hello.body, "hello");
  EXPECT_EQ(read_reply(client).body, "one");
  const Reply none = read_reply(client);
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(none.body, "404 Not Found\n");
  EXPECT_EQ(read_reply(client).status, 200);
  const Reply not_allowed = read_reply(client);
  EXPECT_EQ(not_allowed.status, 405);
  EXPECT_NE(not_allowed.head.find("Allow: GET, HEAD\r\n"), std::string::npos);
  until_counted([](const WebCounts& counts) {
    return counts.status_2xx == 3 && counts.status_4xx == 2 && counts.no_path == 1 && counts.no_method == 1;
  });
}

TEST_F(WebServiceTest, AnHttpsTargetWithoutTlsIsMisdirected) {
  add_hello();
  ASSERT_TRUE(router_.post("/up", [](const Request&, BodyReader& body) -> rt::Task<Result<Response>> {
    const auto rest = co_await body.read_rest(100);
    co_return rest ? Result<Response>(Response(*rest)) : Result<Response>(rest.error());
  }));
  Client client(listen_web());
  client.write("GET https://x/ HTTP/1.1\r\nHost: x\r\n\r\n" + post("https://x/echo", "one") +
               post("http://x/echo", "two") + post("https://x/up", "three") + get("/"));
  for (int i = 0; i < 2; ++i) {
    const Reply reply = read_reply(client);
    EXPECT_EQ(reply.status, 421);
    EXPECT_EQ(reply.body, "421 Misdirected Request\n");
  }
  EXPECT_EQ(read_reply(client).body, "two");
  const Reply last = read_reply(client);
  EXPECT_EQ(last.status, 421);
  EXPECT_NE(last.head.find("Connection: close\r\n"), std::string::npos) << "its body is not taken";
  EXPECT_EQ(client.read_to_end(), "");
  until_counted([](const WebCounts& counts) { return counts.misdirected == 3 && counts.status_4xx == 3; });
}

TEST_F(WebServiceTest, AnAnswerHasADate) {
  add_hello();
  Client client(listen_web());
  client.write("GET / HTTP/1.0\r\n\r\n");
  const std::string answer = client.read_to_end();
  const std::size_t date = answer.find("\r\nDate: ");
  ASSERT_NE(date, std::string::npos);
  EXPECT_EQ(answer.substr(date + 33, 6), " GMT\r\n") << answer;
}

TEST_F(WebServiceTest, HeadIsAnsweredAsGetWithoutTheBody) {
  add_hello();
  Client client(listen_web());
  client.write("HEAD /" + kHost + "\r\n" + get("/") + "HEAD /none" + kHost + "\r\n" + get("/none"));
  for (const int status : {200, 404}) {
    const Reply head = read_reply(client, false);
    const Reply whole = read_reply(client);
    EXPECT_EQ(whole.status, status);
    EXPECT_EQ(head.head, whole.head);
  }
}

TEST_F(WebServiceTest, AHandlerReadsPathQueryFormFieldsAndHost) {
  ASSERT_TRUE(router_.post("/users/{id}/{what}", [](const Request& request) {
    return Response(request.param("id") + "|" + request.param("what") + "|" + request.query("q").value_or("-") + "|" +
                    request.query("none").value_or("-") + "|" + request.form("f").value_or("-") + "|" +
                    std::string(request["x-y"]) + "|" + std::string(request["none"]) + "|" +
                    std::string(request.host()) + "|" + std::string(request.method()));
  }));
  Client client(listen_web());
  const std::string head = "POST /users/a%2Fb/c?q=1+2" + kHost + "X-Y: z\r\nContent-Length: 7\r\n";
  client.write(head + "Content-Type: Application/X-www-form-urlencoded; charset=utf-8\r\n\r\nf=%c3+g" + head +
               "Content-Type: text/plain\r\n\r\nf=%c3+g");
  EXPECT_EQ(read_reply(client).body, "a/b|c|1 2|-|\xC3 g|z||x|POST");
  EXPECT_EQ(read_reply(client).body, "a/b|c|1 2|-|-|z||x|POST");
}

TEST_F(WebServiceTest, ABodyInChunksIsWholeForFunctionsAndCoroutines) {
  add_hello();
  ASSERT_TRUE(router_.post("/later", [](const Request& request) -> rt::Task<Response> {
    (void)co_await rt::sleep(std::chrono::milliseconds(1));
    co_return Response(std::string(request.body()));
  }));
  Client client(listen_web());
  for (const std::string path : {"/echo", "/later"}) {
    client.write("POST " + path + kHost + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    client.write("2\r\nde\r\n0\r\nX: y\r\n\r\n" + get("/"));
    EXPECT_EQ(read_reply(client).body, "abcde");
    EXPECT_EQ(read_reply(client).body, "hello");
  }
}

TEST_F(WebServiceTest, ACoroutineKeepsItsRequestAndLaterRequestsWaitForIt) {
  Signal started;
  rt::AsyncEvent go;
  add_hello();
  ASSERT_TRUE(router_.post("/slow/{name}", [&](const Request& request) -> rt::Task<Result<Response>> {
    started.give();
    (void)co_await go.wait();
    co_return Response(request.param("name") + std::string(request["X"]) + std::string(request.body()));
  }));
  start_runtime(1);
  make_server();
  Client client(listen_web());
  client.write("POST /slow/a%20b" + kHost + "X: y\r\nContent-Length: 3\r\n\r\nabc" + get("/") + post("/echo", "last"));
  ASSERT_TRUE(started.take());
  ASSERT_TRUE(runtime_->post(0, [&go] { go.set(); }));
  EXPECT_EQ(read_reply(client).body, "a byabc");
  EXPECT_EQ(read_reply(client).body, "hello");
  EXPECT_EQ(read_reply(client).body, "last");
}

TEST_F(WebServiceTest, ACoroutineWhosePeerLeftIsCancelledAndCounted) {
  Signal started;
  ASSERT_TRUE(router_.get("/slow", [&](const Request&) -> rt::Task<Response> {
    started.give();
    (void)co_await rt::sleep(kLong);
    co_return Response("late");
  }));
  auto client = std::make_unique<Client>(listen_web());
  client->write(get("/slow"));
  ASSERT_TRUE(started.take());
  client.reset();
  until_counted([](const WebCounts& counts) { return counts.cancelled == 1; });
}

TEST_F(WebServiceTest, AFailureOfAHandlerIsAStatusAndTheConnectionStays) {
  add_hello();
  ASSERT_TRUE(router_.get("/throw", [](const Request&) -> Response { throw std::runtime_error("no"); }));
  ASSERT_TRUE(router_.get("/throw-later", [](const Request&) -> rt::Task<Response> {
    (void)co_await rt::sleep(std::chrono::milliseconds(1));
    throw std::runtime_error("no");
  }));
  ASSERT_TRUE(router_.get("/error", []() -> Result<Response> { return Error(Errc::not_found, "no such user"); }));
  ASSERT_TRUE(router_.get("/error-later", [](const Request&) -> rt::Task<Result<Response>> {
    co_return Error(Errc::resource_exhausted, "busy");
  }));
  ASSERT_TRUE(router_.get("/split", [](const Request& request) {
    return Response("x").set("Location", "/" + request.query("to").value_or(""));
  }));
  ASSERT_TRUE(router_.get("/large", [] { return Response(std::string(kBodyMax + 1, 'x')); }));
  ASSERT_TRUE(router_.get("/status", [] { return Response(99); }));
  Client client(listen_web());
  const std::pair<const char*, int> cases[] = {{"/throw", 500},
                                               {"/throw-later", 500},
                                               {"/error", 404},
                                               {"/error-later", 503},
                                               {"/split?to=a%0d%0aSet-Cookie:b", 500},
                                               {"/large", 500},
                                               {"/status", 500},
                                               {"/split?to=a", 200}};
  for (const auto& [path, status] : cases) {
    client.write(get(path));
    const Reply reply = read_reply(client);
    EXPECT_EQ(reply.status, status) << path;
    EXPECT_EQ(reply.head.find("Set-Cookie"), std::string::npos);
  }
  client.write(get("/"));
  EXPECT_EQ(read_reply(client).body, "hello");
  until_counted([](const WebCounts& counts) {
    return counts.thrown == 2 && counts.errors == 2 && counts.unsendable == 3 && counts.status_5xx == 6;
  });
}

TEST_F(WebServiceTest, AnAnswerWithoutABodyHasNone) {
  ASSERT_TRUE(router_.get("/204", [] { return Response(204, "not sent"); }));
  ASSERT_TRUE(router_.get("/205", [] { return Response(205, "not sent"); }));
  ASSERT_TRUE(router_.get("/304", [] { return Response(304, "not sent").set("ETag", "\"1\""); }));
  Client client(listen_web());
  client.write(get("/204") + get("/205") + get("/304") + "OPTIONS *" + kHost + "\r\n" + get("/none"));
  EXPECT_EQ(read_reply(client, false).head.find("Content-Length"), std::string::npos);
  EXPECT_NE(read_reply(client, false).head.find("Content-Length: 0\r\n"), std::string::npos);
  EXPECT_EQ(read_reply(client, false).head.find("Content-Length"), std::string::npos);
  EXPECT_EQ(read_reply(client, false).status, 204);
  EXPECT_EQ(read_reply(client).status, 404);
}

TEST_F(WebServiceTest, AConnectionEndsAsItsLastRequestOrAnswerSays) {
  add_hello();
  ASSERT_TRUE(router_.get("/close", [] { return Response("bye").close(); }));
  const std::string endpoint = listen_web();
  const std::pair<std::string, bool> cases[] = {
      {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", true},
      {"GET / HTTP/1.0\r\n\r\n", false},
      {get("/close"), true},
  };
  for (const auto& [request, says] : cases) {
    Client client(endpoint);
    client.write(request + request);
    const Reply reply = read_reply(client);
    EXPECT_EQ(reply.status, 200);
    EXPECT_NE(reply.head.find("Connection: close\r\n"), std::string::npos);
    EXPECT_EQ(client.read_to_end(), "") << request << says;
    EXPECT_FALSE(client.reset());
  }
  Client old(endpoint);
  old.write("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_NE(read_reply(old).head.find("Connection: keep-alive\r\n"), std::string::npos);
  old.write(get("/"));
  EXPECT_EQ(read_reply(old).body, "hello");
}

TEST_F(WebServiceTest, AConnectionHasItsNumberOfRequests) {
  add_hello();
  HttpLimits limits;
  limits.requests_max = 2;
  Client client(listen_web(limits));
  client.write(get("/") + get("/") + get("/"));
  EXPECT_EQ(read_reply(client).head.find("Connection"), std::string::npos);
  EXPECT_NE(read_reply(client).head.find("Connection: close\r\n"), std::string::npos);
  EXPECT_EQ(client.read_to_end(), "");
  until_counted([](const WebCounts& counts) { return counts.worn == 1; });
}

TEST_F(WebServiceTest, APeerThatExpects100ContinueIsToldBeforeItSendsTheBody) {
  add_hello();
  ASSERT_TRUE(router_.post("/later", [](const Request& request) -> rt::Task<Response> {
    (void)co_await rt::sleep(std::chrono::milliseconds(1));
    co_return Response(std::string(request["X"]) + std::string(request.body()));
  }));
  const std::string endpoint = listen_web();
  const std::string more = kHost + "X: y\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
  Client client(endpoint);
  for (const auto& [path, body] : {std::pair("/echo", "abc"), std::pair("/later", "yabc")}) {
    client.write("POST " + std::string(path) + more);
    EXPECT_EQ(client.read(25), "HTTP/1.1 100 Continue\r\n\r\n");
    client.write("abc");
    EXPECT_EQ(read_reply(client).body, body);
  }
  client.write("POST /none" + more);
  const Reply reply = read_reply(client);
  EXPECT_EQ(reply.status, 404);
  EXPECT_NE(reply.head.find("Connection: close\r\n"), std::string::npos);  // the body may come nevertheless
  client.write("abc");
  EXPECT_EQ(client.read_to_end(), "");
  Client leaver(endpoint);
  leaver.write("POST /echo" + more);
  EXPECT_EQ(leaver.read(25), "HTTP/1.1 100 Continue\r\n\r\n");
  leaver.close();
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::peer_failed) == 1; });
  until_counted([](const WebCounts& counts) { return counts.continues == 3 && counts.no_path == 1; });
}

TEST_F(WebServiceTest, ARefusedRequestGetsItsStatusACounterAndTheEnd) {
  add_hello();
  HttpLimits limits;
  limits.head_max = 300;
  limits.target_max = 100;
  limits.fields_max = 5;
  limits.body_max = 10;
  limits.framing_max = 50;
  const std::string endpoint = listen_web(limits);
  const std::string chunked = "POST /echo" + kHost + "Transfer-Encoding: chunked\r\n\r\n";
  std::string fields;
  for (int i = 0; i < 6; ++i) {
    fields += "X: y\r\n";
  }
  using Member = std::uint64_t WebCounts::*;
  const struct {
    std::string request;
    int status;
    Member counter;
  } cases[] = {
      {"GET /\r\n\r\n", 400, &WebCounts::malformed},
      {"\x16\x03\x01", 400, &WebCounts::malformed},
      {"GET /" + kHost + "Host: y\r\n\r\n", 400, &WebCounts::host},
      {"POST /echo" + kHost + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400, &WebCounts::framing},
      {"POST /echo" + kHost + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
       &WebCounts::framing},
      {chunked + "+1\r\na\r\n0\r\n\r\n", 400, &WebCounts::chunk},
      {"POST /echo" + kHost + "Content-Length: 11\r\n\r\n", 413, &WebCounts::body_large},
      {chunked + "B\r\n", 413, &WebCounts::body_large},
      {chunked + "1;" + std::string(60, 'x') + "\r\n", 413, &WebCounts::chunks_large},
      {"GET /" + std::string(200, 'x') + kHost + "\r\n", 414, &WebCounts::target_long},
      {"POST /echo" + kHost + "Expect: more\r\nContent-Length: 1\r\n\r\n", 417, &WebCounts::expectation},
      {"GET /" + kHost + "X: " + std::string(300, 'x'), 431, &WebCounts::head_large},
      {"GET /" + kHost + fields + "\r\n", 431, &WebCounts::many_fields},
      {"POST /echo" + kHost + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501, &WebCounts::coding},
      {"CONNECT x:1" + kHost + "\r\n", 501, &WebCounts::method_unknown},
      {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505, &WebCounts::version},
  };
  for (const auto& [request, status, counter] : cases) {
    const std::uint64_t before = site_->counts().*counter;
    Client client(endpoint);
    client.write(request);
    const Reply reply = read_reply(client);
    EXPECT_EQ(reply.status, status) << request;
    EXPECT_NE(reply.head.find("Connection: close\r\n"), std::string::npos) << request;
    EXPECT_EQ(client.read_to_end(), "") << request;
    EXPECT_FALSE(client.reset()) << request;
    EXPECT_EQ(site_->counts().*counter, before + 1) << request;
  }
  EXPECT_EQ(site_->counts().status_2xx, 0u);
}

TEST_F(WebServiceTest, APeerThatIsSlowWithItsHeadOrBodyGets408AndTheEnd) {
  add_hello();
  const std::string late = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  const std::string half_head = "GET / HTTP/1.1\r\nHost: x\r\nX: ";
  const std::string half_body = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab";
  ListenerOptions heads;
  heads.limits.frame_timeout = std::chrono::milliseconds(1);
  heads.limits.body_timeout = kLong;
  const std::string slow_bodies = listen_web({}, heads);
  Client patient(slow_bodies);
  patient.write(get("/") + half_body);
  EXPECT_EQ(read_reply(patient).body, "hello");
  for (const std::string& before : {get("/"), std::string()}) {
    Client client(slow_bodies);
    client.write(before + half_head);
    if (!before.empty()) {
      EXPECT_EQ(read_reply(client).body, "hello");
    }
    EXPECT_EQ(read_reply(client).head, late);
    EXPECT_EQ(client.read_to_end(), "");
    EXPECT_FALSE(client.reset());
  }
  patient.write("1234567");
  EXPECT_EQ(read_reply(patient).body, "ab1234567");
  until_counted([](const WebCounts& counts) { return counts.head_late == 2 && counts.status_4xx == 2; });
  ListenerOptions bodies;
  bodies.limits.frame_timeout = kLong;
  bodies.limits.body_timeout = std::chrono::milliseconds(1);
  router_ = Router();
  add_hello();
  Client client(listen_web({}, bodies));
  client.write(half_body);
  EXPECT_EQ(read_reply(client).head, late);
  EXPECT_EQ(client.read_to_end(), "");
  until_counted([](const WebCounts& counts) { return counts.body_late == 1; });
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::frame_timeout) == 3; });
}

TEST_F(WebServiceTest, APeerThatSendsNothingIsEndedWithoutAnAnswer) {
  add_hello();
  ListenerOptions options;
  options.limits.handshake_timeout = std::chrono::milliseconds(1);
  Client client(listen_web({}, options));
  EXPECT_EQ(client.read_to_end(), "");
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::handshake_timeout) == 1; });
}

TEST_F(WebServiceTest, DuringAStopTheLastAnswerSaysThatTheConnectionEnds) {
  struct TellsOfDrain {
    rt::AsyncEvent* draining;
    static void on_message(WebSocketSession&, const Message&) {}
    void on_drain() const { draining->set(); }
  };
  Signal started;
  rt::AsyncEvent draining;
  add_hello();
  ASSERT_TRUE(router_.websocket("/ws", [&draining] { return TellsOfDrain{&draining}; }));
  ASSERT_TRUE(router_.get("/slow", [&](const Request&) -> rt::Task<Response> {
    started.give();
    (void)co_await draining.wait();
    co_return Response("slow");
  }));
  start_runtime(1);
  make_server();
  Client client(listen_web());
  client.write(get("/slow") + get("/"));
  ASSERT_TRUE(started.take());
  server_->begin_stop(sys::now() + kLong);
  const Reply first = read_reply(client);
  EXPECT_EQ(first.body, "slow");
  EXPECT_EQ(first.head.find("Connection: close"), std::string::npos);
  const Reply last = read_reply(client);
  EXPECT_EQ(last.body, "hello");
  EXPECT_NE(last.head.find("Connection: close\r\n"), std::string::npos);
  EXPECT_EQ(client.read_to_end(), "");
}

TEST_F(WebServiceTest, DuringAStopARequestBehindThatOfACoroutineIsAnswered) {
  struct WaitsForMore {
    Signal* told;
    const int* fd;
    static void on_message(WebSocketSession&, const Message&) {}
    void on_drain() const {
      told->give();
      sys::PollFd more{*fd, sys::Interest::readable};
      EXPECT_TRUE(sys::poll_fds({&more, 1}, kLong));
    }
  };
  Signal told;
  int fd = -1;
  add_hello();
  ASSERT_TRUE(router_.websocket("/ws", [&] { return WaitsForMore{&told, &fd}; }));
  ASSERT_TRUE(router_.get("/fd", [&fd](const Request& request) {
    fd = request.session().stream().fd();
    return "fd";
  }));
  ASSERT_TRUE(router_.get("/task", [](const Request&) -> rt::Task<Response> { co_return Response("task"); }));
  start_runtime(1);
  make_server();
  Client client(listen_web());
  client.write(get("/fd"));
  EXPECT_EQ(read_reply(client).body, "fd");
  server_->begin_stop(sys::now() + kLong);
  ASSERT_TRUE(told.take());
  client.write(get("/task") + get("/"));
  const Reply first = read_reply(client);
  EXPECT_EQ(first.body, "task");
  EXPECT_EQ(first.head.find("Connection: close"), std::string::npos);
  EXPECT_EQ(read_reply(client).body, "hello");
  EXPECT_EQ(client.read_to_end(), "");
}

TEST_F(WebServiceTest, ASiteIsShownOnAPageOfMetrics) {
  add_hello();
  Client client(listen_web());
  client.write(get("/"));
  EXPECT_EQ(read_reply(client).body, "hello");
  CounterReadings readings;
  site_->counter_source()("shop", readings);
  ASSERT_EQ(readings.size(), 1u);
  EXPECT_EQ(readings[0].table, &kWebTable);
  EXPECT_EQ(readings[0].labels, (std::vector<CounterLabel>{{"web", "shop"}}));
  EXPECT_EQ(readings[0].values.size(), kWebTable.rows.size());
}

}  // namespace
}  // namespace weft::serve::web
