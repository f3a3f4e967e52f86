// SPDX-License-Identifier: MIT
// The C++ blocks of docs/operations.md, and those of docs/client.md that are not of an example. The tests
// docs.operations and docs.client compare them, docs.guides runs them.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "guides.h"
#include "weft/net/admit/accept_filter.h"
#include "weft/net/admit/admission.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/client/client.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/client/client_pool.h"
#include "weft/serve/client/retrying.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/frame/numbered_codec.h"
#include "weft/serve/hand_over/hand_over.h"
#include "weft/serve/hand_over/taken_listeners.h"
#include "weft/serve/server/server.h"
#include "weft/serve/server/stop_signals.h"
#include "weft/sys/address.h"
#include "weft/sys/clock.h"
#include "weft/sys/linux/service_manager.h"
#include "weft/sys/path.h"
#include "weft/sys/socket.h"

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using namespace weft;                  // NOLINT(google-build-using-namespace)
using guides::expect;
using Codec = serve::NumberedCodec;
using Session = serve::SessionOf<Codec>;

constexpr std::uint32_t kEcho = 1;
constexpr std::uint32_t kBuy = 2;
constexpr std::uint32_t kWhoAmI = 3;

struct Shop {
  serve::Dispatcher<Session> dispatcher;

  Shop() {
    (void)dispatcher.on(
        kEcho, [](Session& session, const Codec::Frame& frame) { return session.send(frame.header, frame.body); });
    (void)dispatcher.on(kWhoAmI, [](Session& session, const Codec::Frame& frame) {
      return session.send(frame.header, as_bytes(session.peer_address()));
    });
    (void)dispatcher.on(kBuy, [](Session&, const Codec::Frame&) -> Result<void> {
      constexpr ErrorDomain kShop("shop");
      return Error(kShop, 7, "sold out");
    });
  }
  void on_frame(Session& session, const Codec::Frame& frame) { dispatcher.dispatch(session, frame); }
};

Result<std::string> text_of(Result<serve::ClientResponse<Codec>> response) {
  if (!response) {
    return response.error();
  }
  return std::string(as_text(response->body()));
}

// --- docs/operations.md ---

Result<std::string> listen_with_admission(serve::Server* server, std::shared_ptr<net::Admission>* into) {
  net::AdmissionOptions by_address;
  by_address.address_connections_max = 2;
  by_address.ipv4_prefix_bits = 24;
  by_address.prefix_connections_max = 100;
  by_address.accept_rate = {.per_second = 20, .burst = 50};            // connections of one prefix
  by_address.exempt = {WEFT_TRY(net::IpPrefix::parse("10.0.0.0/8"))};  // the load balancers
  const std::shared_ptr<net::Admission> admission = WEFT_TRY(net::Admission::make(std::move(by_address)));

  serve::ListenerOptions options;
  options.admission = admission;  // several listeners may share one
  const std::string bound = WEFT_TRY(server->listen<Codec>("tcp://127.0.0.1:0", options, [] { return Shop(); }));
  *into = admission;
  return bound;
}

rt::Task<Result<std::string>> ask_once(std::string endpoint) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  WEFT_CO_TRY(const auto client, serve::Client<>::open(host, endpoint));
  WEFT_CO_TRY(co_await client->connected(sys::now() + 10s));
  co_return text_of(co_await client->request({kEcho, 0}, as_bytes("hello"), sys::now() + 10s));
}

Result<void> bound_addresses() {
  rt::RuntimeOptions one;
  one.cores = 1;
  const auto runtime = WEFT_TRY(rt::Runtime::start(one));
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  std::shared_ptr<net::Admission> admission;
  const std::string endpoint = WEFT_TRY(listen_with_admission(server.get(), &admission));
  const auto three = [](std::string at, net::Admission* by) -> rt::Task<Result<void>> {
    const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
    WEFT_CO_TRY(const auto first, serve::Client<>::open(host, at));
    WEFT_CO_TRY(const auto second, serve::Client<>::open(host, at));
    WEFT_CO_TRY(co_await first->connected(sys::now() + 10s));
    WEFT_CO_TRY(co_await second->connected(sys::now() + 10s));
    WEFT_CO_TRY(co_await first->request({kEcho, 0}, {}, sys::now() + 10s));
    WEFT_CO_TRY(co_await second->request({kEcho, 0}, {}, sys::now() + 10s));
    WEFT_CO_TRY(const auto third, serve::Client<>::open(host, at));
    while (by->rejected(net::AdmissionRejection::address_connections) == 0) {
      WEFT_CO_TRY(co_await rt::sleep(1ms));
    }
    co_return Result<void>();
  };
  auto asked = WEFT_TRY(rt::spawn(runtime->core(0), three(endpoint, admission.get())));
  WEFT_TRY(asked.get());
  return server->stop(sys::now() + 5s);
}

