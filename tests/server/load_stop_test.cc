// SPDX-License-Identifier: MIT
// A stop of a web server while many connections ask without a pause: each request that a handler took has its answer,
// and no descriptor stays open. The clients are a process of their own, which has as many descriptors.
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/sanitized.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/server/test_client.h"
#include "weft/serve/web/site.h"
#include "weft/sys/limits.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using serve::test::kLong;

constexpr int kPatienceMs = 60'000;  // without any event; never passes unless something is broken

// The clients' own count.
struct Tally {
  std::uint64_t connected = 0;
  std::uint64_t answered = 0;
  std::uint64_t ended = 0;   // connections that the server ended
  std::uint64_t faults = 0;  // answers that no handler gave
};

// Asks for the next answer as soon as the last one has come, until the server announces the end of the connection or
// ends it. Every second connection asks for a page whose handler waits.
class AskingClient {
 public:
  AskingClient(std::uint16_t port, std::size_t number, int epoll)
      : request_(number % 2 == 0 ? "GET / HTTP/1.1\r\nHost: x\r\n\r\n" : "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"),
        fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = number;
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
                 ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd_, &event) == 0;
  }
  [[nodiscard]] bool connected() const { return connected_; }
  // A request is short: the kernel takes it whole. An error shows at the next read.
  void ask() const { (void)::send(fd_, request_.data(), request_.size(), MSG_NOSIGNAL); }
  // Returns false if the connection has ended.
  bool read(Tally& tally) {
    std::array<char, 1024> room;
    const ssize_t got = ::recv(fd_, room.data(), room.size(), 0);
    if (got <= 0) {
      ::close(fd_);
      ++tally.ended;
      return false;
    }
    answer_.append(room.data(), static_cast<std::size_t>(got));
    if (!answer_.ends_with("\r\n\r\nhello")) {
      return true;
    }
    tally.faults += answer_.starts_with("HTTP/1.1 200 OK\r\n") ? 0 : 1;
    ++tally.answered;
    if (answer_.find("Connection: close\r\n") == std::string::npos) {
      ask();
    }
    answer_.clear();
    return true;
  }

 private:
  std::string_view request_;
  std::string answer_;
  int fd_;
  bool connected_;
};

// The clients' process: from the port until all connections have ended, or nothing happens any more.
Tally run_clients(std::uint16_t port, std::size_t count) {
  Tally tally;
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<AskingClient> clients;
  clients.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    tally.connected += clients.emplace_back(port, i, epoll).connected() ? 1 : 0;
  }
  for (const AskingClient& client : clients) {
    client.ask();
  }
  std::array<epoll_event, 256> events;
  for (std::size_t open = tally.connected; open > 0;) {
    const int ready = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), kPatienceMs);
    if (ready == 0 || (ready < 0 && errno != EINTR)) {
      break;
    }
    for (int i = 0; i < ready; ++i) {
      open -= clients[events[static_cast<std::size_t>(i)].data.u64].read(tally) ? 0 : 1;
    }
  }
  return tally;
}

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator of_process("/proc/self/fd");
  return std::distance(begin(of_process), end(of_process));
}

class LoadedStop : public serve::test::ServerTest {
 protected:
  void SetUp() override {}  // the fork comes before the threads

  void TearDown() override {
    server_.reset();
    runtime_.reset();
  }

