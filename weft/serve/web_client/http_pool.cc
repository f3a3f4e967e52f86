// SPDX-License-Identifier: MIT
#include "weft/serve/web_client/http_pool.h"

#include <algorithm>
#include <utility>

#include "weft/rt/core/runtime.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/web_client/connect_web.h"
#include "weft/sys/poll.h"

namespace weft::serve::web {

namespace {

constexpr Error kHttpClosed(Errc::closed, "the HTTP client is closed");
constexpr Error kNoConnection(Errc::resource_exhausted, "no room or memory for one more connection");
constexpr Error kConnectLate(Errc::timed_out, "no connection within connect_timeout");
constexpr Error kLineFull(Errc::resource_exhausted, "waiting_max requests wait for a connection of this origin");
constexpr Error kLineLate(Errc::timed_out, "no connection of the origin became free before the deadline");
constexpr Error kIdled(Errc::timed_out, "the connection was idle for idle_timeout");
constexpr Error kStale(Errc::closed, "the connection makes room for a new one");

SessionLimits limits_of(const HttpClientOptions& options) noexcept {
  SessionLimits limits;
  limits.slow_consumer = SlowConsumer::drop_newest;
  limits.handshake_timeout = limits.idle_timeout = limits.frame_timeout = Duration(-1);  // an exchange has its own
  limits.body_timeout = options.body_timeout;
  limits.peer_left = PeerLeft::answer;
  return limits;
}

}  // namespace

// --- connections ---

HttpPool::HttpPool(std::shared_ptr<ClientHost> host, HttpClientOptions options)
    : host_(std::move(host)),
      options_(std::move(options)),
      codec_(options_.limits),
      tls_(options_.tls),
      scope_(host_->core().loop()) {
  static const SessionOps kOps = ServiceCalls<AnswerCodec, HttpPool>::ops();
  plain_ = {&kOps, this, &codec_, limits_of(options_), false};
  layered_ = plain_;
  layered_.layered = true;
}

Error HttpPool::used_elsewhere() const noexcept {
  const rt::Core* const core = &host_->core();
  return rt::Core::current() == core ? Error() : rt::used_elsewhere("HTTP client", core);
}

// The life of a connection.
rt::Task<void> HttpPool::run(std::shared_ptr<HttpPool> self, std::shared_ptr<HttpLink> link) {
  HttpOrigin& origin = link->origin;  // lives as long as its links
  link->begun = true;
  (void)co_await rt::yield();  // the caller gets its link before the first event
  self->counts_->attempts.add();
  Result<std::unique_ptr<net::ByteStream>> stream = kNoConnection;
  try {
    std::shared_ptr<net::TlsClient> tls;
    Result<void> ready;
    if (origin.secure) {
      auto made = tls_of(self->tls_);
      ready = made ? Result<void>() : Result<void>(made.error());
      tls = self->tls_ = made ? *made : nullptr;
    }
    if (ready) {
      auto connecting = connect_web(self->host_->shard(), origin.endpoint, std::move(tls), self->options_.socket,
                                    self->options_.resolver);
      stream = co_await rt::with_timeout(std::move(connecting), self->options_.connect_timeout);
    } else {
      stream = ready.error();
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): the attempt failed for lack of memory
  }
  const bool cancelled = co_await rt::is_cancelled();
  Result<void> opened = kHttpClosed;
  if (!cancelled && stream) {
    opened = self->open(*link, std::move(*stream));
  } else if (!cancelled) {
    opened = stream.error();
    if (opened.error() == Errc::timed_out) {
      opened = kConnectLate;
      self->counts_->late_connect.add();
    }
  }
  if (opened) {
    self->counts_->connected.add();
    self->counts_->connections.add();
    link->connected.pulse();
    if (!link->taken) {
      self->release(link);
    }
    co_await SessionEnd(link->session, link->end_wait, kHttpClosed);
    self->counts_->connections.subtract();
  } else {
    link->why = error_at("", origin.name, opened.error());
    link->connected.pulse();
  }
  self->drop(origin, *link);
}

Result<void> HttpPool::open(HttpLink& link, std::unique_ptr<net::ByteStream> stream) {
  opening_ = &link;
  host_->shard().open(link.origin.secure ? layered_ : plain_, std::move(stream));
  opening_ = nullptr;
  return link.session == nullptr ? kNoConnection : Result<void>();
}

// The connection has ended, or could not be made.
void HttpPool::drop(HttpOrigin& origin, HttpLink& link) noexcept {
  leave_idle(link);
  if (link.why == Errc::ok) {
    link.why = kHttpClosed;
  }
  std::erase_if(origin.links, [&link](const auto& one) { return one.get() == &link; });
  serve_line(origin);
  forget_if_empty(origin);
}

// --- requests to connections ---

HttpOrigin& HttpPool::origin_of(const net::http::Url& url) {
  std::string name = url.origin();
  if (const auto known = origins_.find(name); known != origins_.end()) {
    return *known->second;
  }
  auto made = std::make_unique<HttpOrigin>();
  made->endpoint = endpoint_of(url);
  made->secure = url.secure;
  made->name = name;
  return *origins_.emplace(std::move(name), std::move(made)).first->second;
}

void HttpPool::forget_if_empty(HttpOrigin& origin) noexcept {
  if (origin.links.empty() && origin.line.empty() && origin.waiting == 0) {
    const auto at = origins_.find(origin.name);
    if (at != origins_.end()) {
      origins_.erase(at);
    }
  }
}

std::shared_ptr<HttpLink> HttpPool::make_link(HttpOrigin& origin) {
  auto link = std::make_shared<HttpLink>(*this, origin);
  link->taken = true;
  origin.links.reserve(origin.links.size() + 1);
  origin.idle.reserve(origin.links.size() + 1);  // make_idle() needs no memory
  if (const auto started = scope_.spawn(run(shared_from_this(), link)); !started) {
    return nullptr;
  }
  origin.links.push_back(link);
  return link;
}

// Whether the server has ended an idle connection, or sent bytes that answer nothing: its session has not read that
// yet. Over TLS bytes do not count: they may be a ticket.
bool HttpPool::has_news(const HttpLink& link) noexcept {
  sys::PollFd polled;
  polled.fd = link.session->stream().fd();
  polled.want = link.origin.secure ? sys::Interest::peer_closed : sys::Interest::readable | sys::Interest::peer_closed;
  return sys::poll_fds({&polled, 1}, Duration::zero()).value_or(1) != 0;
}

// A connection for the next request; null: it waits.
std::shared_ptr<HttpLink> HttpPool::pick(HttpOrigin& origin, bool fresh) {
  while (!fresh && !origin.idle.empty()) {
    HttpLink& link = *origin.idle.back();
    leave_idle(link);
    if (link.is_open() && !has_news(link)) {
      link.taken = true;
      const auto at = std::find_if(origin.links.begin(), origin.links.end(),
                                   [&link](const auto& one) { return one.get() == &link; });
      counts_->reused.add();
      return *at;
    }
  }
  if (origin.links.size() < std::max<std::size_t>(options_.connections_max, 1)) {
    return make_link(origin);
  }
  if (!origin.idle.empty()) {  // `fresh`: the place of an old one
    HttpLink& oldest = *origin.idle.front();
    leave_idle(oldest);
    oldest.session->abort(CloseReason::service, kStale);  // its end calls serve_line()
  }
  return nullptr;
}

// Gives connections to those that wait, in their order. Each event that makes room calls it.
void HttpPool::serve_line(HttpOrigin& origin) noexcept {
  while (HttpCaller* const caller = origin.line.first()) {
    if (closing_) {
      return;  // shut_down() wakes them
    }
    try {
      caller->link = pick(origin, caller->fresh);
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory: the next event tries again, or its deadline passes
    }
    if (caller->link == nullptr) {
      return;
    }
    caller->unhook();
    caller->come.set();
  }
}

rt::Task<Result<void>> HttpPool::wait_in_line(HttpPool* self, HttpOrigin* origin, HttpCaller* caller) {
  ++origin->waiting;
  self->counts_->waiting.add();
  const Result<void> come = co_await caller->come.wait();
  self->counts_->waiting.subtract();
  --origin->waiting;
  co_return come;
}

rt::Task<Result<void>> HttpPool::wait_connected(HttpLink* link) {
  while (link->session == nullptr && link->why == Errc::ok) {
    const Result<void> waited = co_await link->connected.wait();
    if (!waited) {
      co_return waited;
    }
  }
  co_return link->session != nullptr ? Result<void>() : Result<void>(link->why);
}

rt::Task<Result<std::unique_ptr<HttpExchange>>> HttpPool::take(std::shared_ptr<HttpPool> self,
                                                               const net::http::Url* url, Instant deadline,
                                                               bool fresh) {
  HttpClientCounts& counts = *self->counts_;
  if (self->closing_) {
    co_return kHttpClosed.with_fate(Fate::not_sent);
  }
  HttpCaller caller(fresh);
  HttpOrigin& origin = self->origin_of(*url);
  origin.line.push_back(caller);
  self->serve_line(origin);
  if (caller.link == nullptr) {
    if (origin.waiting >= self->options_.waiting_max) {
      caller.unhook();
      self->forget_if_empty(origin);
      counts.refused_waiting.add();
      co_return kLineFull.with_fate(Fate::not_sent);
    }
    counts.waited.add();
    rt::Task<Result<void>> waiting = wait_in_line(self.get(), &origin, &caller);
    const Result<void> come = co_await rt::with_timeout(std::move(waiting), time_left(deadline, self->now()));
    caller.unhook();
    if (!come || caller.link == nullptr) {
      caller.link != nullptr ? self->release(caller.link) : self->forget_if_empty(origin);
      if (come.error() == Errc::timed_out) {
        counts.late_total.add();
        co_return kLineLate.with_fate(Fate::not_sent);
      }
      co_return (come ? kHttpClosed : come.error()).with_fate(Fate::not_sent);
    }
  }
  const std::shared_ptr<HttpLink> link = caller.link;
  auto exchange = std::make_unique<HttpExchange>(self, link);  // gives the link back if this fails
  rt::Task<Result<void>> connecting = wait_connected(link.get());
  const Result<void> connected = co_await rt::with_timeout(std::move(connecting), time_left(deadline, self->now()));
  const bool stale = link->served != 0 && !(link->why == Errc::ok);  // begin() fails
  if (!connected && !stale) {
    const bool failed = !(link->why == Errc::ok);
    (failed ? counts.refused_connect : counts.late_total).add();
    co_return (failed ? link->why : connected.error()).with_fate(Fate::not_sent);
  }
  co_return std::move(exchange);
}

// --- idle connections ---

void HttpPool::release(const std::shared_ptr<HttpLink>& link) noexcept {
  link->taken = false;
  if (!link->is_open()) {
    return;  // its attempt goes on, or its end is under way: each calls again, or drop()
  }
  if (closing_) {
    return link->session->close();
  }
  make_idle(*link);
  serve_line(link->origin);
}

void HttpPool::make_idle(HttpLink& link) noexcept {
  link.origin.idle.push_back(&link);
  const Instant due = deadline_after(now(), options_.idle_timeout);
  if (due == kNever) {
    return;
  }
  const auto idled = [](void* at) {
    auto& idle = *static_cast<HttpLink*>(at);
    idle.idle_timer = {};
    idle.pool.counts_->idled.add();
    idle.pool.leave_idle(idle);
    if (idle.is_open()) {
      idle.session->close(CloseReason::idle_timeout, kIdled);
    }
  };
  link.idle_timer = host_->core().loop().timers().schedule(due, {idled, &link});
}

void HttpPool::leave_idle(HttpLink& link) noexcept {
  (void)host_->core().loop().timers().cancel(std::exchange(link.idle_timer, {}));
  std::erase(link.origin.idle, &link);
}

// --- the service of the connections ---

void HttpPool::on_open(AnswerSession& session) noexcept {
  opening_->session = &session;
  session.set_context(opening_);
}

void HttpPool::on_frame(AnswerSession& session, const AnswerFrame& frame) {
  HttpLink& link = *static_cast<HttpLink*>(session.context());
  const AnswerHeader& header = frame.header;
  if (header.fault != AnswerFault::none) {
    return refuse(session, link, header);
  }
  if (header.part == AnswerPart::interim) {
    return counts_->interims.add();
  }
  HttpExchange* const exchange = link.exchange;
  if (exchange == nullptr) {
    return;  // it has failed, and the session ends
  }
  if (header.part == AnswerPart::head) {
    exchange->take_head(session, header);
  }
  if (header.part == AnswerPart::piece || header.last) {
    exchange->take_piece(session, frame.body, header.last);
  }
  if (!header.last || link.exchange != exchange) {
    return;
  }
  ++link.served;
  const bool clean = exchange->finish(session);
  if (clean && header.keep_alive) {
    const auto& links = link.origin.links;
    const auto at = std::find_if(links.begin(), links.end(), [&link](const auto& one) { return one.get() == &link; });
    release(*at);
  } else {
    session.close();
  }
}

void HttpPool::refuse(AnswerSession& session, HttpLink& link, const AnswerHeader& header) {
  Error why(Errc::protocol_error, "the bytes of the server are not an answer of HTTP/1.1");
  switch (header.fault) {
    case AnswerFault::none:
    case AnswerFault::refused:
      counter_of_refused(*counts_, header.refusal).add();
      why = error_of(header.refusal);
      break;
    case AnswerFault::unasked:
      counts_->unasked.add();
      why = Error(Errc::protocol_error, "the server sent bytes that answer no request");
      break;
    case AnswerFault::interims:
    case AnswerFault::switched:
      counts_->interims_many.add();
      why = Error(Errc::protocol_error, "too many interim answers, or one that switches protocols unasked");
      break;
  }
  why = error_at("", link.origin.name, why);
  if (link.exchange != nullptr) {
    link.exchange->fail(why, true, header.refusal == net::http::HttpRefusal::body_large);
  }
  leave_idle(link);
  session.abort(CloseReason::refused_frame, why);
}

// The server has ended its stream, in order and between two frames.
void HttpPool::on_end(AnswerSession& session) {
  HttpLink& link = *static_cast<HttpLink*>(session.context());
  leave_idle(link);
  HttpExchange* const exchange = link.exchange;
  if (exchange != nullptr && session.codec().ends_with_connection()) {
    exchange->take_piece(session, {}, true);
    if (link.exchange == exchange) {
      (void)exchange->finish(session);
    }
    return session.close();
  }
  session.abort(CloseReason::peer_closed, Error(Errc::connection_closed, "the server closed the connection"));
}

void HttpPool::on_close(AnswerSession& session, const Error& why) noexcept {
  HttpLink& link = *static_cast<HttpLink*>(session.context());
  leave_idle(link);
  link.session = nullptr;
  link.why = error_at("", link.origin.name, why);
  if (HttpExchange* const exchange = link.exchange) {
    counts_->cut.add();
    exchange->fail(link.why, session.codec().heard());
  }
  if (SessionEnd* const wait = std::exchange(link.end_wait, nullptr)) {
    wait->finish();
  }
}

// --- the end ---

void HttpPool::note_exchange(int change) noexcept {
  exchanges_ += static_cast<std::size_t>(change);
  if (exchanges_ == 0) {
    quiet_.pulse();
  }
}

void HttpPool::shut_down() noexcept {
  refuse_all();
  scope_.cancel();
  for (const auto& [name, origin] : origins_) {
    for (const auto& link : origin->links) {
      if (!link->begun) {  // run() never runs
        link->why = kHttpClosed;
        link->connected.pulse();
      }
    }
  }
}

// Takes no more requests: those that wait for a connection fail.
void HttpPool::refuse_all() noexcept {
  closing_ = true;
  for (const auto& [name, origin] : origins_) {
    while (HttpCaller* const caller = origin->line.pop_front()) {
      caller->come.set();
    }
  }
}

rt::Task<Result<void>> HttpPool::wait_quiet(HttpPool* self) {
  while (self->exchanges_ != 0) {
    const Result<void> waited = co_await self->quiet_.wait();
    if (!waited) {
      co_return waited;
    }
  }
  co_return Result<void>();
}

rt::Task<Result<void>> HttpPool::close(std::shared_ptr<HttpPool> self, Instant deadline) {
  if (const Error wrong = self->used_elsewhere(); !(wrong == Errc::ok)) {
    co_return wrong;
  }
  self->refuse_all();
  for (const auto& [name, origin] : self->origins_) {
    for (const auto& link : origin->links) {
      if (!link->taken && link->is_open()) {
        link->session->close();
      }
    }
  }
  rt::Task<Result<void>> waiting = wait_quiet(self.get());
  const Result<void> quiet = co_await rt::with_timeout(std::move(waiting), time_left(deadline, self->now()));
  self->shut_down();
  const Result<void> joined = co_await self->scope_.join();
  co_return quiet ? joined : quiet;
}

}  // namespace weft::serve::web
