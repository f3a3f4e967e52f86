// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
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
#include "weft/serve/client/connection_sources.h"
#include "weft/serve/client/guarded.h"
#include "weft/sync/counter.h"
#include "weft/sync/counter_block.h"

namespace weft::serve {

struct PoolOptions {
  std::uint32_t connections = 4;  // at most
  // At least. A further connection is made when a request has to wait, and ends when idle_timeout has passed without a
  // request over it. nullopt: `connections`, so that their number is fixed.
  std::optional<std::uint32_t> connections_min{};
  Duration idle_timeout = std::chrono::minutes(1);   // negative: never
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
  ROW(evictions, counter, "evictions_total", "", "", "connections",                                           \
      "Connections that ended because no request used them for idle_timeout.", "serve/client/client_pool.h")  \
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

// ClientPool: several connections of one core to one endpoint. A request goes over the healthy connection with the
// fewest requests in flight; equal connections take turns, or the first one is taken if their number may change. Cores
// share nothing: each has its own pool.
// Owner: the program; the destructor ends the pool's clients, like their own. Affinity: that of Client. Cost: a request
// compares all connections.
// Health: without a probe function, a connection is healthy while it is connected. With one, the connection is healthy
// while its probes succeed. The pool probes each new connection before its first request, then every probe_every. The
// probe sends a request over its client, and judges the answer. If a probe fails, or has no answer within
// probe_timeout, the pool drops the connection and makes it again.
// Invariants:
//   1. There are never more connections than `connections`, and never fewer than `connections_min`.
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

