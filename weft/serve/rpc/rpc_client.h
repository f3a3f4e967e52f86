// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/task/task.h"
#include "weft/serve/client/client.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/client/owned_bytes.h"
#include "weft/serve/rpc/body.h"
#include "weft/serve/rpc/call.h"
#include "weft/serve/rpc/client_stream.h"
#include "weft/serve/rpc/method.h"
#include "weft/serve/rpc/method_list.h"
#include "weft/serve/rpc/rpc_codec.h"
#include "weft/trace/trace_context.h"

namespace weft::serve::rpc {

struct ClientOptions {
  serve::ClientOptions connection{};            // time-outs, bounds, TLS; in_flight_max bounds the calls in flight
  Duration timeout = std::chrono::seconds(10);  // of a call that has none of its own; negative: none
  std::size_t body_max = kRequestMax;           // bytes of a request's body, and of a response's
};

// Pointers refer to objects that outlive the call.
struct CallOptions {
  // From call() on; negative: none; nullopt: ClientOptions::timeout, and of a stream none.
  std::optional<Duration> timeout{};
  const Call* within = nullptr;                // the call that the caller serves: its deadline and its trace hold here
  const trace::TraceContext* trace = nullptr;  // null: that of `within`
  std::string* refusal = nullptr;              // gets the text of a refusal as a whole; an Error's text is cut
};

// Client: calls over a connection to one endpoint, which the client makes, keeps and makes again (serve::Client).
//   const auto sum = co_await client->call<Add>({1, 2});
// Owner: the program. The destructor ends the client at once, and its calls fail with `closed`. Affinity and threads:
// those of serve::Client. Calls may be made in any thread, and run on the client's core.
// Cost: that of a request of serve::Client, and a copy of the request's body.
// Invariants:
//   1. A call ends once: with its response; with the peer's refusal as an Error (status.h); at its deadline; by its
//      cancellation; or with the error of serve::Client. The fate() of its error is whether it was sent.
//   2. A call that ends by its deadline or its cancellation sends a cancel, and the peer cancels the handler.
//   3. A request has the time that is left to its deadline when it is sent.
//   4. An answer whose call was given up, a second answer, and an answer with an unknown id end no call. serve::Client
//      counts the first two as late, and the third as a push that was dropped.
class Client {
 public:
  using Connection = serve::Client<Codec>;

