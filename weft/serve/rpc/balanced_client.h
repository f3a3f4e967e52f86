// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/task/task.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/client/endpoint_choice.h"
#include "weft/serve/client/owned_bytes.h"
#include "weft/serve/rpc/body.h"
#include "weft/serve/rpc/method.h"
#include "weft/serve/rpc/rpc_client.h"
#include "weft/sync/counter.h"
#include "weft/sync/counter_block.h"

namespace weft::serve::rpc {

struct BalancedOptions {
  ClientOptions client{};  // of each connection
  // An endpoint with a host name has a connection to each of its addresses, and the name is looked up again after this
  // time, and after a connection was lost. At least 10 ms. Negative: such an endpoint has one connection, to the first
  // address that answers, and the name is looked up when it connects.
  Duration resolve_every = std::chrono::seconds(30);
  ChoiceOptions choice{};
  std::uint32_t attempts = 3;                            // of a call, with the first one
  Duration retry_first = std::chrono::milliseconds(20);  // the first wait before an attempt is 0.5 to 1 times this, ...
  Duration retry_max = std::chrono::seconds(1);          // ... the next ones double up to this
  std::uint32_t retry_percent = 20;  // of the calls: retries and hedges together are at most this share, ...
  std::uint32_t retries_max = 10;    // ... and at most so many above it in a burst
};

// The rule that ended the attempts of a call which failed.
enum class RetryRule : std::uint8_t {
  none,         // the call did not fail
  answered,     // the server answered, or the error concerns the caller: another attempt would end alike
  idempotence,  // the outcome of the attempt is unknown, and the method is not idempotent
  attempts,     // `attempts` are used up
  budget,       // retry_percent is used up
  deadline,     // no time is left
  endpoint,     // no endpoint is connected, or has room
};
[[nodiscard]] std::string_view describe(RetryRule rule) noexcept;  // "the retry budget is used up"

struct BalancedCall : CallOptions {
  // If no answer has come after this time, a second attempt begins at another endpoint; the first response wins, and
  // the other attempt is cancelled. Of idempotent methods alone. Negative: never.
  Duration hedge_after = Duration(-1);
  bool wait_for_ready = false;  // while no endpoint is connected, the call waits until its deadline instead of failing
  RetryRule* rule = nullptr;    // gets the rule that ended the attempts
};

// clang-format off
#define WEFT_BALANCED_COUNTERS(ROW)                                                                                   \
  ROW(calls, counter, "calls_total", "", "", "calls",                                                                 \
      "Calls that began.", "serve/rpc/balanced_client.cc")                                                            \
  ROW(retries, counter, "attempts_repeated_total", "kind", "retry", "attempts",                                       \
      "Further attempts of a call: after one that failed.", "serve/rpc/balanced_client.cc")                           \
  ROW(hedges, counter, "attempts_repeated_total", "kind", "hedge", "attempts",                                        \
      "Further attempts of a call: beside one that had no answer after `hedge_after`.",                               \
      "serve/rpc/balanced_client.cc")                                                                                 \
  ROW(hedges_won, counter, "hedges_won_total", "", "", "calls",                                                       \
      "Calls whose hedge had the first response.", "serve/rpc/balanced_client.cc")                                    \
  ROW(failed_answered, counter, "calls_failed_total", "rule", "answered", "calls",                                    \
      "Calls that failed, by the rule that ended their attempts: another attempt would end alike.",                   \
      "serve/rpc/balanced_client.cc")                                                                                 \
  ROW(failed_idempotence, counter, "calls_failed_total", "rule", "idempotence", "calls",                              \
      "Calls that failed, by the rule that ended their attempts: the outcome is unknown, the method not idempotent.", \
      "serve/rpc/balanced_client.cc")                                                                                 \
  ROW(failed_attempts, counter, "calls_failed_total", "rule", "attempts", "calls",                                    \
      "Calls that failed, by the rule that ended their attempts: `attempts` were used up.",                           \
      "serve/rpc/balanced_client.cc")                                                                                 \
  ROW(failed_budget, counter, "calls_failed_total", "rule", "budget", "calls",                                        \
      "Calls that failed, by the rule that ended their attempts: the retry budget was used up.",                      \
      "serve/rpc/balanced_client.cc")                                                                                 \
  ROW(failed_deadline, counter, "calls_failed_total", "rule", "deadline", "calls",                                    \
      "Calls that failed, by the rule that ended their attempts: no time was left.",                                  \
      "serve/rpc/balanced_client.cc")                                                                                 \
  ROW(failed_endpoint, counter, "calls_failed_total", "rule", "endpoint", "calls",                                    \
      "Calls that failed, by the rule that ended their attempts: no endpoint was connected and had room.",            \
      "serve/rpc/balanced_client.cc")                                                                                 \
  ROW(ejections, counter, "ejections_total", "", "", "endpoints",                                                     \
      "How often an endpoint was ejected.", "serve/rpc/endpoint_set.cc")                                              \
  ROW(lookups, counter, "lookups_total", "", "", "look-ups",                                                          \
      "Look-ups of the endpoints' names that began.", "serve/rpc/endpoint_set.cc")                                    \
  ROW(lookups_failed, counter, "lookups_failed_total", "", "", "look-ups",                                            \
      "Look-ups that failed: the addresses of the last one remain.", "serve/rpc/endpoint_set.cc")
// clang-format on

// The core counts, any thread reads.
struct BalancedCounts {
  using Number = sync::Counter;
  WEFT_COUNTER_BLOCK(WEFT_BALANCED_COUNTERS)
};
inline constexpr CounterRow kBalancedRows[] = {WEFT_BALANCED_COUNTERS(WEFT_COUNTER_ROW)};
inline constexpr CounterTable kBalancedTable = {
    "balanced_client",
    "A `serve::rpc::BalancedClient`; its connections are in the table of clients: `admin->add(name, *client)`.",
    kBalancedRows};

// BalancedClient: calls to any of several equal endpoints: those of a list, and the addresses of host names. Each call
// goes to the one that EndpointChoice takes from those that are connected and have room. A call that failed is repeated
// where that does no harm. A slow call of an idempotent method may have a second attempt beside it.
//   const auto client = BalancedClient::open(host, {"tcp://calc.example:7"});
//   const auto text = co_await client->call<Idempotent<Get>>("key", options);
// Owner: the program. The destructor ends the connections at once, and the calls fail with `closed`. Affinity and
// threads: those of Client. Cost: besides a call of Client, two coroutine frames and a copy of the request's body.
// Invariants:
//   1. A request that the server may have executed is sent again only if its method is idempotent. The fate() of the
//      error of a call is `outcome_unknown` if any of its attempts had this fate and none has a response.
//   2. A call ends by its deadline, whatever its attempts do. No attempt begins after it.
//   3. Retries and hedges together are at most retry_percent of the calls, and retries_max in a burst.
class BalancedClient {
 public:
  static constexpr std::size_t kEndpointsMax = 256;  // connections: further addresses of a name are not used