  // Errors: those of Client::open(); invalid_argument (connections_min is 0 or above `connections`).
  [[nodiscard]] static Result<std::unique_ptr<ClientPool>> open(std::shared_ptr<ClientHost> host,
                                                                std::string_view endpoint, PoolOptions options = {},
                                                                Probe probe = {}, const Codec& codec = Codec()) {
    const std::uint32_t least = options.connections_min.value_or(options.connections);
    if (least == 0 || least > options.connections) {
      return Error(Errc::invalid_argument, "a pool needs a connection, and its minimum is at most `connections`");
    }
    auto state = std::make_shared<State>(std::move(host), endpoint, std::move(options), std::move(probe), codec);
    if (const auto filled = State::fill(state, least); !filled) {
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

  [[nodiscard]] std::size_t size() const noexcept { return state_->open_members(); }
  [[nodiscard]] std::size_t healthy() const noexcept {
    return static_cast<std::size_t>(std::count_if(state_->members.begin(), state_->members.end(),
                                                  [](const auto& member) { return member->well(); }));
  }
  [[nodiscard]] std::size_t waiting() const noexcept { return state_->counts->waiting.value(); }
  [[nodiscard]] const PoolCounts& counts() const noexcept { return *state_->counts; }
  // These and those of the pool's clients, summed, for a page of metrics, as long as the pool exists. Any thread.
  [[nodiscard]] CounterSource counter_source() const {
    return [weak = std::weak_ptr<const PoolCounts>(state_->counts), sources = state_->sources](std::string_view name,
                                                                                               CounterReadings& into) {
      if (const auto counts = weak.lock()) {
        into.push_back({&kClientPoolTable, {{"client_pool", std::string(name)}}, sync::read_counters(*counts)});
        sources->read(name, into);
      }
    };
  }
  [[nodiscard]] Client& client(std::size_t index) noexcept { return state_->nth(index); }  // below size()
  // Null if the pool has no breaker.
  [[nodiscard]] CircuitBreaker* breaker() noexcept { return state_->breaker ? &*state_->breaker : nullptr; }

 private:
  struct Member {
    std::unique_ptr<Client> client;     // null: the connection is not open
    bool probed = false;                // there is a probe function
    bool watched = false;               // watch() runs
    bool leaving = false;               // idle for too long
    std::uint64_t well_connection = 0;  // the number of the connection that the last successful probe used
    Instant used_at{};                  // the begin or end of its last request
    rt::AsyncEvent changed;             // the client connected or lost its connection, or watch() ended

    [[nodiscard]] bool is_open() const noexcept { return client && !leaving; }
    [[nodiscard]] std::uint64_t connection() const noexcept { return client->connections().connected.value(); }
    [[nodiscard]] bool well() const noexcept {
      return is_open() && client->is_connected() && (!probed || well_connection == connection());
    }
  };
  struct WaitingCaller : ListHook {  // one waiting request
    rt::AsyncEvent come;
  };

  struct State {
    State(std::shared_ptr<ClientHost> on, std::string_view to, PoolOptions with, Probe by, const Codec& framed)
        : host(std::move(on)),
          endpoint(to),
          codec(framed),
          options(std::move(with)),
          probe(std::move(by)),
          scope(host->core().loop()) {
      if (options.breaker) {
        breaker.emplace(*options.breaker);
      }
    }

    [[nodiscard]] Instant now() const noexcept { return host->core().loop().now(); }
    [[nodiscard]] bool is_fixed() const noexcept {
      return options.connections_min.value_or(options.connections) == options.connections;
    }
    [[nodiscard]] std::size_t open_members() const noexcept {
      return static_cast<std::size_t>(
          std::count_if(members.begin(), members.end(), [](const auto& member) { return member->is_open(); }));
    }
    [[nodiscard]] Client& nth(std::size_t n) noexcept {
      auto member = members.begin();
      while (!(*member)->is_open() || n-- != 0) {
        ++member;
      }
      return *(*member)->client;
    }

    static Result<void> fill(const std::shared_ptr<State>& self, std::uint32_t least) {
      for (std::uint32_t i = 0; i < self->options.connections; ++i) {
        self->members.push_back(std::make_unique<Member>());
      }
      for (std::uint32_t i = 0; i < least; ++i) {
        WEFT_TRY(open_member(self, *self->members[i]));
      }
      return {};
    }
    static Result<void> open_member(const std::shared_ptr<State>& self, Member& member) {
      member.probed = bool(self->probe);
      member.well_connection = 0;
      member.used_at = self->now();
      ClientOptions options = self->options.client;
      options.on_event = [weak = std::weak_ptr<State>(self), member = &member,
                          report = std::move(options.on_event)](const ClientEvent& event) {
        if (const auto state = weak.lock()) {
          handle_event(state, *member, event);
        }
        if (report) {
          report(event);
        }
      };
      auto client = WEFT_TRY(Client::open(self->host, self->endpoint, std::move(options), self->codec));
      client->on_room([weak = std::weak_ptr<State>(self)] {
        if (const auto state = weak.lock()) {
          state->wake();
        }
      });
      self->sources->add(client.get(), client->counter_source());
      member.client = std::move(client);
      if (self->probe) {
        member.watched = true;
        if (const auto spawned = self->scope.spawn(watch(self, &member)); !spawned) {
          member.watched = false;
          return spawned;
        }
      }
      return {};
    }

    static void handle_event(const std::shared_ptr<State>& self, Member& member, const ClientEvent& event) {
      member.changed.pulse();
      if (event.kind != ClientEvent::Kind::connected) {
        self->trouble = event.why;
        return;
      }
      member.used_at = self->now();
      if (!self->probe) {
        self->wake();
        add_if_awaited(self);
      }
    }
    void shut_down() noexcept {
      closed = true;
      scope.cancel();
      for (const auto& member : members) {
        if (member->client) {
          member->client->abort();
        }
      }
      wake_all();
    }

    // --- requests to connections ---

    // Returns null if no healthy connection has room.
    [[nodiscard]] Member* pick() noexcept {
      Member* best = nullptr;
      const std::size_t first = is_fixed() ? next++ : 0;
      for (std::size_t i = 0; i < members.size(); ++i) {
        Member& member = *members[(first + i) % members.size()];
        if (member.well() && member.client->has_room() &&
            (best == nullptr || member.client->in_flight() < best->client->in_flight())) {
          best = &member;
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
      if (const rt::Core* const core = &self->host->core(); rt::Core::current() != core) [[unlikely]] {
        co_return rt::used_elsewhere("client", core).with_fate(Fate::not_sent);
      }
      for (bool came_before = false;; came_before = true) {
        if (self->closed) {
          co_return Error(Errc::closed, "the pool is closed").with_fate(Fate::not_sent);
        }
        Member* const member = came_before || self->line.empty() ? self->pick() : nullptr;
        if (member != nullptr && self->has_turn(came_before)) {
          member->used_at = self->now();
          const auto ask = raw ? &Client::request_raw : &Client::request;
          auto response = co_await (*member->client.*ask)(header, body, deadline);
          member->used_at = self->now();
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
        add_connection(self);
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

    // --- the number of connections ---

    // A request has to wait: one more connection, unless one is being made.
    static void add_connection(const std::shared_ptr<State>& self) noexcept {
      Member* closed = nullptr;
      for (const auto& member : self->members) {
        if (member->is_open() && !member->well()) {
          return;
        }
        closed = closed == nullptr && !member->client ? member.get() : closed;
      }
      if (closed == nullptr || self->closed) {
        return;
      }
      try {
        Result<void> added = open_member(self, *closed);
        if (added && !self->trims && self->options.idle_timeout >= Duration::zero()) {
          added = self->scope.spawn(trim(self));
          self->trims = bool(added);
        }
        self->trouble = added ? self->trouble : added.error();
      } catch (const std::bad_alloc&) {
        self->trouble = Error(Errc::resource_exhausted, "no memory for a connection");
      }
    }
    static void add_if_awaited(const std::shared_ptr<State>& self) noexcept {
      if (!self->line.empty()) {
        add_connection(self);
      }
    }
    // Ends idle connections above the minimum.
    static rt::Task<void> trim(std::shared_ptr<State> self) {
      const std::size_t least = self->options.connections_min.value_or(self->options.connections);
      while (self->open_members() > least) {
        Duration wait = self->options.idle_timeout;
        for (auto member = self->members.rbegin(); member != self->members.rend() && self->open_members() > least;
             ++member) {
          if (!(*member)->is_open()) {
            continue;
          }
          const Duration left = (*member)->used_at + self->options.idle_timeout - self->now();
          if ((*member)->client->in_flight() != 0 || !self->line.empty() || left > Duration::zero()) {
            wait = std::min(wait, std::max(left, Duration::zero()));
            continue;
          }
          (*member)->leaving = true;
          if (const auto spawned = self->scope.spawn(retire(self, member->get())); !spawned) {
            (*member)->leaving = false;
          }
        }
        const Result<void> slept = co_await rt::sleep(std::max<Duration>(wait, std::chrono::milliseconds(1)));
        if (!slept) {
          co_return;
        }
      }
      self->trims = false;
    }
    static rt::Task<void> retire(std::shared_ptr<State> self, Member* member) {
      self->counts->evictions.add();
      (void)co_await member->client->close(deadline_after(self->now(), kLeaveTime));
      member->changed.pulse();
      while (member->watched) {
        const Result<void> waited = co_await member->changed.wait();
        if (!waited) {
          co_return;
        }
      }
      const bool cancelled = co_await rt::is_cancelled();
      if (!cancelled) {
        self->sources->remove(member->client.get());
        member->client.reset();
        member->leaving = false;
        add_if_awaited(self);
      }
    }

    // --- health ---

    static rt::Task<void> watch(std::shared_ptr<State> self, Member* member) {
      co_await probe_again(self, member);
      member->watched = false;
      member->changed.pulse();
    }
    static rt::Task<void> probe_again(std::shared_ptr<State> self, Member* member) {
      while (!self->closed && !member->leaving) {
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
            add_if_awaited(self);
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
        if (!member->client) {
          continue;
        }
        if (const auto spawned = closing.spawn(close_one(member->client.get(), deadline, &worst)); !spawned) {
          member->client->abort();
          worst = spawned;
        }
      }
      const Result<void> joined = co_await closing.join();
      co_return worst ? joined : worst;
    }

    static constexpr Duration kLeaveTime = std::chrono::seconds(10);  // for the bytes that an idle connection writes
    static constexpr Error kProbeLate{Errc::timed_out, "the probe had no answer within probe_timeout"};

    const std::shared_ptr<ClientHost> host;
    const std::string endpoint;
    const Codec codec;
    const PoolOptions options;
    const Probe probe;
    const std::shared_ptr<PoolCounts> counts = std::make_shared<PoolCounts>();
    const std::shared_ptr<ConnectionSources> sources = std::make_shared<ConnectionSources>();
    std::optional<CircuitBreaker> breaker;
    std::vector<std::unique_ptr<Member>> members;
    List<WaitingCaller> line;
    std::size_t next = 0;
    std::size_t woken = 0;  // requests that were woken and have not resumed yet
    bool closed = false;
    bool trims = false;   // trim() runs
    Error trouble;        // the last reason why a connection was lost or not made
    rt::TaskScope scope;  // watch(), trim(), retire()
    Farewell<State> farewell;
  };

  explicit ClientPool(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

  rt::Task<Result<Response>> begin(rt::Task<Result<Response>> task) {
    return state_->breaker ? State::guard(state_, std::move(task)) : std::move(task);
  }

  std::shared_ptr<State> state_;
};

}  // namespace weft::serve
