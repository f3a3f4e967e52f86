// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/base/list.h"
#include "weft/base/result.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/client/breaker.h"
#include "weft/serve/client/client.h"
#include "weft/serve/client/guarded.h"
#include "weft/sync/counter.h"
#include "weft/sync/counter_block.h"

namespace weft::serve {

struct PoolOptions {
  std::uint32_t connections = 4;
  ClientOptions client{};                            // of each connection
  std::uint32_t waiting_max = 1024;                  // requests that wait for a connection with room
  Duration probe_every = std::chrono::seconds(10);   // of a healthy connection
  Duration probe_timeout = std::chrono::seconds(2);  // for one probe's answer
  std::optional<BreakerOptions> breaker{};           // for the pool's endpoint, over all its connections
  Judge judge = outcome_of;                          // the errors that are failures for the breaker
};

// clang-format off
#define WEFT_CLIENT_POOL_COUNTERS(ROW)                                                                        \
  ROW(waited, counter, "waits_total", "", "", "requests",                                                     \
      "Requests that had to wait for a connection with room.", "serve/client/client_pool.h")                  \
  ROW(refused, counter, "refusals_total", "reason", "waiting_max", "requests",                                \
      "Requests that the pool refused: as many waited as may.", "serve/client/client_pool.h")                 \
  ROW(refused_open, counter, "refusals_total", "reason", "breaker", "requests",                               \
      "Requests that the pool refused: the circuit breaker was open.", "serve/client/client_pool.h")          \
  ROW(breaker_openings, counter, "breaker_openings_total", "", "", "openings",                                \
      "How often the circuit breaker opened.", "serve/client/client_pool.h")                                  \
  ROW(probes, counter, "probes_total", "", "", "probes",                                                      \
      "Probes that began.", "serve/client/client_pool.h")                                                     \
  ROW(probe_failures, counter, "probe_failures_total", "", "", "probes",                                      \
      "Probes that failed; each costs the connection that failed.", "serve/client/client_pool.h")             \
  ROW(waiting, gauge, "requests_waiting", "", "", "requests",                                                 \
      "Requests that wait for a connection with room.", "serve/client/client_pool.h")
// clang-format on

// The core counts, any thread reads.
struct PoolCounts {
  using Number = sync::Counter;
  WEFT_COUNTER_BLOCK(WEFT_CLIENT_POOL_COUNTERS)
};
inline constexpr CounterRow kClientPoolRows[] = {WEFT_CLIENT_POOL_COUNTERS(WEFT_COUNTER_ROW)};
inline constexpr CounterTable kClientPoolTable = {
    "client_pool", "A `serve::ClientPool`; its clients are in the table of clients: `admin->add(name, *pool)`.",
    kClientPoolRows};

// ClientPool: a fixed number of connections of one core to one endpoint. A request goes over the healthy connection
// with the fewest requests in flight; equal connections take turns. Cores share nothing: each has its own pool.
// Owner: the program; the destructor ends the pool's clients, like their own. Affinity: that of Client. Cost: a request
// compares all connections.
// Health: without a probe function, a connection is healthy while it is connected. With one, the connection is healthy
// while its probes succeed. The pool probes each new connection before its first request, then every probe_every. The
// probe sends a request over its client, and judges the answer. If a probe fails, or has no answer within
// probe_timeout, the pool drops the connection and makes it again.
// Invariants:
//   1. There are never more connections than `connections`.
//   2. A waiting request is resumed when a connection has room, when its deadline passes, or when the pool is
//      closed. The pool wakes requests in the order in which they came.
//   3. No request goes over a connection that is not healthy.
template <FrameCodec Codec = NumberedCodec, typename Correlate = typename DefaultCorrelation<Codec>::Type>
class ClientPool {
 public:
  using Client = serve::Client<Codec, Correlate>;
  using Header = typename Codec::Header;
  using Response = typename Client::Response;
  using Probe = std::function<rt::Task<Result<void>>(Client& client)>;

