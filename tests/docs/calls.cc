// SPDX-License-Identifier: MIT
// The C++ blocks of docs/rpc.md that are not of an example. The test docs.rpc compares them, docs.guides runs them.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "guides.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/client/retrying.h"
#include "weft/serve/rpc/balanced_client.h"
#include "weft/serve/rpc/rpc_client.h"
#include "weft/serve/rpc/rpc_service.h"
#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"
#include "weft/trace/tracer.h"

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using namespace weft;                  // NOLINT(google-build-using-namespace)
namespace rpc = serve::rpc;
using guides::expect;

// --- a method ---

using Reverse = rpc::Method<"text.reverse", std::string, std::string>;
using Ping = rpc::Method<"ping", rpc::Empty, rpc::Empty>;
using Nap = rpc::Method<"nap", std::int64_t, rpc::Empty>;

using Squares = rpc::ServerStream<"squares", std::int64_t, std::int64_t>;
using Total = rpc::ClientStream<"total", std::int64_t, std::int64_t>;
using Echo = rpc::TwoWayStream<"echo", std::string, std::string>;

constexpr ErrorDomain kTexts("texts");

rpc::Methods texts() {
  rpc::Methods methods;
  (void)methods.add<Ping>([] {});
  (void)methods.add<Reverse>([](const std::string& text) -> Result<std::string> {
    if (text.empty()) {
      return Error(kTexts, 5, "nothing to reverse");
    }
    return std::string(text.rbegin(), text.rend());
  });
  (void)methods.add<Nap>([](std::int64_t ms) -> rt::Task<Result<void>> {
    WEFT_CO_TRY(co_await rt::sleep(std::chrono::milliseconds(ms)));
    co_return Result<void>();
  });
  return methods;
}

rpc::Methods streams(rpc::Methods methods) {
  (void)methods.add<Squares>([](const std::int64_t& n, rpc::Writer<std::int64_t>& out) -> rt::Task<Result<void>> {
    for (std::int64_t i = 0; i < n; ++i) {
      WEFT_CO_TRY(co_await out.send(i * i));
    }
    co_return Result<void>();
  });
  (void)methods.add<Total>([](rpc::Reader<std::int64_t>& in) -> rt::Task<Result<std::int64_t>> {
    std::int64_t sum = 0;
    for (;;) {
      WEFT_CO_TRY(const auto next, co_await in.next());
      if (!next) {
        co_return sum;
      }
      sum += *next;
    }
  });
  (void)methods.add<Echo>([](rpc::Reader<std::string>& in, rpc::Writer<std::string>& out) -> rt::Task<Result<void>> {
    for (;;) {
      WEFT_CO_TRY(const auto next, co_await in.next());
      if (!next) {
        co_return Result<void>();
      }
      WEFT_CO_TRY(co_await out.send(*next));
    }
  });
  return methods;
}

rt::Task<Result<void>> use_streams(rpc::Client* client) {
  WEFT_CO_TRY(const auto squares, client->stream<Squares>(std::int64_t{4}));
  std::int64_t sum = 0;
  for (;;) {
    WEFT_CO_TRY(const auto square, co_await squares->next());
    if (!square) {
      break;
    }
    sum += *square;
  }
  WEFT_CO_TRY(expect(std::to_string(sum), "14"));

  WEFT_CO_TRY(const auto total, client->stream<Total>());
  WEFT_CO_TRY(co_await total->send(std::int64_t{20}));
  WEFT_CO_TRY(co_await total->send(std::int64_t{22}));
  WEFT_CO_TRY(total->end());
  WEFT_CO_TRY(const std::int64_t answer, co_await total->finish());
  WEFT_CO_TRY(expect(std::to_string(answer), "42"));

  WEFT_CO_TRY(const auto echo, client->stream<Echo>());
  const std::string text = "weft";
  WEFT_CO_TRY(co_await echo->send(text));
  WEFT_CO_TRY(const auto back, co_await echo->next());
  co_return expect(back ? *back : "nothing", text);
}

rt::Task<Result<void>> read_refusals(rpc::Client* client) {
  const std::string nothing;
  std::string whole;
  rpc::CallOptions options;
  options.refusal = &whole;
  const auto refused = co_await client->call<Reverse>(nothing, options);
  if (refused.error().domain() == serve::kServiceDomain && refused.error().value() == 5) {
    WEFT_CO_TRY(expect(refused.error().text(), "nothing to reverse"));
  }
  WEFT_CO_TRY(expect(whole, "nothing to reverse"));
  const auto unknown = co_await client->call_bytes("text.translate", as_bytes("?"));
  const bool is_unknown = unknown.error() == rpc::status_error(rpc::Status::unknown_method, "");
  co_return expect(is_unknown ? "unknown" : "known", "unknown");
}

