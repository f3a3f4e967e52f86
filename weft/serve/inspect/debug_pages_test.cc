// SPDX-License-Identifier: MIT
// The pages of /debug, by requests to an admin port.
#include "weft/serve/inspect/debug_pages.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/inspect/debug_html.h"
#include "weft/serve/metrics/handler_times.h"
#include "weft/serve/server/admin.h"
#include "weft/serve/server/test_client.h"
#include "weft/serve/web/site.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::HeaderSession;
using test::kLong;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

class DebugPagesTest : public test::ServerTest {
 protected:
  void TearDown() override {
    admin_.reset();
    ServerTest::TearDown();
  }
  void make_admin(AdminOptions options = {}) {
    options.servers.push_back({"main", server_.get()});
    options.looks = {100'000, 100'000};
    options.request_timeout = kLong;  // a busy machine may need that long
    if (options.health_timeout == AdminOptions().health_timeout) {
      options.health_timeout = kLong;
    }
    auto admin = Admin::make(*runtime_, std::move(options));
    ASSERT_TRUE(admin) << admin.error().message();
    admin_ = std::move(*admin);
  }
  // The answer, with its head.
  std::string ask(const std::string& target, const std::string& fields = "") {
    Client client(admin_->endpoint());
    client.write("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "Connection: close\r\n\r\n");
    return client.read_to_end();
  }
  std::string body_of(const std::string& target) {
    const std::string answer = ask(target);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
    return answer.substr(std::min(answer.find("\r\n\r\n") + 4, answer.size()));
  }

  std::unique_ptr<Admin> admin_;
};

TEST_F(DebugPagesTest, AnInspectedSessionHasItsPeerItsQueuesAndItsAge) {
  script_.on_frame = test::echo;
  Client first(listen());
  first.send(1, "hello");
  ASSERT_EQ(first.receive(), "hello");
  first.write(test::frame_of(2, std::string(1000, 'x')).substr(0, 100));  // a half of a frame
  until([](const CounterValues& counters) { return counters.memory_of(MemoryOwner::received) > 0; });
  make_admin();
  const std::string page = body_of("/debug/sessions?order=received");
  EXPECT_TRUE(page.starts_with("{\"now_ms\":")) << page;
  EXPECT_NE(page.find("\"name\":\"main\",\"running\":true,\"sessions_now\":1"), std::string::npos) << page;
  EXPECT_EQ(count_of(page, "\"answers\":true"), 2u) << page;
  EXPECT_EQ(count_of(page, "\"peer\":\"127.0.0.1:"), 1u) << page;
  EXPECT_NE(page.find("ScriptService\",\"state\":\"open\",\"age_ms\":"), std::string::npos) << page;
  EXPECT_NE(page.find("\"queued_bytes\":0,\"received_bytes\":100,"), std::string::npos) << page;
  EXPECT_NE(page.find("\"frames_in\":1,\"frames_out\":1,"), std::string::npos) << page;
}

TEST_F(DebugPagesTest, ThePageOfSessionsIsBoundedAndInItsOrder) {
  const std::string endpoint = listen();
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 1; i <= 20; ++i) {
    clients.push_back(std::make_unique<Client>(endpoint));
    clients.back()->write(test::frame_of(1, std::string(1000, 'x')).substr(0, 20 * i));
  }
  until([](const CounterValues& counters) { return counters.bytes_in == 20 * 210; });
  make_admin();
  const std::string page = body_of("/debug/sessions?order=received&limit=3");
  EXPECT_EQ(count_of(page, "\"id\":"), 3u) << page;
  const std::size_t largest = page.find("\"received_bytes\":400,");
  const std::size_t second = page.find("\"received_bytes\":380,");
  const std::size_t third = page.find("\"received_bytes\":360,");
  EXPECT_LT(largest, second) << page;
  EXPECT_LT(second, third) << page;
  EXPECT_NE(third, std::string::npos) << page;
  EXPECT_NE(page.find("\"sessions_now\":20"), std::string::npos) << page;
  EXPECT_EQ(count_of(body_of("/debug/sessions?server=main"), "\"id\":"), 20u);
  EXPECT_EQ(count_of(body_of("/debug/sessions?server=other"), "\"id\":"), 0u);
  for (const char* order : {"queued", "age", "silent"}) {
    EXPECT_EQ(count_of(body_of(std::string("/debug/sessions?order=") + order), "\"id\":"), 20u) << order;
  }
  for (const char* query : {"order=size", "limit=0", "limit=201", "limit=9x", "limit="}) {
    EXPECT_TRUE(ask(std::string("/debug/sessions?") + query).starts_with("HTTP/1.1 400 ")) << query;
  }
}

