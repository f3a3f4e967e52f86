// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "weft/base/result.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/client/client_link.h"
#include "weft/serve/client/correlation.h"
#include "weft/serve/frame/error_frame.h"
#include "weft/serve/frame/numbered_codec.h"
#include "weft/serve/session/service.h"

namespace weft::serve {

// ClientResponse: the header of the answer to a request, and a copy of its body. A move-only value.
template <FrameCodec Codec>
class ClientResponse {
 public:
  using Header = typename Codec::Header;

  ClientResponse(const Header& header, OwnedBytes body) noexcept : header_(header), body_(std::move(body)) {}
  [[nodiscard]] const Header& header() const noexcept { return header_; }
  [[nodiscard]] Bytes body() const noexcept { return body_.bytes(); }
  [[nodiscard]] OwnedBytes take_body() noexcept { return std::move(body_); }

 private:
  Header header_;
  OwnedBytes body_;
};

// Client: requests over a connection to one endpoint. The client makes the connection, keeps it and makes it again. The
// connection is a Session of the core, like a server's: the same reading, writing, batching, bounds and time-outs. The
// default codec numbers its requests, so that the client never takes another frame for an answer.
// Owner: the program. The destructor ends the client at once: requests in flight fail with `closed`, and the client
// never calls on_event and on_push again. In another thread than the core's, the destructor posts this to the core and
// does not wait. The runtime must outlive the client.
// Affinity: its core's thread, which also awaits the tasks. Any thread may call requests() and connections().
// Cost: an idle client has a session and no buffer. A request costs a coroutine frame from the pool, a copy of its
// body into the batch, and a copy of the response's body. All requests of a turn are written with one system call.
// Invariants:
//   1. Each request gets exactly one answer: the response; the peer's error frame as an Error; timed_out at its
//      deadline; kCancelled; the reason why the connection ended, whose text names the endpoint; closed. A request is
//      never sent twice, and never kept for a later connection. The fate() of its error is whether it was sent.
//   2. The client drops and counts a late response. It does not take it for the response to another request, as far as
//      the correlation can distinguish them (correlation.h).
//   3. Requests in flight and queued bytes never exceed the options. A request beyond them is refused, and counted.
//   4. The back-off bounds the attempts to connect, whatever the peer's failure.
template <FrameCodec Codec = NumberedCodec, typename Correlate = typename DefaultCorrelation<Codec>::Type>
  requires Correlation<Correlate, Codec>
class Client {
 public:
  using Header = typename Codec::Header;
  using Frame = typename Codec::Frame;
  using Response = ClientResponse<Codec>;
  using Push = std::function<void(const Frame&)>;

  // Opens a client of "tcp://host:port" or "ipc://path", on the host's core. The client connects in the background for
  // its whole life. Errors: those of parse_endpoint(); not_supported (inproc); invalid_state (not on that core);
  // resource_exhausted.
  [[nodiscard]] static Result<std::unique_ptr<Client>> open(std::shared_ptr<ClientHost> host, std::string_view endpoint,
                                                            ClientOptions options = {}, const Codec& codec = Codec()) {
    net::Endpoint parsed = WEFT_TRY(net::parse_endpoint(endpoint, false));
    if (parsed.transport != net::Transport::tcp && parsed.transport != net::Transport::ipc) {
      return Error(Errc::not_supported, "a client connects over tcp and ipc; TLS is one of its options");
    }
    if (rt::Core::current() != &host->core()) {
      return Error(Errc::invalid_state, "a client is opened on the core of its host");
    }
    auto state = std::make_shared<State>(std::move(host), std::move(parsed), std::move(options), codec);
    WEFT_TRY(ClientLink::start(state, ServiceCalls<Codec, State>::ops(), state.get(), &state->codec));
    return std::unique_ptr<Client>(new Client(std::move(state)));
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    State& state = *state_;
    state.farewell.begin(state.host().core(), std::move(state_));
  }

  // Sends the request and returns the response. The task reads the body when it begins. Errors, besides those of
  // invariant 1: unreachable (there is no connection at the moment, and the text has the reason); invalid_state (the
  // caller is not on the client's core); resource_exhausted (in_flight_max, or the write budget is spent); those of the
  // codec (nothing was sent). Errors of an error frame (error_frame.h): of kServiceDomain, with the service's code and
  // text; of kFrameDomain.
  [[nodiscard]] rt::Task<Result<Response>> request(const Header& header, Bytes body, Instant deadline = kNever) {
    return State::request(state_, header, body, deadline, false);
  }
  // The same, but an error frame is a response: its header has kFlagError.
  [[nodiscard]] rt::Task<Result<Response>> request_raw(const Header& header, Bytes body, Instant deadline = kNever) {
    return State::request(state_, header, body, deadline, true);
  }
  // Sends a frame that has no answer. Errors: those of request().
  Result<void> send(const Header& header, Bytes body) {
    if (const Error wrong = state_->used_elsewhere(); wrong != Errc::ok) [[unlikely]] {
      return wrong.with_fate(Fate::not_sent);
    }
    const auto sent = state_->send(header, body);
    return sent ? sent : sent.error().with_fate(Fate::not_sent);
  }
  // Sets the function that gets the frames that the peer sends without a request, in the turn in which they are read.
  // The frame is valid until the function returns. Without a function such frames are counted and dropped. An exception
  // from it ends the connection. The function must not call on_push(). If only the order matches responses to requests,
  // the function gets frames until the connection has sent its first request; a connection that got such a frame
  // refuses requests.
  void on_push(Push function) { state_->push = std::move(function); }

