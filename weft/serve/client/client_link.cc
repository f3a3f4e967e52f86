// SPDX-License-Identifier: MIT
#include "weft/serve/client/client_link.h"

#include <utility>

#include "weft/rt/task/task_time.h"
#include "weft/serve/client/dial.h"
#include "weft/serve/server/wrap.h"
#include "weft/sync/kept_text.h"

namespace weft::serve {

namespace {
constexpr Error kClientClosed(Errc::closed, "the client is closed");
constexpr Error kNoMemoryToConnect(Errc::resource_exhausted, "no memory to connect");
constexpr Error kNotConnected(Errc::unreachable, "not connected yet: the first attempt has not ended");
constexpr Error kEnding(Errc::unreachable, "not connected: the connection is ending");
constexpr Error kNoAttempt(Errc::timed_out, "the first attempt to connect has not ended");
constexpr Error kSlow(Errc::timed_out, "no connection within connect_timeout");
constexpr Error kSlowName(Errc::timed_out, "looking up the host's name took longer than lookup_timeout");
constexpr Error kOwed(Errc::timed_out, "the peer left out a response");
constexpr Error kMute(Errc::timed_out, "the peer answered none of its requests in time");
}  // namespace

namespace {
constexpr CounterRow kClientRows[] = {WEFT_REQUEST_COUNTERS(WEFT_COUNTER_ROW) WEFT_CONNECT_COUNTERS(WEFT_COUNTER_ROW)
                                          WEFT_CLIENT_GAUGES(WEFT_COUNTER_ROW)};
static_assert(std::size(kClientRows) == sync::count_of_rows<ClientReading>());

// The core counts meanwhile: the counter that is read last may be ahead.
std::uint64_t difference(std::uint64_t begun, std::uint64_t ended) noexcept {
  return begun > ended ? begun - ended : 0;
}
}  // namespace

constinit const CounterTable kClientTable = {
    "client", "A `serve::Client`, or the clients of a `ClientPool` summed: `admin->add(name, *client)`.", kClientRows};

ClientReading ClientReading::of(const ClientCounts& counts) noexcept {
  ClientReading reading;
  sync::add_counters(reading.requests, counts.requests);
  sync::add_counters(reading.connects, counts.connections);
  const auto& [requests, connects, gauges] = reading;
  reading.gauges.connections = difference(connects.connected, connects.lost);
  reading.gauges.in_flight =
      difference(requests.sent, requests.answered + requests.timed_out + requests.cancelled + requests.lost);
  return reading;
}

CounterSource ClientLink::counter_source() const {
  return [weak = std::weak_ptr<const ClientCounts>(counts_)](std::string_view name, CounterReadings& into) {
    if (const auto counts = weak.lock()) {
      into.push_back({&kClientTable, {{"client", std::string(name)}}, sync::read_counters(ClientReading::of(*counts))});
    }
  };
}

ClientLink::ClientLink(std::shared_ptr<ClientHost> host, net::Endpoint endpoint, ClientOptions options,
                       Matching matching)
    : host_(std::move(host)),
      endpoint_(std::move(endpoint)),
      options_(std::move(options)),
      in_flight_(matching, options_.in_flight_max, counts_->requests),
      scope_(host_->core().loop()) {}

Result<void> ClientLink::start(const std::shared_ptr<ClientLink>& self, const SessionOps& ops, void* service,
                               const void* codec) {
  self->ops_ = ops;
  self->slot_ = {&self->ops_, service, codec, self->options_.limits,
                 self->options_.wrap || self->options_.tls != nullptr};
  return self->scope_.spawn(run(self));
}

rt::Task<void> ClientLink::run(std::shared_ptr<ClientLink> self) {
  self->begun_ = true;
  (void)co_await rt::yield();  // the caller of open() gets its client before the first event
  ClientLink* const link = self.get();
  net::Backoff backoff(link->options_.reconnect_first / 2, link->options_.reconnect_max, net::Backoff::seed_for(link));
  try {
    co_await keep_connected([link] { return attempt(link); },
                            [link] { return !link->closing_ && !link->scope_.cancelled(); }, backoff);
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory to begin; close() must not wait for this
  }
  link->closing_ = link->ended_ = true;
  link->changed_.pulse();
}

// Runs one connection from the first packet to its end.
rt::Task<Attempt> ClientLink::attempt(ClientLink* self) {
  self->counts_->connections.attempts.add();
  Result<std::unique_ptr<net::ByteStream>> stream = kNoMemoryToConnect;
  try {
    stream = co_await connect(self);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the attempt failed for lack of memory
  }
  const bool cancelled = co_await rt::is_cancelled();
  if (cancelled || self->closing_) {
    co_return Attempt::failed;
  }
  Result<void> opened;
  if (stream) {
    opened = self->open(std::move(*stream));
  } else {
    opened = stream.error();
    if (stream.error() == Errc::timed_out) {
      self->counts_->connections.timed_out.add();
    }
  }
  if (!opened) {
    self->note_trouble(opened.error());
    self->report(ClientEvent::Kind::unconnected, self->trouble_);
    co_return Attempt::failed;
  }
  self->trouble_ = Error();
  self->counts_->connections.connected.add();
  self->changed_.pulse();
  self->report(ClientEvent::Kind::connected, Error());
  co_await SessionEnd(self->session_, self->end_wait_, kClientClosed);
  self->counts_->connections.lost.add();
  self->changed_.pulse();
  self->report(ClientEvent::Kind::lost, self->why_);
  co_return self->heard_ ? Attempt::proved : Attempt::failed;
}

// Looks the name up, then connects. Each has a time of its own: a look-up that takes longer than a connection may,
// would begin anew in each attempt.
rt::Task<Result<std::unique_ptr<net::ByteStream>>> ClientLink::connect(ClientLink* self) {
  const ClientOptions& options = self->options_;
  Dialling dialling(self->host_->core().loop(), self->endpoint_, options.socket, options.resolver);
  const auto looked_up = co_await rt::with_timeout(Dialling::look_up(&dialling), options.lookup_timeout);
  if (!looked_up) {
    co_return looked_up.error() == Errc::timed_out ? kSlowName : looked_up.error();
  }
  const bool timed = options.connect_timeout >= Duration::zero();
  const Duration timeout =
      timed ? Instant() + options.connect_timeout + dialling.time_to_last_address() - Instant() : Duration(-1);
  auto stream = co_await rt::with_timeout(connect_to(self, &dialling), timeout);
  if (!stream && stream.error() == Errc::timed_out) {
    co_return kSlow;
  }
  co_return stream;
}

// Connects until a session can begin: dials, wraps, shakes hands.
rt::Task<Result<std::unique_ptr<net::ByteStream>>> ClientLink::connect_to(ClientLink* self, Dialling* dialling) {
  const ClientOptions& options = self->options_;
  auto stream = co_await Dialling::connect(dialling);
  if (stream && options.wrap) {
    stream = wrap_stream(options.wrap, std::move(*stream));
  }
  if (stream && options.tls != nullptr) {
    stream = options.tls->wrap(std::move(*stream), options.tls_name.empty() ? self->endpoint_.host : options.tls_name);
    if (stream) {
      stream = co_await shake_hands(self->host_->shard(), std::move(*stream));
    }
  }
  co_return stream;
}

Result<void> ClientLink::open(std::unique_ptr<net::ByteStream> stream) {
  heard_ = false;
  host_->shard().open(slot_, std::move(stream));
  if (session_ == nullptr) {  // see note_open()
    return Error(Errc::resource_exhausted, "no room for one more connection");
  }
  return {};
}

void ClientLink::report(ClientEvent::Kind kind, const Error& why) noexcept {
  try {
    if (options_.on_event && !silent_) {
      options_.on_event(ClientEvent{kind, why});
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): the event was delivered
  }
}

// "tcp://host:1: certificate has expired"
Error ClientLink::named(const Error& why) const noexcept {
  const std::string_view text = why.text();
  const StaticText kept = sync::keep_text({endpoint_text_, text.empty() ? "" : ": ", text}, why.static_text());
  return {why.domain(), why.value(), kept, why.os_errno()};
}

void ClientLink::note_trouble(const Error& why) noexcept {
  trouble_ = named(why);
  not_connected_ = Error();
}

Error not_connected_for(const Error& trouble) noexcept {
  const std::string_view text = trouble.text();
  const StaticText kept =
      sync::keep_text({"not connected: ", describe(trouble.code()), text.empty() ? "" : ": ", text}, "not connected");
  return Error(Errc::unreachable, kept, trouble.os_errno()).with_fate(Fate::not_sent);
}

// Why a request is refused. The text is made for the first request after a loss, not for each.
Error ClientLink::not_connected() noexcept {
  if (trouble_ == Errc::ok) {
    return session_ != nullptr ? kEnding : kNotConnected;
  }
  if (not_connected_ == Errc::ok) {
    not_connected_ = not_connected_for(trouble_);
  }
  return not_connected_;
}

void ClientLink::note_open(Session& session) noexcept { session_ = &session; }

void ClientLink::note_close(const Error& why) noexcept {
  session_ = nullptr;
  note_trouble(why);
  why_ = trouble_;
  (void)host_->core().loop().timers().cancel(std::exchange(owed_timer_, {}));
  in_flight_.fail_all(why_.with_fate(Fate::outcome_unknown));
  if (SessionEnd* const wait = std::exchange(end_wait_, nullptr)) {
    wait->finish();
  }
}

Result<Session*> ClientLink::sender() noexcept {
  if (!is_connected() || closing_) {
    count_refused();
    return (closing_ ? kClientClosed : not_connected()).with_fate(Fate::not_sent);
  }
  return session_;
}

Result<Session*> ClientLink::requester() noexcept {
  (void)has_room();
  return sender();
}

bool ClientLink::has_room() noexcept {
  if (is_connected() && in_flight_.full() && in_flight_.waiting() == 0) {
    drop_connection(kMute);
  }
  return is_connected() && !closing_ && !in_flight_.full();
}

void ClientLink::drop_connection(const Error& why) noexcept {
  if (session_ != nullptr) {
    session_->abort(CloseReason::service, why);
  }
}

void ClientLink::note_resumed() noexcept {
  if (closing_ && in_flight_.waiting() == 0) {
    changed_.pulse();
  }
  if (in_flight_.owed() != 0 && !owed_timer_) {
    watch_owed();
  }
}

void ClientLink::watch_owed() noexcept {
  if (options_.late_max >= Duration::zero()) {
    owed_timer_ = host_->core().loop().timers().schedule(
        deadline_after(now(), options_.late_max),
        {[](void* self) { static_cast<ClientLink*>(self)->check_owed(); }, this});
  }
}

void ClientLink::check_owed() noexcept {
  owed_timer_ = {};
  if (in_flight_.owed_since(now() - options_.late_max)) {
    drop_connection(kOwed);
  } else if (in_flight_.owed() != 0) {
    watch_owed();
  }
}

void ClientLink::shut_down() noexcept {
  silent_ = true;
  cancel_run();
}

// A run() that has not begun, because many tasks were nested at its start, never runs.
void ClientLink::cancel_run() noexcept {
  closing_ = true;
  scope_.cancel();
  if (!begun_) {
    ended_ = true;
    changed_.pulse();
  }
}

// --- waiting ---

rt::Task<Result<void>> ClientLink::wait_quiet(ClientLink* self) {
  while (self->session_ != nullptr && self->in_flight_.waiting() != 0) {
    const auto waited = co_await self->changed_.wait();
    if (!waited) {
      co_return waited;
    }
  }
  co_return Result<void>();
}

rt::Task<Result<void>> ClientLink::wait_ended(ClientLink* self) {
  while (!self->ended_) {
    const auto waited = co_await self->changed_.wait();
    if (!waited) {
      co_return waited;
    }
  }
  co_return Result<void>();
}

rt::Task<Result<void>> ClientLink::close(std::shared_ptr<ClientLink> self, Instant deadline) {
  if (const Error wrong = self->used_elsewhere(); wrong != Errc::ok) {
    co_return wrong;
  }
  self->closing_ = true;
  const auto quiet = co_await rt::with_timeout(wait_quiet(self.get()), time_left(deadline, self->now()));
  if (self->session_ == nullptr || !quiet) {
    self->cancel_run();  // run() still dials or waits, or no time is left
  } else {
    self->session_->close();
  }
  auto ended = co_await rt::with_timeout(wait_ended(self.get()), time_left(deadline, self->now()));
  if (!ended) {
    self->cancel_run();
  }
  co_return quiet ? ended : quiet;
}

rt::Task<Result<void>> ClientLink::wait_connected(std::shared_ptr<ClientLink> self) {
  while (!self->is_connected()) {
    if (self->closing_) {
      co_return kClientClosed;
    }
    const auto waited = co_await self->changed_.wait();
    if (!waited) {
      co_return waited;
    }
  }
  co_return Result<void>();
}

rt::Task<Result<void>> ClientLink::connected(std::shared_ptr<ClientLink> self, Instant deadline) {
  if (const Error wrong = self->used_elsewhere(); wrong != Errc::ok) {
    co_return wrong;
  }
  const Duration left = time_left(deadline, self->now());
  Result<void> waited = co_await rt::with_timeout(wait_connected(self), left);
  if (!waited && waited.error() == Errc::timed_out) {
    waited = self->trouble_ == Errc::ok ? kNoAttempt : self->trouble_;
  }
  co_return waited;
}

}  // namespace weft::serve