  void fork_clients(std::size_t count) {
    ASSERT_EQ(::pipe(to_clients_), 0);
    ASSERT_EQ(::pipe(from_clients_), 0);
    clients_ = ::fork();
    ASSERT_GE(clients_, 0);
    if (clients_ == 0) {
      (void)sys::set_descriptor_limit(count + 100);
      ::close(to_clients_[1]);
      std::uint16_t port = 0;
      if (::read(to_clients_[0], &port, sizeof port) == sizeof port) {
        const Tally tally = run_clients(port, count);
        (void)!::write(from_clients_[1], &tally, sizeof tally);
      }
      ::_exit(0);  // no destructor of the parent's objects runs
    }
    ::close(to_clients_[0]);
    ::close(from_clients_[1]);
  }
  Tally join_clients() {
    Tally tally;
    EXPECT_EQ(::read(from_clients_[0], &tally, sizeof tally), static_cast<ssize_t>(sizeof tally));
    EXPECT_EQ(::waitpid(clients_, nullptr, 0), clients_);
    ::close(to_clients_[1]);
    ::close(from_clients_[0]);
    return tally;
  }
  std::string listen_hello() {
    Router router;
    EXPECT_TRUE(router.get("/", [this] {
      note_request();
      return "hello";
    }));
    EXPECT_TRUE(router.get("/later", [this](const Request&) -> rt::Task<Response> {
      note_request();
      (void)co_await rt::yield();
      co_return Response("hello");
    }));
    make_server();
    HttpLimits limits;
    limits.requests_max = 1'000'000'000;
    const Site site(std::move(router), limits);
    ListenerOptions options;
    options.limits = session_limits();
    options.limits.idle_timeout = options.limits.handshake_timeout = Duration(-1);
    options.socket.backlog = 4096;
    const auto bound = server_->listen<HttpCodec>("tcp://127.0.0.1:0", options, site.services(), site.codec());
    EXPECT_TRUE(bound) << bound.error().message();
    return *bound;
  }
  void note_request() {
    if (handled_.fetch_add(1) + 1 == wanted_) {
      reached_.give();
    }
  }
  // Stops the server after `requests` of each of the connections, while they ask on.
  void stop_under_load(std::size_t connections, std::uint64_t requests) {
    const auto before = sys::set_descriptor_limit(connections + 200);
    ASSERT_TRUE(before) << before.error().message();
    fork_clients(connections);
    start_runtime(2);
    {
      const std::string warm = listen_hello();  // opens all that stays open
      serve::test::Client client(warm);
      client.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
      EXPECT_TRUE(client.read_to_end().ends_with("hello"));
      client.close();
      EXPECT_TRUE(server_->stop(sys::now() + kLong));
      server_.reset();
      handled_ = 0;
      wanted_ = connections * requests;
    }
    const std::ptrdiff_t descriptors = open_descriptors();
    const std::string endpoint = listen_hello();
    const auto port = static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
    ASSERT_EQ(::write(to_clients_[1], &port, sizeof port), static_cast<ssize_t>(sizeof port));
    for (std::uint64_t seen = 0; handled_ < wanted_ && !reached_.take(); seen = handled_) {
      ASSERT_GT(handled_, seen) << "no request for a minute";
    }
    EXPECT_EQ(server_->sessions(), connections);
    const auto stopped = server_->stop(sys::now() + 10 * kLong);
    EXPECT_TRUE(stopped) << stopped.error().message();
    const Tally tally = join_clients();
    EXPECT_EQ(tally.connected, connections);
    EXPECT_EQ(tally.ended, connections);
    EXPECT_EQ(tally.answered, handled_) << "answers that were lost";
    EXPECT_EQ(tally.faults, 0u);
    EXPECT_EQ(server_->counters().unanswered, 0u);
    EXPECT_EQ(server_->sessions(), 0u);
    server_.reset();
    EXPECT_EQ(open_descriptors(), descriptors - 2) << "and the two ends of the pipes that are closed";
    EXPECT_TRUE(sys::set_descriptor_limit(*before));
  }

  std::atomic<std::uint64_t> handled_{0};
  std::uint64_t wanted_ = 0;  // written before the listener begins
  serve::test::Signal reached_;
  pid_t clients_ = -1;
  int to_clients_[2] = {-1, -1};
  int from_clients_[2] = {-1, -1};
};

TEST_F(LoadedStop, AnswersEachRequestThatItsHandlersTook) { stop_under_load(200, 20); }

TEST_F(LoadedStop, AnswersEachRequestOfTenThousandConnections) { stop_under_load(10'000, kSanitized ? 30 : 300); }

}  // namespace
}  // namespace weft::serve::web
