// SPDX-License-Identifier: MIT
// Connection, the connection while it lives: everything here runs on the I/O thread.
#include <algorithm>
#include <utility>

#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/sys/call.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {
// The system gives up on a peer that does not answer a connect. Nobody else does it for a proxy that says nothing.
constexpr Duration kProxyPatience = std::chrono::seconds(30);

// "127.0.0.1:5555" -> "127.0.0.1", "[::1]:5555" -> "::1"; of a unix socket, as libzmq has it, "localhost:uid:gid:pid".
std::string host_of(const net::Stream& stream) {
  const std::string address = stream.peer_address();
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || address[0] == '/' || address[0] == '@') {
    const auto peer = sys::peer_credentials(stream.fd());
    return !peer ? "localhost"
                 : "localhost:" + std::to_string(peer->uid) + ':' + std::to_string(peer->gid) + ':' +
                       std::to_string(peer->pid);
  }
  return address[0] == '[' && colon > 2 ? address.substr(1, colon - 2) : address.substr(0, colon);
}

std::uint64_t backoff_seed(const void* where) {
  return reinterpret_cast<std::uintptr_t>(where) ^ static_cast<std::uint64_t>(sys::now().time_since_epoch().count());
}
}  // namespace

Connection::Connection(std::shared_ptr<ConnectionOwner> owner, IoService& io, const net::Endpoint& endpoint,
                       std::optional<net::Socks5Proxy> proxy)
    : owner_(*owner),
      share_(owner->share()),
      keep_owner_(std::move(owner)),
      io_(io),
      endpoint_(endpoint.text()),
      local_end_(owner_.make_local_end()) {
  const Options options = owner_.options_copy();
  connector_ = std::unique_ptr<Connector>(
      new Connector{net::Dialer(endpoint, owner_.stream_options()),
                    net::Backoff(options.reconnect_interval, options.reconnect_interval_max, backoff_seed(this))});
  if (proxy) {
    proxied_ = true;
    connector_->dialer.set_proxy(std::move(*proxy));
  }
  prepare_channels();
}

Connection::Connection(std::shared_ptr<ConnectionOwner> owner, IoService& io, std::unique_ptr<net::Stream> stream,
                       std::string local_endpoint)
    : owner_(*owner),
      share_(owner->share()),
      keep_owner_(std::move(owner)),
      io_(io),
      endpoint_(std::move(local_endpoint)),
      stream_(std::move(stream)),
      local_end_(owner_.make_local_end()) {
  prepare_channels();
}

void Connection::prepare_channels() {
  if (owner_.conflates()) {
    if (share_.traits.type != zmtp::SocketType::sub) {  // whose subscriptions must all arrive
      outgoing_.conflate();
    }
    incoming_.conflate();
  }
  (void)write_baton_.try_take();
  (void)read_baton_.try_take();
}

Connection::~Connection() { drop_assembly(); }

void Connection::schedule(rt::TimerId& timer, Instant deadline, void (*fire)(void*)) {
  rt::TimerWheel& timers = io_.loop().timers();
  (void)timers.cancel(timer);  // false, and harmless, for one that fired: ids are never used again
  timer = {};
  if (deadline != kNever) {
    timer = timers.schedule(deadline, {fire, this});
  }
}

void Connection::apply_marks(const Options& options) noexcept {
  outgoing_.set_mark(options.send_high_water_mark);
  incoming_.set_mark(options.receive_high_water_mark);
}

void Connection::start() {
  if (phase_ == Phase::finished) {
    return;  // closed by an application's thread that was quicker
  }
  if (connector_ == nullptr) {
    begin_handshake(std::move(stream_));
    return;
  }
  connector_->dialer.on_resolved([weak = weak_from_this(), &loop = io_.loop()] {
    loop.post([weak] {
      if (const auto self = weak.lock(); self != nullptr && self->phase_ == Phase::dialling) {
        self->handle_dial(self->connector_->dialer.finish());
      }
    });
  });
  dial();
}

void Connection::dial() {
  phase_ = Phase::dialling;
  dialled_fd_ = -1;
  Duration timeout = owner_.options_copy().connect_timeout;
  if (timeout <= Duration::zero() && proxied_) {
    timeout = kProxyPatience;
  }
  if (timeout > Duration::zero()) {
    schedule<&Connection::handle_connect_time>(connect_timer_, deadline_after(sys::now(), timeout));
  }
  handle_dial(connector_->dialer.begin());
}