Result<std::string> listen_behind_a_proxy(serve::Server* server) {
  serve::ListenerOptions options;
  options.proxy_protocol = WEFT_TRY(net::AcceptFilter::parse("127.0.0.1,10.0.0.0/8", ""));  // the load balancers
  const std::string bound = WEFT_TRY(server->listen<Codec>("tcp://127.0.0.1:0", options, [] { return Shop(); }));
  return bound;
}

rt::Task<Result<std::string>> ask_through_a_proxy(std::string endpoint) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  serve::ClientOptions options;
  options.wrap = [](std::unique_ptr<net::ByteStream> stream) -> Result<std::unique_ptr<net::ByteStream>> {
    const Bytes header = as_bytes("PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\r\n");  // as the proxy does
    if (stream->write({&header, 1}).bytes != header.size()) {
      return Error(Errc::connection_failed, "the header was not written");
    }
    return stream;
  };
  WEFT_CO_TRY(const auto client, serve::Client<>::open(host, endpoint, options));
  WEFT_CO_TRY(co_await client->connected(sys::now() + 10s));
  co_return text_of(co_await client->request({kWhoAmI, 0}, {}, sys::now() + 10s));
}

Result<void> behind_a_proxy() {
  rt::RuntimeOptions one;
  one.cores = 1;
  const auto runtime = WEFT_TRY(rt::Runtime::start(one));
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const std::string endpoint = WEFT_TRY(listen_behind_a_proxy(server.get()));
  auto asked = WEFT_TRY(rt::spawn(runtime->core(0), ask_through_a_proxy(endpoint)));
  const std::string address = WEFT_TRY(asked.get());
  WEFT_TRY(expect(address, "192.0.2.1:4711"));
  return server->stop(sys::now() + 5s);
}

Result<void> stop_by_a_signal() {
  serve::StopSignals signals;  // before the first thread: each thread inherits the mask

  const auto runtime = WEFT_TRY(rt::Runtime::start());
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  WEFT_TRY(server->listen<Codec>("tcp://127.0.0.1:0", {}, [] { return Shop(); }));
  (void)std::raise(SIGTERM);

  serve::StopOptions stop;
  stop.lame_duck = 0s;                // behind a load balancer: longer than the time between its questions
  stop.drain = 30s;                   // answers received requests, delivers queued frames
  return signals.run(*server, stop);  // the main thread waits here while the cores serve
}

// As the service manager does: a listening descriptor that the process inherits.
Result<int> inherited_descriptor() {
  auto listener = WEFT_TRY(sys::open_tcp_listener(*sys::SocketAddress::parse_numeric("127.0.0.1", 0), {}));
  return listener.release();
}

Result<void> adopt_a_socket() {
  const auto runtime = WEFT_TRY(rt::Runtime::start());
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const int descriptor = WEFT_TRY(inherited_descriptor());
  std::vector<sys::PassedSocket> passed = WEFT_TRY(sys::take_passed_sockets());  // before the first thread
  passed.push_back({descriptor, "web"});

  serve::ListenerOptions options;
  options.socket.adopt_fd = passed.at(0).fd;  // the server closes it
  const std::string bound = WEFT_TRY(server->listen<Codec>("tcp://*:*", options, [] { return Shop(); }));

  auto asked = WEFT_TRY(rt::spawn(runtime->core(0), ask_once(bound)));
  const std::string answer = WEFT_TRY(asked.get());
  WEFT_TRY(expect(answer, "hello"));
  return server->stop(sys::now() + 5s);
}

// --- docs/client.md ---

rt::Task<Result<void>> read_an_error_frame(serve::Client<>* client) {
  const auto bought = co_await client->request({kBuy, 0}, as_bytes("a kettle"), sys::now() + 10s);
  if (bought.error().domain() == serve::kServiceDomain && bought.error().value() == 7) {
    WEFT_CO_TRY(expect(bought.error().message(), "error of another domain (7): sold out"));
  }
  const auto raw = co_await client->request_raw({kBuy, 0}, as_bytes("a kettle"), sys::now() + 10s);
  if (raw && (raw->header().flags & serve::kFlagError) != 0) {
    WEFT_CO_TRY(const auto refusal, serve::parse_error_body(raw->body()));
    WEFT_CO_TRY(expect(refusal.text, "sold out"));
  }
  co_return bought || !raw ? Error(Errc::invalid_state, "the shop sold a kettle") : Result<void>();
}