rt::Task<Result<void>> give_up(rpc::Client* client) {
  rpc::CallOptions options;
  options.timeout = 20ms;
  const auto late = co_await client->call<Nap>(std::int64_t{3'600'000}, options);
  co_return expect(late.error() == Errc::timed_out ? "timed out" : "in time", "timed out");
}

rt::Task<Result<void>> trace_a_call(rpc::Client* client, trace::Tracer* tracer) {
  trace::Span span = tracer->start("reverse a text");
  const trace::TraceContext context = span.context();
  rpc::CallOptions options;
  options.trace = &context;
  const std::string text = "weft";
  WEFT_CO_TRY(const std::string reversed, co_await client->call<Reverse>(text, options));
  co_return expect(reversed, "tfew");
}

rt::Task<Result<void>> retry(rpc::Client* client) {
  serve::RetryPolicy policy;
  policy.repeatable = true;             // text.reverse changes nothing
  policy.retry_answer = &rpc::is_busy;  // the handler did not run
  policy.deadline = sys::now() + 10s;
  const std::string text = "weft";
  auto ask = [&] { return client->call<Reverse>(text); };
  WEFT_CO_TRY(const std::string reversed, co_await serve::retrying(policy, ask));
  co_return expect(reversed, "tfew");
}

using ReverseAgain = rpc::Idempotent<Reverse>;  // may run twice

rt::Task<Result<std::string>> reverse_anywhere(rpc::BalancedClient* servers, std::string text) {
  rpc::RetryRule rule = rpc::RetryRule::none;
  rpc::BalancedCall options;
  options.timeout = 10s;          // of all attempts together
  options.hedge_after = 50ms;     // then another server is asked, too
  options.wait_for_ready = true;  // for the first connection
  options.rule = &rule;
  const auto reversed = co_await servers->call<ReverseAgain>(text, options);
  if (!reversed) {
    std::printf("not reversed: %s\n", std::string(describe(rule)).c_str());
  }
  co_return reversed;
}

rt::Task<Result<void>> balance(std::shared_ptr<serve::ClientHost> host, std::string endpoint) {
  WEFT_CO_TRY(const auto servers, rpc::BalancedClient::open(host, {endpoint, endpoint}));
  WEFT_CO_TRY(const std::string reversed, co_await reverse_anywhere(servers.get(), "weft"));
  co_return expect(reversed, "tfew");
}

rt::Task<Result<void>> list(rpc::Client* client) {
  WEFT_CO_TRY(const rpc::MethodInfos methods, co_await client->methods());
  std::string names;
  for (const rpc::MethodInfo& method : methods) {
    names += method.name + ' ';
  }
  co_return expect(names, "ping text.reverse nap squares total echo weft.methods ");
}

rt::Task<Result<void>> call_all(std::string endpoint, trace::Tracer* tracer) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  WEFT_CO_TRY(const auto client, rpc::Client::open(host, endpoint));
  WEFT_CO_TRY(co_await client->connected(sys::now() + 30s));
  WEFT_CO_TRY(co_await client->call<Ping>(rpc::Empty()));
  WEFT_CO_TRY(co_await read_refusals(client.get()));
  WEFT_CO_TRY(co_await give_up(client.get()));
  WEFT_CO_TRY(co_await use_streams(client.get()));
  WEFT_CO_TRY(co_await trace_a_call(client.get(), tracer));
  WEFT_CO_TRY(co_await retry(client.get()));
  WEFT_CO_TRY(co_await balance(host, endpoint));
  co_return co_await list(client.get());
}

Result<std::string> listen_with_bounds(serve::Server* server) {
  rpc::ServiceOptions bounds;
  bounds.body_max = 64 * 1024;  // bytes of a request, and of a response
  bounds.calls_max = 1000;      // coroutines of one connection
  serve::ListenerOptions options;
  options.limits.idle_timeout = 1min;
  const rpc::Service service(streams(texts()), bounds);
  return rpc::listen(*server, "tcp://127.0.0.1:0", service, options);
}

}  // namespace

Result<void> guides::calls() {
  rt::RuntimeOptions one;
  one.cores = 1;
  const auto runtime = WEFT_TRY(rt::Runtime::start(one));
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const std::string endpoint = WEFT_TRY(listen_with_bounds(server.get()));
  trace::TracerOptions tracing;
  tracing.service = "texts";
  const auto tracer = WEFT_TRY(trace::Tracer::make(tracing));
  auto called = WEFT_TRY(rt::spawn(runtime->core(0), call_all(endpoint, tracer.get())));
  WEFT_TRY(called.get());
  return server->stop(sys::now() + 5s);
}
