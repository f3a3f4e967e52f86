// SPDX-License-Identifier: MIT
// bench_topics: one cell with one engine, as weft_bench/harness/topics_rounds.py commands it, line by line.
#include <cstdio>
#include <cstdlib>
#include <new>

#include "bench/cell_run.h"
#include "bench/commands.h"
#include "bench/topics/engines.h"
#include "bench/topics/runs.h"

namespace bench {
namespace {

struct Arguments {
  std::string cell;
  std::string engine = "topics";
  std::string runtime;
  std::string directory;
  std::string redis;
  std::string nats;
  std::uint32_t ping_pongs = 1'000;
};

constexpr const char* kUsage = R"(usage: bench_topics --cell NAME [options]

  --cell NAME      what to measure: pub_sub/ipc/64, cores/inproc/64/x8, kept/ipc/100 ...; see bench/topics/README.md
  --engine NAME    topics (default), async, sockets, one_part, prefix_table, redis, redis_x5,
                   libnats, libnats_asap, libnats_id
  --runtime DIR    an empty folder with a short name, for sockets of the system
  --directory DIR  an empty folder for what is kept
  --redis PATH     the unix socket of a Redis
  --nats URL       a server of NATS
  --ping-pongs N   20 times this many per probe (default: 1000)

Commands on standard input: `run COUNT INTERVAL_NS VERIFY_ALL`, `count COUNT`; an answer is a JSON object in a line.
)";

[[noreturn]] void refuse_usage() {
  std::fputs(kUsage, stderr);
  std::exit(2);
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (++i == argc) {
      refuse_usage();
    }
    if (option == "--cell") {
      arguments.cell = argv[i];
    } else if (option == "--engine") {
      arguments.engine = argv[i];
    } else if (option == "--runtime") {
      arguments.runtime = argv[i];
    } else if (option == "--directory") {
      arguments.directory = argv[i];
    } else if (option == "--redis") {
      arguments.redis = argv[i];
    } else if (option == "--nats") {
      arguments.nats = argv[i];
    } else if (option == "--ping-pongs") {
      arguments.ping_pongs = static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10));
    } else {
      refuse_usage();
    }
  }
  if (arguments.cell.empty() || arguments.ping_pongs == 0) {
    refuse_usage();
  }
  return arguments;
}

std::unique_ptr<Engine> make_engine(const Arguments& arguments) {
  if (arguments.engine == "topics") {
    return make_topics(arguments.runtime);
  }
  if (arguments.engine == "redis") {
    return make_redis(arguments.redis);
  }
  if (arguments.engine != "sockets" && arguments.engine != "one_part") {
    fail("no engine '" + arguments.engine + "' between processes");
  }
  return make_sockets(arguments.runtime, arguments.engine == "one_part");
}

// Two processes, with the workloads of bench_sockets.
void run_processes(const Arguments& arguments) {
  const Cell cell = parse_cell(arguments.cell);
  if ((cell.pattern != Pattern::pub_sub && cell.pattern != Pattern::round_trip) || cell.transport != "ipc") {
    fail("no cell '" + arguments.cell + "'");
  }
  const std::unique_ptr<Engine> engine = make_engine(arguments);
  auto* const plan = new (shared_memory(sizeof(Plan))) Plan(cell);
  plan->ping_pongs = arguments.ping_pongs;
  SyscallCounter counter(false);
  print_line({{"version", engine->version()}, {"path", engine->path()}});
  SideRun leader(Side::leader, cell, true, *engine, counter, *plan);
  SideRun follower(Side::follower, cell, true, *engine, counter, *plan);
  run_both(true, [&] { leader.run(); }, [&] { follower.run(); });
}

void run(const Arguments& arguments) {
  const std::string pattern = arguments.cell.substr(0, arguments.cell.find('/'));
  if (pattern == "cores") {
    run_cores(arguments.cell, arguments.engine, arguments.ping_pongs);
  } else if (pattern == "same_handle") {
    run_same_handle(arguments.cell, arguments.engine);
  } else if (pattern == "filters") {
    run_filters(arguments.cell, arguments.engine);
  } else if (pattern == "kept") {
    run_kept(arguments.cell, arguments.engine, arguments.runtime, arguments.directory, arguments.redis);
  } else if (pattern == "fleet") {
    run_fleet(arguments.cell, arguments.engine, arguments.nats);
  } else if (pattern == "fleet_kept") {
    run_fleet_kept(arguments.cell, arguments.engine, arguments.nats);
  } else if (pattern == "fleet_request") {
    run_fleet_request(arguments.cell, arguments.engine, arguments.nats);
  } else {
    run_processes(arguments);
  }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  end_when_stuck();
  const Arguments arguments = parse(argc, argv);
  run(arguments);
}
