// SPDX-License-Identifier: MIT
#include "weft/serve/inspect/session_survey.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "weft/serve/session/shard.h"

namespace weft::serve {

namespace {
auto by(SurveyOrder order) noexcept {
  return [order](const SurveyedSession& a, const SurveyedSession& b) {
    return SessionSurvey::is_before(order, a.glance, b.glance);
  };
}
}  // namespace

bool SessionSurvey::is_before(SurveyOrder order, const SessionGlance& a, const SessionGlance& b) noexcept {
  const auto more = [&a, &b](auto of_a, auto of_b) { return of_a != of_b ? of_a > of_b : a.id.value < b.id.value; };
  switch (order) {
    case SurveyOrder::queued: break;
    case SurveyOrder::received: return more(a.received, b.received);
    case SurveyOrder::age: return more(a.age, b.age);
    case SurveyOrder::silent: return more(a.silent, b.silent);
  }
  return more(a.queued, b.queued);
}

SessionSurvey::Question::Question() noexcept
    : CoreJob([](rt::CoreJob& job) noexcept { static_cast<Question&>(job).look(); }) {}

// Looks at some sessions, and gives itself to the core again if more are left.
void SessionSurvey::Question::look() noexcept {
  try {
    if (!core->ended()) {
      look_on();
    }
  } catch (const std::bad_alloc&) {
    next = 0;  // the answer has the sessions that it has memory for
  }
  if (next != 0 && !core->ended()) {
    return core->give(*this);
  }
  const auto self = std::move(keep);
  pending.store(false, std::memory_order_release);
}

void SessionSurvey::Question::look_on() {
  Shard* const shard = Shard::here(wanted.epoch);
  if (shard == nullptr) {
    next = 0;
    return;
  }
  next = shard->for_each_in(next, kSlotsPerTurn, [this](Session& session) {
    ++looked;
    keep_glance(session.glance());
  });
  if (next == 0) {
    std::sort_heap(found.begin(), found.end(), by(wanted.order));
    add_peers();
  }
}

void SessionSurvey::Question::keep_glance(const SessionGlance& glance) {
  if (wanted.most == 0 || (found.size() == wanted.most && !is_before(wanted.order, glance, found.front().glance))) {
    return;
  }
  if (found.size() == wanted.most) {
    std::pop_heap(found.begin(), found.end(), by(wanted.order));
    found.pop_back();
  }
  found.push_back({glance, {}});
  std::push_heap(found.begin(), found.end(), by(wanted.order));
}

void SessionSurvey::Question::add_peers() {
  Shard* const shard = Shard::here(wanted.epoch);
  for (SurveyedSession& each : found) {
    const Session* const session = shard->find(each.glance.id);
    if (session != nullptr && session->is_open()) {
      each.peer = session->peer_address();
    }
  }
}

SessionSurvey::SessionSurvey(rt::Runtime& runtime)
    : cores_(runtime.size()), questions_(std::make_unique<Question[]>(runtime.size())) {
  for (unsigned core = 0; core < cores_; ++core) {
    questions_[core].core = &runtime.core(core);
  }
}

void SessionSurvey::ask(Instant now, std::uint16_t epoch, SurveyOrder order, std::size_t most) {
  last_ = {last_.number + 1, epoch, order, std::min(most, kMost)};
  for (Question& question : std::span(questions_.get(), cores_)) {
    if (question.pending.load(std::memory_order_acquire)) {
      continue;
    }
    question.asked = now;
    question.wanted = last_;
    question.next = 0;
    question.looked = 0;
    question.found.clear();
    question.keep = shared_from_this();
    question.pending.store(true, std::memory_order_relaxed);
    question.core->give(question);
  }
}

bool SessionSurvey::waits(Instant now, Duration timeout) const noexcept {
  const std::span all(questions_.get(), cores_);
  return std::any_of(all.begin(), all.end(), [now, timeout](const Question& question) {
    return question.pending.load(std::memory_order_acquire) && now - question.asked < timeout;
  });
}

std::vector<SessionSurvey::Answer> SessionSurvey::take(Instant now) {
  std::vector<Answer> answers;
  for (Question& question : std::span(questions_.get(), cores_)) {
    Answer answer;
    answer.core = question.core->index();
    const bool pending = question.pending.load(std::memory_order_acquire);
    answer.answered = !pending && question.wanted.number == last_.number;
    answer.silent = pending ? now - question.asked : Duration::zero();
    if (answer.answered) {
      answer.looked = question.looked;
      answer.sessions = std::move(question.found);
      question.found = {};
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace weft::serve