void Connection::handle_dial(const Result<net::Progress>& progress) {
  if (!progress) {
    connector_->dialer.cancel();
    owner_.monitor().emit(describe(EventKind::connect_failed, progress.error(), dialled_fd_));
    const int os_errno = progress.error().os_errno();
    retry_later(os_errno == ECONNREFUSED || os_errno == ENOENT ? Cause::refused : Cause::lost);
    return;
  }
  switch (*progress) {
    case net::Progress::connected: begin_handshake(connector_->dialer.take_stream()); return;
    case net::Progress::resolving: return;
    case net::Progress::pending: break;
  }
  dialled_fd_ = connector_->dialer.fd();
  const sys::Interest interest = connector_->dialer.interest();
  auto watch = io_.loop().watch(dialled_fd_, interest, true, this);
  if (!watch) {
    handle_dial(watch.error());
    return;
  }
  watch_ = *watch;
  if (interest == sys::Interest::writable) {  // else it is the proxy's answer that is waited for
    owner_.monitor().emit(describe(EventKind::connect_delayed));
  }
}

void Connection::handle_connect_time() {
  if (phase_ == Phase::dialling) {
    io_.loop().unwatch(std::exchange(watch_, 0));
    handle_dial(Error(Errc::timed_out, "connecting took too long"));
  }
}

void Connection::retry_later(Cause cause) {
  phase_ = Phase::idle;
  other_end_.clear();
  schedule<&Connection::handle_connect_time>(connect_timer_, kNever);
  const Options options = owner_.options_copy();
  gave_up_ = (options.reconnect_interval < Duration::zero() && cause != Cause::misgreeted) ||
             ((cause | (closing_ ? Cause::closing : 0)) & options.reconnect_stop) != 0;
  if (closing_ && (gave_up_ || (outgoing_.empty() && writer_.empty()))) {
    finish();  // what is still queued has nowhere to go any more
    return;
  }
  if (gave_up_) {
    return;
  }
  const Duration delay = cause == Cause::misgreeted ? Duration::zero() : connector_->backoff.next();
  MonitorEvent event = describe(EventKind::connect_retried);
  event.delay = delay;
  owner_.monitor().emit(std::move(event));
  schedule<&Connection::dial>(retry_timer_, sys::now() + delay);
}

void Connection::begin_handshake(std::unique_ptr<net::Stream> stream) {
  schedule<&Connection::handle_connect_time>(connect_timer_, kNever);
  stream_ = std::move(stream);
  other_end_ = owner_.monitor().watched() ? find_other_end() : std::string();
  owner_.monitor().emit(describe(connecting() ? EventKind::connected : EventKind::accepted, Error(), stream_->fd()));
  reader_.reset();
  input_ended_ = false;
  has_partial_ = false;
  raw_ = owner_.raw();
  if (!raw_) {
    local_end_.start(sys::now(), opening_);
  }
  phase_ = Phase::handshake;
  interest_ = sys::Interest::readable | sys::Interest::writable | sys::Interest::peer_closed;
  auto watch = io_.loop().watch(stream_->fd(), interest_, true, this);
  if (!watch) {
    fail_handshake(watch.error());
    return;
  }
  watch_ = *watch;
  if (raw_) {
    enter_traffic();
    return;
  }
  schedule_peer_time();
  int os_errno = 0;
  if (!write_handshake(os_errno)) {
    fail_handshake(Error(Errc::connection_closed, "lost during the handshake", os_errno));
  }
}

bool Connection::write_handshake(int& os_errno) {
  while (!local_end_.pending_output().empty()) {
    const Bytes output = local_end_.pending_output();
    const sys::IoResult result = stream_->write({&output, 1});
    if (result.status == sys::IoResult::Status::would_block) {
      return true;
    }
    if (result.status != sys::IoResult::Status::done) {
      os_errno = result.os_errno;
      return false;
    }
    local_end_.consume_output(result.bytes);
  }
  return true;
}

