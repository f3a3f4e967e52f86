// SPDX-License-Identifier: MIT
#include "weft/serve/web/web_service.h"

#include <exception>
#include <optional>
#include <utility>

#include "weft/serve/session/session_task.h"
#include "weft/serve/session/shard.h"
#include "weft/sync/counter_block.h"

namespace weft::serve::web {

namespace {

namespace http = net::http;

constexpr std::size_t kChunkedKept = 64 * 1024;  // bytes of room that stay for the next body in chunks
constexpr Error kNoAnswer(Errc::job_threw, "the handler threw");

Bytes content_of(Bytes body, bool chunked, std::uint8_t* room, std::size_t size) noexcept {
  if (chunked) {
    return {room, http::copy_chunks(body, room)};
  }
  copy_bytes(room, body);
  return {room, size};
}

}  // namespace

WebCounters& SiteState::add_counters() {
  const sync::LockGuard lock(mutex_);
  counters_.push_back(std::make_unique<WebCounters>());
  return *counters_.back();
}

WebCounts SiteState::counts() const {
  WebCounts sum;
  const sync::LockGuard lock(mutex_);
  for (const auto& one : counters_) {
    sync::add_counters(sum, *one);
  }
  return sum;
}

HandlerTimes& SiteState::add_times() {
  const sync::LockGuard lock(mutex_);
  times_.push_back(std::make_unique<HandlerTimes>());
  return *times_.back();
}

void SiteState::read_times(std::string_view name, sync::DurationReadings& into) const {
  const sync::LockGuard lock(mutex_);
  for (const auto& one : times_) {
    one->read_into(kHandlerTimesRow, {"web", std::string(name)}, into);
  }
}

WebService::WebService(std::shared_ptr<SiteState> site, rt::Core& core)
    : site_(std::move(site)), counts_(site_->add_counters()), core_(core) {
  HandlerTimes& times = site_->add_times();
  for (const Router::RouteName& route : site_->router().routes()) {
    times_.push_back(route.websocket ? nullptr
                                     : &times.series({{"handler", std::string(route.pattern)},
                                                      {"method", std::string(route.method)}}));
  }
  for (const auto& route : site_->router().websockets()) {
    websockets_.push_back(route->make({site_->router(), core_, counts_}, route->options));
  }
}

void WebService::on_drain() {
  draining_ = true;
  for (const auto& websocket : websockets_) {
    websocket->drain();
  }
}

void WebService::on_frame(HttpSession& session, const HttpFrame& frame) {
  const HttpRequest& request = frame.header;
  if (request.part == Part::begin) {
    return begin_body(session, request);
  }
  if (request.part == Part::piece) {
    return take_piece(session, frame);
  }
  if (request.refusal != http::HttpRefusal::none) {
    (void)drop_head(session);
    if (refuse_piece(session, request.refusal)) {
      return;
    }
    counter_of(counts_, request.refusal).add();
    return send(session, {}, status_response(http::status_of(request.refusal)));
  }
  if (request.part == Part::head) {
    return take_head(session, request);
  }
  Incoming incoming{request.head, request.text, frame.body, request.content_size, request.chunked, Answer::to(request)};
  if (request.part == Part::body) {
    const std::string text = drop_head(session);
    (void)http::parse_request_head(text, session.codec().limits(), incoming.head);
    incoming.text = text;
    incoming.answer = {request.keep_alive, incoming.head.is_head(), false, request.followed};
    return serve(session, incoming);
  }
  serve(session, incoming);
}

void WebService::on_close(HttpSession& session, const Error& why) {
  (void)drop_head(session);
  if (why == Errc::ok) {
    return;  // the connection is a WebSocket from now on
  }
  for (const auto& websocket : websockets_) {
    websocket->forget(session);
  }
  if (session.codec().answered_late()) {
    (session.codec().in_body() ? counts_.body_late : counts_.head_late).add();
    counts_.status_4xx.add();
  }
}

// A connection without TLS has no route to an https resource (RFC 9110 section 7.4).
Router::Match WebService::find_route(HttpSession& session, const http::RequestHead& head) const {
  if (head.secure_target && !session.slot().layered) {
    return {.status = 421};
  }
  return site_->router().find(head.method, head.path);
}

// A peer that waits before it sends a body gets an answer if there is no handler for it.
void WebService::take_head(HttpSession& session, const HttpRequest& request) {
  Incoming incoming{request.head, request.text, {}, 0, false, Answer::to(request)};
  const Router::Match match = find_route(session, request.head);
  if (match.handler == nullptr) {
    incoming.answer.keep_alive = false;  // the body may come nevertheless
    return answer_unrouted(session, incoming, match);
  }
  if (!session.shard().budget().take(request.text.size())) {
    counts_.no_memory.add();
    return send(session, {}, status_response(503));
  }
  try {
    heads_.emplace(session.id().value, request.text);
  } catch (...) {
    session.shard().budget().give_back(request.text.size());
    throw;
  }
  if (!send_continue(session, counts_)) {
    session.close();
  }
}

// The head of the session that waits for its body; empty: there is none.
std::string WebService::drop_head(HttpSession& session) {
  const auto at = heads_.find(session.id().value);
  if (at == heads_.end()) {
    return {};
  }
  std::string text = std::move(at->second);
  heads_.erase(at);
  session.shard().budget().give_back(text.size());
  return text;
}

void WebService::serve(HttpSession& session, const Incoming& incoming) {
  if (incoming.head.keep_alive && !incoming.answer.keep_alive) {
    counts_.worn.add();
  }
  const Router::Match match = find_route(session, incoming.head);
  if (match.handler == nullptr) {
    return answer_unrouted(session, incoming, match);
  }
  if (match.handler->websocket != nullptr) {
    return upgrade(session, incoming, match);
  }
  if (match.handler->start || match.handler->receive) {
    return start(session, incoming, match);
  }
  Result<Response> outcome = kNoAnswer;
  try {
    const HandlerTimer timer(*times_[match.route]);
    Bytes body = incoming.body;
    if (incoming.chunked) {
      chunked_body_.resize(incoming.content_size);
      body = content_of(body, true, reinterpret_cast<std::uint8_t*>(chunked_body_.data()), incoming.content_size);
    }
    outcome = match.handler->call(Request(incoming.head, body, match.params, &session));
  } catch (...) {
    return fail(session, incoming.answer);
  }
  if (chunked_body_.capacity() > kChunkedKept) {
    chunked_body_ = std::string();  // `{}` would keep its memory
  }
  finish(session, incoming.answer, outcome);
}

// A request that lives as long as its coroutine: the head and the body are copied after it.
struct WebService::Kept {
  WebService* service;
  HttpSession* session;
  const Handler* handler;
  sync::DurationCounts* times;
  Answer answer;
  std::optional<Request> request{};
  std::unique_ptr<BodyReader> body{};

