// SPDX-License-Identifier: MIT
// bench_sockets: one cell on one libzmq.so.5 (or without a library), as rounds.py commands it, line by line; see
// cell_run.h. LD_LIBRARY_PATH selects the library for the dynamic linker.
#include <sched.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "bench/cell_run.h"
#include "bench/commands.h"
#include "bench/controls.h"
#include "bench/json.h"

namespace bench {

namespace {

struct Arguments {
  std::string cell;
  std::string engine = "zmq";
  std::uint32_t ping_pongs = 1'000;
  bool processes = false;
  bool counting = false;
  bool controls = false;
};

constexpr const char* kUsage = R"(usage: bench_sockets --cell NAME [options]
       bench_sockets --controls

  --cell NAME      what to measure: push_pull/tcp/64, round_trip/ipc/64/eco ...; see bench/README.md
  --engine NAME    zmq (default): the libzmq.so.5 that the dynamic linker finds; raw or raw_spinning: the system
                   without a library; nng: the libnng.so.1 that it finds
  --processes      the two sides are processes (default: threads of one process)
  --ping-pongs N   20 times this many per probe (default: 1000)
  --counting       also count system calls, where the kernel allows it
  --controls       measure what the machine does without sockets, and end

Commands on standard input: `run COUNT INTERVAL_NS VERIFY_ALL`, `count COUNT`; an answer is a JSON object in a line.
)";

[[noreturn]] void refuse_usage() {
  std::fputs(kUsage, stderr);
  std::exit(2);
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  const auto value = [&](int& i) -> std::string {
    if (++i == argc) {
      refuse_usage();
    }
    return argv[i];
  };
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--cell") {
      arguments.cell = value(i);
    } else if (option == "--engine") {
      arguments.engine = value(i);
    } else if (option == "--ping-pongs") {
      arguments.ping_pongs = static_cast<std::uint32_t>(std::strtoul(value(i).c_str(), nullptr, 10));
    } else if (option == "--processes") {
      arguments.processes = true;
    } else if (option == "--counting") {
      arguments.counting = true;
    } else if (option == "--controls") {
      arguments.controls = true;
    } else if (option == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    } else {
      refuse_usage();
    }
  }
  if (arguments.cell.empty() != arguments.controls || arguments.ping_pongs == 0) {
    refuse_usage();
  }
  return arguments;
}

std::unique_ptr<Engine> make_engine(const std::string& name) {
  if (name == "zmq") {
    return make_zmq();
  }
  if (name == "nng") {
    return make_nng();
  }
  if (name != "raw" && name != "raw_spinning") {
    fail("no engine '" + name + "': zmq, raw, raw_spinning or nng");
  }
  return make_raw(name == "raw_spinning");
}

// Allows the descriptors of both ends of each connection, and those that a library opens beside them.
void allow_files(int connections) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const auto wanted = static_cast<rlim_t>(connections) * 4 + 64;
  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < wanted) {
    fail(std::to_string(connections) + " connections need " + std::to_string(wanted) + " files: see `ulimit -Hn`");
  }
}

void print_controls() {
  const Controls controls = measure_controls();
  const MachineTime time = machine_time();
  print_line({{"kind", "controls"},
              {"memcpy_64_ns", controls.memcpy_64_ns},
              {"getppid_ns", controls.getppid_ns},
              {"ping_pong_ns", controls.ping_pong_ns},
              {"futex_us", controls.futex_us},
              {"busy_seconds", time.busy},
              {"stolen_seconds", time.stolen}});
}

// All threads to come run on the first processor that this program may use.
void pin_process() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) {
    ++first;
  }
  CPU_ZERO(&allowed);
  CPU_SET(first, &allowed);
  if (sched_setaffinity(0, sizeof allowed, &allowed) != 0) {
    fail("the system gives this program no processor of its own");
  }
}

void run_cell(const Arguments& arguments) {
  const Cell cell = parse_cell(arguments.cell);
  const bool processes = arguments.processes || cell.pattern == Pattern::idle_memory;
  if (processes && cell.pattern == Pattern::one_thread) {
    fail("one thread does not run in two processes");
  }
  if (processes && cell.transport == "inproc") {
    fail("inproc does not leave its process");
  }
  if (cell.storms()) {
    allow_files(cell.times);
  }
  if (cell.one_core) {
    pin_process();
  }
  if (cell.eco) {
    setenv("WEFT_WAIT_MODE", "eco", 1);
  }
  const std::unique_ptr<Engine> engine = make_engine(arguments.engine);
  auto* const plan = new (shared_memory(sizeof(Plan))) Plan(cell);
  plan->ping_pongs = arguments.ping_pongs;
  engine->prepare(cell, plan->addresses);
  SyscallCounter counter(arguments.counting);
  print_line({{"version", engine->version()}, {"path", engine->path()}});
  SideRun leader(Side::leader, cell, processes, *engine, counter, *plan);
  SideRun follower(Side::follower, cell, processes, *engine, counter, *plan);
  run_both(processes, [&] { leader.run(); }, [&] { follower.run(); });
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  end_when_stuck();
  const Arguments arguments = parse(argc, argv);
  if (arguments.controls) {
    print_controls();
  } else {
    run_cell(arguments);
  }
}