void Connection::handle_handshake() {
  if (refused_for_now_) {
    await_leaving();
    return;
  }
  bool alive = true;
  int os_errno = 0;
  while (alive && !local_end_.ready() && !local_end_.fault()) {
    reader_.consume_bytes(local_end_.handle_input(reader_.unparsed(), sys::now()));
    alive = write_handshake(os_errno);
    if (alive && local_end_.question() != nullptr) {
      answer_question();
      if (local_end_.question() != nullptr) {
        return;  // reading goes on with the answer
      }
      continue;
    }
    if (local_end_.ready() || local_end_.fault()) {
      break;
    }
    bool drained = false;
    const sys::IoResult result = reader_.fill(*stream_, nullptr, drained);
    if (result.status == sys::IoResult::Status::would_block) {
      reader_.settle();
      return;
    }
    alive = alive && result.status == sys::IoResult::Status::done;
    os_errno = result.os_errno;
  }
  if (local_end_.fault()) {
    (void)write_handshake(os_errno);  // the ERROR command, if the peer still reads
    fail_handshake(Error(local_end_.fault()->code, local_end_.fault()->text), local_end_.fault()->detail);
  } else if (!alive || !write_handshake(os_errno)) {
    fail_handshake(Error(Errc::connection_closed, "closed during the handshake", os_errno));
  } else if (local_end_.pending_output().empty()) {
    enter_traffic();
  }
}

void Connection::answer_question() {
  if (zap_ != nullptr) {
    return;  // asked already
  }
  const Options options = owner_.options_copy();
  const std::string address = host_of(*stream_);
  auto asked = owner_.ask_authenticator(io_.loop(),
                                        {options.zap_domain, address, options.routing_id, local_end_.mechanism_name(),
                                         local_end_.question()->credentials},
                                        [this](const ZapReply& reply) { handle_zap_reply(reply); });
  const auto refuse = [this](const char* why) { fail_handshake(Error(Errc::no_such_endpoint, why)); };
  if (!asked) {
    refuse("the authenticator cannot be asked");
  } else if (*asked == nullptr) {
    // Nobody to ask: CURVE has proved that the client knows our key, PLAIN has proved nothing. libzmq has it so, too.
    const bool unproven =
        local_end_.mechanism_name() == "PLAIN" || (options.zap_enforce_domain && !options.zap_domain.empty());
    unproven ? refuse("there is no authenticator") : local_end_.answer(zmtp::kAdmitted, sys::now());
  } else {
    zap_ = std::move(*asked);
  }
}

void Connection::handle_zap_reply(const ZapReply& reply) {
  const auto keep = shared_from_this();
  const auto request = std::move(zap_);  // until the end of its own callback
  if (reply.breach != ZapBreach::none) {
    fail_handshake(Error(Errc::handshake_refused, "the authenticator's reply is no ZAP"),
                   static_cast<std::uint32_t>(reply.breach));
    return;
  }
  if (reply.status == zmtp::kRefusedForNow) {
    refused_for_now_ = true;
    MonitorEvent event = describe(EventKind::handshake_failed, Error(Errc::handshake_refused, "refused for now"));
    event.detail = zmtp::kRefusedForNow;
    owner_.monitor().emit(std::move(event));
    await_leaving();
    return;
  }
  authenticated_ = reply.metadata;
  authenticated_.emplace_back("User-Id", reply.user_id);
  local_end_.answer(reply.status, sys::now());
  handle_handshake();
}

// The client is not told and may come again: when it gives up, or when the time for the handshake is over.
void Connection::await_leaving() {
  for (;;) {
    reader_.reset();
    bool drained = false;
    const sys::IoResult result = reader_.fill(*stream_, nullptr, drained);
    if (result.status == sys::IoResult::Status::would_block) {
      reader_.reset();
      return;
    }
    if (result.status != sys::IoResult::Status::done) {
      fail_handshake(Error(Errc::connection_closed, "closed during the handshake", result.os_errno));
      return;
    }
  }
}

// Where a ZMTP 3 peer was, one is greeted as such when we come again. A peer not known yet is not: an old one would
// lose what it queued for a connection that has to be made twice, and a PAIR of libzmq 2.x would abort.
void Connection::choose_opening() noexcept {
  const bool modern = connecting() && local_end_.version() == zmtp::Version::v3;
  opening_ = modern ? zmtp::Opening::whole : zmtp::Opening::signature;
}

