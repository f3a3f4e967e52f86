// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/balanced_client.h"

#include <algorithm>
#include <new>

#include "weft/net/backoff.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/client/guarded.h"
#include "weft/serve/client/retrying.h"
#include "weft/serve/rpc/endpoint_set.h"
#include "weft/serve/rpc/status.h"
#include "weft/sys/clock.h"

namespace weft::serve::rpc {

namespace {

using Outcome = EndpointChoice::Outcome;

constexpr Error kNotIdempotent(Errc::invalid_argument, "hedge_after is for idempotent methods");

// An answer is a success, also if it is a refusal of the service, unless the server was busy.
Outcome outcome_at_endpoint(const Error& error) noexcept {
  if (error.fate() == Fate::answered) {
    return is_busy(error) ? Outcome::failure : Outcome::success;
  }
  return outcome_of(error);
}

}  // namespace

std::string_view describe(RetryRule rule) noexcept {
  constexpr std::string_view kTexts[] = {"",
                                         "another attempt would end alike",
                                         "the outcome is unknown, and the method is not idempotent",
                                         "the attempts are used up",
                                         "the retry budget is used up",
                                         "no time is left",
                                         "no endpoint is connected and has room"};
  return kTexts[static_cast<std::size_t>(rule)];
}

// The endpoints and the calls in flight. Owner: the BalancedClient and each call. Affinity: the core.
struct BalancedClient::State {
  // A call in flight, in the frame of run().
  struct Calling {
    Header header{};
    OwnedBytes body{};
    BalancedCall options{};
    Instant deadline = kNever;
    bool idempotent = false;
    bool in_doubt = false;              // an attempt may have been executed
    std::optional<std::size_t> last{};  // the endpoint of the last attempt
  };
  // An attempt and its hedge, in the frame of hedged().
  struct Race {
    std::size_t running = 1;
    rt::AsyncEvent never;  // an attempt that failed waits here for the end of the other one
  };

  State(std::shared_ptr<ClientHost> host, const BalancedOptions& with)
      : options(with),
        counts(std::make_shared<BalancedCounts>()),
        set(std::make_shared<EndpointSet>(std::move(host), with, counts)),
        budget(with.retry_percent, with.retries_max) {}

  [[nodiscard]] Instant now() const noexcept { return set->now(); }
  void shut_down() noexcept { set->shut_down(); }

  // Whether the error of an attempt permits another one; `none`: it does.
  [[nodiscard]] RetryRule rule_after(const Error& error, const Calling& calling, std::uint32_t attempt) noexcept {
    RetryPolicy policy;
    policy.repeatable = true;
    policy.retry_answer = &is_busy;
    if (!may_retry(error, policy)) {
      return RetryRule::answered;
    }
    policy.repeatable = calling.idempotent;
    if (!may_retry(error, policy)) {
      return RetryRule::idempotence;
    }
    if (attempt >= options.attempts) {
      return RetryRule::attempts;
    }
    if (calling.deadline <= now()) {
      return RetryRule::deadline;
    }
    return budget.try_take() ? RetryRule::none : RetryRule::budget;
  }
  void count_failed(RetryRule rule) noexcept {
    sync::Counter* const by_rule[] = {nullptr,
                                      &counts->failed_answered,
                                      &counts->failed_idempotence,
                                      &counts->failed_attempts,
                                      &counts->failed_budget,
                                      &counts->failed_deadline,
                                      &counts->failed_endpoint};
    by_rule[static_cast<std::size_t>(rule)]->add();
  }

  static rt::Task<Result<OwnedBytes>> run(std::shared_ptr<State> self, Calling calling);
  static rt::Task<Result<OwnedBytes>> attempts(State* self, Calling* calling, RetryRule* rule);
  static rt::Task<Result<OwnedBytes>> once(State* self, Calling* calling, std::size_t index);
  static rt::Task<Result<OwnedBytes>> contend(Race* race, rt::Task<Result<OwnedBytes>> attempt);
  static rt::Task<Result<OwnedBytes>> hedge(State* self, Calling* calling, Race* race);
  static rt::Task<Result<OwnedBytes>> hedged(State* self, Calling* calling, std::size_t index);
  static rt::Task<Result<void>> wait_connected(std::shared_ptr<State> self, Instant deadline) {
    co_return co_await EndpointSet::wait_ready(self->set.get(), deadline);
  }