  // Sets the function that is called after a late response has made room for a request, in the turn in which it is
  // read. The function must not call into the client.
  void on_room(std::function<void()> function) { state_->on_room(std::move(function)); }

  // Waits until there is a connection. At the deadline the error is that of the last attempt to connect, or of the last
  // connection's end: connection_failed, name_unresolved, protocol_error (an untrusted certificate) ...; timed_out if
  // no attempt has ended, or if it took connect_timeout. Errors: also closed; kCancelled; invalid_state, like
  // request().
  [[nodiscard]] rt::Task<Result<void>> connected(Instant deadline = kNever) {
    return ClientLink::connected(state_, deadline);
  }
  // Takes no more requests, waits for the responses, writes the queued bytes, then ends. Fails with timed_out if at
  // the deadline the client gave up the rest. Idempotent.
  [[nodiscard]] rt::Task<Result<void>> close(Instant deadline) { return ClientLink::close(state_, deadline); }
  // Ends the client at once, as its destructor does. Idempotent.
  void abort() noexcept { state_->shut_down(); }
  // Ends this connection; the client connects again after a wait. Requests in flight fail with `why`.
  void drop_connection(const Error& why) noexcept { state_->drop_connection(why); }

  [[nodiscard]] bool is_connected() const noexcept { return state_->is_connected(); }
  [[nodiscard]] std::size_t in_flight() const noexcept { return state_->in_flight().waiting(); }
  // Whether a request would be sent at once, unless the write budget is spent.
  [[nodiscard]] bool has_room() noexcept { return state_->has_room(); }
  [[nodiscard]] std::size_t room() const noexcept { return state_->room(); }  // requests that would be sent at once
  [[nodiscard]] const RequestCounts& requests() const noexcept { return state_->requests(); }
  [[nodiscard]] const ConnectCounts& connections() const noexcept { return state_->connections(); }
  // Both for a page of metrics, as long as the client exists. Any thread.
  [[nodiscard]] CounterSource counter_source() const { return state_->counter_source(); }
  [[nodiscard]] ClientHost& host() noexcept { return state_->host(); }
  // Returns ok, or invalid_state if this is not the thread of the client's core. Any thread.
  [[nodiscard]] Error used_elsewhere() const noexcept { return state_->used_elsewhere(); }

  // `co_await client.ask(header, body, deadline)`: request_raw() as an awaiter, without a coroutine of its own. The
  // body must be valid until the await begins. The awaiter may be moved before that.
  class Ask;
  [[nodiscard]] Ask ask(const Header& header, Bytes body, Instant deadline = kNever) const {
    return Ask(state_, header, body, deadline);
  }

 private:
  using TypedSession = SessionOf<Codec>;

  // The client's state, which is also the service of its sessions.
  struct State final : ClientLink {
    friend class Ask;

    State(std::shared_ptr<ClientHost> host, net::Endpoint endpoint, ClientOptions options, const Codec& of)
        : ClientLink(std::move(host), std::move(endpoint), std::move(options), Correlate::kMatching), codec(of) {}

    struct Waiter : InFlight::Waiter {
      using InFlight::Waiter::Waiter;
      Header header{};
    };

    void on_open(TypedSession& session) noexcept {
      asked = told = false;
      note_open(session);
    }
    void on_close(TypedSession& /*session*/, const Error& why) noexcept { note_close(why); }
    void on_frame(TypedSession& /*session*/, const Frame& frame) {
      note_heard();
      if (Correlate::is_response(frame.header)) {
        const InFlight::Match match = in_flight().match(key_of_response(frame.header));
        if (match.waiter != nullptr) {
          auto& waiter = static_cast<Waiter&>(*match.waiter);
          waiter.header = frame.header;
          return waiter.answer(frame.body);
        }
        if (match.known) {
          return note_late();
        }
      }
      count_push();
      if constexpr (Correlate::kMatching == Matching::in_order) {
        told = true;
        if (asked) {
          return drop_connection(kTold);
        }
      }
      push ? push(frame) : count_dropped_push();
    }

    static std::uint32_t key_of_request([[maybe_unused]] const Header& header) noexcept {
      if constexpr (Correlate::kMatching == Matching::in_order_of_key) {
        return Correlate::key(header);
      } else {
        return 0;
      }
    }
    static std::uint32_t key_of_response([[maybe_unused]] const Header& header) noexcept {
      if constexpr (Correlate::kMatching == Matching::by_number) {
        return Correlate::number(header);
      } else {
        return key_of_request(header);
      }
    }