void Connection::fail_handshake(Error reason, std::uint32_t detail) {
  const int fd = stream_ != nullptr ? stream_->fd() : -1;
  const bool again = connecting() && local_end_.greeted_too_much();
  const bool told = again || std::exchange(refused_for_now_, false);
  MonitorEvent event = describe(told ? EventKind::disconnected : EventKind::handshake_failed, reason, fd);
  event.detail = detail;
  owner_.monitor().emit(std::move(event));
  drop_stream();
  choose_opening();
  if (again) {
    retry_later(Cause::misgreeted);
  } else if (ends_for_good(reason)) {
    finish();
  } else {
    retry_later(Cause::handshake_failed);
  }
}

// Next time would be no different: the peer has refused us, or one of us broke the protocol.
bool Connection::ends_for_good(const Error& reason) const {
  const Errc code = reason.code();
  const bool fault = code == Errc::protocol_error || code == Errc::incompatible_peer ||
                     code == Errc::handshake_refused || code == Errc::message_too_large;
  return !connecting() || (fault && !owner_.options_copy().reconnect_after_fault);
}

// What a received message can be asked about its sender.
void Connection::remember_peer() {
  // The first of a name counts: what we and the authenticator know stands before what the peer says of itself.
  zmtp::Metadata properties = authenticated_;
  properties.emplace_back("Peer-Address", host_of(*stream_));
  properties.emplace_back("__fd", std::to_string(stream_->fd()));  // libzmq's name
  for (const auto& property : local_end_.peer_metadata()) {
    if (property.first != "User-Id") {  // the authenticator's to say, even where there is none
      properties.push_back(property);
    }
  }
  peer_id_ = msg::remember_peer(std::move(properties));
}

// An unnamed unix socket has no address.
std::string Connection::find_other_end() const {
  std::string address;
  if (!connecting()) {
    address = stream_->peer_address();
  } else if (const auto local = sys::local_address(stream_->fd()); local) {
    address = local->to_text();
  }
  return address.empty() ? address : endpoint_.substr(0, endpoint_.find("://") + 3) + address;
}

MonitorEvent Connection::describe(EventKind kind, Error reason, int fd) const {
  MonitorEvent event{kind, endpoint_, reason, {}, fd};
  event.other = other_end_;
  event.outgoing = connecting();
  return event;
}

void Connection::enter_traffic() {
  zmtp::Mechanism* const cipher = raw_ ? nullptr : local_end_.cipher();
  peer_minor_ = local_end_.minor_version();
  last_input_.store(sys::now().time_since_epoch().count(), std::memory_order_relaxed);
  const zmtp::Framing framing = raw_ ? zmtp::Framing::none : local_end_.framing();
  writer_.open(stream_.get(), cipher, framing);
  reader_.set_cipher(cipher, framing);
  choose_opening();
  room_wanted_ = false;
  plain_input_ = share_.traits.receives && !share_.traits.takes_subscriptions && !share_.traits.groups &&
                 local_end_.admits(zmtp::kShortBodyMax);
  phase_ = Phase::traffic;
  remember_peer();
  if (!closing_ && !owner_.connection_ready(*this, local_end_.peer_identity())) {
    fail_handshake(raw_ ? Error(Errc::resource_exhausted, "too many connections have ended and were not received from")
                        : Error(Errc::address_in_use, "another peer has this routing id"));
    return;
  }
  if (!closing_ && share_.traits.takes_subscriptions && !local_end_.subscribes_by_itself()) {
    (void)owner_.handle_subscription(*this, true, {});
  }
  if (connector_ != nullptr) {
    connector_->backoff.reset();
  }
  if (!raw_) {
    owner_.monitor().emit(describe(EventKind::handshake_succeeded, Error(), stream_->fd()));
    schedule_peer_time();
  }
  app_reads_ = false;
  run_writer();
  holds_write_ = false;
  give_write_baton();
  set_interest(sys::Interest::readable | sys::Interest::peer_closed);
  const bool noticed = raw_ && !closing_ && push_notice();
  // What came behind the peer's READY, and whatever the kernel holds already.
  const bool queued = run_reader_once() || noticed;
  holds_read_ = false;
  if (read_baton_.release()) {
    run_reader();
  }
  if (queued) {
    share_.signal_input(*pipe_);
  }
  share_.output_parker.wake_with_fence();
  if (closing_) {
    linger();
  }
}

