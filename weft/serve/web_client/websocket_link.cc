// SPDX-License-Identifier: MIT
#include "weft/serve/web_client/websocket_link.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "weft/base/bytes.h"
#include "weft/base/text/base64.h"
#include "weft/net/http/chars.h"
#include "weft/net/ws/handshake.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/session/shard.h"
#include "weft/serve/web/fields.h"
#include "weft/serve/web/router.h"
#include "weft/serve/web_client/connect_web.h"
#include "weft/sync/kept_text.h"

namespace weft::serve::web {

namespace {

namespace http = net::http;
namespace ws = net::ws;

constexpr std::size_t kRequestFieldsMax = 16 * 1024;  // bytes
constexpr std::uint64_t kRefusalMax = 1 << 30;        // bytes of the body of a refusal, which is not read
constexpr std::size_t kMessageCost = 64;              // bytes that a message that waits costs beside its body
constexpr Error kSocketClosed(Errc::closed, "this end closed the WebSocket");
constexpr Error kNoSocket(Errc::resource_exhausted, "no room or memory for a WebSocket");
constexpr Error kUpgradeLate(Errc::timed_out, "no WebSocket within connect_timeout");
constexpr Error kCloseLate(Errc::timed_out, "the server did not close the WebSocket within close_timeout");
constexpr Error kLeft(Errc::connection_closed, "the server closed the connection");
constexpr Error kPeerClosed(Errc::connection_closed, "the server closed the WebSocket");

const Router& no_routes() {
  static const Router none;
  return none;
}

WebSocketOptions service_options(const WebSocketClientOptions& options) {
  WebSocketOptions made;
  made.deflate = options.deflate;
  made.limits = options.limits;
  made.session = options.session;
  made.session.slow_consumer = SlowConsumer::drop_newest;  // send() waits for room
  made.session.tasks_max = std::max<std::size_t>(made.session.tasks_max, 1);
  return made;
}

std::string random_key(WebSocketMasker& masker) {
  std::uint8_t bytes[16];
  for (std::size_t i = 0; i < sizeof bytes; i += sizeof(ws::MaskKey)) {
    const ws::MaskKey part = masker.next();
    std::copy(part.begin(), part.end(), bytes + i);
  }
  return encode_base64(as_text(bytes));
}

// Accompanies the session, so that it has written(), and sends its pings.
rt::Task<void> accompany(WebSocketSession& session, Duration ping_every) {
  for (;;) {
    const Result<void> slept = co_await rt::sleep(ping_every > Duration::zero() ? ping_every : Duration(-1));
    if (!slept) {
      co_return;
    }
    (void)session.send(Opcode::ping, {});  // fails if the session is closed: then it cancels this
  }
}

// The program's fields of the request, as lines.
Result<std::string> lines_of(const WebSocketClientOptions& options) {
  Fields fields(kRequestFieldsMax);
  for (const auto& [name, value] : options.fields) {
    std::string small = name;
    std::transform(small.begin(), small.end(), small.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
    if (small == "host" || small.starts_with("sec-websocket-")) {
      return Error(Errc::invalid_argument, "the client writes this field itself");
    }
    WEFT_TRY(fields.add(name, value));
  }
  for (const std::string& protocol : options.protocols) {
    if (!http::is_token(protocol)) {
      return Error(Errc::invalid_argument, "the name of a sub-protocol is a token");
    }
  }
  return std::string(fields.lines());
}

}  // namespace

Result<std::shared_ptr<WebSocketLink>> WebSocketLink::make(std::shared_ptr<ClientHost> host, std::string_view url,
                                                           WebSocketClientOptions options) {
  http::Url parsed = WEFT_TRY(http::parse_url(url));
  if (!parsed.websocket) {
    return Error(Errc::invalid_argument, "a WebSocket has a URL of ws or wss");
  }
  std::string lines = WEFT_TRY(lines_of(options));
  try {
    return std::make_shared<WebSocketLink>(std::make_shared<WebCounters>(), std::move(host), std::move(parsed),
                                           std::move(options), std::move(lines));
  } catch (const std::exception&) {
    return kNoSocket;
  }
}

WebSocketLink::WebSocketLink(std::shared_ptr<WebCounters> counts, std::shared_ptr<ClientHost> host, http::Url url,
                             WebSocketClientOptions options, std::string request_fields)
    : WebSocketBase({no_routes(), host->core(), *counts}, service_options(options),
                    []() -> const SessionOps& {
                      static const SessionOps kOps = ServiceCalls<WebSocketCodec, WebSocketLink>::ops();
                      return kOps;
                    }()),
      counts_(std::move(counts)),
      host_(std::move(host)),
      url_(std::move(url)),
      options_(std::move(options)),
      fields_(std::move(request_fields)),
      key_(random_key(masker_)),
      scope_(host_->core().loop()) {
  static const SessionOps kAskingOps = ServiceCalls<AnswerCodec, Asking>::ops();
  SessionLimits limits = options_.session;
  limits.handshake_timeout = limits.frame_timeout = Duration(-1);  // connect_timeout bounds it
  asking_slot_ = {&kAskingOps, &asking_, &asking_codec_, limits, url_.secure};
  set_service(this);
}

WebSocketLink::~WebSocketLink() { host_->shard().budget().give_back(inbox_bytes_); }

Error WebSocketLink::used_elsewhere() const noexcept {
  const rt::Core* const core = &host_->core();
  return rt::Core::current() == core ? Error() : rt::used_elsewhere("WebSocket client", core);
}

Error WebSocketLink::named(const Error& why) const noexcept {
  return error_at(url_.secure ? "wss://" : "ws://", url_.host, why);
}

// --- the handshake ---

ws::DeflateWish WebSocketLink::deflate_wish() const noexcept {
  const DeflateOptions& deflate = *options_.deflate;
  return {deflate.context_takeover, deflate.context_takeover, deflate.window_bits};
}

std::string WebSocketLink::request_text() const {
  std::string text = "GET " + url_.target + " HTTP/1.1\r\nHost: " + url_.authority();
  text.append("\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ");
  text.append(key_).append("\r\n");
  for (std::size_t i = 0; i < options_.protocols.size(); ++i) {
    text.append(i == 0 ? "Sec-WebSocket-Protocol: " : ", ").append(options_.protocols[i]);
  }
  text.append(options_.protocols.empty() ? "" : "\r\n");
  if (options_.deflate && ws::deflate_available()) {
    text.append("Sec-WebSocket-Extensions: ").append(ws::offer_deflate(deflate_wish())).append("\r\n");
  }
  return text.append(fields_).append("\r\n");
}

rt::Task<Result<void>> WebSocketLink::ask(WebSocketLink* self) {
  std::shared_ptr<net::TlsClient> tls;
  if (self->url_.secure) {
    auto made = tls_of(self->options_.tls);
    if (!made) {
      co_return made.error();
    }
    tls = std::move(*made);
  }
  auto stream = co_await connect_web(self->host_->shard(), endpoint_of(self->url_), std::move(tls),
                                     self->options_.socket, self->options_.resolver);
  if (!stream) {
    co_return stream.error();
  }
  self->host_->shard().open(self->asking_slot_, std::move(*stream));
  if (self->session_ == nullptr) {
    co_return kNoSocket;
  }
  auto& session = *static_cast<AskingSession*>(self->session_);
  session.codec().begin(false, true, kRefusalMax);
  co_return session.send_bytes(as_bytes(self->request_text()));
}

// The life of the connection.
rt::Task<void> WebSocketLink::run(std::shared_ptr<WebSocketLink> self) {
  Result<void> asked = kNoSocket;
  try {
    asked = co_await ask(self.get());
  } catch (...) {  // NOLINT(bugprone-empty-catch): the attempt failed for lack of memory
  }
  if (!asked && self->session_ != nullptr) {
    self->session_->abort(CloseReason::service, asked.error());
  }
  co_await SessionEnd(self->session_, self->end_wait_, kSocketClosed);
  self->note_end(asked ? kLeft : asked.error());
}

rt::Task<Result<void>> WebSocketLink::wait_open(WebSocketLink* self) {
  while (!self->opened_ && self->why_ == Errc::ok) {
    const Result<void> waited = co_await self->changed_.wait();
    if (!waited) {
      co_return waited;
    }
  }
  co_return self->opened_ ? Result<void>() : Result<void>(self->why_);
}

rt::Task<Result<void>> WebSocketLink::connect(std::shared_ptr<WebSocketLink> self) {
  if (const Error wrong = self->used_elsewhere(); !(wrong == Errc::ok)) {
    co_return wrong;
  }
  if (const auto started = self->scope_.spawn(run(self)); !started) {
    co_return started;
  }
  rt::Task<Result<void>> waiting = wait_open(self.get());
  Result<void> opened = co_await rt::with_timeout(std::move(waiting), self->options_.connect_timeout);
  if (!opened) {
    const bool late = opened.error() == Errc::timed_out && self->why_ == Errc::ok;
    self->shut_down();
    co_return late ? self->named(kUpgradeLate) : opened.error();
  }
  co_return opened;
}

void WebSocketLink::handle_answer(AskingSession& session, const AnswerHeader& header) {
  if (header.fault == AnswerFault::none && header.part != AnswerPart::head) {
    return;  // an interim answer, or the body of a refusal
  }
  if (const auto taken = take_answer(session, header); !taken) {
    session.abort(CloseReason::refused_frame, taken.error());
  }
}

Result<void> WebSocketLink::take_answer(AskingSession& session, const AnswerHeader& header) {
  if (header.fault != AnswerFault::none) {
    return header.fault == AnswerFault::refused
               ? error_of(header.refusal)
               : Error(Errc::protocol_error, "the server's bytes do not answer the request for a WebSocket");
  }
  if (header.head.status != 101) {
    const std::string status = std::to_string(header.head.status);
    return Error(Errc::handshake_refused,
                 sync::keep_peer_text({"the server answered ", status, " to the request for a WebSocket"},
                                      "the server refused the request for a WebSocket"));
  }
  ws::HandshakeFields fields;
  if (!fields.take(header.head.fields)) {
    return Error(Errc::protocol_error, "a field of the WebSocket's handshake is not UTF-8");
  }
  if (const StaticText problem = ws::check_answer(fields, key_); problem != nullptr) {
    return Error(Errc::protocol_error, problem);
  }
  protocol_ = fields.text(ws::HandshakeFields::kProtocols);
  const auto& offered = options_.protocols;
  if (fields.times(ws::HandshakeFields::kProtocols) != 0 &&
      std::find(offered.begin(), offered.end(), protocol_) == offered.end()) {
    return Error(Errc::protocol_error, "the server chose a WebSocket sub-protocol that was not offered");
  }
  WEFT_TRY(take_extensions(session, fields.text(ws::HandshakeFields::kExtensions)));
  return session.switch_to(slot(session.slot().layered));
}

Result<void> WebSocketLink::take_extensions(Session& session, std::string_view extensions) {
  if (extensions.empty()) {
    return {};
  }
  const auto terms =
      options_.deflate && ws::deflate_available() ? ws::accept_deflate(extensions, deflate_wish()) : std::nullopt;
  if (!terms) {
    return Error(Errc::protocol_error, "the server wants a WebSocket extension that was not offered so");
  }
  // In the terms of PeerDeflate this end is the server.
  if (!compress(session, {terms->client_keeps, terms->server_keeps, terms->client_bits, terms->server_bits})) {
    return Error(Errc::resource_exhausted, "no memory for a compressed WebSocket");
  }
  compressed_ = true;
  return {};
}

void WebSocketLink::handle_no_upgrade(Session& session, const Error& why) noexcept {
  if (why == Errc::ok) {
    return;  // the connection is a WebSocket from now on
  }
  forget(session);
  note_end(why);
}

void WebSocketLink::note_end(const Error& why) noexcept {
  session_ = nullptr;
  if (why_ == Errc::ok) {
    why_ = named(why);
  }
  if (SessionEnd* const wait = std::exchange(end_wait_, nullptr)) {
    wait->finish();
  }
  changed_.pulse();
}

// --- the session ---

void WebSocketLink::on_open(WebSocketSession& session) {
  session_ = &session;
  session.codec().set_masker(&masker_);
  session.codec().set_protocol(protocol_);
  session.codec().set_deflate(deflate_of(session));
  opened_ = true;
  changed_.pulse();
  if (const auto started = session.spawn(accompany(session, options_.ping_every)); !started) {
    session.abort(CloseReason::out_of_memory, started.error());
  }
}

void WebSocketLink::on_frame(WebSocketSession& session, const WebSocketFrame& frame) {
  const auto content = take(session, frame);
  if (content) {
    keep(session, *content);
    if (frame.header.opcode == Opcode::continuation) {
      release(session);
    }
  } else if (frame.header.opcode == Opcode::close) {
    peer_closed_ = true;
    peer_status_ = session.codec().peer_status();
    changed_.pulse();
  }
}

void WebSocketLink::keep(WebSocketSession& session, const Content& content) {
  const std::size_t cost = content.bytes.size() + kMessageCost;
  if (inbox_bytes_ >= options_.inbox_max && !inbox_.empty()) {
    return;  // after this end's close frame: the session does not pause any more
  }
  if (!session.shard().budget().take(cost)) {
    return session.abort(CloseReason::out_of_memory, Error(Errc::resource_exhausted, "no memory for a message"));
  }
  try {
    std::string body(content.bytes.size(), '\0');
    content.copy_to(reinterpret_cast<std::uint8_t*>(body.data()));
    inbox_.push_back({content.kind, std::move(body)});
  } catch (...) {
    session.shard().budget().give_back(cost);
    throw;
  }
  inbox_bytes_ += cost;
  session.hold_refusal(!closing_);
  if (inbox_bytes_ >= options_.inbox_max && !paused_ && !closing_) {
    paused_ = true;
    session.pause_reading();
  }
  changed_.pulse();
}

// The program has taken all messages, or waits for no answer.
void WebSocketLink::end_hold() noexcept {
  if (is_open()) {
    session_->hold_refusal(false);
  }
}

void WebSocketLink::on_close(WebSocketSession& session, const Error& why) {
  end(session);
  release(session);
  paused_ = false;
  note_end(why);
}

// --- the program ---

Error WebSocketLink::end_error() const noexcept {
  return peer_closed_ ? named(kPeerClosed) : closing_ || why_ == Errc::ok ? kSocketClosed : why_;
}

rt::Task<Result<void>> WebSocketLink::send(std::shared_ptr<WebSocketLink> self, Opcode kind, Bytes body) {
  if (const Error wrong = self->used_elsewhere(); !(wrong == Errc::ok)) {
    co_return wrong;
  }
  if (kind != Opcode::text && kind != Opcode::binary) {
    co_return Error(Errc::invalid_argument, "a WebSocket message is a text or binary");
  }
  const std::size_t most = self->options_.session.write_budget / 4;
  while (self->is_open() && !self->closing_ && self->session_->queued() > most) {
    if (const Result<void> waited = co_await self->session_->written().wait(); waited.error() == Errc::cancelled) {
      co_return waited;
    }
  }
  if (!self->is_open() || self->closing_) {
    co_return self->end_error();
  }
  const Result<void> sent = self->session().send(kind, body);
  co_return sent.error() == Errc::closed ? Result<void>(self->end_error()) : sent;
}

Result<void> WebSocketLink::ping(Bytes body) {
  if (const Error wrong = used_elsewhere(); !(wrong == Errc::ok)) {
    return wrong;
  }
  return is_open() && !closing_ ? session().send(Opcode::ping, body) : Result<void>(end_error());
}

rt::Task<Result<void>> WebSocketLink::wait_message(WebSocketLink* self) {
  while (self->inbox_.empty() && !self->peer_closed_ && self->session_ != nullptr) {
    const Result<void> waited = co_await self->changed_.wait();
    if (!waited) {
      co_return waited;
    }
  }
  co_return Result<void>();
}

rt::Task<Result<WebSocketMessage>> WebSocketLink::receive(std::shared_ptr<WebSocketLink> self, Instant deadline) {
  if (const Error wrong = self->used_elsewhere(); !(wrong == Errc::ok)) {
    co_return wrong;
  }
  if (self->inbox_.empty()) {
    self->end_hold();
  }
  rt::Task<Result<void>> waiting = wait_message(self.get());
  const Instant now = self->host_->core().loop().now();
  const Result<void> waited = co_await rt::with_timeout(std::move(waiting), time_left(deadline, now));
  if (self->inbox_.empty()) {
    co_return waited ? self->end_error() : waited.error();
  }
  WebSocketMessage message = std::move(self->inbox_.front());
  self->inbox_.pop_front();
  const std::size_t cost = message.body.size() + kMessageCost;
  self->inbox_bytes_ -= cost;
  self->host_->shard().budget().give_back(cost);
  if (self->inbox_bytes_ < self->options_.inbox_max && std::exchange(self->paused_, false)) {
    self->session_->resume_reading();
  }
  co_return std::move(message);
}

Result<void> WebSocketLink::send_close(std::uint16_t status, std::string_view reason) {
  std::uint8_t body[ws::kControlBodyMax];
  const std::size_t size = write_close_body(body, status, reason);
  WebSocketSession& to = session();
  to.codec().set_close_sent(true);
  const Result<void> sent = to.send(Opcode::close, Bytes(body, size));
  to.codec().set_close_sent(sent.has_value());
  return sent;
}

rt::Task<Result<void>> WebSocketLink::wait_ended(WebSocketLink* self) {
  while (self->session_ != nullptr) {
    const Result<void> waited = co_await self->changed_.wait();
    if (!waited) {
      co_return waited;
    }
  }
  co_return Result<void>();
}

rt::Task<Result<void>> WebSocketLink::close(std::shared_ptr<WebSocketLink> self, std::uint16_t status,
                                            std::string reason) {
  if (const Error wrong = self->used_elsewhere(); !(wrong == Errc::ok)) {
    co_return wrong;
  }
  if (!ws::is_close_status(status)) {
    co_return Error(Errc::invalid_argument, "a status that no WebSocket may send");
  }
  if (self->is_open() && !std::exchange(self->closing_, true)) {
    if (const auto sent = self->send_close(status, reason); !sent) {
      self->session_->abort(CloseReason::service, sent.error());
    }
    if (std::exchange(self->paused_, false)) {
      self->session_->resume_reading();
    }
    self->end_hold();
    self->changed_.pulse();
  }
  rt::Task<Result<void>> waiting = wait_ended(self.get());
  const Result<void> ended = co_await rt::with_timeout(std::move(waiting), self->options_.close_timeout);
  if (!ended) {
    self->shut_down();
    co_return ended.error() == Errc::timed_out ? Result<void>(self->named(kCloseLate)) : ended;
  }
  co_return self->peer_closed_ ? Result<void>() : Result<void>(self->why_);
}

void WebSocketLink::shut_down() noexcept { scope_.cancel(); }

}  // namespace weft::serve::web
