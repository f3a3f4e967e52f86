// SPDX-License-Identifier: MIT
// Two servers of remote calls under load, killed (SIGKILL) in turns and started again, and a BalancedClient with
// retries. `rpc_kill_test` is the client; it starts itself as the servers: `rpc_kill_test serve PORT LOG`. A server
// writes the id of each call that is not idempotent into LOG before it answers.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "examples/child.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/task/task_scope.h"
#include "weft/serve/rpc/balanced_client.h"
#include "weft/serve/rpc/rpc_service.h"
#include "weft/sys/clock.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;
namespace rpc = serve::rpc;

using Put = rpc::Method<"log.put", std::int64_t, std::int64_t>;
using Get = rpc::Idempotent<rpc::Method<"log.get", std::int64_t, std::int64_t>>;

constexpr int kKills = 20;
constexpr int kCallers = 32;
constexpr std::uint64_t kAnswersBetween = 300;  // a kill comes after so many answers, in the middle of the next ones
constexpr Duration kPatience = 100s;            // of all: a busy machine

// --- a server ---

Result<void> serve_calls(const std::string& port, const char* log) {
  const int file = ::open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
  rt::RuntimeOptions cores;
  cores.cores = 1;
  const auto runtime = WEFT_TRY(rt::Runtime::start(cores));
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  rpc::Methods methods;
  WEFT_TRY(methods.add<Put>([file](std::int64_t id) -> Result<std::int64_t> {
    if (::write(file, &id, sizeof id) != sizeof id) {
      return Error(Errc::system, "the log", errno);
    }
    return id * 3;
  }));
  WEFT_TRY(methods.add<Get>([](std::int64_t id) { return id * 5; }));
  const rpc::Service service(std::move(methods));
  const std::string endpoint = "tcp://127.0.0.1:" + port;
  auto bound = rpc::listen(*server, endpoint, service);
  for (const Instant end = sys::now() + kPatience;
       !bound && bound.error() == Errc::address_in_use && sys::now() < end;) {
    bound = rpc::listen(*server, endpoint, service);  // a client of the killed process had this port for a moment
  }
  std::printf("%s\n", WEFT_TRY(std::move(bound)).c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return {};
}

// --- the client ---

struct Outcome {
  bool answered = false;
  Fate fate = Fate::unsaid;
};

// Affinity: the core of the client, except `answers` and `faults`.
struct Load {
  std::unique_ptr<rpc::BalancedClient> client;
  std::int64_t next = 1;
  std::map<std::int64_t, Outcome> puts;
  std::atomic<std::uint64_t> answers{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> retried{0};
  std::atomic<bool> stop{false};
  std::atomic<int> faults{0};
};

void fault(Load& load, const char* text, const Error& error) {
  ++load.faults;
  std::printf("FAULT: %s: %s\n", text, error.message().c_str());
}

rt::Task<void> call_again_and_again(Load* load) {
  while (!load->stop) {
    const std::int64_t id = load->next++;
    const bool puts = id % 2 == 0;
    rpc::RetryRule rule = rpc::RetryRule::none;
    rpc::BalancedCall options;
    options.wait_for_ready = true;
    options.rule = &rule;
    rt::Task<Result<std::int64_t>> calling =
        puts ? load->client->call<Put>(id, options) : load->client->call<Get>(id, options);
    const Result<std::int64_t> answer = co_await std::move(calling);
    if (answer) {
      ++load->answers;
      if (*answer != id * (puts ? 3 : 5)) {
        fault(*load, "the answer of another call", Error());
      }
    } else {
      ++load->failed;
      if (rule == rpc::RetryRule::none) {
        fault(*load, "a call failed without a rule", answer.error());
      }
    }
    if (puts) {
      load->puts[id] = {bool(answer), answer ? Fate::answered : answer.error().fate()};
    }
  }
}

rt::Task<Result<void>> run_load(Load* load, std::vector<std::string> endpoints) {
  rpc::BalancedOptions options;
  options.client.connection.reconnect_first = 2ms;
  options.client.connection.reconnect_max = 20ms;
  options.client.timeout = 30s;
  options.retry_first = 1ms;
  options.retry_percent = 100;
  options.choice.failures_in_row = 0;
  auto client =
      rpc::BalancedClient::open(std::make_shared<serve::ClientHost>(*rt::Core::current()), endpoints, options);
  if (!client) {
    co_return client.error();
  }
  load->client = std::move(*client);
  rt::TaskScope callers(*rt::Loop::current());
  for (int i = 0; i < kCallers; ++i) {
    const auto spawned = callers.spawn(call_again_and_again(load));
    if (!spawned) {
      co_return spawned;
    }
  }
  const Result<void> joined = co_await callers.join();
  load->retried = load->client->counts().retries.value();
  load->client.reset();
  co_return joined;
}

Result<Child> start_server(const std::string& port, const std::string& log, std::string& endpoint) {
  Child child = WEFT_TRY(Child::start({"serve", port, log}));
  endpoint = child.line();
  return child;
}

// Compares the executed calls of the log with their outcomes.
void check_log(Load& load, const std::string& log) {
  std::ifstream file(log, std::ios::binary);
  std::map<std::int64_t, int> executed;
  for (std::int64_t id = 0; file.read(reinterpret_cast<char*>(&id), sizeof id);) {
    if (++executed[id] == 2) {
      fault(load, "a call that is not idempotent was executed twice", Error());
    }
  }
  std::size_t unknown = 0;
  for (const auto& [id, outcome] : load.puts) {
    const int times = executed.count(id) != 0 ? 1 : 0;
    if (outcome.answered && times == 0) {
      fault(load, "a call was answered and not executed", Error());
    }
    if (!outcome.answered && outcome.fate == Fate::not_sent && times != 0) {
      fault(load, "a call was executed, and its fate is `not sent`", Error());
    }
    unknown += outcome.fate == Fate::outcome_unknown ? 1 : 0;
  }
  std::printf("%d kills, %llu answers, %llu calls failed, %zu of them with an unknown outcome, %llu retries\n", kKills,
              static_cast<unsigned long long>(load.answers), static_cast<unsigned long long>(load.failed), unknown,
              static_cast<unsigned long long>(load.retried));
}

Result<void> kill_servers(Load& load, const std::string& log) {
  std::vector<std::string> endpoints(2);
  std::vector<std::unique_ptr<Child>> servers(2);
  for (std::size_t i = 0; i < 2; ++i) {
    servers[i] = std::make_unique<Child>(WEFT_TRY(start_server("0", log, endpoints[i])));
  }
  rt::RuntimeOptions cores;
  cores.cores = 1;
  const auto runtime = WEFT_TRY(rt::Runtime::start(cores));
  auto running = WEFT_TRY(rt::spawn(runtime->core(0), run_load(&load, endpoints)));
  const Instant end = sys::now() + kPatience;
  for (int kill = 0; kill < kKills && load.faults == 0; ++kill) {
    const std::uint64_t before = load.answers;
    while (load.answers < before + kAnswersBetween) {
      if (sys::now() > end || running.wait_until(sys::now() + 1ms)) {
        load.stop = true;
        return Error(Errc::timed_out, "too few calls are answered");
      }
    }
    const std::size_t which = static_cast<std::size_t>(kill) % 2;
    servers[which]->kill();
    servers[which].reset();
    const std::string port = endpoints[which].substr(endpoints[which].rfind(':') + 1);
    std::string endpoint;
    servers[which] = std::make_unique<Child>(WEFT_TRY(start_server(port, log, endpoint)));
  }
  load.stop = true;
  return running.get();
}

int run() {
  char log[] = "/tmp/weft-rpc-kill-XXXXXX";
  const int file = ::mkostemp(log, O_CLOEXEC);
  if (file < 0) {
    std::perror("rpc_kill_test: a file in /tmp");
    return 1;
  }
  ::close(file);
  Load load;
  const Result<void> ran = kill_servers(load, log);
  if (!ran) {
    fault(load, "the load", ran.error());
  }
  check_log(load, log);
  ::unlink(log);
  if (load.retried == 0) {
    fault(load, "no call was repeated: no kill met one", Error());
  }
  return load.faults == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "serve") == 0) {
    const Result<void> served = serve_calls(argv[2], argv[3]);
    if (!served) {
      std::fprintf(stderr, "rpc_kill_test: %s\n", served.error().message().c_str());
    }
    return served ? 0 : 1;
  }
  return run();
}