TEST_F(DebugPagesTest, ACoreThatDoesNotAnswerIsShownWithinTheTimeout) {
  (void)listen();
  AdminOptions options;
  options.health_timeout = std::chrono::milliseconds(50);
  make_admin(std::move(options));
  {
    const rt::test::Blocked blocked(*runtime_, 0);
    for (int i = 0; i < 3; ++i) {
      std::string cores = body_of("/debug/cores");
      EXPECT_EQ(count_of(cores, "\"core\":0,\"answers\":false"), 1u) << cores;
      cores = body_of("/debug/sessions");
      EXPECT_EQ(count_of(cores, "\"core\":0,\"answers\":false"), 1u) << cores;
    }
  }
  std::string page;
  for (const Instant end = sys::now() + kLong; count_of(page, "\"answers\":true") != 2 && sys::now() < end;) {
    page = body_of("/debug/cores");
  }
  EXPECT_EQ(count_of(page, "\"answers\":true"), 2u) << page;
  page.clear();
  for (const Instant end = sys::now() + kLong; count_of(page, "\"answers\":true") != 2 && sys::now() < end;) {
    page = body_of("/debug/sessions");
  }
  EXPECT_EQ(count_of(page, "\"answers\":true"), 2u) << page;
}

TEST_F(DebugPagesTest, TheCoresHaveTheirLagAndTheirSessions) {
  script_.on_frame = test::echo;
  Client client(listen());
  client.send(1, "hello");
  ASSERT_EQ(client.receive(), "hello");
  make_admin();
  const std::string page = body_of("/debug/cores");
  EXPECT_EQ(count_of(page, "\"lag\":{\"count\":"), 2u) << page;
  EXPECT_EQ(count_of(page, "\"sessions\":1,"), 1u) << page;
  EXPECT_EQ(count_of(page, "\"sessions\":0,"), 1u) << page;
}

TEST(DebugHandlersPage, TheSlowestHandlerIsFirstAndThereAreNotMoreThanTheMost) {
  constexpr sync::DurationRow kRow = {"web", "handler_seconds", "web, handler", "How long handlers run.", "nowhere"};
  HandlerTimes times;
  for (int i = 1; i <= 100; ++i) {
    times.series({{"handler", "/" + std::to_string(i)}}).add(std::chrono::milliseconds(i));
  }
  MetricSources sources;
  for (const char* name : {"a", "b", "c"}) {
    sources.add(name, CounterSource(), [&times, &kRow](std::string_view of, sync::DurationReadings& into) {
      times.read_into(kRow, {"web", std::string(of)}, into);
    });
  }
  const std::string page = handlers_page(sources, Instant());
  EXPECT_TRUE(page.starts_with(R"({"now_ms":0,"handlers_all":300,"handlers":[{"metric":"weft_web_handler_seconds",)"
                               R"("labels":{"web":"a","handler":"/100"},"count":1,"sum_ms":100,"p50_ms":100,)"
                               R"("p99_ms":100,"max_ms":100},)"))
      << page;
  EXPECT_EQ(count_of(page, "\"metric\""), kHandlersMax);
  EXPECT_LT(page.find("\"/100\""), page.find("\"/99\""));
  EXPECT_EQ(page.find("\"/1\""), std::string::npos);
}

TEST(DebugTracesPage, TheSlowestOperationOfAllTracersIsFirst) {
  MetricSources sources;
  for (const int tracer : {1, 2, 3, 4}) {
    sources.add("t" + std::to_string(tracer), CounterSource(), {}, [tracer](std::vector<trace::SlowSpan>& into) {
      for (int i = 0; i < 32; ++i) {
        into.push_back({{0xAB, 1},
                        {2},
                        "GET \"/\"",
                        trace::SpanKind::server,
                        trace::SpanStatus::error,
                        5'000'000,
                        std::chrono::milliseconds(tracer)});
      }
    });
  }
  const std::string page = traces_page(sources, Instant(), 7'000'000);
  EXPECT_TRUE(page.starts_with(R"({"now_ms":0,"traces":[{"tracer":"t4","trace_id":"00000000000000ab0000000000000001",)"
                               R"("span_id":"0000000000000002","name":"GET \"/\"","kind":"server","status":"error",)"
                               R"("ms":4,"age_ms":2},)"))
      << page;
  EXPECT_EQ(count_of(page, "\"tracer\""), kTracesMax);
  EXPECT_EQ(count_of(page, "\"t1\""), kTracesMax - 3 * 32);
}

