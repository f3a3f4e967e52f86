// SPDX-License-Identifier: MIT
// bench_sockets: throughput and round trips of Weft and of a libzmq, in turns, one JSON object per line on standard
// output. bench/sockets.py runs it cell by cell; bench/report.py reads what it prints.
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "bench/controls.h"
#include "bench/workload.h"

namespace bench {

void fail(const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "bench_sockets: %s\n", what.c_str());
  std::_Exit(1);
}

namespace {

using Libraries = std::vector<std::unique_ptr<Library>>;

constexpr std::size_t kLibrariesMax = 2;

// How long things take; the numbers of --quick and --tiny are in main's table of options.
struct Effort {
  double warm_up_s = 0.5;            // per library, while the number of messages is found
  double repetition_s = 0.06;        // one timed repetition
  int rounds = 20;                   // until so many rounds stood between equal probes ...
  int rounds_max = 40;               // ... or so many were run
  std::uint32_t ping_pongs = 1'000;  // 20 times this many per probe
};

struct Arguments {
  std::vector<Cell> cells;
  std::string zmq;
  Effort effort;
  bool controls = false;
  bool processes = false;
  bool a_a = false;
};

// What the leader tells the follower between two meetings, and what they measured; in shared memory.
struct Plan {
  enum class Step { probe, repetition, stop };

