// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/incoming.h"

#include "weft/serve/rpc/call_table.h"
#include "weft/serve/session/shard.h"

namespace weft::serve::rpc {

void Incoming::answer(Bytes response) {
  if (may_answer()) {
    send(Status::ok, 0, response, counts_.answered);
  }
}

void Incoming::refuse_with(const Error& error) {
  if (!may_answer()) {
    return;
  }
  if (late_) {
    return send_text(Status::timed_out, 0, "the deadline passed, and the handler was cancelled", counts_.timed_out);
  }
  Refusal refusal = refusal_of(error);
  if (!text().empty() && error.domain() == kServiceDomain) {
    refusal.text = text();
  }
  sync::Counter* counter = &counts_.refused;
  switch (refusal.status) {
    case Status::unknown_method: counter = &counts_.unknown; break;
    case Status::invalid_request: counter = &counts_.invalid; break;
    case Status::failed: counter = &counts_.failed; break;
    case Status::timed_out: counter = &counts_.timed_out; break;
    case Status::busy: counter = &counts_.busy; break;
    case Status::too_large: counter = &counts_.too_large; break;
    default: break;
  }
  send_text(refusal.status, refusal.code, refusal.text, *counter);
}

void Incoming::refuse_body(const Error& error) {
  if (may_answer()) {
    send_text(Status::invalid_request, 0, error.text(), counts_.invalid);
  }
}

void Incoming::note_unencodable(const Error& error) {
  if (may_answer()) {
    send_text(Status::too_large, 0, error.text(), counts_.too_large);
  }
}

void Incoming::note_thrown(const std::exception_ptr& thrown) {
  session().note_exception(thrown);
  if (may_answer()) {
    send_text(Status::failed, 0, "the handler threw", counts_.failed);
  }
}

void Incoming::note_busy(std::string_view text) {
  if (may_answer()) {
    send_text(Status::busy, 0, text, counts_.busy);
  }
}

void Incoming::end_unanswered() noexcept {
  leave();
  if (!ended_) {
    ended_ = true;
    (withdrawn_ ? counts_.cancelled : counts_.lost).add();
  }
}

// Ends the call. Returns whether its caller waits for an answer; otherwise the outcome is counted.
bool Incoming::may_answer() noexcept {
  if (ended_) {
    return false;
  }
  leave();
  if (withdrawn_ || !session().is_open()) {
    end_unanswered();
    return false;
  }
  ended_ = true;
  return true;
}

void Incoming::send_text(Status status, std::uint16_t code, std::string_view text, sync::Counter& counter) {
  send(status, code, as_bytes(text.substr(0, kTextMax)), counter);
}

void Incoming::send(Status status, std::uint16_t code, Bytes body, sync::Counter& counter) {
  Header header;
  header.type = FrameType::answer;
  header.id = id();
  header.status = status;
  header.number = code;
  Result<void> sent = session().send(header, body);
  if (sent) {
    return counter.add();
  }
  if (sent.error() == Errc::message_too_large && status != Status::too_large) {
    constexpr std::string_view kText = "the response exceeds the bound";
    return send(Status::too_large, 0, as_bytes(kText.substr(0, session().codec().body_max())), counts_.too_large);
  }
  (sent.error() == Errc::closed ? counts_.lost : counts_.unsent).add();
}

namespace {

Result<void> send_by_session(void* session, const Header& header, Bytes body) {
  return static_cast<Session*>(session)->send(header, body);
}
// A stream takes half of the write budget, so that answers have room.
rt::AsyncEvent* full_session(void* object) {
  auto& session = *static_cast<Session*>(object);
  return session.queued() >= session.slot().limits.write_budget / 2 ? &session.written() : nullptr;
}

}  // namespace

void Incoming::open_stream(bool receives, bool sends) {
  stream_.emplace(StreamPort{&session(), &send_by_session, &full_session, &session().shard().budget()}, receives,
                  sends);
  stream_->begin(id());
}

void Incoming::end_for_memory() {
  note_busy("no memory for a message");
  scope_.cancel();
}

bool Incoming::enter(CallTable& table, rt::TimerWheel& timers) noexcept {
  if (deadline() != kNever) {
    timers_ = &timers;
    timer_ = timers.schedule(deadline(), {[](void* self) { static_cast<Incoming*>(self)->handle_deadline(); }, this});
    if (!timer_) {
      return false;
    }
  }
  if (!table.add(*this)) {
    leave();
    return false;
  }
  table_ = &table;
  return true;
}

void Incoming::leave() noexcept {
  if (timer_) {
    (void)timers_->cancel(std::exchange(timer_, {}));
  }
  if (table_ != nullptr) {
    std::exchange(table_, nullptr)->remove(*this);
  }
}

void Incoming::cancel() noexcept {
  withdrawn_ = true;
  leave();
  scope_.cancel();
}

void Incoming::handle_deadline() noexcept {
  timer_ = {};
  late_ = true;
  scope_.cancel();
}

}  // namespace weft::serve::rpc