  // Errors: those of serve::Client::open().
  [[nodiscard]] static Result<std::unique_ptr<Client>> open(std::shared_ptr<ClientHost> host, std::string_view endpoint,
                                                            ClientOptions options = {}) {
    auto connection =
        WEFT_TRY(Connection::open(host, endpoint, std::move(options.connection), Codec(options.body_max)));
    return std::unique_ptr<Client>(new Client(std::move(host), std::move(connection), options.timeout));
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { streams_->connection = nullptr; }

  // Encodes the request, and returns the task that sends it and returns the response. Errors, besides those of
  // invariant 1: those of Body::encode(), and message_too_large (body_max), not sent; those of Body::decode(). The
  // exceptions of these pass through.
  template <IsMethod M>
  [[nodiscard]] rt::Task<Result<typename M::Response>> call(const typename M::Request& request,
                                                            const CallOptions& options = {}) {
    using Response = typename M::Response;
    static_assert(HasBody<typename M::Request> && HasBody<Response>, "weft: Body<T> lacks encode() or decode()");
    static_assert(!std::is_same_v<Response, Bytes>, "weft: a client's response owns its bytes: serve::OwnedBytes");
    Scratch scratch;
    const Result<Bytes> body = Body<typename M::Request>::encode(request, scratch);
    if (!body) {
      return fail<Response>(body.error().with_fate(Fate::not_sent));
    }
    Header header;
    header.number = M::kNumber;
    header.method = M::kNumber == 0 ? std::string_view(M::kName) : std::string_view();
    Result<Asking> asking = ask(header, {}, *body, options);
    if (!asking) {
      return fail<Response>(asking.error());
    }
    return finish<Response>(*std::move(asking), options.refusal);
  }
  // The same for a method by its name, and bytes.
  [[nodiscard]] rt::Task<Result<OwnedBytes>> call_bytes(std::string_view method, Bytes body,
                                                        const CallOptions& options = {});
  // Begins a stream. The client outlives it. Errors: those of Body::encode(); resource_exhausted; invalid_state (not on
  // the client's core).
  template <IsStream M>
  [[nodiscard]] Result<std::unique_ptr<Stream<M>>> stream(const typename M::Request& request = {},
                                                          const CallOptions& options = {}) {
    Scratch scratch;
    const Bytes body = WEFT_TRY(Body<typename M::Request>::encode(request, scratch));
    Header header;
    header.number = M::kNumber;
    header.method = M::kNumber == 0 ? std::string_view(M::kName) : std::string_view();
    auto state = WEFT_TRY(begin_stream(header, body, options, GetsItems<M>, SendsItems<M>));
    return std::unique_ptr<Stream<M>>(new Stream<M>(std::move(state)));
  }
  // The methods of the server.
  [[nodiscard]] rt::Task<Result<MethodInfos>> methods(const CallOptions& options = {}) {
    return call<ListMethods>(Empty(), options);
  }

  // Those of serve::Client.
  [[nodiscard]] rt::Task<Result<void>> connected(Instant deadline = kNever) { return connection_->connected(deadline); }
  [[nodiscard]] rt::Task<Result<void>> close(Instant deadline) { return connection_->close(deadline); }
  [[nodiscard]] bool is_connected() const noexcept { return connection_->is_connected(); }
  [[nodiscard]] CounterSource counter_source() const { return connection_->counter_source(); }
  [[nodiscard]] Connection& connection() noexcept { return *connection_; }  // for the rest of its calls

 private:
  friend class BalancedClient;
  using Answer = Connection::Response;

  // A request that is about to be sent, and the bytes that it refers to.
  struct Asking {
    Asking(OwnedBytes bytes, Connection::Ask request) noexcept : sent(std::move(bytes)), answer(std::move(request)) {}

    OwnedBytes sent;
    Connection::Ask answer;
  };

  Client(std::shared_ptr<ClientHost> host, std::unique_ptr<Connection> connection, Duration timeout);

  // `name`: the method's, if it must be copied.
  [[nodiscard]] Result<Asking> ask(Header header, std::string_view name, Bytes body, const CallOptions& options);
  [[nodiscard]] static Instant deadline_of(const CallOptions& options, Duration otherwise) noexcept;
  static Error error_of_answer(const Answer& answer, std::string* refusal);

  template <typename Response>
  static rt::Task<Result<Response>> fail(Error why) {
    co_return why;
  }
  template <typename Response>
  static rt::Task<Result<Response>> finish(Asking asking, std::string* refusal) {
    Result<Answer> answer = co_await asking.answer;
    if (!answer) {
      co_return answer.error();
    }
    if (answer->header().is_error()) {
      co_return error_of_answer(*answer, refusal);
    }
    if constexpr (std::is_same_v<Response, OwnedBytes>) {
      co_return answer->take_body();
    } else {
      Result<Response> response = Body<Response>::decode(answer->body());
      if (!response) {
        co_return response.error().with_fate(Fate::answered);
      }
      co_return response;
    }
  }

  [[nodiscard]] Result<std::shared_ptr<ClientStreamState>> begin_stream(const Header& header, Bytes body,
                                                                        CallOptions options, bool receives, bool sends);
  static rt::Task<void> run_stream(std::shared_ptr<ClientStreamState> state, Asking asking, std::string* refusal);

  const std::shared_ptr<ClientHost> host_;
  const std::shared_ptr<StreamTable> streams_ = std::make_shared<StreamTable>();
  std::unique_ptr<Connection> connection_;
  Duration timeout_;
};

}  // namespace weft::serve::rpc