  // Errors: those of Client::open(); invalid_argument (no connections).
  [[nodiscard]] static Result<std::unique_ptr<ClientPool>> open(std::shared_ptr<ClientHost> host,
                                                                std::string_view endpoint, PoolOptions options = {},
                                                                Probe probe = {}, const Codec& codec = Codec()) {
    if (options.connections == 0) {
      return Error(Errc::invalid_argument, "a pool needs a connection");
    }
    auto state = std::make_shared<State>(std::move(host), std::move(options), std::move(probe));
    if (const auto filled = State::fill(state, endpoint, codec); !filled) {
      state->shut_down();
      return filled.error();
    }
    return std::unique_ptr<ClientPool>(new ClientPool(std::move(state)));
  }
  ClientPool(const ClientPool&) = delete;
  ClientPool& operator=(const ClientPool&) = delete;
  ~ClientPool() {
    State& state = *state_;
    state.farewell.begin(state.host->core(), std::move(state_));
  }

  // Client::request() over a healthy connection; waits while none has room. `body` must live until the task has ended.
  // Further errors: resource_exhausted (waiting_max); unreachable (the breaker is open). A request that waited until
  // its deadline while no connection was healthy fails with `unreachable`, and the text has the reason: that of the
  // last attempt to connect, of the last connection's end, or of the last probe.
  [[nodiscard]] rt::Task<Result<Response>> request(const Header& header, Bytes body, Instant deadline = kNever) {
    return begin(State::request(state_, header, body, deadline, false));
  }
  // Client::request_raw() over a healthy connection. The breaker takes an error frame for a success.
  [[nodiscard]] rt::Task<Result<Response>> request_raw(const Header& header, Bytes body, Instant deadline = kNever) {
    return begin(State::request(state_, header, body, deadline, true));
  }

  // Takes no more requests, fails waiting ones with `closed`, and closes each client. Errors: those of Client::close().
  [[nodiscard]] rt::Task<Result<void>> close(Instant deadline) { return State::close(state_, deadline); }

  [[nodiscard]] std::size_t size() const noexcept { return state_->members.size(); }
  [[nodiscard]] std::size_t healthy() const noexcept {
    return static_cast<std::size_t>(std::count_if(state_->members.begin(), state_->members.end(),
                                                  [](const auto& member) { return member->well(); }));
  }
  [[nodiscard]] std::size_t waiting() const noexcept { return state_->counts->waiting.value(); }
  [[nodiscard]] const PoolCounts& counts() const noexcept { return *state_->counts; }
  // These and those of the pool's clients, summed, for a page of metrics, as long as the pool exists. Any thread.
  [[nodiscard]] CounterSource counter_source() const {
    std::vector<CounterSource> clients;
    for (const auto& member : state_->members) {
      clients.push_back(member->client->counter_source());
    }
    return [weak = std::weak_ptr<const PoolCounts>(state_->counts), clients = std::move(clients)](
               std::string_view name, CounterReadings& into) {
      if (const auto counts = weak.lock()) {
        into.push_back({&kClientPoolTable, {{"client_pool", std::string(name)}}, sync::read_counters(*counts)});
        for (const CounterSource& client : clients) {
          client(name, into);
        }
      }
    };
  }
  [[nodiscard]] Client& client(std::size_t index) noexcept { return *state_->members[index]->client; }
  // Null if the pool has no breaker.
  [[nodiscard]] CircuitBreaker* breaker() noexcept { return state_->breaker ? &*state_->breaker : nullptr; }

 private:
  struct Member {
    std::unique_ptr<Client> client;
    bool probed = false;                // there is a probe function
    std::uint64_t well_connection = 0;  // the number of the connection that the last successful probe used
    rt::AsyncEvent changed;             // the client connected or lost its connection

    [[nodiscard]] std::uint64_t connection() const noexcept { return client->connections().connected.value(); }
    [[nodiscard]] bool well() const noexcept {
      return client->is_connected() && (!probed || well_connection == connection());
    }
  };
  struct WaitingCaller : ListHook {  // one waiting request
    rt::AsyncEvent come;
  };

  struct State {
    State(std::shared_ptr<ClientHost> on, PoolOptions with, Probe by)
        : host(std::move(on)), options(std::move(with)), probe(std::move(by)), scope(host->core().loop()) {
      if (options.breaker) {
        breaker.emplace(*options.breaker);
      }
    }