  // Connects to each endpoint in the background. Errors: those of Client::open(); invalid_argument (no endpoint, or
  // more than kEndpointsMax; no attempt).
  [[nodiscard]] static Result<std::unique_ptr<BalancedClient>> open(std::shared_ptr<ClientHost> host,
                                                                    const std::vector<std::string>& endpoints,
                                                                    const BalancedOptions& options = {});
  BalancedClient(const BalancedClient&) = delete;
  BalancedClient& operator=(const BalancedClient&) = delete;
  ~BalancedClient();

  // Errors: those of Client::call(); unreachable (no endpoint is connected; the text has the reason of one of them);
  // invalid_argument (hedge_after of a method that is not idempotent).
  template <IsMethod M>
  [[nodiscard]] rt::Task<Result<typename M::Response>> call(const typename M::Request& request,
                                                            const BalancedCall& options = {}) {
    using Response = typename M::Response;
    Scratch scratch;
    const Result<Bytes> body = Body<typename M::Request>::encode(request, scratch);
    if (!body) {
      return Client::fail<Response>(body.error().with_fate(Fate::not_sent));
    }
    Header header;
    header.number = M::kNumber;
    header.method = M::kNumber == 0 ? std::string_view(M::kName) : std::string_view();
    return finish<Response>(begin(header, *body, options, IsIdempotent<M>));
  }

  // Waits until one endpoint is connected. Errors: timed_out (the deadline); those of Client::connected().
  [[nodiscard]] rt::Task<Result<void>> connected(Instant deadline = kNever);
  // Takes no more calls, and closes each connection. Errors: those of Client::close(), of the first one that failed.
  [[nodiscard]] rt::Task<Result<void>> close(Instant deadline);

  // The connections to the present addresses. Those are in no order, and change with the next turn of the loop.
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] Client& client(std::size_t index) noexcept;
  [[nodiscard]] const BalancedCounts& counts() const noexcept;
  // These and those of the connections, summed, for a page of metrics, as long as the client exists. Any thread.
  [[nodiscard]] CounterSource counter_source() const;

 private:
  struct State;
  using Answer = Client::Connection::Response;

  explicit BalancedClient(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
  [[nodiscard]] rt::Task<Result<OwnedBytes>> begin(const Header& header, Bytes body, const BalancedCall& options,
                                                   bool idempotent);

  template <typename Response>
  static rt::Task<Result<Response>> finish(rt::Task<Result<OwnedBytes>> calling) {
    const Result<OwnedBytes> body = co_await std::move(calling);
    if (!body) {
      co_return body.error();
    }
    Result<Response> response = Body<Response>::decode(body->bytes());
    if (!response) {
      co_return response.error().with_fate(Fate::answered);
    }
    co_return response;
  }

  std::shared_ptr<State> state_;
};

}  // namespace weft::serve::rpc
