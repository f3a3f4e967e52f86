// SPDX-License-Identifier: MIT
#include "weft/serve/server/admin.h"

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/serve/metrics/test_prometheus.h"
#include "weft/serve/server/test_client.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/limits.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::echo;
using test::HeaderSession;
using test::kLong;
using test::Signal;

struct Answer {
  int status = 0;
  std::string head;  // up to its empty line
  std::string body;
};

// Reads one answer, and a body only if one is due.
Answer read_answer(Client& client, bool with_body = true) {
  Answer answer;
  while (!answer.head.ends_with("\r\n\r\n")) {
    const std::string byte = client.read(1);
    if (byte.empty()) {
      return {};
    }
    answer.head += byte;
  }
  EXPECT_TRUE(answer.head.starts_with("HTTP/1.1 ")) << answer.head;
  answer.status = std::atoi(answer.head.c_str() + 9);
  const std::size_t length = answer.head.find("Content-Length: ");
  EXPECT_NE(length, std::string::npos);
  if (with_body && length != std::string::npos) {
    answer.body = client.read(std::strtoul(answer.head.c_str() + length + 16, nullptr, 10));
  }
  return answer;
}

class AdminTest : public test::ServerTest {
 protected:
  void TearDown() override {
    admin_.reset();
    ServerTest::TearDown();
  }
  void make_admin(AdminOptions options = {}) {
    if (server_ != nullptr) {
      options.servers.push_back({"main", server_.get()});
    }
    for (Duration AdminOptions::* const bound : {&AdminOptions::health_timeout, &AdminOptions::request_timeout}) {
      if (options.*bound == AdminOptions().*bound) {
        options.*bound = kLong;  // a busy machine may need that long
      }
    }
    auto admin = Admin::make(*runtime_, std::move(options));
    ASSERT_TRUE(admin) << admin.error().message();
    admin_ = std::move(*admin);
  }
  Answer ask(const std::string& path, const std::string& method = "GET") {
    Client client(admin_->endpoint());
    client.write(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    Answer answer = read_answer(client, method != "HEAD");
    EXPECT_EQ(client.read_to_end(), "") << method << path;
    return answer;
  }

  std::unique_ptr<Admin> admin_;
};

TEST_F(AdminTest, MetricsAreTheServersCountersAndPrometheusReadsThem) {
  script_.on_frame = echo;
  Client client(listen());
  client.send(1, "counted");
  ASSERT_EQ(client.receive(), "counted");
  until([](const CounterValues& counters) { return counters.bytes_out == 19; });
  AdminOptions options;
  options.metrics = [](PrometheusWriter& writer) {
    EXPECT_TRUE(writer.family("game_players", PrometheusWriter::Type::gauge, "Who plays."));
    EXPECT_TRUE(writer.sample({}, std::uint64_t{42}));
  };
  make_admin(std::move(options));
  const Answer answer = ask("/metrics?from=a%20test");
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.head.find("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), std::string::npos);
  const test::Scrape scrape = test::ScrapeReader::read(answer.body);
  EXPECT_EQ(scrape.mistake, "");
  EXPECT_EQ(scrape.samples.at("weft_server_sessions{server=\"main\"}"), 1);
  EXPECT_EQ(scrape.samples.at("weft_server_frames_total{direction=\"in\",server=\"main\"}"), 1);
  EXPECT_EQ(scrape.samples.at("weft_server_bytes_total{direction=\"out\",server=\"main\"}"), 19);
  EXPECT_EQ(scrape.samples.at("weft_server_sessions_closed_total{reason=\"idle timeout\",server=\"main\"}"), 0);
  EXPECT_EQ(scrape.samples.at("weft_server_connections_rejected_total{reason=\"admission\",server=\"main\"}"), 0);
  EXPECT_EQ(scrape.samples.count("weft_core_messages_executed_total{core=\"1\"}"), 1u);
  EXPECT_EQ(scrape.samples.at("game_players"), 42);
}

TEST_F(AdminTest, AFailedCheckIsAReasonOnItsPages) {
  make_server();
  (void)listen();
  std::atomic<HealthState> state{HealthState::degraded};
  HealthCheck check;
  check.name = "db";
  check.interval = std::chrono::milliseconds(1);
  check.timeout = kLong;
  check.run = [&] { return HealthResult{state, "3 of 4 replicas"}; };
  HealthCheck vital = check;
  vital.name = "disk";
  vital.vital = true;
  vital.run = [&] {
    return HealthResult{state == HealthState::failed ? HealthState::failed : HealthState::healthy, ""};
  };
  auto checks = HealthChecks::start({check, vital});
  ASSERT_TRUE(checks);
  AdminOptions options;
  options.health = *checks;
  make_admin(std::move(options));
  const auto until_page_is = [this](const std::string& path, int status, const std::string& body) {
    Answer answer = ask(path);
    for (const Instant limit = sys::now() + kLong; answer.body != body && sys::now() < limit;) {
      answer = ask(path);
    }
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.body, body);
  };
  until_page_is("/readyz", 200, "ready\ncheck db: degraded: 3 of 4 replicas\n");
  EXPECT_EQ(ask("/healthz").body, "alive\n");
  state = HealthState::failed;
  until_page_is("/readyz", 503, "not ready\ncheck db: failed: 3 of 4 replicas\ncheck disk: failed\n");
  until_page_is("/healthz", 503, "not alive\ncheck disk: failed\n");
  const test::Scrape scrape = test::ScrapeReader::read(ask("/metrics").body);
  EXPECT_EQ(scrape.samples.at("weft_health_check_state{check=\"db\"}"), 3);
  state = HealthState::healthy;
  until_page_is("/readyz", 200, "ready\n");
  admin_.reset();  // it keeps the checks, which refer to `state`
}

TEST_F(AdminTest, ReadinessSaysWhyNot) {
  make_server({.sessions_max = 1});
  std::atomic<bool> warm{false};
  AdminOptions options;
  options.ready = [&warm]() -> Result<void> {
    return warm ? Result<void>() : Error(Errc::would_block, "the cache is cold");
  };
  make_admin(std::move(options));
  EXPECT_EQ(ask("/healthz").status, 200);
  Answer answer = ask("/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("main: "), std::string::npos);
  EXPECT_NE(answer.body.find("no listener yet"), std::string::npos);
  EXPECT_NE(answer.body.find("the cache is cold\n"), std::string::npos);

  Signal asked;
  SessionId id;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    session.begin_reply();  // the drain waits for this reply
    id = session.id();
    asked.give();
  };
  const std::string endpoint = listen();
  warm = true;
  answer = ask("/readyz");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "ready\n");