  Stage stage;
  std::array<std::array<char, 256>, kLibrariesMax> endpoints{};
  Step step = Step::probe;
  std::size_t library = 0;
  std::uint64_t run = 0;
  std::uint64_t count = 0;
  double probe_ns = 0;
  Measurement result;
  std::array<double, 2> cpu_seconds{};  // per side; one process counts on the leader's side only
  std::array<std::uint64_t, 2> switches{};
};

double cpu_seconds(const rusage& usage) {
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// CellRun: one cell, all libraries, from one side. Each side has its own contexts, as two programs would have; inproc
// needs a common one, which the leader makes and the follower is given.
class CellRun {
 public:
  CellRun(const Arguments& arguments, const Cell& cell, const Libraries& libraries, Plan& plan)
      : arguments_(arguments), cell_(cell), libraries_(libraries), plan_(plan) {}

  void lead();
  void follow();
  [[nodiscard]] int rounds() const noexcept { return rounds_; }
  [[nodiscard]] int agreed() const noexcept { return agreed_; }

 private:
  using Sockets = std::vector<std::unique_ptr<Socket>>;

  void bind_all();
  void find_counts();
  void run_round();
  double probe();
  Measurement repeat(std::size_t library, std::uint64_t count);
  void take_step(Side side, Socket* socket);
  void print(std::size_t library, const Measurement& m, double before, double after) const;
  std::string endpoint(std::size_t library) const;

  const Arguments& arguments_;
  const Cell& cell_;
  const Libraries& libraries_;
  Plan& plan_;
  std::vector<std::unique_ptr<Context>> contexts_;  // the leader's
  Sockets sockets_;                                 // the leader's
  std::vector<std::uint64_t> counts_;               // messages per repetition, of each library
  int rounds_ = 0;
  int agreed_ = 0;
};

std::string CellRun::endpoint(std::size_t library) const {
  if (cell_.transport == "tcp") {
    return "tcp://127.0.0.1:*";
  }
  if (cell_.transport == "ipc") {
    return "ipc://@weft-bench-" + std::to_string(getpid()) + "-" + std::to_string(library);  // leaves no file
  }
  return "inproc://bench";
}

void CellRun::bind_all() {
  const SocketType type = cell_.pattern == Pattern::push_pull ? SocketType::pull : SocketType::rep;
  for (std::size_t i = 0; i < libraries_.size(); ++i) {
    contexts_.push_back(libraries_[i]->open_context(cell_.mode));
    sockets_.push_back(contexts_[i]->open_socket(type));
    const std::string exact = sockets_[i]->bind(endpoint(i));
    std::snprintf(plan_.endpoints[i].data(), plan_.endpoints[i].size(), "%s", exact.c_str());
  }
}

// One step of the plan, on both sides at the same time.
void CellRun::take_step(Side side, Socket* socket) {
  const bool leads = side == Side::leader;
  if (plan_.step == Plan::Step::probe) {
    const double ns = plan_.stage.ping_pong(side, 20, arguments_.effort.ping_pongs);
    if (leads) {
      plan_.probe_ns = ns;
    }
    return;
  }
  Workload workload(cell_, *socket, plan_.run, plan_.count);
  plan_.stage.meet_awake();
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_SELF, &before);
  workload.perform(side, plan_.result);
  plan_.stage.meet();
  getrusage(RUSAGE_SELF, &after);
  const bool counts = leads || arguments_.processes;
  plan_.cpu_seconds[leads ? 0 : 1] = counts ? cpu_seconds(after) - cpu_seconds(before) : 0;
  plan_.switches[leads ? 0 : 1] = counts ? static_cast<std::uint64_t>(after.ru_nvcsw - before.ru_nvcsw) : 0;
}

void CellRun::follow() {
  plan_.stage.meet();  // everything is bound
  std::vector<std::unique_ptr<Context>> contexts;
  Sockets sockets;
  const SocketType type = cell_.pattern == Pattern::push_pull ? SocketType::push : SocketType::req;
  for (std::size_t i = 0; i < libraries_.size(); ++i) {
    const bool own = cell_.transport != "inproc";
    contexts.push_back(own ? libraries_[i]->open_context(cell_.mode) : nullptr);
    sockets.push_back((own ? contexts : contexts_)[i]->open_socket(type));
    sockets[i]->connect(plan_.endpoints[i].data());
  }
  for (;;) {
    plan_.stage.meet();  // the plan is made
    if (plan_.step == Plan::Step::stop) {
      return;
    }
    take_step(Side::follower, sockets[plan_.library].get());
    plan_.stage.meet();  // the results are there
  }
}

double CellRun::probe() {
  plan_.step = Plan::Step::probe;
  plan_.stage.meet();
  take_step(Side::leader, nullptr);
  plan_.stage.meet();
  return plan_.probe_ns;
}

Measurement CellRun::repeat(std::size_t library, std::uint64_t count) {
  plan_.step = Plan::Step::repetition;
  plan_.library = library;
  plan_.count = count;
  ++plan_.run;
  plan_.stage.meet();
  take_step(Side::leader, sockets_[library].get());
  plan_.stage.meet();
  Measurement result = plan_.result;
  result.cpu_seconds = plan_.cpu_seconds[0] + plan_.cpu_seconds[1];
  result.switches = plan_.switches[0] + plan_.switches[1];
  return result;
}

// Warms up with growing numbers of messages until one repetition takes as long as it should.
void CellRun::find_counts() {
  constexpr std::uint64_t kMin = 100;
  const std::uint64_t max = cell_.pattern == Pattern::round_trip ? 100'000 : 100'000'000;
  const double target = arguments_.effort.repetition_s;
  for (std::size_t i = 0; i < libraries_.size(); ++i) {
    std::uint64_t count = kMin;
    for (double spent = 0;;) {
      const double seconds = repeat(i, count).seconds;
      spent += seconds;
      const double per_message = seconds / static_cast<double>(count);
      const double wanted = std::min(target / per_message, 4 * static_cast<double>(count));
      count = std::clamp(static_cast<std::uint64_t>(wanted), kMin, max);
      if (spent >= arguments_.effort.warm_up_s) {
        break;
      }
    }
    counts_.push_back(count);
  }
}

void CellRun::print(std::size_t library, const Measurement& m, double before, double after) const {
  std::printf(
      "{\"kind\": \"run\", \"cell\": \"%s\", \"round\": %d, \"library\": \"%s\", \"messages\": %llu, \"seconds\": "
      "%.9f, "
      "\"median_ns\": %.1f, \"p99_ns\": %.1f, \"cpu_seconds\": %.6f, \"switches\": %llu, "
      "\"before_ns\": %.1f, \"after_ns\": %.1f}\n",
      cell_.name.c_str(), rounds_, libraries_[library]->name().c_str(),
      static_cast<unsigned long long>(counts_[library]), m.seconds, m.median_ns, m.p99_ns, m.cpu_seconds,
      static_cast<unsigned long long>(m.switches), before, after);
}

// Whether two probes saw the same placement. The vCPUs of a virtual machine are near each other or far apart, and the
// host moves them; slower than far, both sides shared a core. bench/report.py knows these limits too.
bool same_placement(double a_ns, double b_ns) {
  const auto is_near = [](double ns) { return ns < 200; };
  const auto is_far = [](double ns) { return ns > 350 && ns < 1500; };
  return (is_near(a_ns) && is_near(b_ns)) || (is_far(a_ns) && is_far(b_ns));
}

// A round is one repetition of each library, with a probe before, between and after; every other round goes backwards.
void CellRun::run_round() {
  std::array<double, kLibrariesMax + 1> probes{};
  std::array<Measurement, kLibrariesMax> results;
  const std::size_t count = libraries_.size();
  const auto turn = [&](std::size_t place) { return rounds_ % 2 == 0 ? place : count - 1 - place; };
  bool agree = true;
  for (std::size_t place = 0; place < count; ++place) {
    probes[place] = probe();
    results[place] = repeat(turn(place), counts_[turn(place)]);
  }
  probes[count] = probe();
  for (std::size_t place = 0; place < count; ++place) {
    print(turn(place), results[place], probes[place], probes[place + 1]);
    agree = agree && same_placement(probes[place], probes[place + 1]);
  }
  ++rounds_;
  agreed_ += agree ? 1 : 0;
}

void CellRun::lead() {
  bind_all();
  plan_.stage.meet();
  find_counts();
  while (agreed_ < arguments_.effort.rounds && rounds_ < arguments_.effort.rounds_max) {
    run_round();
  }
  plan_.step = Plan::Step::stop;
  plan_.stage.meet();
}

void run_cell(const Arguments& arguments, const Cell& cell, const Libraries& libraries) {
  auto* const plan = new (shared_memory(sizeof(Plan))) Plan;
  const MachineTime before = machine_time();
  rusage own_before{};
  getrusage(RUSAGE_SELF, &own_before);
  rusage children_before{};
  getrusage(RUSAGE_CHILDREN, &children_before);
  int rounds = 0;
  int agreed = 0;
  {
    CellRun run(arguments, cell, libraries, *plan);
    run_both(arguments.processes, [&] { run.lead(); }, [&] { run.follow(); });
    rounds = run.rounds();
    agreed = run.agreed();
  }
  const MachineTime after = machine_time();
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  const double used = cpu_seconds(own) - cpu_seconds(own_before) + cpu_seconds(children) - cpu_seconds(children_before);
  std::printf(
      "{\"kind\": \"cell\", \"cell\": \"%s\", \"pattern\": \"%s\", \"size\": %zu, \"rounds\": %d, \"agreed\": %d, "
      "\"busy_seconds\": %.2f, \"own_seconds\": %.2f, \"stolen_seconds\": %.2f}\n",
      cell.name.c_str(), cell.pattern == Pattern::push_pull ? "push_pull" : "round_trip", cell.size, rounds, agreed,
      after.busy - before.busy, used, after.stolen - before.stolen);
  std::fflush(stdout);
}

constexpr const char* kUsage = R"(usage: bench_sockets [options]

