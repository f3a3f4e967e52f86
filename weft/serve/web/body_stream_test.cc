// SPDX-License-Identifier: MIT
// Ends of connections inside an answer or a request: those of the peer, and those of this end.
#include "weft/serve/web/body_stream.h"

#include <chrono>
#include <stdexcept>
#include <string>

#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/async_event.h"
#include "weft/serve/web/test_site.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using serve::test::Client;
using serve::test::kLong;
using serve::test::Signal;
using test::get;
using test::kHost;
using test::read_chunked;
using test::read_reply;

class WebEndTest : public test::SiteTest {
 protected:
  void SetUp() override {
    start_runtime(1);
    ASSERT_TRUE(router_.get("/", [] { return "hello"; }));
    ASSERT_TRUE(router_.get("/stream", [this] { return Response::stream(write_slowly()); }));
    ASSERT_TRUE(router_.get("/wait", [this](const Request&) -> rt::Task<Response> {
      begun_.give();
      const auto waited = co_await go_.wait();
      co_return Response(waited ? "waited" : "cancelled");
    }));
    ASSERT_TRUE(router_.post("/upload", [this](const Request&, BodyReader& body) -> rt::Task<Result<Response>> {
      begun_.give();
      const auto rest = co_await body.read_rest(1000);
      co_return rest ? Result<Response>(Response(*rest)) : Result<Response>(rest.error());
    }));
    ASSERT_TRUE(router_.post("/echo", [](const Request&, BodyReader& body) -> rt::Task<Response> {
      co_return Response::stream([&body](BodyWriter& out) -> rt::Task<Result<void>> {
        for (;;) {
          const Result<Bytes> part = co_await body.read();
          if (!part || part->empty()) {
            co_return part ? Result<void>() : Result<void>(part.error());
          }
          if (const auto sent = co_await out.write(*part); !sent) {
            co_return sent.error();
          }
        }
      });
    }));
  }
  // "first ", and "last" after `go_`.
  Response::Produce write_slowly() {
    return [this](BodyWriter& out) -> rt::Task<Result<void>> {
      (void)co_await out.write("first ");
      begun_.give();
      (void)co_await go_.wait();
      co_return co_await out.write("last");
    };
  }
  // The core sees the end of a peer's stream, and then `go_`.
  void go() {
    for (int turn = 0; turn < 5; ++turn) {
      rt::test::on_core(*runtime_, 0, [] {});
    }
    rt::test::on_core(*runtime_, 0, [this] { go_.set(); });
  }
  static std::string old(const std::string& path) { return "GET " + path + " HTTP/1.0\r\n\r\n"; }

  rt::AsyncEvent go_;
  Signal begun_;
};

// --- the end of a peer's stream, RFC 9112 section 9.6 ---

TEST_F(WebEndTest, OfAPeersStreamDoesNotCutAnAnswerThatHasBegun) {
  Client client(listen_web());
  client.write(get("/stream"));
  ASSERT_TRUE(begun_.take());
  client.end_writing();
  go();
  EXPECT_EQ(read_reply(client, false).status, 200);
  EXPECT_EQ(read_chunked(client), "first last");
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_FALSE(client.reset());
}

TEST_F(WebEndTest, OfAPeersStreamDoesNotCancelAHandlerWithTheLimitsOfASite) {
  ListenerOptions options;
  options.limits = session_limits();
  Client client(listen_web({}, options));
  client.write(get("/wait") + get("/"));
  ASSERT_TRUE(begun_.take());
  client.end_writing();
  go();
  EXPECT_EQ(read_reply(client).body, "waited");
  EXPECT_EQ(read_reply(client).body, "hello");
  EXPECT_EQ(client.read_to_end(), "");
}

TEST_F(WebEndTest, OfAPeersStreamCancelsAHandlerThatHasNotAnsweredIfTheLimitsSaySo) {
  ListenerOptions options;
  options.limits = session_limits();
  options.limits.peer_left = PeerLeft::cancel;
  Client client(listen_web({}, options));
  client.write(get("/wait"));
  ASSERT_TRUE(begun_.take());
  client.end_writing();
  EXPECT_EQ(client.read_to_end(), "");
  until_counted([](const WebCounts& counts) { return counts.cancelled == 1; });
}

TEST_F(WebEndTest, OfAConnectionCancelsAHandler) {
  ListenerOptions options;
  options.limits = session_limits();
  Client client(listen_web({}, options));
  client.write(get("/stream"));
  ASSERT_TRUE(begun_.take());
  until([](const CounterValues& counters) { return counters.bytes_out != 0; });
  client.close();  // with unread bytes: it is reset
  until_counted([](const WebCounts& counts) { return counts.cancelled == 1; });
}