  void handle_end(const Error& outcome, bool /*cancelled*/) const noexcept {
    if (!(outcome == Errc::ok)) {
      session->abort(CloseReason::service_failed, outcome);
    }
  }
};

// `comes`: the body follows, and the handler takes it as it comes.
void WebService::start(HttpSession& session, const Incoming& incoming, const Router::Match& to, bool comes) {
  using Block = SessionTaskOf<void, Kept>;
  const Handler& handler = *to.handler;
  const std::size_t head_size = incoming.text.size();
  auto block =
      Block::make(Kept{this, &session, &handler, times_[to.route], incoming.answer}, head_size + incoming.content_size);
  Result<void> started = Error(Errc::resource_exhausted, "no memory for the handler");
  if (block != nullptr) {
    std::uint8_t* const room = block->room();
    copy_bytes(room, as_bytes(incoming.text));
    const Bytes body = content_of(incoming.body, incoming.chunked, room + head_size, incoming.content_size);
    http::RequestHead head;
    (void)http::parse_request_head(as_text({room, head_size}), session.codec().limits(), head);
    const Router::Match match = site_->router().find(head.method, head.path);
    Kept& kept = block->kept();
    kept.request.emplace(head, body, match.params, &session);
    if (comes) {
      kept.body = std::make_unique<BodyReader>(session, counts_, readers_, head.expects_continue);
    } else if (handler.receive) {
      kept.body = std::make_unique<BodyReader>(session, counts_, body);
    }
    rt::Task<> task = run(kept);
    started = session.start_handler(Block::with_task(std::move(block), std::move(task)), comes);
  }
  if (!started) {
    counts_.no_memory.add();
    Answer last = incoming.answer;
    last.keep_alive = false;
    send(session, last, status_response(503));
  }
}

rt::Task<> WebService::run(Kept& kept) {
  WebService& self = *kept.service;
  Result<Response> outcome = kNoAnswer;
  std::exception_ptr thrown;
  try {
    const HandlerTimer timer(*kept.times);
    rt::Task<Result<Response>> task =
        kept.body != nullptr ? kept.handler->receive(*kept.request, *kept.body) : kept.handler->start(*kept.request);
    outcome = co_await std::move(task);
  } catch (...) {
    thrown = std::current_exception();
  }
  kept.answer.followed = kept.answer.followed || kept.session->has_input();
  kept.answer.keep_alive = kept.answer.keep_alive && (kept.body == nullptr || kept.body->ended());
  if (!kept.session->is_open()) {
    self.counts_.cancelled.add();
  } else if (kept.body != nullptr && kept.body->late() && (thrown != nullptr || !outcome)) {
    self.counts_.body_late.add();
    self.send(*kept.session, kept.answer, status_response(408));
  } else if (thrown != nullptr) {
    kept.session->note_exception(thrown);
    self.counts_.thrown.add();
    self.send(*kept.session, kept.answer, status_response(500));
  } else if (outcome && outcome->producer()) {
    if (kept.body != nullptr) {
      kept.body->note_answer();
    }
    co_await self.stream(*kept.session, kept.answer, *outcome);
  } else {
    self.finish(*kept.session, kept.answer, outcome);
  }
}

void WebService::answer_unrouted(HttpSession& session, const Incoming& incoming, const Router::Match& match) {
  if (incoming.head.path == "*") {
    return send(session, incoming.answer, Response(204));
  }
  (match.status == 404 ? counts_.no_path : match.status == 421 ? counts_.misdirected : counts_.no_method).add();
  Response response = status_response(match.status);
  if (match.status == 405) {
    response.set("Allow", Router::allow_of(match.methods));
  }
  send(session, incoming.answer, response);
}

void WebService::finish(HttpSession& session, const Answer& answer, const Result<Response>& outcome) {
  if (outcome) {
    return send(session, answer, *outcome);
  }
  counts_.errors.add();
  send(session, answer, status_response(status_of(outcome.error())));
}

void WebService::fail(HttpSession& session, const Answer& answer) {
  session.note_exception(std::current_exception());
  counts_.thrown.add();
  send(session, answer, status_response(500));
}

void WebService::send(HttpSession& session, const Answer& of, const Response& response) {
  response.producer() ? start_stream(session, of, response) : (void)send_at_once(session, of, response);
}

// Sends a response, or the head of one whose body follows. Returns false if the peer got another one, or nothing.
bool WebService::send_at_once(HttpSession& session, const Answer& of, const Response& response) {
  Answer answer = of;
  answer.keep_alive = answer.keep_alive && (!draining_ || answer.followed);
  const std::string_view date = date_.text(core_.loop().now());
  unsigned status = response.status();
  bool as_wanted = true;
  Result<void> sent = send_response(session, answer, response, date);
  if (sent.error() == Errc::invalid_argument || sent.error() == Errc::message_too_large) {
    counts_.unsendable.add();
    as_wanted = false;
    status = 500;
    sent = send_response(session, answer, status_response(status), date);
  }
  if (sent) {
    counter_of_status(counts_, status).add();
  }
  if (response.cause() == Response::Cause::files_busy) {
    counts_.files_busy.add();
  }
  return sent && as_wanted;
}

}  // namespace weft::serve::web