    Result<void> send(const Header& header, Bytes body) {
      auto* const session = static_cast<TypedSession*>(WEFT_TRY(sender()));
      auto sent = session->send(header, body);
      if (!sent) {
        count_refused();
      }
      return sent;
    }
    // Completes the header.
    Result<void> ask(Waiter& waiter, Header& header, Bytes body, [[maybe_unused]] Instant deadline) {
      auto* const session = static_cast<TypedSession*>(WEFT_TRY(requester()));
      if (told) [[unlikely]] {
        count_refused();
        return kTold;
      }
      const auto number = in_flight().add(waiter, key_of_request(header));
      if (!number) {
        count_refused();
        return number.error();
      }
      if constexpr (Correlate::kMatching == Matching::by_number) {
        Correlate::set_number(header, *number);
      }
      if constexpr (requires { Correlate::set_time_left(header, Duration()); }) {
        Correlate::set_time_left(header, time_left(deadline, now()));
      }
      if (auto sent = session->send(header, body); !sent) {
        in_flight().take_back(waiter);
        count_refused();
        return sent;
      }
      asked = true;
      count_sent();
      return {};
    }
    // Lets the peer stop its work on a request that was given up. If the session takes no frame, the peer works on.
    void withdraw([[maybe_unused]] const Header& header) {
      if constexpr (requires { Correlate::withdrawal(header); }) {
        if (auto* const session = static_cast<TypedSession*>(open_session())) {
          (void)session->send(Correlate::withdrawal(header), Bytes());
        }
      }
    }
    // `raw`: an error frame is a response.
    static rt::Task<Result<Response>> request(std::shared_ptr<State> self, Header header, Bytes body, Instant deadline,
                                              [[maybe_unused]] bool raw) {
      Ask asking(std::move(self), header, body, deadline);
      Result<Response> response = co_await asking;
      if constexpr (std::same_as<Header, FrameHeader>) {
        if (!raw && response && is_error_frame(response->header())) [[unlikely]] {
          co_return error_of_frame(response->body());
        }
      }
      co_return response;
    }
    static bool is_error_frame([[maybe_unused]] const Header& header) noexcept {
      if constexpr (std::same_as<Header, FrameHeader>) {
        return (header.flags & kFlagError) != 0;
      } else if constexpr (requires { header.is_error(); }) {
        return header.is_error();
      } else {
        return false;
      }
    }

    static constexpr Error kTold{Errc::protocol_error,
                                 "the peer sends frames unasked: this codec cannot tell them from answers"};

    const Codec codec;
    Push push;
    bool asked = false;  // this connection has sent a request
    bool told = false;   // a frame came without a request, and only the order shows it
    Farewell<State> farewell;
  };

  explicit Client(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

template <FrameCodec Codec, typename Correlate>
  requires Correlation<Correlate, Codec>
class [[nodiscard]] serve::Client<Codec, Correlate>::Ask {
 public:
  Ask(std::shared_ptr<State> state, const Header& header, Bytes body, Instant deadline) noexcept
      : state_(std::move(state)), header_(header), body_(body), deadline_(deadline) {}
  Ask(Ask&& other) noexcept : Ask(std::move(other.state_), other.header_, other.body_, other.deadline_) {}
  Ask& operator=(Ask&&) = delete;
  ~Ask() = default;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <rt::detail::TaskPromise Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    State& state = *state_;
    rt::CancelScope& scope = coroutine.promise().scope();
    if (const Error wrong = state.used_elsewhere(); wrong != Errc::ok) [[unlikely]] {
      refused_ = wrong.with_fate(Fate::not_sent);
      return false;
    }
    auto& waiter = waiter_.emplace(deadline_);
    if (scope.cancelled()) [[unlikely]] {
      refused_ = rt::kCancelled.with_fate(Fate::not_sent);
      return waiter.defer(scope, coroutine);
    }
    if (deadline_ <= state.now()) [[unlikely]] {
      state.count_refused();
      refused_ = Error(Errc::timed_out, "the deadline had passed before the request").with_fate(Fate::not_sent);
      return false;
    }
    if (const auto asked = state.ask(waiter, header_, body_, deadline_); !asked) [[unlikely]] {
      refused_ = asked.error().with_fate(Fate::not_sent);
      return false;
    }
    return !waiter.await_ready() && waiter.await_suspend(coroutine);
  }
  [[nodiscard]] Result<Response> await_resume() {
    if (refused_) [[unlikely]] {
      return *refused_;
    }
    State& state = *state_;
    auto& waiter = *waiter_;
    state.note_resumed();
    if (!waiter.result()) {
      if (waiter.given_up()) {
        state.withdraw(header_);
      }
      return waiter.result().error();
    }
    if (State::is_error_frame(waiter.header)) [[unlikely]] {
      state.count_error_frame();
    }
    return Response(waiter.header, std::move(waiter.body()));
  }

 private:
  std::shared_ptr<State> state_;
  Header header_;  // completed by the client
  Bytes body_;
  Instant deadline_;
  std::optional<typename State::Waiter> waiter_;
  std::optional<Error> refused_;  // the request was not sent
};

}  // namespace weft::serve
