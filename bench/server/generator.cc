// SPDX-License-Identifier: MIT
// bench_load: one cell against one server, as server_rounds.py commands it, line by line:
//   run COUNT INTERVAL_NS VERIFY_ALL    one repetition between two probes; every answer is verified anyway
//   count COUNT                         one repetition without probes, in which the server's system calls are counted
// Each command is answered by a JSON object on one line. The end of the input ends the connections and then the
// program.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <sstream>
#include <thread>

#include "bench/json.h"
#include "bench/server/abuse.h"
#include "bench/server/load.h"
#include "bench/server/load_cell.h"
#include "bench/server/rpc/client_process.h"
#include "bench/server/target.h"
#include "bench/server/udp_load.h"
#include "bench/stage.h"
#include "bench/usage.h"

namespace bench {
namespace {

constexpr std::chrono::seconds kUntilIdle(1);  // after this, a connection has released the memory that it does not need
// After this, the server is not expected to close any more bad peers.
constexpr std::uint64_t kUntilLimitedNs = 1'500'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kUntilThereNs = 10 * kSecond;  // after this, no more bad peers are expected

struct Arguments {
  LoadCell cell;
  std::uint16_t port = 0;
  pid_t pid = 0;
  int cpu = -1;
  int peer_cpu = -1;
  std::uint32_t ping_pongs = 1'000;
  unsigned patience_ms = 20'000;
  std::string client;  // a program with a client library of its own; "": the generator is the client
};

[[noreturn]] void refuse_usage() {
  std::fputs(
      "usage: bench_load --cell NAME --port PORT --pid PID [--cpu N] [--peer-cpu N] [--ping-pongs N]\n"
      "                  [--patience-ms N] [--client PROGRAM]\n"
      "Commands on standard input: `run COUNT INTERVAL_NS VERIFY_ALL`, `count COUNT`.\n",
      stderr);
  std::exit(2);
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) {
      refuse_usage();
    }
    const int number = std::atoi(argv[i + 1]);
    if (name == "--cell") {
      arguments.cell = parse_load_cell(argv[i + 1]);
    } else if (name == "--port") {
      arguments.port = static_cast<std::uint16_t>(number);
    } else if (name == "--pid") {
      arguments.pid = number;
    } else if (name == "--cpu") {
      arguments.cpu = number;
    } else if (name == "--peer-cpu") {
      arguments.peer_cpu = number;
    } else if (name == "--ping-pongs") {
      arguments.ping_pongs = static_cast<std::uint32_t>(number);
    } else if (name == "--patience-ms") {
      arguments.patience_ms = static_cast<unsigned>(number);
    } else if (name == "--client") {
      arguments.client = argv[i + 1];
    } else {
      refuse_usage();
    }
  }
  if (arguments.cell.size == 0 || arguments.port == 0 || arguments.pid == 0 ||
      (arguments.cell.streams && arguments.client.empty())) {
    refuse_usage();
  }
  return arguments;
}