    static Result<void> fill(const std::shared_ptr<State>& self, std::string_view endpoint, const Codec& codec) {
      for (std::uint32_t i = 0; i < self->options.connections; ++i) {
        auto member = std::make_unique<Member>();
        member->probed = bool(self->probe);
        ClientOptions options = self->options.client;
        options.on_event = [weak = std::weak_ptr<State>(self), member = member.get(),
                            report = std::move(options.on_event)](const ClientEvent& event) {
          if (const auto state = weak.lock()) {
            state->handle_event(*member, event);
          }
          if (report) {
            report(event);
          }
        };
        member->client = WEFT_TRY(Client::open(self->host, endpoint, std::move(options), codec));
        member->client->on_room([weak = std::weak_ptr<State>(self)] {
          if (const auto state = weak.lock()) {
            state->wake();
          }
        });
        self->members.push_back(std::move(member));
        if (self->probe) {
          WEFT_TRY(self->scope.spawn(watch(self, self->members.back().get())));
        }
      }
      return {};
    }

    void handle_event(Member& member, const ClientEvent& event) {
      member.changed.pulse();
      if (event.kind != ClientEvent::Kind::connected) {
        trouble = event.why;
      } else if (!probe) {
        wake();
      }
    }
    void shut_down() noexcept {
      closed = true;
      scope.cancel();
      for (const auto& member : members) {
        member->client->abort();
      }
      wake_all();
    }

    // --- requests to connections ---

    // Returns null if no healthy connection has room.
    [[nodiscard]] Client* pick() noexcept {
      Client* best = nullptr;
      const std::size_t first = next++;
      for (std::size_t i = 0; i < members.size(); ++i) {
        Member& member = *members[(first + i) % members.size()];
        if (member.well() && member.client->has_room() &&
            (best == nullptr || member.client->in_flight() < best->in_flight())) {
          best = member.client.get();
        }
      }
      return best;
    }
    // The number of requests that the connections would take now.
    [[nodiscard]] std::size_t room() const noexcept {
      std::size_t room = 0;
      for (const auto& member : members) {
        room += member->well() ? member->client->room() : 0;
      }
      return room;
    }
    // Wakes the next requests while there is room. Every place that becomes free calls it: each may be the last event.
    void wake() noexcept {
      for (std::size_t free = line.empty() ? 0 : room(); woken < free && !line.empty(); ++woken) {
        line.pop_front()->come.set();
      }
    }
    void wake_all() noexcept {
      for (; !line.empty(); ++woken) {
        line.pop_front()->come.set();
      }
    }

    static rt::Task<Result<void>> wait_in_line(State* self, bool* woken) {
      WaitingCaller caller;
      self->line.push_back(caller);
      self->counts->waiting.add();
      const Result<void> come = co_await caller.come.wait();
      self->counts->waiting.subtract();
      *woken = !caller.hooked();
      co_return come;
    }
    // Whether the request may take a place: a new request leaves the places to requests that were woken for them.
    [[nodiscard]] bool has_turn(bool came_before) const noexcept { return came_before || woken == 0 || woken < room(); }
    static rt::Task<Result<Response>> request(std::shared_ptr<State> self, Header header, Bytes body, Instant deadline,
                                              bool raw) {
      if (const Error wrong = self->members.front()->client->used_elsewhere(); wrong != Errc::ok) [[unlikely]] {
        co_return wrong.with_fate(Fate::not_sent);
      }
      for (bool came_before = false;; came_before = true) {
        if (self->closed) {
          co_return Error(Errc::closed, "the pool is closed").with_fate(Fate::not_sent);
        }
        Client* const client = came_before || self->line.empty() ? self->pick() : nullptr;
        if (client != nullptr && self->has_turn(came_before)) {
          const auto ask = raw ? &Client::request_raw : &Client::request;
          auto response = co_await (client->*ask)(header, body, deadline);
          self->wake();
          co_return response;
        }
        if (self->counts->waiting.value() >= self->options.waiting_max) {
          self->counts->refused.add();
          co_return Error(Errc::resource_exhausted, "too many requests wait for a connection")
              .with_fate(Fate::not_sent);
        }
        if (!came_before) {
          self->counts->waited.add();
        }
        bool woken = false;
        const Result<void> come = co_await rt::with_timeout(wait_in_line(self.get(), &woken),
                                                            time_left(deadline, self->host->core().loop().now()));
        self->woken -= woken ? 1 : 0;
        if (!come) {
          self->wake();  // this request may have been woken, and does not take its turn
          co_return (come.error() == Errc::timed_out ? self->why_waited() : come.error()).with_fate(Fate::not_sent);
        }
      }
    }
    // The reason why a request waited until its deadline.
    [[nodiscard]] Error why_waited() const noexcept {
      const bool any = std::any_of(members.begin(), members.end(), [](const auto& member) { return member->well(); });
      if (any) {
        return {Errc::timed_out, "each healthy connection of the pool had in_flight_max requests until the deadline"};
      }
      return trouble != Errc::ok ? not_connected_for(trouble)
                                 : Error(Errc::timed_out, "no connection of the pool is healthy yet");
    }
    static rt::Task<Result<Response>> guard(std::shared_ptr<State> self, rt::Task<Result<Response>> task) {
      Result<Response> response =
          co_await guarded(&*self->breaker, std::move(task), &self->counts->refused_open, self->options.judge);
      self->counts->breaker_openings.set(self->breaker->openings());
      co_return response;
    }

