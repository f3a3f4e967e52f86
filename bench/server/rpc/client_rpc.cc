// SPDX-License-Identifier: MIT
// Weft's rpc::Client, as a user writes it: a coroutine for each call in flight, and one for each stream.
#include <chrono>
#include <exception>

#include "bench/cell.h"
#include "bench/server/must.h"
#include "bench/server/rpc/client_host.h"
#include "bench/server/rpc/rpc_methods.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_scope.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/rpc/rpc_client.h"
#include "weft/sys/clock.h"

namespace bench {
namespace {

using weft::Result;
using weft::rt::Task;
constexpr std::chrono::seconds kPatience(20);

[[noreturn]] void complain(const weft::Error& error) { throw LoadError("weft: " + error.message()); }

struct Connection {
  std::unique_ptr<rpc::Client> client;
  std::uint64_t number = 0;
  std::uint64_t sequence = 0;
};

class WeftLoad final : public RpcLoad {
 public:
  explicit WeftLoad(const ClientProcess::Options& options)
      : options_(options), bodies_(options.size), connections_(options.connections) {
    weft::rt::RuntimeOptions runtime_options;
    runtime_options.cores = 1;
    runtime_ = must(weft::rt::Runtime::start(runtime_options));
    run(open());
  }
  ~WeftLoad() override {
    try {
      run(close());
    } catch (const LoadError& error) {
      fail(error.what());
    }
  }
  WeftLoad(const WeftLoad&) = delete;
  WeftLoad& operator=(const WeftLoad&) = delete;

  void call(std::uint64_t count, LoadResult& result) override {
    left_ = count;
    result_ = &result;
    std::vector<Task<void>> lanes;
    for (std::uint32_t i = 0; i < options_.depth; ++i) {
      for (Connection& connection : connections_) {
        lanes.push_back(call_in_turn(&connection));
      }
    }
    run(all(std::move(lanes)));
  }

  void stream(std::uint64_t each) override {
    std::vector<Task<void>> streams;
    for (Connection& connection : connections_) {
      streams.push_back(push(&connection, each));
    }
    run(all(std::move(streams)));
  }

 private:
  // Rethrows the exception of the task in this thread.
  void run(Task<void> task) {
    std::exception_ptr thrown;
    const auto ran = weft::rt::spawn(runtime_->core(0).loop(), guarded(std::move(task), &thrown)).get();
    if (thrown) {
      std::rethrow_exception(thrown);
    }
    if (!ran) {
      complain(ran.error());
    }
  }
  static Task<void> guarded(Task<void> task, std::exception_ptr* thrown) {
    try {
      co_await std::move(task);
    } catch (...) {
      *thrown = std::current_exception();
    }
  }
  static Task<void> all(std::vector<Task<void>> tasks) { (void)co_await weft::rt::when_all(std::move(tasks)); }

  Task<void> open() {
    const auto host = std::make_shared<weft::serve::ClientHost>(*weft::rt::Core::current());
    const std::string endpoint = "tcp://127.0.0.1:" + std::to_string(options_.port);
    for (Connection& connection : connections_) {
      connection.number = static_cast<std::uint64_t>(&connection - connections_.data());
      connection.client = must(rpc::Client::open(host, endpoint));
      const auto connected = co_await connection.client->connected(weft::sys::now() + kPatience);
      if (!connected) {
        complain(connected.error());
      }
    }
  }
  Task<void> close() {
    for (Connection& connection : connections_) {
      const auto closed = co_await connection.client->close(weft::sys::now() + kPatience);
      if (!closed) {
        complain(closed.error());
      }
      connection.client.reset();
    }
  }

  // Makes one call after the other while there are any left for all connections.
  Task<void> call_in_turn(Connection* connection) {
    while (left_ > 0) {
      --left_;
      const std::uint64_t tag = make_tag(connection->number, connection->sequence++);
      const std::uint64_t start = now_ns();
      const auto answer = co_await connection->client->call<CalledEcho>(bodies_.make(tag));
      if (!answer) {
        complain(answer.error());
      }
      bodies_.check(answer->bytes(), tag);
      result_->trips.add(now_ns() - start);
    }
  }

  Task<void> push(Connection* connection, std::uint64_t count) {
    auto begun = connection->client->stream<CalledPush>();
    if (!begun) {
      complain(begun.error());
    }
    const auto stream = std::move(*begun);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto sent = co_await stream->send(bodies_.make(make_tag(connection->number, connection->sequence++)));
      if (!sent) {
        complain(sent.error());
      }
    }
    (void)stream->end();
    const auto report = co_await stream->finish();
    if (!report) {
      complain(report.error());
    }
    check_report(report->bytes(), count);
  }

  const ClientProcess::Options options_;
  RequestBodies bodies_;
  std::unique_ptr<weft::rt::Runtime> runtime_;
  std::vector<Connection> connections_;
  std::uint64_t left_ = 0;
  LoadResult* result_ = nullptr;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::run_client(argc, argv, "Weft's rpc", [](const auto& options) -> std::unique_ptr<bench::RpcLoad> {
    return std::make_unique<bench::WeftLoad>(options);
  });
}
