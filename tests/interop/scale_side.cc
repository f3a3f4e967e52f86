// SPDX-License-Identifier: MIT
// One socket, or one server, with very many connections. scale_test.py counts the cost of each.
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include "weft/serve/frame/delimiter_codec.h"
#include "weft/serve/server/server.h"
#include "weft/weft.h"

namespace {

using weft::Result;

constexpr auto kHour = std::chrono::hours(1);

// The processor time of this process without that of the calling thread, which only polls. In microseconds.
long long processor_time() {
  const auto of = [](clockid_t clock) {
    timespec time{};
    (void)::clock_gettime(clock, &time);
    return static_cast<long long>(time.tv_sec) * 1'000'000 + time.tv_nsec / 1000;
  };
  return of(CLOCK_PROCESS_CPUTIME_ID) - of(CLOCK_THREAD_CPUTIME_ID);
}

long long resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) {
      return std::stoll(line.substr(6));
    }
  }
  return 0;
}

// Subject: the thing that has the connections.
class Subject {
 public:
  Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  virtual ~Subject() = default;
  virtual Result<std::string> bind() = 0;
  virtual std::uint64_t accepted() { return 0; }  // ever
  virtual std::uint64_t open() = 0;               // connections whose handshake is over
  virtual std::uint64_t received() { return 0; }  // messages
  virtual void connect(std::uint64_t /*count*/, bool /*before_bind*/) {}
  virtual void disconnect() {}
  virtual void shut() = 0;  // ends all connections, and waits for their ends
};

class SocketSubject final : public Subject {
 public:
  explicit SocketSubject(weft::SocketType type) : type_(type) {}
  ~SocketSubject() override { SocketSubject::shut(); }

  Result<std::string> bind() override {
    socket_ = WEFT_TRY(context_.socket(type_));
    WEFT_TRY(socket_.set(weft::option::heartbeat_interval, weft::Duration(0)));
    WEFT_TRY(socket_.set(weft::option::handshake_timeout, kHour));
    WEFT_TRY(socket_.set(weft::option::backlog, 4096));
    WEFT_TRY(socket_.set(weft::option::connections_max, 1'000'000));
    WEFT_TRY(socket_.set(weft::option::address_connections_max, 0));
    WEFT_TRY(socket_.set(weft::option::address_rate_max, 0));
    WEFT_TRY(socket_.set(weft::option::linger, weft::Duration(0)));
    std::string endpoint = WEFT_TRY(socket_.bind("tcp://127.0.0.1:*"));
    receiver_ = std::thread([this] {
      while (const auto message = socket_.recv()) {
        received_.fetch_add(message->more() ? 0 : 1, std::memory_order_relaxed);
      }
    });
    return endpoint;
  }
  std::uint64_t accepted() override { return socket_.statistics().value_or(weft::Statistics{}).accepted; }
  std::uint64_t open() override { return socket_.statistics().value_or(weft::Statistics{}).peers; }
  std::uint64_t received() override { return received_.load(std::memory_order_relaxed); }
  void shut() override {
    socket_.close();
    if (receiver_.joinable()) {
      receiver_.join();
    }
    context_.close();
  }

 private:
  const weft::SocketType type_;
  weft::Context context_;
  weft::Socket socket_;
  std::thread receiver_;
  std::atomic<std::uint64_t> received_{0};
};

// One PULL and one PUSH of a process, joined many times. The connections need no descriptors.
class InprocSubject final : public Subject {
 public:
  Result<std::string> bind() override {
    pull_ = WEFT_TRY(context_.socket(weft::SocketType::pull));
    push_ = WEFT_TRY(context_.socket(weft::SocketType::push));
    WEFT_TRY(push_.set(weft::option::linger, weft::Duration(0)));
    return pull_.bind(kEndpoint);
  }
  std::uint64_t open() override { return pull_.statistics().value_or(weft::Statistics{}).peers; }
  void connect(std::uint64_t count, bool before_bind) override {
    if (before_bind) {
      (void)pull_.unbind(kEndpoint);
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      (void)push_.connect(kEndpoint);
    }
    if (before_bind) {
      (void)pull_.bind(kEndpoint);
    }
  }
  void disconnect() override { (void)push_.disconnect(kEndpoint); }
  void shut() override {
    pull_.close();
    push_.close();
    context_.close();
  }