  const BalancedOptions options;
  const std::shared_ptr<BalancedCounts> counts;
  const std::shared_ptr<EndpointSet> set;
  RetryBudget budget;
  Farewell<State> farewell;
};

Result<std::unique_ptr<BalancedClient>> BalancedClient::open(std::shared_ptr<ClientHost> host,
                                                             const std::vector<std::string>& endpoints,
                                                             const BalancedOptions& options) {
  if (endpoints.empty() || endpoints.size() > kEndpointsMax || options.attempts == 0) {
    return Error(Errc::invalid_argument, "a balanced client has 1 to 256 endpoints and an attempt");
  }
  try {
    auto state = std::make_shared<State>(std::move(host), options);
    if (const auto begun = EndpointSet::begin(state->set, endpoints); !begun) {
      state->shut_down();
      return begun.error();
    }
    return std::unique_ptr<BalancedClient>(new BalancedClient(std::move(state)));
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for a balanced client");
  }
}

BalancedClient::~BalancedClient() {
  State& state = *state_;
  state.farewell.begin(state.set->host().core(), std::move(state_));
}

rt::Task<Result<OwnedBytes>> BalancedClient::begin(const Header& header, Bytes body, const BalancedCall& options,
                                                   bool idempotent) {
  State::Calling calling;
  calling.header = header;
  calling.options = options;
  calling.idempotent = idempotent;
  calling.deadline = Client::deadline_of(options, state_->options.client.timeout);
  if (!calling.body.assign_parts({body, Bytes(), Bytes()})) {
    return Client::fail<OwnedBytes>(
        Error(Errc::resource_exhausted, "no memory for the body of a call").with_fate(Fate::not_sent));
  }
  if (options.hedge_after >= Duration::zero() && !idempotent) {
    return Client::fail<OwnedBytes>(kNotIdempotent.with_fate(Fate::not_sent));
  }
  return State::run(state_, std::move(calling));
}

rt::Task<Result<OwnedBytes>> BalancedClient::State::run(std::shared_ptr<State> self, Calling calling) {
  if (const rt::Core* const core = &self->set->host().core(); rt::Core::current() != core) {
    co_return rt::used_elsewhere("client", core).with_fate(Fate::not_sent);
  }
  self->counts->calls.add();
  self->budget.note_request();
  RetryRule rule = RetryRule::none;
  Result<OwnedBytes> answer = co_await attempts(self.get(), &calling, &rule);
  if (calling.options.rule != nullptr) {
    *calling.options.rule = rule;
  }
  if (!answer) {
    self->count_failed(rule);
    const Error why = answer.error();
    co_return calling.in_doubt&& why.fate() != Fate::answered ? why.with_fate(Fate::outcome_unknown) : why;
  }
  co_return answer;
}

rt::Task<Result<OwnedBytes>> BalancedClient::State::attempts(State* self, Calling* calling, RetryRule* rule) {
  net::Backoff backoff(self->options.retry_first / 2, self->options.retry_max, net::Backoff::seed_for(calling));
  for (std::uint32_t attempt = 1;; ++attempt) {
    std::optional<std::size_t> index = self->set->choose(calling->last);
    if (!index) {
      index = self->set->choose(std::nullopt);  // the same one again, if there is no other
    }
    if (!index && calling->options.wait_for_ready && !self->set->is_closed()) {
      const Result<void> ready = co_await EndpointSet::wait_ready(self->set.get(), calling->deadline);
      if (!ready) {
        *rule = RetryRule::endpoint;
        co_return ready.error().with_fate(Fate::not_sent);
      }
      --attempt;
      continue;
    }
    if (!index) {
      *rule = RetryRule::endpoint;
      co_return self->set->why_none();
    }
    calling->last = index;
    rt::Task<Result<OwnedBytes>> asking =
        calling->options.hedge_after >= Duration::zero() ? hedged(self, calling, *index) : once(self, calling, *index);
    Result<OwnedBytes> answer = co_await std::move(asking);
    if (answer) {
      co_return answer;
    }
    const Error error = answer.error();
    *rule = self->set->is_closed() ? RetryRule::answered : self->rule_after(error, *calling, attempt);
    if (*rule != RetryRule::none) {
      co_return error;
    }
    const Duration wait = backoff.next();
    if (deadline_after(self->now(), wait) >= calling->deadline) {
      *rule = RetryRule::deadline;
      co_return error;
    }
    self->counts->retries.add();
    const Result<void> slept = co_await rt::sleep(wait);
    if (!slept) {
      *rule = RetryRule::answered;
      co_return slept.error().with_fate(error.fate());
    }
  }
}

// One attempt.
rt::Task<Result<OwnedBytes>> BalancedClient::State::once(State* self, Calling* calling, std::size_t index) {
  CallOptions options = calling->options;
  options.timeout = time_left(calling->deadline, sys::now());
  Client& client = self->set->at(index);
  Result<Client::Asking> asking = client.ask(calling->header, {}, calling->body.bytes(), options);
  if (!asking) {
    co_return asking.error();
  }
  EndpointSet::Visit visit(*self->set, index);
  Result<Answer> answer = co_await asking->answer;
  Error error;
  if (!answer) {
    error = answer.error();
  } else if (answer->header().is_error()) {
    error = Client::error_of_answer(*answer, options.refusal);
  }
  visit.note(error == Errc::ok ? Outcome::success : outcome_at_endpoint(error));
  if (!(error == Errc::ok)) {
    calling->in_doubt = calling->in_doubt || error.fate() == Fate::outcome_unknown || error.fate() == Fate::unsaid;
    co_return error;
  }
  co_return answer->take_body();
}

// An attempt of a race. A failure waits for the other attempt, which then ends the race and cancels the wait.
rt::Task<Result<OwnedBytes>> BalancedClient::State::contend(Race* race, rt::Task<Result<OwnedBytes>> attempt) {
  Result<OwnedBytes> answer = co_await std::move(attempt);
  --race->running;
  if (!answer && race->running != 0) {
    (void)co_await race->never.wait();
  }
  co_return answer;
}

rt::Task<Result<OwnedBytes>> BalancedClient::State::hedge(State* self, Calling* calling, Race* race) {
  const Result<void> slept = co_await rt::sleep(calling->options.hedge_after);
  if (!slept) {
    co_return slept.error();
  }
  const std::optional<std::size_t> other = self->set->is_closed() ? std::nullopt : self->set->choose(calling->last);
  if (!other || !self->budget.try_take()) {
    (void)co_await race->never.wait();  // until the first attempt has ended
    co_return Error(Errc::cancelled, "no hedge began");
  }
  ++race->running;
  self->counts->hedges.add();
  rt::Task<Result<OwnedBytes>> attempt = once(self, calling, *other);
  rt::Task<Result<OwnedBytes>> contending = contend(race, std::move(attempt));
  Result<OwnedBytes> answer = co_await std::move(contending);
  co_return answer;
}

rt::Task<Result<OwnedBytes>> BalancedClient::State::hedged(State* self, Calling* calling, std::size_t index) {
  Race race;
  rt::Task<Result<OwnedBytes>> attempt = once(self, calling, index);
  rt::Task<Result<OwnedBytes>> first = contend(&race, std::move(attempt));
  rt::Task<Result<OwnedBytes>> second = hedge(self, calling, &race);
  auto ended = co_await rt::when_any(std::move(first), std::move(second));
  if (ended.index() == 1 && std::get<1>(ended)) {
    self->counts->hedges_won.add();
  }
  co_return ended.index() == 0 ? std::move(std::get<0>(ended)) : std::move(std::get<1>(ended));
}

rt::Task<Result<void>> BalancedClient::connected(Instant deadline) { return State::wait_connected(state_, deadline); }
rt::Task<Result<void>> BalancedClient::close(Instant deadline) { return EndpointSet::close(state_->set, deadline); }
std::size_t BalancedClient::size() const noexcept { return state_->set->size(); }
Client& BalancedClient::client(std::size_t index) noexcept { return state_->set->nth(index); }
const BalancedCounts& BalancedClient::counts() const noexcept { return *state_->counts; }

CounterSource BalancedClient::counter_source() const {
  return [weak = std::weak_ptr<const BalancedCounts>(state_->counts), sources = state_->set->sources()](
             std::string_view name, CounterReadings& into) {
    if (const auto counts = weak.lock()) {
      into.push_back({&kBalancedTable, {{"balanced_client", std::string(name)}}, sync::read_counters(*counts)});
      sources->read(name, into);
    }
  };
}

}  // namespace weft::serve::rpc
