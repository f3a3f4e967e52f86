// SPDX-License-Identifier: MIT
#include "tools/weft/topics/nats_servers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "weft/sys/address.h"
#include "weft/sys/clock.h"
#include "weft/sys/fd.h"
#include "weft/sys/path.h"
#include "weft/sys/poll.h"
#include "weft/sys/socket.h"

namespace weft::cli {

namespace {

constexpr std::uint64_t kServersMax = 9;
constexpr std::uint64_t kPortsMax = 65'535;
constexpr Duration kStart = std::chrono::seconds(30);   // of one server
constexpr Duration kMeet = std::chrono::seconds(5);     // of the servers of a cluster
constexpr Duration kEnd = std::chrono::seconds(5);      // from SIGTERM to SIGKILL
constexpr std::size_t kLogMax = std::size_t{64} << 10;  // bytes of the beginning of a log

std::string find_program(const std::string& given) {
  if (!given.empty()) {
    if (::access(given.c_str(), X_OK) != 0) {
      throw Failure(printable(given) + ": " + std::strerror(errno));
    }
    return given;
  }
  const char* const path = std::getenv("PATH");
  std::istringstream folders(std::string(path == nullptr ? "" : path) + ":/usr/sbin:/usr/local/sbin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = folder + "/nats-server";
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  throw Failure("nats-server is not on the path; Debian: apt install nats-server");
}

// Makes the directory. The configuration of a server has its path between quotes.
std::string store_of(const std::string& given) {
  if (given.empty()) {
    return {};
  }
  if (given.find_first_of("\"\\") != std::string::npos || printable(given) != given) {
    throw Usage("--store: a directory without quotes, backslashes and control bytes");
  }
  need(sys::make_owned_directory(given), "--store " + given);
  return sys::absolute_path(given);
}

// Server: a child process, and the beginning of its log.
// Owner: Servers. Affinity: the command's thread.
class Server {
 public:
  Server(const std::string& program, const std::string& file, const std::string& port) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw Failure(std::string("a pipe: ") + std::strerror(errno));
    }
    output_ = sys::Fd(ends[0]);
    const sys::Fd log(ends[1]);
    const pid_t parent = ::getpid();
    const std::array<const char*, 6> words = {program.c_str(), "-c", file.c_str(), "-p", port.c_str(), nullptr};
    pid_ = ::fork();
    if (pid_ < 0) {
      throw Failure(std::string("a process: ") + std::strerror(errno));
    }
    if (pid_ == 0) {  // only calls that are safe after a fork
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      sigset_t none;
      sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      ::setpgid(0, 0);  // Ctrl-C of a terminal is for this command, which ends the servers
      ::dup2(log.fd(), 2);
      ::dup2(log.fd(), 1);
      if (::getppid() == parent) {
        ::execv(program.c_str(), const_cast<char* const*>(words.data()));
      }
      ::_exit(127);
    }
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  [[nodiscard]] int fd() const noexcept { return output_.fd(); }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool ended() const noexcept { return !output_.valid(); }
  [[nodiscard]] const std::string& log() const noexcept { return log_; }

  // After the descriptor is readable. Only the beginning of the log is kept.
  void read() {
    std::array<char, 4096> bytes{};
    const ssize_t size = ::read(output_.fd(), bytes.data(), bytes.size());
    if (size > 0) {
      log_.append(bytes.data(), std::min(static_cast<std::size_t>(size), kLogMax - std::min(kLogMax, log_.size())));
    } else if (size == 0 || (errno != EINTR && errno != EAGAIN)) {
      output_ = sys::Fd();
      ::waitpid(pid_, nullptr, 0);  // it has closed its log: it ends
      pid_ = -1;
    }
  }
  // "Listening for client connections on 127.0.0.1:33789": the number; empty: not yet.
  [[nodiscard]] std::string port_after(const std::string& words) const {
    const std::size_t place = log_.find(words);
    const std::size_t end = place == std::string::npos ? place : log_.find('\n', place);
    return end == std::string::npos ? std::string()
                                    : log_.substr(log_.rfind(':', end) + 1, end - log_.rfind(':', end) - 1);
  }
  [[nodiscard]] std::string client_port() const { return port_after("client connections on "); }
  [[nodiscard]] std::string route_port() const { return port_after("route connections on "); }
  [[nodiscard]] bool ready(bool clustered) const {
    return log_.find("Server is ready") != std::string::npos && !client_port().empty() &&
           (!clustered || !route_port().empty());
  }
  [[nodiscard]] std::size_t routes() const {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = log_.find("Route connection created", at)) != std::string::npos; ++at) {
      ++count;
    }
    return count;
  }

 private:
  sys::Fd output_;
  pid_t pid_ = -1;
  std::string log_;
};