  --cell NAME     what to measure, may be repeated: push_pull/tcp/64, round_trip/ipc/64/eco ...
  --zmq PATH      compare with this libzmq.so.5, in turns
  --a-a           only that library, against itself: the two columns should be equal
  --processes     the two sides are processes (default: threads of one process)
  --quick         shorter: two or three seconds per cell
  --tiny          hardly anything: only to see that it works
  --controls      also measure what the machine does without a library
)";

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  const auto value = [&](int& i) -> std::string {
    if (++i == argc) {
      std::fputs(kUsage, stderr);
      std::exit(2);
    }
    return argv[i];
  };
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--cell") {
      arguments.cells.push_back(parse_cell(value(i)));
    } else if (option == "--zmq") {
      arguments.zmq = value(i);
    } else if (option == "--a-a") {
      arguments.a_a = true;
    } else if (option == "--processes") {
      arguments.processes = true;
    } else if (option == "--quick") {
      arguments.effort = {0.2, 0.05, 18, 30, 250};
    } else if (option == "--tiny") {
      arguments.effort = {0.002, 0.001, 2, 2, 20};
    } else if (option == "--controls") {
      arguments.controls = true;
    } else if (option == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    } else {
      std::fputs(kUsage, stderr);
      std::exit(2);
    }
  }
  for (const Cell& cell : arguments.cells) {
    if (arguments.processes && cell.transport == "inproc") {
      fail("inproc does not leave its process");
    }
  }
  if (arguments.a_a && arguments.zmq.empty()) {
    fail("--a-a needs --zmq");
  }
  return arguments;
}

Libraries open_libraries(const Arguments& arguments) {
  Libraries libraries;
  libraries.push_back(arguments.a_a ? make_zmq(arguments.zmq, "libzmq again") : make_weft());
  if (!arguments.zmq.empty()) {
    libraries.push_back(make_zmq(arguments.zmq, "libzmq"));
  }
  for (const auto& library : libraries) {
    std::printf("{\"kind\": \"library\", \"name\": \"%s\", \"version\": \"%s\"}\n", library->name().c_str(),
                library->version().c_str());
  }
  return libraries;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  const Arguments arguments = parse(argc, argv);
  std::signal(SIGALRM, [](int) {
    constexpr char kText[] = "bench_sockets: a cell made no progress: a message or a wake-up was lost\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
    _exit(3);
  });
  if (arguments.controls) {
    const Controls c = measure_controls();
    std::printf(
        "{\"kind\": \"controls\", \"memcpy_64_ns\": %.2f, \"getppid_ns\": %.1f, \"ping_pong_ns\": %.1f, "
        "\"futex_us\": %.2f}\n",
        c.memcpy_64_ns, c.getppid_ns, c.ping_pong_ns, c.futex_us);
  }
  const Libraries libraries = open_libraries(arguments);
  for (const Cell& cell : arguments.cells) {
    std::fflush(stdout);  // a forked process must not print it again
    alarm(120);
    run_cell(arguments, cell, libraries);
    alarm(0);
  }
}
