// SPDX-License-Identifier: MIT
// Bodies of requests and responses that come and go in pieces.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web/test_site.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using serve::test::Client;
using serve::test::kLong;
using serve::test::Signal;
using test::get;
using test::kHost;
using test::post;
using test::read_chunked;
using test::read_reply;
using test::Reply;

class WebStreamTest : public test::SiteTest {
 protected:
  // GET /{path} is answered by `produce`; GET / by "hello".
  template <typename Produce>
  void add_stream(const std::string& path, Produce produce, std::optional<std::uint64_t> length = {}) {
    ASSERT_TRUE(router_.get(path, [=] { return Response::stream(produce, "text/plain", length); }));
  }
  // The answer to POST /{path} is the result of `receive`.
  template <typename Receive>
  void add_upload(const std::string& path, Receive receive) {
    ASSERT_TRUE(router_.post(path, std::move(receive)));
  }
  void SetUp() override {
    test::SiteTest::SetUp();
    ASSERT_TRUE(router_.get("/", [] { return "hello"; }));
  }
};

rt::Task<Result<void>> write_rows(BodyWriter& out) {
  for (int i = 0; i < 3; ++i) {
    if (const auto sent = co_await out.write("row " + std::to_string(i) + "\n"); !sent) {
      co_return sent.error();
    }
  }
  co_return Result<void>();
}

TEST_F(WebStreamTest, AResponseIsWrittenInChunksAndTheConnectionStays) {
  add_stream("/rows", write_rows);
  add_stream("/none", [](BodyWriter&) -> rt::Task<> { co_return; });
  ASSERT_TRUE(router_.get("/later", [](const Request& request) -> rt::Task<Response> {
    (void)co_await rt::sleep(std::chrono::milliseconds(1));
    co_return Response::stream([&request](BodyWriter& out) -> rt::Task<> {  // the request lives as long
      (void)co_await out.write(request.path());
    })
        .set("X", "y");
  }));
  Client client(listen_web());
  client.write(get("/rows") + get("/none") + get("/later") + "HEAD /rows" + kHost + "\r\n" + get("/"));
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(read_reply(client).head, head);
  EXPECT_EQ(client.read(33 + 5), "6\r\nrow 0\n\r\n6\r\nrow 1\n\r\n6\r\nrow 2\n\r\n0\r\n\r\n");
  EXPECT_EQ(read_reply(client).head, head);
  EXPECT_EQ(client.read(5), "0\r\n\r\n");
  EXPECT_NE(read_reply(client).head.find("X: y\r\n"), std::string::npos);
  EXPECT_EQ(read_chunked(client), "/later");
  EXPECT_EQ(read_reply(client).head, head);  // of HEAD
  EXPECT_EQ(read_reply(client).body, "hello");
  until_counted([](const WebCounts& counts) { return counts.status_2xx == 5; });
}

