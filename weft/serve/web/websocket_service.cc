// SPDX-License-Identifier: MIT
#include "weft/serve/web/websocket_service.h"

#include <algorithm>
#include <exception>

#include "weft/base/text/utf8.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/session/shard.h"
#include "weft/serve/web/router.h"

namespace weft::serve::web {

namespace {

namespace ws = net::ws;

constexpr net::http::HeadLimits kAnyHead{~std::uint32_t{0}, ~std::uint32_t{0}, ~std::uint32_t{0}};

rt::Task<void> send_pings(WebSocketSession& session, Duration every) {
  for (;;) {
    const Result<void> slept = co_await rt::sleep(every);
    if (!slept) {
      co_return;
    }
    (void)session.send(Opcode::ping, {});  // fails if the session is closed: then it cancels this
  }
}

rt::Task<void> rest_a_turn(WebSocketSession& session) {
  (void)co_await rt::yield();
  session.resume_reading();
}

// Whether the session drops frames that send() took: later messages then cannot refer to them.
bool may_drop(const SessionLimits& limits) noexcept {
  return limits.slow_consumer == SlowConsumer::drop_oldest || limits.slow_consumer == SlowConsumer::conflate;
}

}  // namespace

void WebSocketBase::Content::copy_to(std::uint8_t* to) const noexcept {
  mask ? ws::copy_masked(to, bytes, *mask, 0) : copy_bytes(to, bytes);
}

WebSocketBase::WebSocketBase(const WebSocketSite& site, const WebSocketOptions& options, const SessionOps& ops)
    : site_(site),
      message_timeout_(options.limits.message_timeout),
      ping_every_(options.ping_every),
      codec_(options.limits) {
  slot_.ops = &ops;
  slot_.codec = &codec_;
  slot_.limits = options.session;
  if (options.deflate && ws::deflate_available()) {
    deflate_.emplace(*options.deflate);
  }
}

WebSocketBase::~WebSocketBase() {
  for (const auto& [session, message] : fragments_) {
    (void)site_.core.loop().timers().cancel(message.timer);
  }
}

std::optional<std::string> WebSocketBase::expect(Session& session, std::string_view head, std::string_view protocol,
                                                 std::string_view offers) {
  if (!session.shard().budget().take(head.size())) {
    return std::nullopt;
  }
  try {
    openings_.insert_or_assign(session.id().value, Opening{std::string(head), protocol});
  } catch (...) {
    session.shard().budget().give_back(head.size());
    throw;
  }
  return agree(session, offers);
}

// Agrees on permessage-deflate. Messages refer to earlier ones only if there is memory for that.
std::string WebSocketBase::agree(Session& session, std::string_view offers) {
  if (!deflate_ || offers.empty()) {
    return {};
  }
  ByteBudget::Share& budget = session.shard().budget();
  ws::DeflateWish wish = deflate_->wish(may_drop(slot_.limits));
  auto answer = ws::answer_deflate(offers, wish);
  if (!answer) {
    return {};
  }
  std::size_t bytes = deflate_->bytes_of(answer->terms);
  if (!budget.take(bytes)) {
    wish.server_keeps = wish.client_keeps = false;
    answer = ws::answer_deflate(offers, wish);
    bytes = 0;
  }
  try {
    peers_.try_emplace(session.id().value, *deflate_, answer->terms, bytes);
  } catch (...) {
    budget.give_back(bytes);
    throw;
  }
  return answer->text;
}

// The streams of a client's connection are its own, also where messages refer to none.
bool WebSocketBase::compress(Session& session, const ws::DeflateTerms& terms) {
  if (!deflate_) {
    return false;
  }
  const std::size_t bytes =
      ws::deflater_bytes(terms.server_bits, deflate_->options.memory_level) + ws::inflater_bytes(ws::kWindowBitsMax);
  if (!session.shard().budget().take(bytes)) {
    return false;
  }
  try {
    peers_.try_emplace(session.id().value, *deflate_, terms, bytes);
  } catch (...) {
    session.shard().budget().give_back(bytes);
    throw;
  }
  return true;
}

PeerDeflate* WebSocketBase::deflate_of(Session& session) noexcept {
  const auto at = peers_.find(session.id().value);
  return at == peers_.end() ? nullptr : &at->second;
}

void WebSocketBase::drop_deflate(Session& session) noexcept {
  const auto at = peers_.find(session.id().value);
  if (at != peers_.end()) {
    session.shard().budget().give_back(at->second.counted());
    peers_.erase(at);
  }
}

void WebSocketBase::forget(Session& session) noexcept {
  drop_deflate(session);
  const auto at = openings_.find(session.id().value);
  if (at != openings_.end()) {
    session.shard().budget().give_back(at->second.head.size());
    openings_.erase(at);
  }
}

void WebSocketBase::open(WebSocketSession& session, const std::function<void(const Request&)>& opened) {
  site_.counts.websockets_opened.add();
  const auto at = openings_.find(session.id().value);
  if (at == openings_.end()) {
    return;
  }
  const Opening opening = std::move(at->second);
  openings_.erase(at);
  session.shard().budget().give_back(opening.head.size());
  session.codec().set_protocol(opening.protocol);
  if (PeerDeflate* const peer = deflate_of(session)) {
    session.codec().set_deflate(peer);
    site_.counts.websockets_compressed.add();
  }
  net::http::RequestHead head;
  (void)net::http::parse_request_head(opening.head, kAnyHead, head);
  const Router::Match match = site_.router.find(head.method, head.path);
  opened(Request(head, {}, match.params, &session));
  if (ping_every_ > Duration::zero()) {
    (void)session.spawn(send_pings(session, ping_every_));
  }
}

std::optional<WebSocketBase::Content> WebSocketBase::take(WebSocketSession& session, const WebSocketFrame& frame) {
  const WebSocketHead& head = frame.header;
  if (ws::is_control(head.opcode)) {
    handle_control(session, frame);
    return std::nullopt;
  }
  const bool whole = head.last && head.opcode != Opcode::continuation;
  if (!whole && (!join(session, frame) || !head.last)) {
    return std::nullopt;
  }
  Content content = whole ? Content{head.kind, frame.body, head.mask}
                          : Content{head.kind, fragments_[session.id().value].body, std::nullopt};
  if (head.compressed && !expand(session, content)) {
    return std::nullopt;
  }
  site_.counts.messages.add();
  return content;
}

// Expands a compressed message. Returns false if the session ends, perhaps after its replies.
bool WebSocketBase::expand(WebSocketSession& session, Content& content) {
  WebSocketCodec& codec = session.codec();
  PeerDeflate& peer = *codec.deflate();
  const auto refuse = [&](CloseStatus status, DeflateFault fault, StaticText why) {
    codec.refuse_content(status, fault);
    const Errc code = fault == DeflateFault::large ? Errc::message_too_large : Errc::protocol_error;
    session.refuse(Error(code, why));
    return false;
  };
  switch (peer.expand(content.bytes, content.mask, codec.message_max())) {
    case PeerDeflate::Outcome::ok: break;
    case PeerDeflate::Outcome::too_large:
      return refuse(CloseStatus::size, DeflateFault::large, "a compressed WebSocket message of more than message_max");
    case PeerDeflate::Outcome::malformed:
      return refuse(CloseStatus::text, DeflateFault::malformed, "a compressed WebSocket message that is no deflate");
    case PeerDeflate::Outcome::no_memory:
      session.abort(CloseReason::out_of_memory, Error(Errc::resource_exhausted, "no memory to expand a message"));
      return false;
  }
  content = {content.kind, peer.expanded(), std::nullopt};
  if (content.kind == Opcode::text && !is_utf8(as_text(content.bytes))) {
    return refuse(CloseStatus::text, DeflateFault::none, "a WebSocket text that is not UTF-8");
  }
  if (peer.has_had_its_turn()) {
    session.pause_reading();
    if (!session.spawn(rest_a_turn(session))) {
      session.resume_reading();  // tasks_max coroutines of the program run
    }
  }
  return true;
}

// Adds a fragment to its message. Returns false if the session ends.
bool WebSocketBase::join(WebSocketSession& session, const WebSocketFrame& frame) {
  const auto [at, first] = fragments_.try_emplace(session.id().value, Fragments{this, &session});
  Fragments& message = at->second;
  if ((first && !begin(message)) || !session.shard().budget().take(frame.body.size())) {
    session.abort(CloseReason::out_of_memory, Error(Errc::resource_exhausted, "no memory for a WebSocket message"));
    return false;
  }
  const std::size_t before = message.body.size();
  try {
    message.body.resize(before + frame.body.size());
  } catch (...) {
    session.shard().budget().give_back(frame.body.size());
    throw;
  }
  ws::copy_masked(message.body.data() + before, frame.body, frame.header.mask, 0);
  return true;
}

// Starts the time of a message. Returns false if there is no memory for a timer.
bool WebSocketBase::begin(Fragments& message) noexcept {
  rt::Loop& loop = site_.core.loop();
  const Instant due = deadline_after(loop.now(), message_timeout_);
  if (due == kNever) {
    return true;
  }
  const auto late = [](void* at) {
    auto& late_message = *static_cast<Fragments*>(at);
    late_message.timer = {};
    late_message.service->end_late(*late_message.session);
  };
  message.timer = loop.timers().schedule(due, {late, &message});
  return static_cast<bool>(message.timer);
}

void WebSocketBase::end_late(WebSocketSession& session) noexcept {
  if (session.is_open()) {
    site_.counts.messages_late.add();
    close(session, static_cast<std::uint16_t>(CloseStatus::policy), "the message took too long");
  }
  release(session);
}

void WebSocketBase::release(Session& session) noexcept {
  const auto at = fragments_.find(session.id().value);
  if (at != fragments_.end()) {
    (void)site_.core.loop().timers().cancel(at->second.timer);
    session.shard().budget().give_back(at->second.body.size());
    fragments_.erase(at);
  }
}

Bytes WebSocketBase::clear(const Content& content) {
  if (!content.mask) {
    return content.bytes;
  }
  const std::size_t size = content.bytes.size();
  if (clear_.size() < size || (clear_.size() > kClearKept && size <= kClearKept)) {
    clear_ = std::vector<std::uint8_t>(std::max(size, std::size_t{512}));
  }
  content.copy_to(clear_.data());
  return Bytes(clear_).first(size);
}

void WebSocketBase::handle_control(WebSocketSession& session, const WebSocketFrame& frame) {
  std::uint8_t body[ws::kControlBodyMax];
  ws::copy_masked(body, frame.body, frame.header.mask, 0);
  if (frame.header.opcode == Opcode::ping) {
    site_.counts.pings.add();
    (void)session.send(Opcode::pong, Bytes(body, frame.body.size()));
  } else if (frame.header.opcode == Opcode::close) {
    session.codec().set_close_status(session.codec().peer_status());
    session.close(CloseReason::peer_closed, Error(Errc::connection_closed, "the peer closed the WebSocket"));
  }
}

void WebSocketBase::fail(WebSocketSession& session, const Error& why) noexcept {
  session.codec().set_close_status(static_cast<std::uint16_t>(CloseStatus::failure));
  session.close(CloseReason::service_failed, why);
}

void WebSocketBase::fail_after_throw(WebSocketSession& session) noexcept {
  session.note_exception(std::current_exception());
  fail(session, Error(Errc::job_threw, "the handler threw; the log and on_exception have what()"));
}

void WebSocketBase::end(WebSocketSession& session) noexcept {
  session.codec().set_deflate(nullptr);
  drop_deflate(session);
  if (session.reason() == CloseReason::frame_timeout) {
    site_.counts.messages_late.add();
  }
  if (session.reason() != CloseReason::refused_frame) {
    return;
  }
  switch (session.codec().deflate_fault()) {
    case DeflateFault::none: break;
    case DeflateFault::malformed: return site_.counts.deflate.add();
    case DeflateFault::large: return site_.counts.expanded.add();
  }
  switch (session.codec().refusal()) {
    case CloseStatus::text: site_.counts.text.add(); break;
    case CloseStatus::none:
    case CloseStatus::size: site_.counts.size.add(); break;
    default: site_.counts.protocol.add(); break;
  }
}

}  // namespace weft::serve::web
