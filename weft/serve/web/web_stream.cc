// SPDX-License-Identifier: MIT
// Bodies that come or go in pieces.
#include <exception>
#include <utility>

#include "weft/serve/session/session_task.h"
#include "weft/serve/session/shard.h"
#include "weft/serve/web/web_service.h"

namespace weft::serve::web {

namespace {
namespace http = net::http;
}  // namespace

HttpCodec SiteState::codec(const HttpLimits& limits) const noexcept {
  HttpCodec made(limits);
  if (router_.receives()) {
    const auto streams = [](const void* router, const http::RequestHead& head) noexcept {
      try {
        const Router::Match match = static_cast<const Router*>(router)->find(head.method, head.path);
        return match.handler != nullptr && match.handler->receive != nullptr;
      } catch (...) {
        return false;  // no memory: the body is collected
      }
    };
    made.set_streams(streams, &router_);
  }
  return made;
}

// --- requests ---

void WebService::begin_body(HttpSession& session, const HttpRequest& request) {
  Incoming incoming{request.head, request.text, {}, 0, false, Answer::to(request)};
  incoming.answer.followed = false;  // by its own body
  if (incoming.head.keep_alive && !incoming.answer.keep_alive) {
    counts_.worn.add();
  }
  const Router::Match match = find_route(session, request.head);
  if (match.handler == nullptr || !match.handler->receive) {
    incoming.answer.keep_alive = false;
    if (match.status == 421) {
      return answer_unrouted(session, incoming, match);
    }
    counts_.no_path.add();  // the codec is that of another site
    return send(session, incoming.answer, status_response(404));
  }
  start(session, incoming, match, true);
}

void WebService::take_piece(HttpSession& session, const HttpFrame& frame) {
  if (const auto at = readers_.find(session.id().value); at != readers_.end()) {
    at->second->deliver(frame.body, frame.header.last);
  }
}

// Whether the refusal is that of a body whose handler runs. Its answer may be under way: then there is no other one.
bool WebService::refuse_piece(HttpSession& session, http::HttpRefusal refusal) {
  const auto at = readers_.find(session.id().value);
  if (at == readers_.end()) {
    return false;
  }
  counter_of(counts_, refusal).add();
  if (at->second->answered()) {
    session.close(CloseReason::refused_frame, Error(Errc::protocol_error, "the body of a request"));
  } else {
    send(session, {}, status_response(http::status_of(refusal)));
  }
  return true;
}

// --- responses ---

// A response whose body is written after its handler returned.
struct WebService::Stream {
  WebService* service;
  HttpSession* session;
  Answer answer;
  Response response;

  void handle_end(const Error& outcome, bool /*cancelled*/) const noexcept {
    if (!(outcome == Errc::ok)) {
      session->abort(CloseReason::service_failed, outcome);
    }
  }
  static rt::Task<> run(Stream& self) { co_await self.service->stream(*self.session, self.answer, self.response); }
};

void WebService::start_stream(HttpSession& session, const Answer& answer, const Response& response) {
  using Block = SessionTaskOf<void, Stream>;
  auto block = Block::make(Stream{this, &session, answer, response});
  Result<void> started = Error(Errc::resource_exhausted, "no memory for the body of a response");
  if (block != nullptr) {
    rt::Task<> task = Stream::run(block->kept());
    started = session.start_handler(Block::with_task(std::move(block), std::move(task)));
  }
  if (!started) {
    counts_.no_memory.add();
    Answer last = answer;
    last.keep_alive = false;
    send(session, last, status_response(503));
  }
}

rt::Task<> WebService::stream(HttpSession& session, Answer answer, const Response& response) {
  answer.keep_alive = answer.keep_alive && (!draining_ || answer.followed);  // as the head announces
  if (!send_at_once(session, answer, response) || !body_follows(answer, response)) {
    co_return;
  }
  BodyWriter writer(session, framing_of(answer, response), response.length().value_or(0));
  // A peer that has ended its stream after its request may read on (RFC 9112 section 9.6): an answer that has begun
  // goes to its end. A write that fails shows that the peer has left.
  session.keep_reply(true);
  if (writer.framing() == BodyFraming::connection) {
    session.begin_last_body();
  }
  Result<void> outcome = Error(Errc::job_threw, "the body of a response threw");
  try {
    outcome = co_await response.producer()(writer);
  } catch (...) {
    session.note_exception(std::current_exception());
  }
  session.keep_reply(false);
  if (!session.is_open()) {
    counts_.cancelled.add();
    co_return;
  }
  if (outcome) {
    outcome = writer.end();
  }
  if (!outcome) {
    counts_.broken.add();
    session.close(CloseReason::service_failed, outcome.error());
    co_return;
  }
  if (!stays_open(answer, response)) {
    if (writer.framing() == BodyFraming::connection) {
      session.end_last_body();
    }
    session.close();
  }
}

}  // namespace weft::serve::web