void Connection::handle_event(const sys::PollEvent& event) {
  const auto keep = shared_from_this();
  switch (phase_) {
    case Phase::dialling:
      io_.loop().unwatch(std::exchange(watch_, 0));  // finish() may close the descriptor
      handle_dial(connector_->dialer.finish());
      return;
    case Phase::handshake: handle_handshake(); return;
    case Phase::traffic: handle_traffic(event); return;
    case Phase::draining: drain(); return;
    case Phase::idle:
    case Phase::finished: return;
  }
}

void Connection::handle_traffic(const sys::PollEvent& event) {
  if (event.writable && write_baton_.try_take_or_nudge()) {
    run_writer();
    room_wanted_ = writer_.blocked() && !writer_.failed();
    const bool still = room_wanted_;
    give_write_baton();
    if (!still) {
      set_interest(sys::Interest::readable | sys::Interest::peer_closed);
    }
  }
  if (event.readable && !event.failed && !event.peer_closed && app_has_read()) {
    // The socket's own thread waits for this very descriptor: reading here would only race it.
    if (!app_reads_) {
      app_reads_ = true;
      app_idle_turns_ = 0;
      set_interest(interest_);
      io_.watch_app(*this);
    }
    return;
  }
  if (event.readable || event.failed || event.peer_closed) {
    run_reader();
  }
}

// `interest` is what the connection wants; while the application reads, readability is not the I/O thread's business.
void Connection::set_interest(sys::Interest interest) {
  interest_ = interest;
  sys::Interest asked = interest;
  if (app_reads_) {
    asked = has(interest, sys::Interest::writable) ? sys::Interest::writable | sys::Interest::peer_closed
                                                   : sys::Interest::peer_closed;
  }
  if (watch_ != 0) {
    (void)io_.loop().rewatch(watch_, asked, true);  // fails only for a dead descriptor, which the next read finds
  }
}

// Whether an application thread waits for input, or read by itself since this was last asked.
bool Connection::app_has_read() noexcept {
  const std::uint64_t reads = share_.app_read_count();
  const bool read = reads != std::exchange(app_reads_seen_, reads);
  return (read || share_.app_waits()) && poll_token != 0;
}

bool Connection::watch_turn() noexcept {
  if (phase_ != Phase::traffic || !app_reads_) {
    app_reads_ = false;
    return false;
  }
  constexpr std::uint32_t kIdleTurns = 10;
  const bool read = share_.app_read_count() != app_reads_seen_;
  if (app_has_read() && (read || ++app_idle_turns_ < kIdleTurns)) {
    app_idle_turns_ = read ? 0 : app_idle_turns_;
    return true;
  }
  app_reads_ = false;
  set_interest(interest_);
  return false;
}

void Connection::resume_reading() noexcept {
  if (phase_ == Phase::traffic) {
    run_reader();
  }
}

// --- time ---

void Connection::schedule_peer_time() {
  schedule<&Connection::handle_peer_time>(
      peer_timer_, local_end_.next_deadline(Instant(Duration(last_input_.load(std::memory_order_relaxed)))));
}

void Connection::handle_peer_time() {
  if (phase_ != Phase::handshake && phase_ != Phase::traffic) {
    return;
  }
  if (!holds_read_) {
    run_reader();  // what the kernel holds counts as life
    if (!read_baton_.try_take()) {
      schedule<&Connection::handle_peer_time>(peer_timer_, sys::now() + kBatonRetry);
      return;
    }
  }
  const Instant now = sys::now();
  // While we do not read, silence is our own.
  const Instant last = stalled_hint_.load(std::memory_order_relaxed)
                           ? now
                           : Instant(Duration(last_input_.load(std::memory_order_relaxed)));
  const zmtp::TimeAction action = local_end_.handle_time(now, last);
  if (action == zmtp::TimeAction::expired) {
    if (phase_ == Phase::handshake) {
      fail_handshake(Error(Errc::timed_out, "handshake took too long"));
      return;
    }
    end_input_with_fault();
  }
  const Instant next = local_end_.next_deadline(last);
  if (!holds_read_) {
    return_read_baton();
  }
  if (action == zmtp::TimeAction::send_ping) {
    std::uint8_t ping[zmtp::kPingFrameMax];
    send_control(Bytes(ping, zmtp::write_ping(ping, local_end_.ping_ttl_deciseconds(), {})));
  }
  if (action != zmtp::TimeAction::expired) {
    schedule<&Connection::handle_peer_time>(peer_timer_, next);
  }
}

}  // namespace weft::msg
