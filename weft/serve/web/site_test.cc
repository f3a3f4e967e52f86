// SPDX-License-Identifier: MIT
// Requests that two programs could read differently, and other malformed ones: each is refused with its status, is
// counted under its reason, and is the last one of its connection.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/async_event.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web/test_site.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using serve::test::Client;
using serve::test::Signal;
using test::get;
using test::kHost;
using test::read_reply;
using test::Reply;

using Reason = std::uint64_t WebCounts::*;
struct Refused {
  std::string request;
  int status;
  Reason reason;
};
using Texts = std::initializer_list<std::string_view>;

// Adds a request for each text, made by `make`.
template <typename Make>
void add_refused(std::vector<Refused>& to, int status, Reason reason, Make make, Texts texts) {
  for (const std::string_view text : texts) {
    to.push_back({make(std::string(text)), status, reason});
  }
}

std::string of_line(const std::string& line) { return line + "\r\nHost: x\r\n\r\n"; }
std::string of_field(const std::string& field) { return "POST /echo" + kHost + field + "\r\n\r\n"; }
std::string of_host(const std::string& host) { return "GET / HTTP/1.1\r\n" + host + "\r\n"; }
std::string of_length(const std::string& length) { return of_field("Content-Length: " + length) + "a"; }
std::string of_coding(const std::string& coding) { return of_field("Transfer-Encoding: " + coding) + "0\r\n\r\n"; }
std::string of_chunks(const std::string& chunks) { return of_field("Transfer-Encoding: chunked") + chunks; }
std::string as_it_is(const std::string& text) { return text; }