TEST_F(WebStreamTest, ABodyWithALengthHasNoChunks) {
  add_stream("/rows", write_rows, 18);
  Client client(listen_web());
  client.write(get("/rows") + "HEAD /rows" + kHost + "\r\n" + get("/"));
  const Reply reply = read_reply(client);
  EXPECT_EQ(reply.head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 18\r\n\r\n");
  EXPECT_EQ(reply.body, "row 0\nrow 1\nrow 2\n");
  EXPECT_EQ(read_reply(client, false).head, reply.head);
  EXPECT_EQ(read_reply(client).body, "hello");
}

TEST_F(WebStreamTest, AnOldClientGetsTheBodyToTheEndOfTheConnection) {
  add_stream("/rows", write_rows);
  Client client(listen_web());
  client.write("GET /rows HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get("/"));
  EXPECT_EQ(read_reply(client).head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.read_to_end(), "row 0\nrow 1\nrow 2\n");
}

TEST_F(WebStreamTest, APeerThatReadsSlowlySlowsItsHandlerDown) {
  constexpr std::size_t kParts = 300;
  const std::string part(100'000, 'x');
  std::atomic<std::size_t> most_queued{0};
  add_stream("/large", [&](BodyWriter& out) -> rt::Task<Result<void>> {
    for (std::size_t i = 0; i < kParts; ++i) {
      if (const auto sent = co_await out.write(part); !sent) {
        co_return sent.error();
      }
      most_queued = std::max(most_queued.load(), out.session().queued());
    }
    co_return Result<void>();
  });
  Client client(listen_web());
  client.write(get("/large") + get("/"));
  EXPECT_EQ(read_reply(client, false).status, 200);
  EXPECT_EQ(read_chunked(client), std::string(kParts * part.size(), 'x'));
  EXPECT_EQ(read_reply(client).body, "hello");
  EXPECT_LE(most_queued, BodyWriter::kQueuedMax + BodyWriter::kPieceMax + 64);
}

// A peer must not take a part of a body for the whole of it.
TEST_F(WebStreamTest, ABodyThatFailsEndsWithoutItsEnd) {
  add_stream("/throw", [](BodyWriter& out) -> rt::Task<> {
    (void)co_await out.write("part");
    throw std::runtime_error("no");
  });
  add_stream("/error", [](BodyWriter& out) -> rt::Task<Result<void>> {
    (void)co_await out.write("part");
    co_return Error(Errc::not_found, "no");
  });
  add_stream("/short", [](BodyWriter& out) -> rt::Task<> { (void)co_await out.write("part"); }, 5);
  add_stream(
      "/long",
      [](BodyWriter& out) -> rt::Task<Result<void>> {
        (void)co_await out.write("part");
        const auto sent = co_await out.write("more");
        EXPECT_EQ(sent.error(), Errc::message_too_large);
        co_return sent;
      },
      5);
  add_stream("/holes", [](BodyWriter& out) -> rt::Task<> {  // it reports no failure itself
    (void)co_await out.write("part");
    EXPECT_FALSE(co_await out.send_file(-1, 0, 10));
    EXPECT_FALSE(co_await out.write("more"));
  });
  const std::string endpoint = listen_web();
  for (const std::string path : {"/throw", "/error", "/short", "/long", "/holes"}) {
    Client client(endpoint);
    client.write(get(path) + get("/"));
    EXPECT_EQ(read_reply(client, false).status, 200) << path;
    EXPECT_EQ(client.read_to_end(), path.size() == 6 && path != "/short" ? "4\r\npart" : "part") << path;
  }
  until_counted([](const WebCounts& counts) { return counts.broken == 5; });
}

TEST_F(WebStreamTest, AHandlerWhosePeerLeftIsCancelled) {
  Signal full;
  std::atomic<bool> ended{false};
  add_stream("/endless", [&](BodyWriter& out) -> rt::Task<Result<void>> {
    const std::string part(100'000, 'x');
    for (int i = 0;; ++i) {
      const auto sent = co_await out.write(part);
      if (i == 1) {
        full.give();
      }
      if (!sent) {
        ended = true;
        co_return sent.error();
      }
    }
  });
  Client client(listen_web());
  client.write(get("/endless"));
  ASSERT_TRUE(full.take());
  client.close();
  until_counted([](const WebCounts& counts) { return counts.cancelled == 1; });
  EXPECT_TRUE(ended);
}

TEST_F(WebStreamTest, AStopWaitsForABodyThatIsWritten) {
  Signal begun;
  rt::AsyncEvent go;
  start_runtime(1);
  add_stream("/slow", [&](BodyWriter& out) -> rt::Task<> {
    (void)co_await out.write("first ");
    begun.give();
    (void)co_await go.wait();
    (void)co_await out.write("last");
  });
  Client client(listen_web());
  client.write(get("/slow"));
  ASSERT_TRUE(begun.take());
  server_->begin_stop(sys::now() + kLong);
  ASSERT_TRUE(runtime_->post(0, [&go] { go.set(); }));
  EXPECT_EQ(read_reply(client, false).status, 200);
  EXPECT_EQ(read_chunked(client), "first last");
  EXPECT_EQ(client.read_to_end(), "");
}

// --- requests ---

rt::Task<Result<Response>> count_bytes(const Request& request, BodyReader& body) {
  std::size_t size = 0;
  std::size_t other = 0;
  for (;;) {
    const Result<Bytes> part = co_await body.read();
    if (!part) {
      co_return part.error();
    }
    if (part->empty()) {
      co_return Response(request.param("name") + " " + std::to_string(size) + " " + std::to_string(other));
    }
    size += part->size();
    other += static_cast<std::size_t>(std::count_if(part->begin(), part->end(), [](auto byte) { return byte != 'x'; }));
  }
}
std::string chunked_body(std::size_t chunks, std::size_t size) {
  std::string text;
  char line[16];
  std::snprintf(line, sizeof line, "%zx\r\n", size);
  for (std::size_t i = 0; i < chunks; ++i) {
    text.append(line).append(size, 'x').append("\r\n");
  }
  return text + "0\r\nTrailer: y\r\n\r\n";
}

TEST_F(WebStreamTest, ABodyThatIsTakenAsItComesMayBeLargerThanTheMemory) {
  add_upload("/up/{name}", count_bytes);
  ServerOptions memory;
  memory.memory_max = memory.core_memory_max = 1024 * 1024;
  make_server(memory);
  HttpLimits limits;
  limits.body_max = 1000;
  Client client(listen_web(limits));
  client.write("POST /up/a%20b" + kHost + "Content-Length: 10000000\r\n\r\n" + std::string(10'000'000, 'x') + get("/"));
  EXPECT_EQ(read_reply(client).body, "a b 10000000 0");
  EXPECT_EQ(read_reply(client).body, "hello");
  client.write("POST /up/b" + kHost + "Transfer-Encoding: chunked\r\n\r\n" + chunked_body(100, 100'000) + get("/"));
  EXPECT_EQ(read_reply(client).body, "b 10000000 0");
  EXPECT_EQ(read_reply(client).body, "hello");
  // Also bodies that came with their head, and none.
  client.write(post("/up/c", "xyx") + post("/up/d", "") + "POST /up/e" + kHost + "\r\n");
  EXPECT_EQ(read_reply(client).body, "c 3 1");
  EXPECT_EQ(read_reply(client).body, "d 0 0");
  EXPECT_EQ(read_reply(client).body, "e 0 0");
}

TEST_F(WebStreamTest, APeerThatExpects100ContinueIsToldWhenTheHandlerReads) {
  add_upload("/up/{name}", count_bytes);
  add_upload("/no", [](const Request&, BodyReader&) -> rt::Task<Response> { co_return Response(401, "no"); });
  const std::string endpoint = listen_web();
  const std::string more = kHost + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n";
  Client client(endpoint);
  client.write("POST /up/a" + more);
  EXPECT_EQ(client.read(25), "HTTP/1.1 100 Continue\r\n\r\n");
  client.write("xxx");
  EXPECT_EQ(read_reply(client).body, "a 3 0");
  client.write("POST /no" + more);
  const Reply refused = read_reply(client);
  EXPECT_EQ(refused.status, 401);
  EXPECT_NE(refused.head.find("Connection: close\r\n"), std::string::npos) << "its body may come all the same";
  client.write("xxx");
  EXPECT_EQ(client.read_to_end(), "");
  until_counted([](const WebCounts& counts) { return counts.continues == 1; });
}

TEST_F(WebStreamTest, AHandlerThatFailsOrReturnsEarlyAnswersAndTheConnectionEnds) {
  add_upload("/throw", [](const Request&, BodyReader& body) -> rt::Task<Response> {
    (void)co_await body.read();
    throw std::runtime_error("no");
  });
  add_upload("/large", [](const Request&, BodyReader& body) -> rt::Task<Result<Response>> {
    const auto rest = co_await body.read_rest(10);
    co_return rest ? Result<Response>(Response(*rest)) : Result<Response>(Error(Errc::invalid_argument, "too much"));
  });
  const std::string endpoint = listen_web();
  for (const auto& [path, status] : {std::pair("/throw", 500), std::pair("/large", 400)}) {
    Client client(endpoint);
    client.write("POST " + std::string(path) + kHost + "Content-Length: 100\r\n\r\n" + std::string(11, 'x'));
    const Reply reply = read_reply(client);
    EXPECT_EQ(reply.status, status);
    EXPECT_NE(reply.head.find("Connection: close\r\n"), std::string::npos);
    EXPECT_EQ(client.read_to_end(), "");
  }
  Client client(endpoint);
  client.write(post("/large", "0123456789") + get("/"));
  EXPECT_EQ(read_reply(client).body, "0123456789");
  EXPECT_EQ(read_reply(client).body, "hello");
}

TEST_F(WebStreamTest, ABodyThatStallsGets408) {
  add_upload("/up/{name}", count_bytes);
  ListenerOptions options;
  options.limits.body_timeout = std::chrono::milliseconds(1);
  Client client(listen_web({}, options));
  client.write("POST /up/a" + kHost + "Content-Length: 9\r\n\r\nxx");
  EXPECT_EQ(read_reply(client).status, 408);
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_FALSE(client.reset());
  until_counted([](const WebCounts& counts) { return counts.body_late == 1 && counts.status_4xx == 1; });
}

// A byte now and then is not a body: each one comes in time, and all of them do not.
TEST_F(WebStreamTest, ABodyThatComesTooSlowlyGets408) {
  add_upload("/up/{name}", count_bytes);
  HttpLimits limits;
  limits.streamed_rate_min = 1'000'000'000;
  ListenerOptions options;
  options.limits.body_timeout = std::chrono::milliseconds(200);
  Client client(listen_web(limits, options));
  client.write("POST /up/a" + kHost + "Content-Length: 1000000000\r\n\r\n");
  for (const Instant limit = sys::now() + kLong; site_->counts().body_late == 0 && sys::now() < limit;) {
    (void)client.write_some("x", kLong);
    std::this_thread::yield();
  }
  EXPECT_EQ(site_->counts().body_late, 1u) << "while the bytes came";
  EXPECT_EQ(read_reply(client).status, 408);
}

TEST_F(WebStreamTest, ABrokenBodyIsRefusedWhileItsHandlerRuns) {
  add_upload("/up/{name}", count_bytes);
  HttpLimits limits;
  limits.streamed_max = 10;
  limits.framing_max = 20;
  const std::string endpoint = listen_web(limits);
  using Member = std::uint64_t WebCounts::*;
  const std::string chunked = "POST /up/a" + kHost + "Transfer-Encoding: chunked\r\n\r\n";
  const struct {
    std::string request;
    int status;
    Member counter;
  } cases[] = {
      {chunked + "3\r\nxxx\r\n+1\r\nx\r\n", 400, &WebCounts::chunk},
      {chunked + "3\r\nxxxx\r\n", 400, &WebCounts::chunk},
      {chunked + "3\r\nxxx\r\n8\r\n", 413, &WebCounts::body_large},
      {chunked + "3;" + std::string(30, 'e') + "\r\n", 413, &WebCounts::chunks_large},
      {"POST /up/a" + kHost + "Content-Length: 11\r\n\r\n", 413, &WebCounts::body_large},
  };
  for (const auto& [request, status, counter] : cases) {
    const std::uint64_t before = site_->counts().*counter;
    Client client(endpoint);
    client.write(request);
    EXPECT_EQ(read_reply(client).status, status) << request;
    EXPECT_EQ(client.read_to_end(), "") << request;
    until_counted([&, member = counter](const WebCounts& counts) { return counts.*member == before + 1; });
  }
  until_counted([](const WebCounts& counts) { return counts.cancelled == 4; });
}

TEST_F(WebStreamTest, AnUploadWhosePeerDiesIsCancelled) {
  Signal reading;
  add_upload("/up", [&](const Request&, BodyReader& body) -> rt::Task<Response> {
    (void)co_await body.read();
    reading.give();
    const Result<Bytes> part = co_await body.read();
    EXPECT_FALSE(part);
    co_return Response(200);
  });
  Client client(listen_web());
  client.write("POST /up" + kHost + "Content-Length: 9\r\n\r\nxx");
  ASSERT_TRUE(reading.take());
  client.close();
  until_counted([](const WebCounts& counts) { return counts.cancelled == 1; });
}

// One body goes out while the other one comes in.
class EchoStreamTest : public WebStreamTest {
 protected:
  void SetUp() override {
    WebStreamTest::SetUp();
    add_upload("/echo/{length}", [](const Request& request, BodyReader& body) -> rt::Task<Response> {
      const auto length = static_cast<std::uint64_t>(std::stoul(request.param("length")));
      co_return Response::stream(
          [&body](BodyWriter& out) -> rt::Task<Result<void>> {
            for (;;) {
              const Result<Bytes> part = co_await body.read();
              if (!part || part->empty()) {
                co_return part ? Result<void>() : Result<void>(part.error());
              }
              if (const auto sent = co_await out.write(*part); !sent) {
                co_return sent.error();
              }
            }
          },
          "text/plain", length);
    });
  }
};

TEST_F(EchoStreamTest, ABodyComesBackWhileItGoesOut) {
  Client client(listen_web());
  client.write("POST /echo/1000000" + kHost + "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(read_reply(client, false).status, 200);
  for (int i = 0; i < 10; ++i) {
    client.write("186A0\r\n" + std::string(100'000, static_cast<char>('a' + i)) + "\r\n");
    EXPECT_EQ(client.read(100'000), std::string(100'000, static_cast<char>('a' + i)));
  }
  client.write("0\r\n\r\n");
  EXPECT_EQ(client.read_to_end(), "") << "its answer had begun before the end of the body was known";
}

// Regression: the first read() wrote the 100 into the body of the answer that had begun.
TEST_F(EchoStreamTest, APeerThatExpects100ContinueIsToldBeforeTheAnswerBegins) {
  Client client(listen_web());
  client.write("POST /echo/3" + kHost + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.read(25), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(read_reply(client, false).status, 200);
  client.write("abc");
  EXPECT_EQ(client.read_to_end(), "abc");
}

TEST_F(EchoStreamTest, ABrokenBodyGetsNoSecondAnswer) {
  Client client(listen_web());
  client.write("POST /echo/100" + kHost + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  EXPECT_EQ(read_reply(client, false).status, 200);
  EXPECT_EQ(client.read(3), "abc");
  client.write("x\r\n");
  EXPECT_EQ(client.read_to_end(), "");
  until_counted([](const WebCounts& counts) { return counts.chunk == 1 && counts.cancelled == 1; });
}

}  // namespace
}  // namespace weft::serve::web