void pin(int cpu) {
  if (cpu >= 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
}

// Measures how far the server's core is from the generator's at this moment: a thread on that core and this
// one play ping-pong.
class Probe {
 public:
  Probe(int peer_cpu, std::uint32_t rounds) : rounds_(rounds), peer_([this, peer_cpu] { follow(peer_cpu); }) {}
  ~Probe() {
    ends_ = true;
    stage_.meet();
    peer_.join();
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  double measure_ns() {
    stage_.meet();
    return stage_.ping_pong(Side::leader, 20, rounds_);
  }

 private:
  void follow(int cpu) {
    pin(cpu);
    for (;;) {
      stage_.meet();
      if (ends_) {
        return;
      }
      stage_.ping_pong(Side::follower, 20, rounds_);
    }
  }

  Stage stage_;
  std::atomic<bool> ends_{false};
  const std::uint32_t rounds_;
  std::thread peer_;
};

// Runner: runs one repetition and measures the resources of the server. Owner: main. Affinity: one thread.
class Runner {
 public:
  explicit Runner(const Arguments& arguments)
      : arguments_(arguments), cell_(arguments.cell), target_(arguments.pid), result_(new LoadResult) {
    if (!arguments.client.empty()) {
      client_ = std::make_unique<ClientProcess>(
          arguments.client,
          ClientProcess::Options{arguments.port, cell_.connections, cell_.size, cell_.depth, cell_.streams});
    } else if (cell_.pattern == LoadPattern::udp || cell_.pattern == LoadPattern::udp_flood) {
      udp_ = make_udp_load(cell_.connections);
      udp_->open(*result_);
    } else if (cell_.pattern != LoadPattern::storm && cell_.pattern != LoadPattern::idle) {
      load_ = make_load(cell_.connections);
      load_->open(*result_);
    }
  }

  void repeat(std::uint64_t count, std::uint64_t interval_ns, Probe* probe) {
    // Keep the connections, except those of the last storm.
    load_ = cell_.pattern == LoadPattern::storm ? nullptr : std::move(load_);
    target_.settle();
    const double before = probe == nullptr ? 0 : probe->measure_ns();
    SyscallCounter counter(probe == nullptr, target_.threads());
    counter.start();
    const double cpu = target_.cpu_seconds();
    const std::uint64_t switches = target_.switches();
    perform(count, interval_ns);
    target_.rest();
    const double used = cpu_.value_or(target_.cpu_seconds()) - cpu;
    const std::uint64_t switched = target_.switches() - switches;
    counter.stop();
    Json record = {{"messages", result_->messages},
                   {"receivers", 1},
                   {"seconds", result_->seconds},
                   {"cpu_seconds", used},
                   {"switches", switched}};
    if (probe == nullptr) {
      record["syscalls"] = count_or_null(counter.count());
      record["allocations"] = nullptr;
    } else {
      record["before_ns"] = before;
      record["after_ns"] = probe->measure_ns();
    }
    if (result_->trips.total() > 0) {
      add_trips(record, result_->trips);
    }
    record.update(extra_);
    extra_ = Json::object();
    print_line(record);
  }

  void finish() {
    if (load_ != nullptr) {
      load_->finish();
    }
    if (udp_ != nullptr) {
      udp_->finish();
    }
    if (client_ != nullptr) {
      client_->finish();
    }
  }
  [[nodiscard]] std::string version() const { return client_ == nullptr ? "" : client_->version(); }

 private:
  [[nodiscard]] std::unique_ptr<Load> make_load(std::uint32_t connections) const {
    return std::make_unique<Load>(LoadOptions{arguments_.port, connections, cell_.size, cell_.depth,
                                              arguments_.patience_ms, cell_.wire, cell_.style});
  }

  [[nodiscard]] std::unique_ptr<UdpLoad> make_udp_load(std::uint32_t clients) const {
    return std::make_unique<UdpLoad>(
        UdpLoadOptions{arguments_.port, clients, cell_.size, cell_.depth, arguments_.patience_ms});
  }

  void perform(std::uint64_t count, std::uint64_t interval_ns) {
    cpu_.reset();
    if (client_ != nullptr) {
      Json found = client_->run(count);
      result_->messages = found.at("messages");
      result_->seconds = found.at("seconds");
      found.erase("messages");
      found.erase("seconds");
      extra_.update(found);
      return;
    }
    switch (cell_.pattern) {
      case LoadPattern::echo:
        cell_.style == WebStyle::publish ? load_->publish(count, *result_) : load_->echo(count, interval_ns, *result_);
        break;
      case LoadPattern::one_way: load_->one_way(count, *result_); break;
      case LoadPattern::storm:
        load_ = make_load(cell_.connections);
        load_->open(*result_);
        break;
      case LoadPattern::idle: hold(); break;
      case LoadPattern::bad: suffer(count); break;
      case LoadPattern::udp: udp_->echo(count, *result_); break;
      case LoadPattern::udp_flood: suffer_datagrams(count); break;
    }
  }

  // Opens all connections, waits until the server has released the memory that an idle connection does not
  // need, and sends a request on each again.
  void hold() {
    load_.reset();
    target_.settle();
    const std::uint64_t before = target_.private_memory();
    load_ = make_load(cell_.connections);
    load_->open(*result_);
    const double seconds = result_->seconds;
    std::this_thread::sleep_for(kUntilIdle);
    const std::uint64_t memory = target_.private_memory();
    extra_["memory_bytes"] = memory > before ? memory - before : 0;
    extra_["idle_cpu"] = cpu_of_a_second([] {});
    cpu_ = target_.cpu_seconds();
    load_->echo(cell_.connections, 0, *result_);  // each of them still answers
    result_->seconds = seconds;
  }

  // The share of a core that the server takes while it gets no requests.
  double cpu_of_a_second(const std::function<void()>& now_and_then) const {
    const double before = target_.cpu_seconds();
    const std::uint64_t start = now_ns();
    while (now_ns() - start < kSecond) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      now_and_then();
    }
    return (target_.cpu_seconds() - before) / (static_cast<double>(now_ns() - start) / 1e9);
  }

  // Runs the same load without bad peers and beside them.
  void suffer(std::uint64_t count) {
    load_->echo(count, 0, *result_);
    extra_["alone_seconds"] = result_->seconds;
    {
      BadPeers peers(cell_.abuse, arguments_.port);
      const auto tick = [&] { peers.tick(now_ns()); };
      // Wait until the peers that stay are connected.
      const std::uint64_t begun = now_ns();
      while (now_ns() - begun < kSecond / 10 || (!peers.all_are_there(now_ns()) && now_ns() - begun < kUntilThereNs)) {
        tick();
        std::this_thread::yield();
      }
      target_.settle();
      load_->on_turn([&](std::uint64_t now) { peers.tick(now); });
      load_->echo(count, 0, *result_);
      load_->on_turn(nullptr);
      cpu_ = target_.cpu_seconds();
      if (cell_.abuse == Abuse::fd_exhaustion) {
        extra_["exhausted_cpu"] = cpu_of_a_second(tick);
      } else if (cell_.abuse != Abuse::idle_upgrade) {
        await_limits(peers);
      }
      extra_["peers"] = peers.started();
      extra_["limited"] = peers.limited();
      extra_["slowest_limit_s"] = peers.slowest_s();
    }
    // After the bad peers, a new connection must be served again.
    const std::uint64_t start = now_ns();
    const auto next = std::make_unique<LoadResult>();
    make_load(1)->open(*next);
    extra_["recovery_s"] = static_cast<double>(now_ns() - start) / 1e9;
  }

  // Runs the same load without a flood and beside it.
  void suffer_datagrams(std::uint64_t count) {
    udp_->echo(count, *result_);
    extra_["alone_seconds"] = result_->seconds;
    UdpFlood flood(arguments_.port);
    udp_->on_turn([&flood](std::uint64_t now) { flood.tick(now); });
    udp_->echo(count, *result_);
    udp_->on_turn(nullptr);
    extra_["flood"] = flood.sent();
    const std::uint64_t start = now_ns();
    const auto next = std::make_unique<LoadResult>();
    const auto newcomer = make_udp_load(1);
    newcomer->open(*next);
    newcomer->finish();
    extra_["recovery_s"] = static_cast<double>(now_ns() - start) / 1e9;
  }

  void await_limits(BadPeers& peers) const {
    const std::uint64_t start = now_ns();
    const std::uint64_t started = peers.started();
    while (peers.limited() < started && now_ns() - start < kUntilLimitedNs) {
      peers.tick(now_ns());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const Arguments arguments_;
  const LoadCell cell_;
  const Target target_;
  const std::unique_ptr<LoadResult> result_;
  std::unique_ptr<Load> load_;
  std::unique_ptr<UdpLoad> udp_;           // of the udp patterns, in the place of `load_`
  std::unique_ptr<ClientProcess> client_;  // with --client, in the place of both
  std::optional<double> cpu_;              // of the server at the end of the counted part; none: now
  Json extra_ = Json::object();            // figures of some patterns only
};

void allow_files(std::uint32_t connections) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < connections + 64) {
    throw LoadError(std::to_string(connections) + " connections need " + std::to_string(connections + 64) +
                    " files: see `ulimit -Hn`");
  }
}

void run(const Arguments& arguments) {
  Probe probe(arguments.peer_cpu, arguments.ping_pongs);
  pin(arguments.cpu);
  allow_files(arguments.cell.connections);
  Runner runner(arguments);
  print_line({{"version", runner.version()}, {"path", ""}});
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    std::uint64_t count = 0;
    std::uint64_t interval_ns = 0;
    words >> command >> count >> interval_ns;
    if ((command != "run" && command != "count") || count == 0) {
      throw LoadError("no command '" + line + "'");
    }
    runner.repeat(count, interval_ns, command == "run" ? &probe : nullptr);
  }
  runner.finish();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    bench::run(bench::parse(argc, argv));
  } catch (const std::exception& error) {
    bench::fail(error.what());
  }
}