std::vector<Refused> refused_lines() {
  std::vector<Refused> all;
  add_refused(all, 400, &WebCounts::malformed, of_line,
              {"GET",
               "GET /",
               "GET / ",
               "GET  / HTTP/1.1",
               "GET /  HTTP/1.1",
               "GET / HTTP/1.1 ",
               "GET\t/ HTTP/1.1",
               " GET / HTTP/1.1",
               "GET / / HTTP/1.1",
               "GET / HTTP/1.1 x",
               "G@T / HTTP/1.1",
               "GET:/ HTTP/1.1",
               "GET /\x7F HTTP/1.1",
               std::string_view("GET /\0 HTTP/1.1", 15),
               "GET /\xC3\xA9 HTTP/1.1",
               "GET /%zz HTTP/1.1",
               "GET /%2 HTTP/1.1",
               "GET /a#b HTTP/1.1",
               "GET /<a> HTTP/1.1",
               "GET /a|b HTTP/1.1",
               "GET a HTTP/1.1",
               "GET ?a HTTP/1.1",
               "GET * HTTP/1.1",
               "GET ftp://x/ HTTP/1.1",
               "GET http:/x HTTP/1.1",
               "GET \\ HTTP/1.1",
               "CONNECT / HTTP/1.1",
               "GET / http/1.1",
               "GET / HTTP/1",
               "GET / HTTP/1.1.1",
               "GET / HTTP/1.10",
               "GET / HTTP/+1.1",
               "GET / HTTPS/1.1",
               "AMETHODOFMORETHANTHIRTYTWOCHARACTERS / HTTP/1.1",
               "PROXY TCP4 192.0.2.1 192.0.2.2 1 80"});
  add_refused(all, 400, &WebCounts::malformed,
              of_line,  // paths that lead out of their root, or end where a program stops
              {"GET /../x HTTP/1.1", "GET /a/../../x HTTP/1.1", "GET /%2e%2e/x HTTP/1.1", "GET /.%2E/x HTTP/1.1",
               "GET /./x HTTP/1.1", "GET /a%00.html HTTP/1.1", "GET http://x/../y HTTP/1.1"});
  add_refused(all, 505, &WebCounts::version, of_line, {"GET / HTTP/2.0", "GET / HTTP/0.9", "GET / HTTP/3.0"});
  add_refused(all, 501, &WebCounts::method_unknown, of_line, {"CONNECT x:443 HTTP/1.1"});
  add_refused(all, 400, &WebCounts::malformed, as_it_is,  // other protocols, and bytes before a request
              {"\x16\x03\x01\x02", "SSH-2.0-OpenSSH_9\r\n\r\n", "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
               "\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", std::string_view("\0", 1), "\xEF\xBB\xBFGET / HTTP/1.1\r\n\r\n"});
  add_refused(all, 505, &WebCounts::version, as_it_is, {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"});
  return all;
}

std::vector<Refused> refused_fields() {
  std::vector<Refused> all;
  add_refused(all, 400, &WebCounts::host, of_host,
              {"", "Host: x\r\nHost: x\r\n", "Host: x\r\nHost: y\r\n", "Host: a b\r\n", "Host: a/b\r\n",
               "Host: u@a\r\n", "Host: a:b\r\n", "Host: a:123456\r\n", "Host: [::1\r\n", "Host: []\r\n",
               "Host: a\xC3\xA9\r\n", "Host: a?b\r\n"});
  add_refused(all, 400, &WebCounts::host, of_line, {"GET http://u@x/ HTTP/1.1", "GET http:///x HTTP/1.1"});
  add_refused(all, 400, &WebCounts::malformed, of_field,
              {"X: a\r\n b",
               "X: a\r\n\tb",
               "X : a",
               "X\t: a",
               ": a",
               "X",
               "X Y: a",
               "(X): a",
               "X\xC3\xA9: a",
               "X: a\x7F",
               "X: \x01",
               std::string_view("X: a\0b", 6),
               "X: a\rb",
               "X: a\nY: b",
               "X: a\r\r\n",
               "X: a\n\n",
               "\"X\": a",
               "Content-Length : 1",
               "Transfer-Encoding : chunked",
               "Transfer-Encoding:\x0B"
               "chunked",
               "Content-Length: 1\x0C"});
  add_refused(all, 400, &WebCounts::malformed, as_it_is,
              {"GET / HTTP/1.1\nHost: x\r\n\r\n", "GET / HTTP/1.1\rHost: x\r\n\r\n",
               "GET / HTTP/1.1\r\n Host: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\n"});
  add_refused(
      all, 417, &WebCounts::expectation, of_field,
      {"Content-Length: 1\r\nExpect: 200-ok", "Content-Length: 1\r\nExpect: 100-continue\r\nExpect: x", "Expect: "});
  return all;
}

std::vector<Refused> refused_bodies() {
  std::vector<Refused> all;
  add_refused(
      all, 400, &WebCounts::framing, of_length,
      {"1\r\nContent-Length: 1", "1\r\nContent-Length: 2", "0\r\nContent-Length: 1", "1\r\nTransfer-Encoding: chunked",
       "-1", "+1", "1,1", "1, 1", "0x1", "1.0", "1e3", "1 1", "", "\xD9\xA1", "\"1\"", "one"});
  add_refused(all, 413, &WebCounts::body_large, of_length,
              {"99999999", "99999999999999999999", "18446744073709551617"});
  add_refused(
      all, 400, &WebCounts::framing, of_coding,
      {"chunked\r\nContent-Length: 5", "chunked\r\nTransfer-Encoding: chunked", "chunked, chunked", "chunked, gzip",
       "identity", "xchunked", "chunked;a=b", "\"chunked\"", "chun ked", "", "gzip", "chunked, identity"});
  add_refused(all, 501, &WebCounts::coding, of_coding, {"gzip, chunked", "identity, chunked"});
  add_refused(all, 400, &WebCounts::framing, as_it_is,
              {"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"});
  add_refused(all, 400, &WebCounts::chunk, of_chunks,
              {"-1\r\na\r\n0\r\n\r\n",
               "+1\r\na\r\n0\r\n\r\n",
               "0x1\r\na\r\n0\r\n\r\n",
               " 1\r\na\r\n0\r\n\r\n",
               "1 \r\na\r\n0\r\n\r\n",
               "1 ;x\r\na\r\n0\r\n\r\n",
               "g\r\na\r\n0\r\n\r\n",
               "\r\na\r\n0\r\n\r\n",
               "000000001\r\na\r\n0\r\n\r\n",
               "FFFFFFFFFFFFFFFF1\r\na\r\n0\r\n\r\n",
               "1\na\r\n0\r\n\r\n",
               "1;\x01\r\na\r\n0\r\n\r\n",
               "1;a\nb\r\na\r\n0\r\n\r\n",
               "1\r\nab\r\n0\r\n\r\n",
               "2\r\na\r\n0\r\n\r\n",
               "1\r\na\n0\r\n\r\n",
               "1\r\na\r\n0\r\n\n",
               "1\r\na\r\n0\r\nX\r\n\r\n",
               "1\r\na\r\n0\r\nX : y\r\n\r\n",
               "1\r\na\r\n0\r\nX: y\r\n z\r\n\r\n"});
  add_refused(all, 413, &WebCounts::body_large, of_chunks, {"FFFFFFFF\r\n", "7FFFFFFF\r\n"});
  return all;
}

class RefusedRequestsTest : public test::SiteTest {
 protected:
  void SetUp() override {
    start_runtime(1);
    ASSERT_TRUE(router_.get("/", [] { return "hello"; }));
    ASSERT_TRUE(router_.post("/echo", [](const Request& request) { return Response(std::string(request.body())); }));
    endpoint_ = listen_web();
  }
  // Sends each request with another one after it, which stays unread.
  void refuse(const std::vector<Refused>& all, std::size_t least) {
    for (const auto& [request, status, reason] : all) {
      const std::uint64_t before = site_->counts().*reason;
      Client client(endpoint_);
      client.write(request + get("/"));
      const Reply reply = read_reply(client);
      EXPECT_EQ(reply.status, status) << request;
      EXPECT_NE(reply.head.find("Connection: close\r\n"), std::string::npos) << request;
      EXPECT_EQ(client.read_to_end(), "") << request;
      EXPECT_FALSE(client.reset()) << request;
      EXPECT_EQ(site_->counts().*reason, before + 1) << request;
    }
    EXPECT_EQ(site_->counts().status_2xx, 0u) << "no handler was called";
    EXPECT_GE(all.size(), least);
  }

  std::string endpoint_;
};

TEST_F(RefusedRequestsTest, ByTheirFirstLine) { refuse(refused_lines(), 50); }
TEST_F(RefusedRequestsTest, ByTheirFields) { refuse(refused_fields(), 40); }
TEST_F(RefusedRequestsTest, ByTheEndOfTheirBody) { refuse(refused_bodies(), 50); }

// The requests before it are answered first, whatever their handlers wait for.
class RefusedBehindOthersTest : public test::SiteTest {
 protected:
  void SetUp() override {
    start_runtime(1);
    make_server();
    ASSERT_TRUE(router_.get("/", [] { return "hello"; }));
    ASSERT_TRUE(router_.get("/later", [this](const Request&) -> rt::Task<Response> {
      begun_.give();
      const auto waited = co_await go_.wait();
      co_return Response(waited ? "later" : "cancelled");
    }));
    ASSERT_TRUE(router_.get("/stream", [this] {
      return Response::stream([this](BodyWriter& out) -> rt::Task<Result<void>> {
        begun_.give();
        (void)co_await go_.wait();
        co_return co_await out.write("streamed");
      });
    }));
    ASSERT_TRUE(router_.post("/up", [this](const Request&, BodyReader& body) -> rt::Task<Result<Response>> {
      begun_.give();
      (void)co_await go_.wait();
      const auto rest = co_await body.read_rest(100);
      co_return rest ? Result<Response>(Response(*rest)) : Result<Response>(rest.error());
    }));
  }

  rt::AsyncEvent go_;
  Signal begun_;
};

TEST_F(RefusedBehindOthersTest, IsAnsweredAfterThem) {
  ListenerOptions options;
  options.limits = session_limits();
  const std::string endpoint = listen_web({}, options);
  const std::pair<std::string, std::string> kinds[] = {
      {get("/later"), "later"}, {get("/stream"), "streamed"}, {test::post("/up", "uploaded"), "uploaded"}};
  for (const auto& [request, body] : kinds) {
    for (const bool ends : {false, true}) {
      rt::test::on_core(*runtime_, 0, [this] { go_.reset(); });
      Client client(endpoint);
      client.write(get("/") + request + request + "BROKEN\r\n\r\n" + get("/"));
      if (ends) {
        client.end_writing();
      }
      ASSERT_TRUE(begun_.take());
      rt::test::on_core(*runtime_, 0, [this] { go_.set(); });
      EXPECT_EQ(read_reply(client).body, "hello");
      for (int i = 0; i < 2; ++i) {
        const Reply reply = read_reply(client);
        EXPECT_EQ(reply.status, 200);
        EXPECT_EQ(reply.body.empty() ? test::read_chunked(client) : reply.body, body);
      }
      EXPECT_EQ(read_reply(client).status, 400);
      EXPECT_EQ(client.read_to_end(), "");
      EXPECT_FALSE(client.reset());
      ASSERT_TRUE(begun_.take());
    }
  }
}

TEST_F(RefusedBehindOthersTest, OvertakesNoneBecauseAListenerOfHttpHasOneHandlerAtATime) {
  const Site site{Router()};
  ListenerOptions options;
  options.limits.handlers_max = 2;
  const auto refused = server_->listen<HttpCodec>("tcp://127.0.0.1:0", options, site.services(), site.codec());
  EXPECT_EQ(refused.error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace weft::serve::web