rt::Task<Result<std::string>> ask_a_pool(std::shared_ptr<serve::ClientHost> host, std::string endpoint) {
  serve::PoolOptions options;
  options.connections = 2;
  options.breaker = serve::BreakerOptions{.calls_min = 16, .failure_percent = 50, .open_time = 5s};
  const auto probe = [](serve::Client<>& client) -> rt::Task<Result<void>> {
    WEFT_CO_TRY(co_await client.request({kEcho, 0}, {}, sys::now() + 1s));
    co_return Result<void>();
  };
  WEFT_CO_TRY(const auto pool, serve::ClientPool<>::open(host, endpoint, options, probe));

  serve::RetryBudget budget;  // one for all requests to this peer: at most a fifth of them are retries
  serve::RetryPolicy policy;
  policy.repeatable = true;  // to ask for an echo twice is as good as once
  policy.deadline = sys::now() + 10s;
  policy.budget = &budget;
  auto ask = [&] { return pool->request({kEcho, 0}, as_bytes("hello"), sys::now() + 2s); };
  const auto answer = co_await serve::retrying(policy, ask);
  if (!answer && answer.error().fate() == Fate::outcome_unknown) {
    co_return answer.error();  // each attempt was lost on its way: the peer may have carried it out
  }
  co_return answer ? Result<std::string>(std::string(as_text(answer->body()))) : answer.error();
}

rt::Task<Result<void>> ask_all(std::string endpoint) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  WEFT_CO_TRY(const auto client, serve::Client<>::open(host, endpoint));
  WEFT_CO_TRY(co_await client->connected(sys::now() + 10s));
  WEFT_CO_TRY(co_await read_an_error_frame(client.get()));
  WEFT_CO_TRY(const auto answer, co_await ask_a_pool(host, endpoint));
  co_return expect(answer, "hello");
}

}  // namespace

Result<void> guides::clients() {
  const auto runtime = WEFT_TRY(rt::Runtime::start());
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const std::string bound = WEFT_TRY(server->listen<Codec>("tcp://127.0.0.1:0", {}, [] { return Shop(); }));
  auto asked = WEFT_TRY(rt::spawn(runtime->core(0), ask_all(bound)));
  WEFT_TRY(asked.get());
  return server->stop(sys::now() + 5s);
}

Result<std::unique_ptr<serve::HandOver>> take_and_offer(serve::Server* server, const std::string& path,
                                                        std::string& bound, const std::function<void()>& on_taken) {
  serve::TakenListeners taken = WEFT_TRY(serve::TakenListeners::take(path, sys::now() + 10s));
  if (taken.sockets().empty()) {  // no process before this one
    bound = WEFT_TRY(server->listen<Codec>("tcp://127.0.0.1:0", {}, [] { return Shop(); }));
  }
  for (const serve::TakenListener& one : taken.listeners()) {
    serve::ListenerOptions options;
    options.name = one.name;
    options.adopt_fds = one.descriptors;  // the server closes them
    bound = WEFT_TRY(server->listen<Codec>("tcp://*:*", options, [] { return Shop(); }));
  }
  WEFT_TRY(taken.confirm(sys::now() + 10s));  // this process serves: the one before accepts no more

  serve::HandOverOptions options;
  options.on_taken = on_taken;  // a function: on a thread of its own, after the listeners have closed here
  auto hand_over = WEFT_TRY(serve::HandOver::open(*server, path, options));
  return hand_over;
}

Result<void> hand_over_to_the_next() {
  const auto runtime = WEFT_TRY(rt::Runtime::start());
  const auto old = WEFT_TRY(serve::Server::make(*runtime));
  const auto next = WEFT_TRY(serve::Server::make(*runtime));
  const std::string directory = WEFT_TRY(sys::make_private_directory());
  std::string before;
  std::string after;
  {
    std::promise<void> taken;
    const auto given =
        WEFT_TRY(take_and_offer(old.get(), directory + "/shop", before, [&taken] { taken.set_value(); }));
    const auto offered = WEFT_TRY(take_and_offer(next.get(), directory + "/shop", after, [] {}));
    taken.get_future().wait();
    WEFT_TRY(old->stop(sys::now() + 5s));
    WEFT_TRY(expect(after, before));
    auto asked = WEFT_TRY(rt::spawn(runtime->core(0), ask_once(after)));
    WEFT_TRY(expect(WEFT_TRY(asked.get()), "hello"));
  }
  WEFT_TRY(sys::remove_directory(directory));
  return next->stop(sys::now() + 5s);
}

Result<void> guides::operations() {
  WEFT_TRY(bound_addresses());
  WEFT_TRY(behind_a_proxy());
  WEFT_TRY(adopt_a_socket());
  WEFT_TRY(hand_over_to_the_next());
  return stop_by_a_signal();
}