TEST_F(DebugPagesTest, TheHandlersOfASiteAreThereByRouteAndMethod) {
  web::Router router;
  ASSERT_TRUE(router.get("/fast", [] { return "fast"; }));
  ASSERT_TRUE(router.get("/never", [] { return "never"; }));
  Duration waited = {};
  ASSERT_TRUE(router.post("/slow/{id}", [&waited]() -> rt::Task<std::string> {
    const Instant begin = sys::now();
    (void)co_await rt::sleep(std::chrono::milliseconds(3));
    waited = sys::now() - begin;
    co_return "slow";
  }));
  make_server();
  const web::Site site(std::move(router));
  const auto endpoint = server_->listen<web::HttpCodec>("tcp://127.0.0.1:0", {}, site.services(), site.codec());
  ASSERT_TRUE(endpoint);
  Client client(*endpoint);
  client.write(
      "GET /fast HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /slow/7 HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
      "0\r\n\r\n"
      "GET /fast HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(count_of(client.read_to_end(), "HTTP/1.1 200 "), 3u);
  make_admin();
  admin_->add("shop", site);
  const std::string page = body_of("/debug/handlers");
  const std::size_t slow = page.find(R"("labels":{"web":"shop","handler":"/slow/{id}","method":"POST"},"count":1,)");
  ASSERT_NE(slow, std::string::npos) << page;
  EXPECT_NE(page.find(R"("handler":"/fast","method":"GET"},"count":2,)"), std::string::npos) << page;
  const std::size_t sum = page.find("\"sum_ms\":", slow);
  const double sum_ns = std::strtod(page.c_str() + sum + 9, nullptr) * 1e6;
  EXPECT_GE(sum_ns * 1.001, static_cast<double>(waited.count())) << page;  // the page has six digits
  EXPECT_EQ(page.find("/never"), std::string::npos) << page;
  EXPECT_NE(ask("/metrics").find(R"(weft_web_handler_seconds_count{handler="/slow/{id}",method="POST",web="shop"} 1)"),
            std::string::npos);
}

TEST_F(DebugPagesTest, ThePageForPeopleLoadsNothingElse) {
  make_server();
  make_admin();
  const std::string answer = ask("/debug");
  EXPECT_NE(answer.find("Content-Type: text/html; charset=utf-8\r\n"), std::string::npos);
  EXPECT_NE(answer.find("Content-Security-Policy: default-src 'none'; "), std::string::npos);
  for (const char* loads : {"http://", "https://", "src=", "@import", "url("}) {
    EXPECT_EQ(kDebugPage.find(loads), std::string_view::npos) << loads;
  }
}

TEST_F(DebugPagesTest, OnlyThePageWithoutDataNeedsNoToken) {
  make_server();
  AdminOptions options;
  options.token = "0123456789-token";
  make_admin(std::move(options));
  EXPECT_TRUE(ask("/debug").starts_with("HTTP/1.1 200 "));
  for (const char* path : {"/debug/cores", "/debug/sessions", "/debug/handlers", "/debug/nothing"}) {
    EXPECT_TRUE(ask(path).starts_with("HTTP/1.1 401 ")) << path;
  }
  EXPECT_TRUE(ask("/debug/cores", "Authorization: Bearer 0123456789-token\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_F(DebugPagesTest, TheyCanBeTurnedOffAndAreBoundedInTheirRate) {
  make_server();
  AdminOptions options;
  options.servers.push_back({"main", server_.get()});
  options.request_timeout = kLong;
  options.debug_pages = false;
  auto admin = Admin::make(*runtime_, options);
  ASSERT_TRUE(admin);
  admin_ = std::move(*admin);
  for (const char* path : {"/debug", "/debug/cores", "/debug/sessions", "/debug/handlers"}) {
    EXPECT_TRUE(ask(path).starts_with("HTTP/1.1 404 ")) << path;
  }
  options.debug_pages = true;
  options.looks = {1, 1};
  admin = Admin::make(*runtime_, options);
  ASSERT_TRUE(admin);
  admin_ = std::move(*admin);
  Client client(admin_->endpoint());
  std::string requests;
  for (int i = 0; i < 20; ++i) {  // in one turn of the port
    requests += "HEAD /debug HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }
  client.write(requests + "HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string answers = client.read_to_end();
  EXPECT_GE(count_of(answers, "HTTP/1.1 429 "), 1u);
  EXPECT_GE(count_of(answers, "HTTP/1.1 200 "), 1u);
  EXPECT_EQ(count_of(answers, "HTTP/1.1 "), 21u);
}

}  // namespace
}  // namespace weft::serve
