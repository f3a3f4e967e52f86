// SPDX-License-Identifier: MIT
#include "weft/nats/client/client_state.h"

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include "weft/nats/protocol/subject.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/client/client_link.h"
#include "weft/serve/session/shard.h"
#include "weft/sync/kept_text.h"

namespace weft::nats {

namespace {

constexpr Error kClosed(Errc::closed, "the client is closed");
constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for a connection or a message");
constexpr Error kFirstAttempt(Errc::unreachable, "not connected yet: the first attempt has not ended");
constexpr Error kEnding(Errc::unreachable, "not connected: the connection is ending");
constexpr Error kSilent(Errc::timed_out, "the server sent nothing, and answered no PING");
constexpr Error kLateLogin(Errc::timed_out, "the server did not answer the login within connect_timeout");
constexpr Error kLeft(Errc::connection_closed, "the client left a server that announced its end");
constexpr Error kFull(Errc::resource_exhausted, "pending_max bytes wait for the server");
constexpr std::size_t kMessageMin = std::size_t{64} * 1024;  // CONNECT has to fit
constexpr std::uint32_t kSlotsAtOnce = 64;                   // of the walk through the subscriptions
constexpr std::size_t kLineMax = Codec::kHeaderMax + 2;      // bytes of a frame beside its body

serve::SessionLimits limits_of(const ClientOptions& options) {
  serve::SessionLimits limits;
  limits.write_budget = std::max<std::size_t>(options.pending_max, 1);
  limits.slow_consumer = serve::SlowConsumer::drop_newest;
  limits.handshake_timeout = limits.idle_timeout = Duration(-1);  // the client has its own
  limits.input_max = std::max(options.message_max, kMessageMin) + kInfoMax;
  return limits;
}

}  // namespace

ClientState::ClientState(std::shared_ptr<serve::ClientHost> host, ClientOptions options, ServerList servers,
                         Inbox inbox)
    : host_(std::move(host)),
      options_(std::move(options)),
      inbox_(std::move(inbox)),
      codec_(std::max(options_.message_max, kMessageMin)),
      ops_(serve::ServiceCalls<Codec, ClientState>::ops()),
      slot_{&ops_, this, &codec_, limits_of(options_), false},
      servers_(std::move(servers)),
      in_flight_(serve::Matching::by_number, options_.requests_max, request_counts_),
      scope_(host_->core().loop()) {}

Result<void> ClientState::start(const std::shared_ptr<ClientState>& self) {
  const SlotId inbox = WEFT_TRY(self->subscriptions_.all.emplace());
  self->subscriptions_.all.find(inbox)->filter = self->inbox_.filter();
  self->subscriptions_.inbox = inbox;
  return self->scope_.spawn(run(self));
}

Error ClientState::used_elsewhere() const noexcept {
  return rt::Core::current() == core_ ? Error() : rt::used_elsewhere("NATS client", core_);
}

// --- connecting ---

rt::Task<void> ClientState::run(std::shared_ptr<ClientState> self) {
  self->life_.begun = true;
  (void)co_await rt::yield();  // the caller of open() gets its client before the first event
  const ClientOptions& options = self->options_;
  net::Backoff backoff(options.reconnect_first / 2, options.reconnect_max, net::Backoff::seed_for(self.get()));
  while (!self->life_.closing && !self->scope_.cancelled()) {
    const std::uint64_t before = self->counts_.connected.value();
    self->trouble_.login_refused = false;
    try {
      const ServerUrl url = self->servers_.next();
      co_await attempt(self.get(), url);
    } catch (...) {
      self->note_trouble(kNoMemory);
    }
    if (self->counts_.connected.value() != before) {
      backoff.reset();
    }
    const bool others = self->servers_.size() > 1 && !self->servers_.turn_is_over();
    const bool goes_on = others && !self->trouble_.login_refused;
    if (!self->life_.closing && !goes_on) {
      const Duration wait = backoff.next();
      const Result<void> slept =
          co_await rt::sleep(self->trouble_.login_refused ? std::max(wait, options.login_wait) : wait);
      if (!slept) {
        break;
      }
    }
  }
  self->life_.closing = self->life_.ended = true;
  self->counts_.dropped_closed.add(self->kept_.frames.size());
  self->kept_.frames.clear();
  self->kept_.bytes = 0;
  self->changed_.pulse();
  self->ponged_.pulse();
}

// One connection, from the first packet to its end.
rt::Task<void> ClientState::attempt(ClientState* self, const ServerUrl& url) {
  self->counts_.attempts.add();
  self->server_.text = url.text();
  self->server_.url = url;
  auto entered = co_await enter(&self->host_->shard(), &self->options_, &url);
  const bool cancelled = co_await rt::is_cancelled();
  if (cancelled || self->life_.closing) {
    co_return;
  }
  const std::uint64_t before = self->counts_.connected.value();
  Result<void> opened = entered.error();
  if (entered) {
    opened = self->open(std::move(*entered), url);
  }
  if (!opened) {
    self->note_trouble(opened.error());
    self->report(ClientEvent::Kind::unconnected, self->trouble_.reason);
    co_return;
  }
  self->arm_timer(self->options_.connect_timeout);
  co_await serve::SessionEnd(self->session_, self->connection_.end_wait, kClosed);
  const bool was_ready = self->counts_.connected.value() != before;
  if (was_ready) {
    self->counts_.lost.add();
  }
  self->report(was_ready ? ClientEvent::Kind::lost : ClientEvent::Kind::unconnected, self->trouble_.end);
}

Result<void> ClientState::open(Entered entered, const ServerUrl& url) {
  server_.login = WEFT_TRY(make_login(options_, url, entered.info, entered.tls));
  server_.info = std::move(entered.info);
  servers_.learn(server_.info.connect_urls, url.tls || entered.tls);
  slot_.layered = entered.tls;
  host_->shard().open(slot_, std::move(entered.stream));
  server_.login.forget();
  if (session_ == nullptr) {  // see on_open()
    return trouble_.end == Errc::ok ? Error(Errc::resource_exhausted, "no room for one more connection") : trouble_.end;
  }
  return {};
}

void ClientState::on_open(Session& session) noexcept {
  session_ = &session;
  connection_ = {.number = connection_.number + 1, .restoring = true};
  trouble_.end = Error();
  try {
    const Result<void> sent = session.send({.op = Op::connect}, as_bytes(server_.login.text()));
    if (!sent) {
      return session.abort(serve::CloseReason::service, sent.error());
    }
    pump(session);
  } catch (...) {
    session.abort(serve::CloseReason::service, kNoMemory);
  }
}

// Writes the due operations, as far as there is room: on_writable() continues. The PING after all subscriptions makes
// the client ready.
void ClientState::pump(Session& session) {
  if (connection_.pong_due) {
    connection_.pong_due = !session.send({.op = Op::pong}, {});
  }
  while (!connection_.unsubscribe_due.empty() &&
         session.send({.op = Op::unsubscribe, .sid = connection_.unsubscribe_due.back()}, {})) {
    connection_.unsubscribe_due.pop_back();
  }
  if (connection_.restoring && !send_subscriptions(session)) {
    return;
  }
  if (connection_.pings == 0) {
    (void)send_ping(session);
  }
  if (!connection_.ready) {
    return;
  }
  while (!kept_.frames.empty() && session.has_room() && session.send_bytes(as_bytes(kept_.frames.front()))) {
    counts_.sent.add();
    kept_.bytes -= kept_.frames.front().size();
    kept_.frames.pop_front();
  }
  ponged_.pulse();  // a flush() waits for the last of these
}

bool ClientState::send_subscriptions(Session& session) {
  bool room = true;
  std::uint32_t first = 0;
  do {
    first = subscriptions_.all.for_each_in(first, kSlotsAtOnce, [&](SlotId id, Subscription& subscription) {
      room = room && (subscription.connection == connection_.number || subscription.ended ||
                      send_subscription(session, id, subscription));
    });
  } while (room && first != 0);
  if (!room) {
    return false;  // the next walk skips those that were sent
  }
  connection_.restoring = false;
  return true;
}

bool ClientState::send_subscription(Session& session, SlotId id, Subscription& subscription) {
  if (!session.send({.op = Op::subscribe, .subject = subscription.filter, .reply = subscription.group, .sid = id.value},
                    {})) {
    return false;
  }
  subscription.connection = connection_.number;
  return true;
}

void ClientState::become_ready() {
  connection_.ready = true;
  trouble_.reason = Error();
  counts_.connected.add();
  arm_timer(options_.ping_every);
  changed_.pulse();
  report(ClientEvent::Kind::connected, Error());
}

void ClientState::on_writable(Session& session) { pump(session); }

void ClientState::on_close(Session& /*session*/, const Error& why) noexcept {
  session_ = nullptr;
  connection_.ready = false;
  (void)host_->core().loop().timers().cancel(std::exchange(connection_.timer, {}));
  note_trouble(connection_.leaving ? kLeft : trouble_.end == Errc::ok ? why : trouble_.end);
  trouble_.end = trouble_.reason;
  in_flight_.fail_all(trouble_.end.with_fate(Fate::outcome_unknown));
  end_drained_until(std::numeric_limits<std::uint64_t>::max());
  changed_.pulse();
  ponged_.pulse();
  if (serve::SessionEnd* const wait = std::exchange(connection_.end_wait, nullptr)) {
    wait->finish();
  }
}

// --- operations of the server ---

void ClientState::on_frame(Session& session, const Codec::Frame& frame) {
  switch (frame.header.op) {
    case Op::message: return handle_message(frame);
    case Op::ping: connection_.pong_due = !session.send({.op = Op::pong}, {}); return;
    case Op::pong:
      end_drained_until(++connection_.pongs);
      if (!connection_.ready) {
        become_ready();
        if (session_ == &session) {
          pump(session);
        }
      }
      ponged_.pulse();
      return;
    case Op::info: return handle_info(frame);
    case Op::error: return handle_error(session, frame);
    default: return;
  }
}

void ClientState::handle_message(const Codec::Frame& frame) {
  const SlotId id{frame.header.sid};
  Subscription* const subscription = subscriptions_.all.find(id);
  if (subscription == nullptr || subscription->ended || life_.silent) {
    counts_.unclaimed.add();
    return;
  }
  if (id == subscriptions_.inbox) {
    return handle_answer(frame);
  }
  counts_.received.add();
  const Message message{frame.header.subject, frame.header.reply,
                        HeadersView(frame.body.first(frame.header.headers_size)),
                        frame.body.subspan(frame.header.headers_size)};
  struct Called {
    ClientState& state;
    SlotId id;
    Subscription& subscription;
    ~Called() {
      state.subscriptions_.called = SlotId();
      if (subscription.ended) {
        state.subscriptions_.all.erase(id);
      }
    }
  };
  subscriptions_.called = id;
  const Called called{*this, id, *subscription};
  subscription->handler(message);
}

void ClientState::handle_answer(const Codec::Frame& frame) {
  const auto number = inbox_.number_of(frame.header.subject);
  const serve::InFlight::Match match = number ? in_flight_.match(*number) : serve::InFlight::Match();
  if (match.waiter == nullptr) {
    counts_.unclaimed.add();
    return;
  }
  auto& waiter = static_cast<RequestWaiter&>(*match.waiter);
  waiter.headers_size = frame.header.headers_size;
  waiter.answer(frame.body);
}

void ClientState::handle_info(const Codec::Frame& frame) {
  auto info = read_info(as_text(frame.body));
  if (!info) {
    trouble_.end = info.error();
    return session_->abort(serve::CloseReason::service, info.error());
  }
  servers_.learn(info->connect_urls, slot_.layered);
  const bool lame = info->lame_duck && !connection_.leaving;
  server_.info = std::move(*info);
  if (lame) {
    report(ClientEvent::Kind::lame_duck, Error());
    if (servers_.size() > 1 && !life_.closing) {
      connection_.leaving = true;
      if (!scope_.spawn(leave(shared_from_this()))) {
        session_->close();
      }
    }
  }
}

// Ends the connection to a lame duck when no request waits. A message that the server sends meanwhile is lost.
rt::Task<void> ClientState::leave(std::shared_ptr<ClientState> self) {
  const std::uint64_t connection = self->connection_.number;
  (void)co_await rt::with_timeout(wait_quiet(self.get()), self->options_.lame_duck_wait);
  if (self->session_ != nullptr && self->connection_.number == connection) {
    self->session_->close(serve::CloseReason::service, kLeft);
  }
}

void ClientState::handle_error(Session& session, const Codec::Frame& frame) {
  counts_.server_errors.add();
  const ServerError read = read_server_error(as_text(frame.body));
  switch (read.scope) {
    case ServerError::Scope::subscription: end_subscriptions_to(read.subject, read.group, read.error); return;
    case ServerError::Scope::publish:
    case ServerError::Scope::call: report(ClientEvent::Kind::refused, read.error, read.subject); return;
    case ServerError::Scope::login: trouble_.login_refused = true; break;
    case ServerError::Scope::connection: break;
  }
  trouble_.end = read.error;  // the server ends the connection next
  session.abort(serve::CloseReason::service, read.error);
}

void ClientState::end_subscriptions_to(std::string_view filter, std::string_view group, const Error& why) {
  std::vector<std::function<void(const Error&)>> to_call;
  subscriptions_.all.for_each([&](SlotId id, Subscription& subscription) {
    if (id == subscriptions_.inbox && subscription.filter == filter && group.empty()) {
      connection_.inbox_refused = why;
    } else if (subscription.filter == filter && subscription.group == group && !subscription.ended) {
      to_call.push_back(std::move(subscription.on_ended));
      if (id == subscriptions_.called) {
        subscription.ended = true;
      } else {
        subscriptions_.all.erase(id);
      }
    }
  });
  if (connection_.inbox_refused != Errc::ok) {
    in_flight_.fail_all(connection_.inbox_refused.with_fate(Fate::outcome_unknown));
  }
  report(ClientEvent::Kind::unsubscribed, why, filter);
  for (std::function<void(const Error&)>& call : to_call) {
    if (call && !life_.silent) {
      call(why);
    }
  }
}

// --- time ---

void ClientState::arm_timer(Duration wait) noexcept {
  rt::TimerWheel& timers = host_->core().loop().timers();
  (void)timers.cancel(std::exchange(connection_.timer, {}));
  connection_.timer = timers.schedule(deadline_after(now(), wait),
                                      {[](void* self) { static_cast<ClientState*>(self)->handle_timer(); }, this});
  if (!connection_.timer && session_ != nullptr) {
    session_->abort(serve::CloseReason::service, kNoMemory);
  }
}

void ClientState::handle_timer() noexcept {
  connection_.timer = {};
  if (session_ == nullptr || !session_->is_open()) {
    return;
  }
  if (!connection_.ready) {
    trouble_.end = kLateLogin;
    return session_->abort(serve::CloseReason::service, kLateLogin);
  }
  // The bytes of a message that is half received count, too.
  const std::uint64_t bytes = session_->counts().bytes_in;
  connection_.missed = bytes != connection_.heard_bytes ? 0 : connection_.missed + 1;
  connection_.heard_bytes = bytes;
  if (connection_.missed >= options_.pings_missed_max) {
    trouble_.end = kSilent;
    return session_->abort(serve::CloseReason::service, kSilent);
  }
  (void)send_ping(typed());
  arm_timer(options_.ping_every);
}

// --- messages ---

// The text is made for the first call after a loss, not for each.
Error ClientState::refusal() noexcept {
  if (life_.closing) {
    return kClosed;
  }
  if (trouble_.reason == Errc::ok) {
    return session_ != nullptr || counts_.connected.value() != 0 ? kEnding : kFirstAttempt;
  }
  if (trouble_.refusal == Errc::ok) {
    trouble_.refusal = serve::not_connected_for(trouble_.reason);
  }
  return trouble_.refusal;
}

Result<void> ClientState::check(std::string_view subject, Bytes body, const Publishing& how) noexcept {
  if (const Error wrong = used_elsewhere(); wrong != Errc::ok) [[unlikely]] {
    return wrong;
  }
  if (life_.closing) [[unlikely]] {
    return kClosed;
  }
  if (body.size() + how.headers.size() > server_.info.max_payload) [[unlikely]] {
    return Error(Errc::message_too_large, "the message is larger than the server's max_payload");
  }
  if (!how.headers.empty() && connection_.ready && !server_.info.headers) [[unlikely]] {
    return Error(Errc::not_supported, "the server has no headers");
  }
  if (subject.empty() || subject != checked_.text() || (!how.reply.empty() && !is_subject(how.reply))) [[unlikely]] {
    if (!is_subject(subject) || (!how.reply.empty() && !is_subject(how.reply))) {
      return Error(Errc::invalid_argument, "this is not the subject of a message");
    }
    checked_.remember(subject);
  }
  return {};
}

// Headers and body in one piece. A large one is not kept in memory.
Result<Bytes> ClientState::join(Bytes headers, Bytes body) {
  constexpr std::size_t kKept = std::size_t{64} * 1024;
  if (headers.empty()) {
    return body;
  }
  try {
    if (joined_.capacity() > kKept) {
      std::vector<std::uint8_t>().swap(joined_);
    }
    joined_.assign(headers.begin(), headers.end());
    joined_.insert(joined_.end(), body.begin(), body.end());
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
  return Bytes(joined_);
}

Result<void> ClientState::send_message(std::string_view subject, Bytes body, const Publishing& how) {
  const Bytes whole = WEFT_TRY(join(how.headers, body));
  return typed().send({.op = Op::publish, .subject = subject, .reply = how.reply, .headers_size = how.headers.size()},
                      whole);
}

Result<void> ClientState::publish(std::string_view subject, Bytes body, const Publishing& how) {
  WEFT_TRY(check(subject, body, how));
  Result<void> taken;
  if (connection_.ready && kept_.frames.empty() && session_->is_open()) [[likely]] {
    taken = send_message(subject, body, how);
    if (taken) [[likely]] {
      counts_.sent.add();
    }
  } else {
    taken = keep(subject, body, how);
  }
  (taken ? counts_.published : counts_.refused).add();
  return taken;
}

Result<void> ClientState::keep(std::string_view subject, Bytes body, const Publishing& how) {
  const Bytes whole = WEFT_TRY(join(how.headers, body));
  std::array<std::uint8_t, Codec::kHeaderMax> front;
  const std::size_t front_size = WEFT_TRY(codec_.encode_header(
      {.op = Op::publish, .subject = subject, .reply = how.reply, .headers_size = how.headers.size()}, whole,
      std::span(front)));
  const std::size_t size = front_size + whole.size() + codec_.trailer().size();
  if (size > options_.pending_max || (connection_.ready && kept_.bytes + size > options_.pending_max)) {
    return kFull;
  }
  try {
    std::string frame;
    frame.reserve(size);
    frame.append(as_text(Bytes(front).first(front_size))).append(as_text(whole)).append(as_text(codec_.trailer()));
    kept_.frames.push_back(std::move(frame));
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
  kept_.bytes += size;
  while (kept_.bytes > options_.pending_max) {
    kept_.bytes -= kept_.frames.front().size();
    kept_.frames.pop_front();
    counts_.dropped_oldest.add();
  }
  return {};
}

// --- subscriptions ---

Result<SubscriptionId> ClientState::subscribe(std::string_view filter, Client::Handler handler, Subscribing how) {
  if (const Error wrong = used_elsewhere(); wrong != Errc::ok) {
    return wrong;
  }
  if (life_.closing) {
    return kClosed;
  }
  if (!is_subject_filter(filter) || (!how.group.empty() && !is_group(how.group)) || !handler) {
    return Error(Errc::invalid_argument, "a subscription has a subject, perhaps a group, and a function");
  }
  if (subscriptions_.all.size() > options_.subscriptions_max) {  // one is the inbox
    return Error(Errc::resource_exhausted, "the client has subscriptions_max subscriptions");
  }
  SlotId id;
  try {
    Subscription made{std::string(filter), std::string(how.group), std::move(handler), std::move(how.on_ended)};
    id = WEFT_TRY(subscriptions_.all.emplace(std::move(made)));
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
  if (session_ != nullptr && session_->is_open() && !connection_.restoring) {
    connection_.restoring = !send_subscription(typed(), id, *subscriptions_.all.find(id));
  }
  return SubscriptionId{id.value};
}

void ClientState::unsubscribe(SubscriptionId wanted) noexcept {
  const SlotId id{wanted.value};
  Subscription* const subscription = open_subscription(id);
  if (subscription == nullptr || used_elsewhere() != Errc::ok) {
    return;
  }
  if (session_ != nullptr && session_->is_open() && subscription->connection == connection_.number &&
      !typed().send({.op = Op::unsubscribe, .sid = id.value}, {})) {
    try {
      connection_.unsubscribe_due.push_back(id.value);
    } catch (const std::bad_alloc&) {
      session_->abort(serve::CloseReason::service, kNoMemory);
    }
  }
  if (id == subscriptions_.called) {
    subscription->ended = true;
  } else {
    subscriptions_.all.erase(id);
  }
}

// --- the end ---

void ClientState::shut_down() noexcept {
  life_.silent = true;
  cancel_run();
}

// A run() that has not begun, because many tasks were nested at its start, never runs.
void ClientState::cancel_run() noexcept {
  life_.closing = true;
  scope_.cancel();
  if (!life_.begun) {
    life_.ended = true;
    changed_.pulse();
  }
}

void ClientState::report(ClientEvent::Kind kind, const Error& why, std::string_view subject) noexcept {
  try {
    if (options_.on_event && !life_.silent) {
      options_.on_event(ClientEvent{kind, why, server_.text, subject});
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): the event was delivered
  }
}

// "nats://host:4222: the server refuses the credentials"
void ClientState::note_trouble(const Error& why) noexcept {
  const std::string_view text = why.text();
  const auto keep = server_.url.given ? sync::keep_text : sync::keep_peer_text;
  const StaticText kept = keep({server_.text, text.empty() ? "" : ": ", text}, why.static_text());
  trouble_.reason = Error(why.domain(), why.value(), kept, why.os_errno());
  trouble_.refusal = Error();
}

}  // namespace weft::nats