  Client client(endpoint);
  client.send(1, "");
  ASSERT_TRUE(asked.take());
  EXPECT_NE(ask("/readyz").body.find("full"), std::string::npos);
  server_->begin_stop(sys::now() + kLong);
  answer = ask("/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("draining"), std::string::npos);
  EXPECT_EQ(ask("/healthz").status, 200);
  ASSERT_TRUE(server_->post_to(id, [](Session& session) { session.end_reply(); }));
  client.close();
  ASSERT_TRUE(server_->stop(sys::now() + kLong));
  ASSERT_TRUE(server_->restart());
  EXPECT_EQ(ask("/readyz").status, 200);
  ASSERT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_NE(ask("/readyz").body.find("stopped"), std::string::npos);
}

TEST_F(AdminTest, UnknownPathsAndMethodsAreRefusedByStatus) {
  make_admin();
  EXPECT_EQ(ask("/").status, 404);
  EXPECT_EQ(ask("/metrics/").status, 404);
  const Answer answer = ask("/metrics", "DELETE");
  EXPECT_EQ(answer.status, 405);
  EXPECT_NE(answer.head.find("Allow: GET, HEAD\r\n"), std::string::npos);
  const std::pair<const char*, int> refused[] = {
      {"\x16\x03\x01 this is no HTTP\r\n\r\n", 400},
      {"GET /healthz HTTP/1.1\r\n\r\n", 400},
      {"GET /healthz HTTP/3.0\r\nHost: localhost\r\n\r\n", 505},
      {"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
      {"POST /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", 405},
      {"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n", 413},
  };
  for (const auto& [request, status] : refused) {
    Client client(admin_->endpoint());
    client.write(request);
    EXPECT_EQ(read_answer(client).status, status) << request;
    EXPECT_EQ(client.read_to_end(), "");
    EXPECT_FALSE(client.reset()) << request;
  }
}

TEST_F(AdminTest, AHeadWithoutEndIsRefusedAndItsBytesAreBounded) {
  make_admin();
  Client client(admin_->endpoint());
  client.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + std::string(20'000, 'x'));
  EXPECT_EQ(read_answer(client).status, 431);
  EXPECT_EQ(client.read_to_end(), "");
}

TEST_F(AdminTest, AConnectionIsKeptAndPipelinedRequestsAreAnsweredInOrder) {
  make_admin();
  Client client(admin_->endpoint());
  for (int i = 0; i < 3; ++i) {
    client.write(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nHEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\nGET /no "
        "HTTP/1.1\r\n");
    client.write("Host: localhost\r\n\r\n");
    EXPECT_EQ(read_answer(client).body, "alive\n");
    EXPECT_EQ(read_answer(client, false).status, 200);  // the next head follows at once
    EXPECT_EQ(read_answer(client).status, 404);
  }
  client.write("GET /healthz HTTP/1.0\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n");
  EXPECT_EQ(read_answer(client).body, "alive\n");
  EXPECT_EQ(client.read_to_end(), "");
  const CounterValues counters = admin_->counters();
  EXPECT_EQ(counters.opened, 1u);
}

TEST_F(AdminTest, HeadSaysTheLengthOfTheBodyOfGet) {
  make_admin();
  const auto without_date = [](std::string head) {
    const std::size_t date = head.find("Date: ");
    return date == std::string::npos ? "no date" : head.erase(date, head.find("\r\n", date) + 2 - date);
  };
  EXPECT_EQ(without_date(ask("/healthz", "HEAD").head), without_date(ask("/healthz").head));
}

TEST_F(AdminTest, MoreScrapesThanAllowedAreNotMade) {
  AdminOptions options;
  std::atomic<int> made{0};
  options.scrapes = {1, 1};
  options.metrics = [&made](PrometheusWriter&) { ++made; };
  make_admin(std::move(options));
  Client client(admin_->endpoint());
  std::string requests;
  constexpr int kCount = 20;
  for (int i = 0; i < kCount; ++i) {
    requests += "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }
  client.write(requests);
  int answered = 0;
  for (int i = 0; i < kCount; ++i) {
    const int status = read_answer(client).status;
    EXPECT_TRUE(status == 200 || status == 429) << status;
    answered += status == 200 ? 1 : 0;
  }
  EXPECT_EQ(answered, made);
  EXPECT_GE(answered, 1);
  EXPECT_LT(answered, kCount);
}

TEST_F(AdminTest, AFunctionThatThrowsCostsItsAnswer) {
  AdminOptions options;
  options.metrics = [](PrometheusWriter&) { throw std::runtime_error("no"); };
  make_admin(std::move(options));
  EXPECT_EQ(ask("/metrics").status, 500);
  EXPECT_EQ(ask("/healthz").status, 200);
}

TEST_F(AdminTest, ConnectionsBeyondTheBoundAndSilentOnesAreClosed) {
  AdminOptions options;
  options.connections_max = 2;
  options.request_timeout = std::chrono::milliseconds(1);
  make_admin(std::move(options));
  Client silent(admin_->endpoint());
  EXPECT_EQ(silent.read_to_end(), "");
  const auto late = [this] { return admin_->counters().closed_for(CloseReason::handshake_timeout); };
  for (const Instant end = sys::now() + kLong; late() == 0 && sys::now() < end;) {  // counted after its peer's end
    std::this_thread::yield();
  }
  EXPECT_EQ(late(), 1u);
  admin_.reset();
  AdminOptions patient;
  patient.connections_max = 1;
  make_admin(std::move(patient));
  Client first(admin_->endpoint());
  first.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(read_answer(first).status, 200);
  Client second(admin_->endpoint());
  EXPECT_EQ(first.read_to_end(), "");  // makes room
  second.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(read_answer(second).status, 200);
}

TEST_F(AdminTest, ConnectionsThatStayKeepNobodyOut) {
  AdminOptions options;
  options.connections_max = 3;
  make_admin(std::move(options));
  std::vector<std::unique_ptr<Client>> polite;
  for (int i = 0; i < 3; ++i) {
    polite.push_back(std::make_unique<Client>(admin_->endpoint()));
    polite.back()->write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(read_answer(*polite.back()).status, 200);
  }
  EXPECT_EQ(ask("/readyz").status, 200);
  EXPECT_EQ(polite[0]->read_to_end(), "");  // the one that was idle for the longest time
  polite[1]->write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(read_answer(*polite[1]).status, 200);
}

// --- cores that do not turn ---

TEST_F(AdminTest, ThePortAnswersAndHealthNamesTheCoreThatDoesNot) {
  AdminOptions options;
  options.health_timeout = std::chrono::milliseconds(20);
  make_admin(std::move(options));
  {
    const rt::test::Blocked first(*runtime_, 0);
    const rt::test::Blocked second(*runtime_, 1);
    const Answer answer = ask("/healthz");
    EXPECT_EQ(answer.status, 503);
    EXPECT_TRUE(answer.body.starts_with("not alive\ncore 0 has not answered for ")) << answer.body;
    EXPECT_NE(answer.body.find("\ncore 1 has not answered for "), std::string::npos) << answer.body;
    EXPECT_EQ(ask("/metrics").status, 200);
    EXPECT_EQ(ask("/healthz").status, 503);  // asks a core once, however often it is asked
  }
  Answer answer = ask("/healthz");
  for (const Instant end = sys::now() + kLong; answer.status != 200 && sys::now() < end;) {  // on a busy machine later
    answer = ask("/healthz");
  }
  EXPECT_EQ(answer.body, "alive\n");
}

// A probe that is more impatient than health_timeout gets the truth, too, once another one has waited.
TEST_F(AdminTest, ACoreThatIsKnownToBeLateIsNotWaitedForAgain) {
  AdminOptions options;
  options.health_timeout = std::chrono::milliseconds(300);
  make_admin(std::move(options));
  const rt::test::Blocked blocked(*runtime_, 0);
  const Instant begin = sys::now();
  EXPECT_EQ(ask("/healthz").status, 503);
  const Duration waited = sys::now() - begin;
  EXPECT_GE(waited, std::chrono::milliseconds(300));
  Duration best = waited;
  for (int tries = 0; tries < 20 && best >= std::chrono::milliseconds(300); ++tries) {
    const Instant again = sys::now();
    EXPECT_EQ(ask("/healthz").status, 503);
    best = sys::now() - again;
  }
  EXPECT_LT(best, std::chrono::milliseconds(300));
}

TEST_F(AdminTest, APortEndsWhileACoreOwesAnAnswer) {
  AdminOptions options;
  options.health_timeout = std::chrono::milliseconds(1);
  make_admin(std::move(options));
  const rt::test::Blocked blocked(*runtime_, 0);
  EXPECT_EQ(ask("/healthz").status, 503);
  admin_.reset();
}

TEST_F(AdminTest, CoresThatHaveEndedAreNotAlive) {
  make_admin();
  ASSERT_TRUE(runtime_->stop(sys::now() + kLong));
  EXPECT_EQ(ask("/healthz").body, "not alive\ncore 0 has ended\ncore 1 has ended\n");
}

// --- descriptors ---

TEST_F(AdminTest, ThePortAnswersWhenTheProcessHasNoDescriptorLeft) {
  make_admin();
  EXPECT_EQ(ask("/healthz").status, 200);
  auto lowest = std::make_unique<sys::EventFd>(std::move(sys::EventFd::make()).value());
  const std::size_t before = *sys::set_descriptor_limit(static_cast<std::size_t>(lowest->fd()) + 1);
  const bool none = !sys::EventFd::make();
  lowest.reset();
  Client client(admin_->endpoint());  // takes the last one
  client.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const int status = read_answer(client).status;
  (void)sys::set_descriptor_limit(before);
  EXPECT_TRUE(none);
  EXPECT_EQ(status, 200);
}

TEST_F(AdminTest, ARequestWithoutTheTokenIsRefused) {
  AdminOptions options;
  options.token = "0123456789-token";
  make_admin(std::move(options));
  for (const char* path : {"/metrics", "/healthz", "/readyz", "/nothing"}) {
    const Answer answer = ask(path);
    EXPECT_EQ(answer.status, 401) << path;
    EXPECT_NE(answer.head.find("WWW-Authenticate: Bearer realm=\"admin\"\r\n"), std::string::npos);
  }
  const auto with = [this](const std::string& path, const std::string& authorization) {
    Client client(admin_->endpoint());
    client.write("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + authorization +
                 "\r\nConnection: close\r\n\r\n");
    return read_answer(client).status;
  };
  EXPECT_EQ(with("/healthz", "Bearer 0123456789-tokeN"), 401);
  EXPECT_EQ(with("/healthz", "Bearer 0123456789-token"), 200);
  EXPECT_EQ(with("/metrics", "Bearer 0123456789-token"), 200);
  EXPECT_EQ(with("/nothing", "Bearer 0123456789-token"), 404);
  AdminOptions weak;
  weak.token = "short";
  EXPECT_NE(Admin::make(*runtime_, std::move(weak)).error().message().find("16 to 256"), std::string::npos);
}

TEST_F(AdminTest, OnlyThisMachineReachesItWithoutTlsAndAToken) {
  for (const char* endpoint : {"tcp://*:0", "tcp://0.0.0.0:0", "tcp://192.0.2.1:0", "tcp://some.host:0"}) {
    AdminOptions options;
    options.endpoint = endpoint;
    EXPECT_EQ(Admin::make(*runtime_, std::move(options)).error(), Errc::invalid_argument) << endpoint;
  }
  for (const char* endpoint : {"tcp://127.0.0.2:0", "ipc://*"}) {
    AdminOptions options;
    options.endpoint = endpoint;
    make_admin(std::move(options));
    EXPECT_EQ(ask("/healthz").status, 200) << endpoint;
  }
  AdminOptions remote;
  remote.endpoint = "tcp://*:0";
  const auto refusal = [this, &remote] {
    const auto made = Admin::make(*runtime_, remote);
    return made ? std::string("none") : made.error().message();
  };
  remote.token = "0123456789-token";
  EXPECT_NE(refusal().find("AdminOptions::remote"), std::string::npos);
  remote.remote = true;
  EXPECT_NE(refusal().find("AdminOptions::tls is null"), std::string::npos);
  AdminOptions wrong;
  wrong.servers.push_back({"none", nullptr});
  EXPECT_EQ(Admin::make(*runtime_, std::move(wrong)).error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace weft::serve