    // --- health ---

    static rt::Task<void> watch(std::shared_ptr<State> self, Member* member) {
      while (!self->closed) {
        const Result<void> connected = co_await member->client->connected();
        if (!connected) {
          co_return;
        }
        const std::uint64_t connection = member->connection();
        const std::uint64_t answered = member->client->requests().answered.value();
        self->counts->probes.add();
        const Result<void> answer =
            co_await rt::with_timeout(try_probe(self.get(), member), self->options.probe_timeout);
        const bool cancelled = co_await rt::is_cancelled();
        if (cancelled) {
          co_return;
        }
        if (connection != member->connection() || !member->client->is_connected()) {
          (void)co_await rt::yield();
          continue;  // the connection ended by itself
        }
        // A probe that found the window full shows nothing, as long as requests are answered.
        const bool busy = !answer && answer.error() == Errc::resource_exhausted &&
                          answered != member->client->requests().answered.value();
        if (answer || busy) {
          const bool recovered = !member->well();
          member->well_connection = connection;
          if (recovered) {
            self->wake();
          }
          (void)co_await rt::with_timeout(wait_change(member), self->options.probe_every);
        } else {
          self->counts->probe_failures.add();
          member->well_connection = 0;
          const bool late = answer.error() == Errc::timed_out && *answer.error().text() == '\0';
          member->client->drop_connection(late ? kProbeLate : answer.error());
          (void)co_await rt::yield();
        }
      }
    }
    static rt::Task<Result<void>> try_probe(State* self, Member* member) {
      try {
        co_return co_await self->probe(*member->client);
      } catch (...) {
        co_return Error(Errc::job_threw, "the probe threw");
      }
    }
    static rt::Task<Result<void>> wait_change(Member* member) { co_return co_await member->changed.wait(); }

    // --- the end ---

    static rt::Task<void> close_one(Client* client, Instant deadline, Result<void>* worst) {
      const Result<void> ended = co_await client->close(deadline);
      if (!ended) {
        *worst = ended;
      }
    }
    static rt::Task<Result<void>> close(std::shared_ptr<State> self, Instant deadline) {
      self->closed = true;
      self->scope.cancel();
      self->wake_all();
      Result<void> worst;
      rt::TaskScope closing(self->host->core().loop());
      for (const auto& member : self->members) {
        if (const auto spawned = closing.spawn(close_one(member->client.get(), deadline, &worst)); !spawned) {
          member->client->abort();
          worst = spawned;
        }
      }
      const Result<void> joined = co_await closing.join();
      co_return worst ? joined : worst;
    }

    static constexpr Error kProbeLate{Errc::timed_out, "the probe had no answer within probe_timeout"};

    const std::shared_ptr<ClientHost> host;
    const PoolOptions options;
    const Probe probe;
    const std::shared_ptr<PoolCounts> counts = std::make_shared<PoolCounts>();
    std::optional<CircuitBreaker> breaker;
    std::vector<std::unique_ptr<Member>> members;
    List<WaitingCaller> line;
    std::size_t next = 0;
    std::size_t woken = 0;  // requests that were woken and have not resumed yet
    bool closed = false;
    Error trouble;        // the last reason why a connection was lost or not made
    rt::TaskScope scope;  // watch()
    Farewell<State> farewell;
  };

  explicit ClientPool(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

  rt::Task<Result<Response>> begin(rt::Task<Result<Response>> task) {
    return state_->breaker ? State::guard(state_, std::move(task)) : std::move(task);
  }

  std::shared_ptr<State> state_;
};

}  // namespace weft::serve
