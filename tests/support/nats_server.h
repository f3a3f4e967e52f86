// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/nats/client/client.h"
#include "weft/nats/protocol/info.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/sys/clock.h"
#include "weft/sys/fd.h"
#include "weft/sys/path.h"
#include "weft/sys/socket.h"
#include <gtest/gtest.h>

extern char** environ;

// For tests: servers of NATS, and a core whose coroutines use clients of them.
namespace weft::nats::test {

inline constexpr Duration kLong = std::chrono::seconds(30);  // never passes unless something is broken
[[nodiscard]] inline Instant in_long() { return sys::now() + kLong; }

// The nats-server of deps/go.txt, or "" if the set-up did not build it.
[[nodiscard]] inline std::string current_server() {
  const std::string program = WEFT_NATS_SERVER_CURRENT;
  return std::filesystem::exists(program) ? program : std::string();
}

// NatsServer: a process, on a port that no other program gets before the destructor. The destructor kills it, as does
// the end of the thread that started it: a test that is killed leaves no server.
class NatsServer {
 public:
  // `config`: more lines of its file of configuration.
  explicit NatsServer(std::string config = {}, std::vector<std::string> arguments = {},
                      std::string program = WEFT_NATS_SERVER)
      : directory_(sys::make_private_directory().value()),
        config_(std::move(config)),
        arguments_(std::move(arguments)),
        program_(std::move(program)),
        reserved_(sys::reserve_tcp_port().value()),
        port_(std::to_string(sys::local_address(reserved_.fd())->port())) {
    EXPECT_TRUE(start()) << log_;
  }
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;
  ~NatsServer() {
    kill();
    std::filesystem::remove_all(directory_);
  }

  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + port_; }
  [[nodiscard]] const std::string& port() const { return port_; }
  [[nodiscard]] const std::string& cluster_port() const { return cluster_port_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
      pid_ = -1;
      ::close(std::exchange(output_, -1));
    }
  }
  void send_signal(int number) const { EXPECT_EQ(::kill(pid_, number), 0); }
  // Returns when the server has stopped: the signal alone may reach it after its next answer.
  void pause() const {
    send_signal(SIGSTOP);
    siginfo_t stopped;
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED), 0);
  }
  void resume() const { send_signal(SIGCONT); }
  // The same with other lines of configuration.
  void restart_with(std::string config) {
    config_ = std::move(config);
    restart();
  }
  // The same server on the same port.
  void restart() {
    kill();
    EXPECT_TRUE(start()) << log_;
  }

 private:
  [[nodiscard]] bool start() {
    const std::string file = directory_ + "/server.conf";
    std::ofstream(file) << "host: 127.0.0.1\n" << config_;
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    std::vector<std::string> words = {program_, "-c", file, "-p", port_};
    if (const std::string setpriv = "/usr/bin/setpriv"; std::filesystem::exists(setpriv)) {
      words.insert(words.begin(), {setpriv, "--pdeathsig", "KILL", "--"});
    }
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    std::vector<char*> pointers;
    for (std::string& word : words) {
      pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, pointers.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ends[0];
    log_.clear();
    char bytes[4096];
    const bool clustered = config_.find("cluster") != std::string::npos;
    while (log_.find("Server is ready") == std::string::npos ||
           (clustered && port_after("route connections on ").empty())) {
      const ssize_t size = ::read(output_, bytes, sizeof bytes);
      if (size <= 0) {
        kill();
        return false;
      }
      log_.append(bytes, static_cast<std::size_t>(size));
    }
    cluster_port_ = port_after("route connections on ");
    return true;
  }
  // "Listening for client connections on 127.0.0.1:33789"
  [[nodiscard]] std::string port_after(const std::string& words) const {
    const std::size_t place = log_.find(words);
    if (place == std::string::npos) {
      return {};
    }
    const std::size_t colon = log_.find(':', place + words.size());
    const std::size_t end = log_.find('\n', place);  // a line that is not read to its end may have half of a number
    return end == std::string::npos ? std::string() : log_.substr(colon + 1, end - colon - 1);
  }

  const std::string directory_;
  std::string config_;
  const std::vector<std::string> arguments_;
  const std::string program_;
  const sys::Fd reserved_;
  const std::string port_;
  pid_t pid_ = -1;
  int output_ = -1;
  std::string cluster_port_;
  std::string log_;
};

// Waits on its core until a condition holds: check it, and call changed() where it may become true.
class Watch {
 public:
  void changed() { event_.pulse(); }
  [[nodiscard]] static rt::Task<bool> until(Watch* self, std::function<bool()> holds) {
    const auto ended = co_await rt::with_timeout(wait(self, &holds), kLong);
    co_return ended.has_value();
  }

 private:
  static rt::Task<Result<void>> wait(Watch* self, const std::function<bool()>* holds) {
    while (!(*holds)()) {
      const Result<void> waited = co_await self->event_.wait();
      if (!waited) {
        co_return waited;
      }
    }
    co_return Result<void>();
  }
  rt::AsyncEvent event_;
};

class NatsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(WEFT_NATS_SERVER).empty()) {
      GTEST_SKIP() << "there is no nats-server";
    }
    start_runtime();
  }
  void start_runtime() {
    if (!read_info("{}")) {
      GTEST_SKIP() << "this build has no nlohmann/json";
    }
    rt::RuntimeOptions options;
    options.cores = 1;
    options.pinning = rt::Pinning::never;
    options.wait_mode = sync::WaitMode::eco;
    auto runtime = rt::Runtime::start(options);
    ASSERT_TRUE(runtime) << runtime.error().message();
    runtime_ = std::move(*runtime);
  }
  void TearDown() override { runtime_.reset(); }

  // Runs the coroutine on the core and waits for its end.
  template <typename Self, typename Function>
  void run(Self* self, const Function& function) {
    auto future = rt::spawn(runtime_->core(0).loop(), function(self));
    ASSERT_TRUE(future.wait_until(sys::now() + 4 * kLong));
    const auto ended = future.get();
    EXPECT_TRUE(ended) << ended.error().message();
  }

  [[nodiscard]] static std::unique_ptr<Client> open(ClientOptions options) {
    options.reconnect_first = std::chrono::milliseconds(2);
    options.reconnect_max = std::chrono::milliseconds(20);
    options.connect_timeout = kLong;  // a busy machine may need that long
    auto client = Client::open(std::make_shared<serve::ClientHost>(*rt::Core::current()), std::move(options));
    EXPECT_TRUE(client) << client.error().message();
    return std::move(client).value();
  }
  [[nodiscard]] static std::unique_ptr<Client> open(const NatsServer& server) {
    ClientOptions options;
    options.servers = server.url();
    return open(std::move(options));
  }

  static void check_books(const Client& client) {
    const ClientCounts& counts = client.counts();
    EXPECT_EQ(counts.published.value(), counts.sent.value() + client.kept_messages() + counts.dropped_oldest.value() +
                                            counts.dropped_closed.value());
  }

  std::unique_ptr<rt::Runtime> runtime_;
};

}  // namespace weft::nats::test
