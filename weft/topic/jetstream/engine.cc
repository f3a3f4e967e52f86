// SPDX-License-Identifier: MIT
#include "weft/topic/jetstream/engine.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_time.h"
#include "weft/zmtp/secure_random.h"

namespace weft::topic {

namespace {

namespace js = nats::jetstream;

constexpr Error kNoJetStream(Errc::not_supported,
                             "no JetStream answers: the servers run without it, or the account may not use it");
constexpr Error kNoJetStreamNow(Errc::timed_out, "JetStream does not answer: the servers run without it now");
constexpr Error kSilentNow(Errc::timed_out, "JetStream does not answer");
constexpr Error kNobodyTakes(Errc::unreachable, "no server takes the message");
constexpr Error kAnswerLost(Errc::outcome_unknown, "the servers did not answer: they may have carried out the request");
constexpr Error kNoLeader(Errc::unreachable, "the servers have no leader now");
constexpr std::size_t kFailureMax = 1024;  // bytes of an answer that is only an error

// The error of an answer that has no value.
js::ApiError failure_in(const nats::Answer& answer) {
  auto failure = answer.body().size() > kFailureMax ? Result<js::Reply<js::Done>>(js::Reply<js::Done>())
                                                    : js::read_done(as_text(answer.body()));
  return failure ? std::move(failure->failure) : js::ApiError();
}

}  // namespace

std::string text_of(const nats::jetstream::ApiError& failure) {
  std::string text(failure.error().text());
  if (!failure.description.empty()) {
    text.append(text.empty() ? "" : ": ").append(failure.description);
  }
  return text;
}

std::string text_of_refusal(std::string_view subject, const Error& why) {
  return std::string(why.text()).append(": ").append(subject);
}

Result<void> Engine::open(std::shared_ptr<serve::ClientHost> host, nats::ClientOptions options) {
  std::array<std::uint8_t, nats::Inbox::kRandomSize> random;
  zmtp::SecureRandom secure;
  secure.fill(random);
  inbox_ = std::make_unique<nats::Inbox>(options.inbox_prefix, random);
  client_ = WEFT_TRY(nats::Client::open(std::move(host), std::move(options)));
  return {};
}

void Engine::close() noexcept {
  router_.close();
  client_.reset();
}

rt::Task<Result<nats::Answer>> Engine::ask(Engine* self, nats::jetstream::ApiRequest request, Lost lost) {
  const Instant begin = self->now();
  const Instant deadline = deadline_after(begin, kAskMost);
  const bool of_api = request.subject.starts_with(js::kApiPrefix);
  const std::string_view subject = request.subject;
  Instant none_until = kNever;
  Instant no_peers_until = kNever;
  for (;;) {
    const auto up = co_await self->client_->connected(deadline);
    if (!up) {
      co_return up.error();
    }
    Question question({&subject, 1});
    rt::Task<Result<nats::Answer>> asked = self->client_->request(
        subject, as_bytes(request.body), std::min(deadline, deadline_after(self->now(), kTryMost)));
    auto answer = co_await answer_to(self, &question, std::move(asked));
    const js::ApiError failure = answer ? failure_in(*answer) : js::ApiError();
    const bool disabled = failure.number == js::kNotEnabledForAccount || failure.number == js::kNotEnabled;
    const bool no_peers = failure.number == js::kNoPeers;
    if (answer && !disabled && !no_peers && !failure.is_temporary()) {
      self->answered_ = true;
      self->handle_answer();
      co_return Result<nats::Answer>(std::in_place, std::move(*answer));
    }
    const Error why = !answer ? answer.error() : disabled || no_peers ? failure.error() : kNoLeader;
    if (why == Errc::cancelled || why == Errc::closed || why == Errc::invalid_argument ||
        why == Errc::message_too_large || why == Errc::not_permitted) {
      co_return why;
    }
    const Instant now = self->now();
    const bool nobody = !answer && why == Errc::unreachable && self->client_->is_connected();
    none_until = nobody || disabled ? std::min(none_until, deadline_after(now, kNoneMost)) : kNever;
    no_peers_until = no_peers ? std::min(no_peers_until, deadline_after(now, kPeersMost)) : kNever;
    if ((now >= none_until && disabled) || now >= no_peers_until) {
      co_return Result<nats::Answer>(std::in_place, std::move(*answer));
    }
    if (now >= none_until && !(of_api && self->answered_)) {
      co_return of_api ? kNoJetStream : kNobodyTakes;
    }
    if (of_api) {
      self->note_trouble(nobody ? kNoJetStreamNow : why == Errc::timed_out ? kSilentNow : why);
    }
    if (!answer && lost == Lost::outcome_unknown && why.fate() != Fate::not_sent) {
      co_return kAnswerLost;
    }
    if (now >= deadline) {
      co_return nobody ? kNoJetStreamNow : why;
    }
    const auto slept = co_await rt::sleep(kPause);
    if (!slept) {
      co_return slept.error();
    }
  }
}

void Engine::handle_answer() noexcept {
  if (std::exchange(troubled_, false)) {
    trouble_->set_jetstream({});
  }
}

void Engine::note_trouble(const Error& why) noexcept {
  troubled_ = true;
  trouble_->set_jetstream(why);
}

void Engine::post(const Result<nats::jetstream::ApiRequest>& request) {
  if (request) {
    nats::Inbox::Subject place;
    (void)client_->publish(request->subject, as_bytes(request->body), {.reply = inbox_->subject(0, place)});
  }
}

std::string Engine::fresh_inbox() {
  const std::string filter = inbox_->filter();  // with a last `*`
  return filter.substr(0, filter.size() - 1) + "c" + std::to_string(++fresh_) + ".";
}

std::string Engine::fresh_name() {
  const std::string filter = inbox_->filter();
  const std::size_t id = filter.rfind('.', filter.size() - 3) + 1;
  return "weft-" + filter.substr(id, filter.rfind('.') - id) + "-" + std::to_string(++fresh_);
}

// --- the way back ---

void Engine::send(const std::string& client, const Op& op) {
  auto message = check_op(op) ? Message::with_size(encoded_size(op)) : Result<Message>(Errc::message_too_large);
  if (!message) {
    return;  // no memory: the handle's deadline ends the request
  }
  encode_op(op, message->mutable_bytes());
  // A refused routing id takes nothing: the handle has gone.
  if (router_.try_send(as_bytes(client), More::yes)) {
    (void)router_.try_send(*std::move(message));
  }
}

void Engine::refuse(const Asked& asked, const Error& error, std::string_view text) {
  const std::string_view reason = text.empty() ? error.text() : text;
  send(asked.client, {.kind = OpKind::answer,
                      .id = asked.op.id,
                      .code = static_cast<std::uint16_t>(error.code()),
                      .body = as_bytes(reason)});
}

void Engine::answer(const Asked& asked, Op answer) {
  if (!asked.op.has(OpFlags::quiet)) {
    answer.kind = OpKind::answer;
    answer.id = asked.op.id;
    send(asked.client, answer);
  }
}

// --- refusals of a server ---

rt::Task<Result<nats::Answer>> Engine::answer_to(Engine* self, Question* question,
                                                 rt::Task<Result<nats::Answer>> request) {
  self->questions_.push_back(*question);
  rt::Task<Result<nats::Answer>> refused = refusal_of(question);
  auto ended = co_await rt::when_any(std::move(request), std::move(refused));
  question->unhook();
  co_return ended.index() == 0 ? std::move(std::get<0>(ended)) : std::move(std::get<1>(ended));
}

rt::Task<Result<nats::Answer>> Engine::refusal_of(Question* question) {
  const auto waited = co_await question->ended.wait();
  co_return waited ? question->refused : waited.error();
}

void Engine::handle_refused(std::string_view subject, const Error& why) noexcept {
  for (Question* each = questions_.first(); each != nullptr; each = questions_.next(*each)) {
    const auto refused = std::find(each->subjects.begin(), each->subjects.end(), subject);
    if (refused != each->subjects.end() && each->refused == Errc::ok) {
      each->refused_subject = *refused;
      each->refused = why;
      each->ended.set();
    }
  }
}

}  // namespace weft::topic