 private:
  static constexpr const char* kEndpoint = "inproc://many";
  weft::Context context_;
  weft::Socket pull_;
  weft::Socket push_;
};

class ServerSubject final : public Subject {
 public:
  ~ServerSubject() override { ServerSubject::shut(); }

  Result<std::string> bind() override {
    weft::rt::RuntimeOptions one_core;
    one_core.cores = 1;
    runtime_ = WEFT_TRY(weft::rt::Runtime::start(one_core));
    weft::serve::ServerOptions bounds;
    bounds.sessions_max = 1'000'000;
    server_ = WEFT_TRY(weft::serve::Server::make(*runtime_, bounds));
    weft::serve::ListenerOptions options;
    options.limits.handshake_timeout = options.limits.idle_timeout = kHour;
    options.socket.backlog = 4096;
    return server_->listen<weft::serve::DelimiterCodec>("tcp://127.0.0.1:0", options, [] { return Echo(); });
  }
  std::uint64_t accepted() override { return server_->counters().opened; }
  std::uint64_t open() override { return server_->sessions(); }
  std::uint64_t received() override { return server_->counters().frames_in; }
  void shut() override {
    if (server_ != nullptr) {
      (void)server_->stop(weft::Instant());
      server_.reset();
    }
  }

 private:
  struct Echo {
    void on_frame(weft::serve::SessionOf<weft::serve::DelimiterCodec>& session,
                  const weft::serve::DelimiterCodec::Frame& frame) {
      (void)session.send({}, frame.body);
    }
  };
  std::unique_ptr<weft::rt::Runtime> runtime_;
  std::unique_ptr<weft::serve::Server> server_;
};

std::unique_ptr<Subject> make_subject(std::string_view kind) {
  if (kind == "server") {
    return std::make_unique<ServerSubject>();
  }
  if (kind == "inproc") {
    return std::make_unique<InprocSubject>();
  }
  return std::make_unique<SocketSubject>(kind == "router" ? weft::SocketType::router : weft::SocketType::pull);
}

void report(const char* word) {
  std::printf("%s %lld %lld\n", word, processor_time(), resident_kilobytes());
  std::fflush(stdout);
}

// Each line of input names a count and the number to wait for; the answer has processor time and memory.
int serve_commands(Subject& subject) {
  std::string what;
  std::uint64_t number = 0;
  while (std::cin >> what >> number) {
    if (what == "shut" || what == "connect" || what == "early" || what == "disconnect") {
      const auto act = [&] {
        if (what == "shut") {
          subject.shut();
        } else if (what == "disconnect") {
          subject.disconnect();
        } else {
          subject.connect(number, what == "early");
        }
      };
      std::thread(act).join();  // whose time counts
    } else {
      const auto count = [&] {
        return what == "open" ? subject.open() : what == "accepted" ? subject.accepted() : subject.received();
      };
      while (count() != number) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    }
    report(what.c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc == 2 ? argv[1] : "";
  if (kind != "router" && kind != "pull" && kind != "server" && kind != "inproc") {
    std::puts(
        "usage: scale_side router|pull|server|inproc: binds, says \"bound ENDPOINT\", and answers lines of input:\n"
        "  open N, accepted N, received N: waits until the count is N\n"
        "  connect N, early N, disconnect 0: of inproc; early connects before it binds\n"
        "  shut 0: ends all connections\n"
        "each with the processor time in microseconds and the resident memory in KiB");
    return kind == "--help" ? 0 : 2;
  }
  const auto subject = make_subject(kind);
  const auto bound = subject->bind();
  if (!bound) {
    std::printf("failed %s\n", bound.error().message().c_str());
    return 1;
  }
  std::printf("bound %s\n", bound->c_str());
  std::fflush(stdout);
  return serve_commands(*subject);
}