// Servers: all of the command, and the folder of their files.
class Servers {
 public:
  explicit Servers(const FleetUpOptions& options)
      : options_(options),
        program_(find_program(options.program)),
        store_(store_of(options.store)),
        folder_(need(sys::make_private_directory(), "a directory")) {}
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;
  ~Servers() {
    all_.clear();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void start() {
    const bool clustered = options_.servers > 1;
    const bool keeps = clustered && !store_.empty();
    std::vector<std::string> ports;
    std::string routes;
    while (keeps && ports.size() < options_.servers) {
      reserved_.push_back(need(sys::reserve_tcp_port(), "a port"));
      ports.push_back(std::to_string(need(sys::local_address(reserved_.back().fd()), "a port").port()));
      routes += (routes.empty() ? "\"nats://127.0.0.1:" : ", \"nats://127.0.0.1:") + ports.back() + "\"";
    }
    for (std::uint64_t i = 0; i < options_.servers; ++i) {
      const std::string file = folder_ + "/" + std::to_string(i) + ".conf";
      std::ofstream config(file);
      config << "host: 127.0.0.1\nserver_name: weft" << i + 1 << "\n";
      if (!store_.empty()) {
        config << "jetstream { store_dir: \"" << store_ << "/weft" << i + 1 << "\" }\n";
      }
      if (clustered) {
        config << "cluster { name: weft, listen: \"127.0.0.1:" << (keeps ? ports[i] : "-1") << "\", routes: [" << routes
               << "] }\n";
      }
      config.close();
      const std::string port = options_.port == 0 ? "-1" : std::to_string(options_.port + i);
      Server& server = *all_.emplace_back(std::make_unique<Server>(program_, file, port));
      const Instant deadline = deadline_after(sys::now(), kStart);
      while (!server.ready(clustered)) {
        if (server.ended() || !read_one(deadline)) {
          throw Failure(program_ + (server.ended() ? " ended" : " is not ready after 30 s") + ":\n" +
                        printable(server.log()));
        }
      }
      if (!keeps) {
        routes = "\"nats://127.0.0.1:" + all_.front()->route_port() + "\"";
      }
    }
    const Instant deadline = deadline_after(sys::now(), kMeet);
    while (clustered && !met() && read_one(deadline)) {
    }
  }

  [[nodiscard]] std::string urls() const {
    std::string urls = "nats://";
    for (const auto& each : all_) {
      urls += (each == all_.front() ? "127.0.0.1:" : ",127.0.0.1:") + each->client_port();
    }
    return urls;
  }
  [[nodiscard]] const std::vector<std::unique_ptr<Server>>& all() const noexcept { return all_; }
  [[nodiscard]] bool any_runs() const {
    return std::any_of(all_.begin(), all_.end(), [](const auto& each) { return !each->ended(); });
  }

  // Waits until a server writes or ends, and reads it. Returns false after the deadline. Throws Stopped.
  bool read_one(Instant deadline) {
    throw_if_stopped();
    return wait(deadline, stop_fd());
  }

  void stop() {
    for (const auto& each : all_) {
      if (!each->ended()) {
        ::kill(each->pid(), SIGTERM);
      }
    }
    const Instant deadline = deadline_after(sys::now(), kEnd);
    while (any_runs() && wait(deadline, -1)) {
    }
  }

 private:
  [[nodiscard]] bool met() const {
    return std::all_of(all_.begin(), all_.end(), [&](const auto& each) { return each->routes() + 1 >= all_.size(); });
  }
  bool wait(Instant deadline, int other) {
    std::vector<sys::PollFd> polled = {{.fd = other, .want = sys::Interest::readable}};
    for (const auto& each : all_) {
      polled.push_back({.fd = each->ended() ? -1 : each->fd(), .want = sys::Interest::readable});
    }
    const auto ready = sys::poll_fds(polled, deadline == kNever ? Duration(-1) : time_left(deadline, sys::now()));
    if (ready && *ready == 0) {
      return false;
    }
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (polled[i + 1].got != sys::Interest::none || polled[i + 1].failed) {
        all_[i]->read();
      }
    }
    return true;
  }

  const FleetUpOptions options_;
  const std::string program_;
  const std::string store_;
  const std::string folder_;
  std::vector<sys::Fd> reserved_;  // the routes' ports: servers that keep topics need those of all at their start
  std::vector<std::unique_ptr<Server>> all_;
};

}  // namespace

int fleet_up(Console& console, const FleetUpOptions& options) {
  if (options.servers == 0 || options.servers > kServersMax) {
    throw Usage("--servers is 1 to 9");
  }
  if (options.port != 0 && options.port + options.servers - 1 > kPortsMax) {
    throw Usage("--port and the ports after it are at most 65535");
  }
  Servers servers(options);
  try {
    console.progress("starting " + std::to_string(options.servers) + " servers");
    servers.start();
    console.progress("");
    const std::string urls = servers.urls();
    if (console.json) {
      std::vector<Object> all;
      for (const auto& each : servers.all()) {
        all.push_back(
            {{{"url", "nats://127.0.0.1:" + each->client_port()}, {"pid", static_cast<std::uint64_t>(each->pid())}}});
      }
      console.record({{"fleet", urls}, {"servers", std::move(all)}});
    } else {
      console.line(urls);
      console.note("try: weft topic sub '>' --fleet " + urls);
      console.note("Ctrl-C ends the servers");
    }
    std::vector<bool> told(servers.all().size());
    while (servers.any_runs()) {
      (void)servers.read_one(kNever);
      for (std::size_t i = 0; i < told.size(); ++i) {
        if (servers.all()[i]->ended() && !told[i]) {
          told[i] = true;
          console.note("the server at 127.0.0.1:" + servers.all()[i]->client_port() + " ended");
        }
      }
    }
    throw Failure("all servers ended");
  } catch (const Stopped&) {
    if (stop_signal() == SIGPIPE) {
      throw;
    }
    servers.stop();
    return 0;
  }
}

}  // namespace weft::cli