// A body that is taken as it comes must not wait for the rest until its time is over.
TEST_F(WebEndTest, OfAPeersStreamInsideABodyEndsItsHandlerAtOnce) {
  ListenerOptions options;
  options.limits = session_limits();
  options.limits.body_timeout = options.limits.frame_timeout = kLong;
  const std::string endpoint = listen_web({}, options);
  const std::string length = "Content-Length: 9\r\n\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n";
  std::uint64_t ended = 0;
  for (const std::string& body : {length, length + "12345678", chunked, chunked + "3\r\nab", chunked + "3\r\nabc\r\n",
                                  chunked + "3\r\nabc\r\n0\r\n"}) {
    Client client(endpoint);
    client.write("POST /upload" + kHost + body);
    ASSERT_TRUE(begun_.take());
    client.end_writing();
    EXPECT_EQ(client.read_to_end(), "") << body;
    until_counted([&ended](const WebCounts& counts) { return counts.cancelled == ended + 1; });
    ++ended;
  }
  until([&ended](const CounterValues& counters) { return counters.closed_for(CloseReason::peer_failed) == ended; });
  EXPECT_EQ(site_->counts().body_late, 0u);
}

TEST_F(WebEndTest, OfAPeersStreamInsideACollectedBodyEndsTheConnectionAtOnce) {
  ASSERT_TRUE(router_.post("/collect", [](const Request& request) { return Response(std::string(request.body())); }));
  ListenerOptions options;
  options.limits = session_limits();
  options.limits.body_timeout = options.limits.frame_timeout = options.limits.idle_timeout = kLong;
  const std::string endpoint = listen_web({}, options);
  const std::string length = "Content-Length: 9\r\n\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
  std::uint64_t ended = 0;
  for (const std::string& body : {length, length + "12345678", chunked, chunked + "0\r\n"}) {
    for (const bool expects : {false, true}) {
      Client client(endpoint);
      client.write("POST /collect" + kHost + (expects ? "Expect: 100-continue\r\n" : "") + body);
      client.end_writing();
      EXPECT_EQ(client.read_to_end(), expects ? "HTTP/1.1 100 Continue\r\n\r\n" : "") << body;
      client.close();
      ++ended;
    }
  }
  until([&ended](const CounterValues& counters) { return counters.closed_for(CloseReason::peer_failed) == ended; });
  EXPECT_EQ(site_->counts().body_late, 0u);
  EXPECT_EQ(site_->counts().status_2xx, 0u);
}

TEST_F(WebEndTest, OfAPeersStreamInsideABodyThatIsEchoedEndsTheAnswerWithoutItsEnd) {
  ListenerOptions options;
  options.limits = session_limits();
  options.limits.body_timeout = options.limits.frame_timeout = kLong;
  Client client(listen_web({}, options));
  client.write("POST /echo" + kHost + "Content-Length: 9\r\n\r\nab");
  EXPECT_EQ(read_reply(client, false).status, 200);
  EXPECT_EQ(client.read(5), "2\r\nab");
  client.end_writing();
  EXPECT_FALSE(client.read_to_end().ends_with("0\r\n\r\n"));
}

// --- an answer whose end is that of the connection, as for HTTP/1.0 ---

TEST_F(WebEndTest, OfABrokenAnswerToAnOldClientIsAReset) {
  ASSERT_TRUE(router_.get("/throw", [] {
    return Response::stream([](BodyWriter& out) -> rt::Task<> {
      (void)co_await out.write("part");
      throw std::runtime_error("no");
    });
  }));
  ASSERT_TRUE(router_.get("/error", [] {
    return Response::stream([](BodyWriter& out) -> rt::Task<Result<void>> {
      (void)co_await out.write("part");
      co_return Error(Errc::not_found, "no");
    });
  }));
  ASSERT_TRUE(router_.get("/abort", [] {
    return Response::stream([](BodyWriter& out) -> rt::Task<> {
      (void)co_await out.write("part");
      out.session().abort();
    });
  }));
  const std::string endpoint = listen_web();
  for (const char* path : {"/throw", "/error", "/abort"}) {
    Client client(endpoint);
    client.write(old(path));
    (void)client.read_to_end();
    EXPECT_TRUE(client.reset()) << path;
  }
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::service_failed) == 2; });
  Client client(endpoint);
  client.write(old("/stream"));
  ASSERT_TRUE(begun_.take());
  go();
  EXPECT_TRUE(client.read_to_end().ends_with("first last"));
  EXPECT_FALSE(client.reset());
}

TEST_F(WebEndTest, OfAServerInsideAnAnswerToAnOldClientIsAReset) {
  Client client(listen_web());
  client.write(old("/stream"));
  ASSERT_TRUE(begun_.take());
  server_->begin_stop(sys::now());
  (void)client.read_to_end();
  EXPECT_TRUE(client.reset());
  EXPECT_FALSE(server_->stop(sys::now() + kLong)) << "a session was aborted";
  server_.reset();
}

TEST_F(WebEndTest, OfAnAnswerThatAnOldClientDoesNotTakeInTimeIsAReset) {
  static const std::string body(200'000, 'x');  // the server may read it after the test
  ASSERT_TRUE(router_.get("/large", [] { return Response::stream([](BodyWriter& out) { return out.write(body); }); }));
  ListenerOptions options;
  options.limits.close_timeout = std::chrono::milliseconds(1);
  options.socket.send_buffer = 8 * 1024;
  sys::SocketOptions small;
  small.receive_buffer = 8 * 1024;
  Client client(listen_web({}, options), small);
  client.write(old("/large"));
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::close_timeout) == 1; });
  EXPECT_LT(client.read_to_end().size(), body.size());
  EXPECT_TRUE(client.reset());
}

}  // namespace
}  // namespace weft::serve::web
