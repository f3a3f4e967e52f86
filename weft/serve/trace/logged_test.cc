// SPDX-License-Identifier: MIT
#include "weft/serve/trace/logged.h"

#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/rt/task/task_time.h"
#include "weft/serve/trace/traced.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web/test_site.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using test::Client;
using test::kHost;
using test::kLong;
using test::read_reply;

class LoggedTest : public test::SiteTest {
 protected:
  void log_routes() {
    logging::LogOptions options;
    options.output = [this](std::string_view lines) {
      const std::lock_guard lock(mutex_);
      text_ += lines;
    };
    log_ = logging::Log::make(std::move(options)).value();
    router_.use(logged(log_->logger("web").value()));
  }
  // The lines since the last call, without the part that differs between two runs.
  std::vector<std::string> lines() {
    EXPECT_TRUE(log_->flush_until(sys::now() + kLong));
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    while (!text_.empty()) {
      std::string line = text_.substr(0, text_.find('\n'));
      text_.erase(0, line.size() + 1);
      line.erase(0, line.find("level="));
      for (const char* name : {" duration_us=", " session=0x"}) {
        const std::size_t at = line.find(name);
        EXPECT_NE(at, std::string::npos) << line;
        line.erase(at, line.find(' ', at + 1) - at);
      }
      found.push_back(std::move(line));
    }
    return found;
  }
  static int ask(Client& client, const std::string& path) {
    client.write("POST " + path + kHost + "Content-Length: 0\r\n\r\n");
    return read_reply(client).status;
  }

  std::shared_ptr<logging::Log> log_;
  std::mutex mutex_;
  std::string text_;
};

TEST_F(LoggedTest, EachKindOfHandlerHasALineOfItsRequest) {
  log_routes();
  ASSERT_TRUE(router_.post("/call/{name}", [] { return "ok"; }));
  ASSERT_TRUE(router_.post("/task/{name}", [](const Request&) -> rt::Task<Response> {
    (void)co_await rt::yield();
    co_return Response("ok");
  }));
  ASSERT_TRUE(router_.post("/body/{name}", [](const Request&, BodyReader& body) -> rt::Task<Response> {
    (void)co_await body.read_rest(100);
    co_return Response(201);
  }));
  Client client(listen_web());
  for (const std::string kind : {"call", "task", "body"}) {
    const int status = kind == "body" ? 201 : 200;
    EXPECT_EQ(ask(client, "/" + kind + "/a%20b?secret=1"), status);
    EXPECT_EQ(lines(), std::vector<std::string>{"level=info component=web event=request method=POST path=/" + kind +
                                                "/a%20b route=/" + kind + "/{name} status=" + std::to_string(status)});
  }
}

TEST_F(LoggedTest, AFailureOfTheServerIsOfLevelErrorAndOneOfTheClientIsNot) {
  log_routes();
  ASSERT_TRUE(router_.post("/404", []() -> Result<Response> { return Error(Errc::not_found, "no such user"); }));
  ASSERT_TRUE(router_.post("/503", [] { return Response(503); }));
  ASSERT_TRUE(router_.post("/500", []() -> Response { throw std::runtime_error("broken"); }));
  ASSERT_TRUE(router_.post("/500/task", []() -> rt::Task<Response> {
    (void)co_await rt::yield();
    throw std::runtime_error("broken");
  }));
  Client client(listen_web());
  for (const std::string path : {"/404", "/503", "/500", "/500/task"}) {
    const std::string status = path.substr(1, 3);
    EXPECT_EQ(std::to_string(ask(client, path)), status);
    EXPECT_EQ(lines(), std::vector<std::string>{std::string("level=") + (status == "404" ? "info" : "error") +
                                                " component=web event=request method=POST path=" + path +
                                                " route=" + path + " status=" + status});
  }
}

TEST_F(LoggedTest, ALevelAboveHasTheFailuresAloneAndOffHasNone) {
  log_routes();
  ASSERT_TRUE(router_.post("/200", [] { return "ok"; }));
  ASSERT_TRUE(router_.post("/503", [] { return Response(503); }));
  Client client(listen_web());
  ASSERT_TRUE(log_->set_level("web", logging::Level::warning));
  EXPECT_EQ(ask(client, "/200"), 200);
  EXPECT_EQ(ask(client, "/503"), 503);
  EXPECT_EQ(lines().size(), 1U);
  ASSERT_TRUE(log_->set_level("web", logging::Level::off));
  EXPECT_EQ(ask(client, "/503"), 503);
  EXPECT_TRUE(lines().empty());
}

TEST_F(LoggedTest, ARequestWithASpanHasTheIdOfItsTrace) {
  trace::TracerOptions options;
  options.service = "test";
  const auto tracer = trace::Tracer::make(std::move(options)).value();
  router_.use(traced(tracer));
  log_routes();
  ASSERT_TRUE(router_.post("/", [] { return "ok"; }));
  Client client(listen_web());
  client.write("POST /" + kHost +
               "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(read_reply(client).status, 200);
  const auto found = lines();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].ends_with(" status=200 trace_id=0af7651916cd43dd8448eb211c80319c")) << found[0];
}

}  // namespace
}  // namespace weft::serve::web
