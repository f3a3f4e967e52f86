// SPDX-License-Identifier: MIT
#include "weft/serve/inspect/core_health.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

namespace weft::serve {

namespace {
constexpr Duration kYoung = std::chrono::milliseconds(10);

// ": game::Room on_frame (frame 7) has not returned for 530 ms"; empty: its turn is young.
std::string busy_text(rt::Core& core, Instant now) {
  const auto busy = core.loop().activity()->busy_since(now - kYoung);
  return !busy ? std::string()
               : ": " + busy->text() + " has not returned for " +
                     std::to_string((now - busy->since) / std::chrono::milliseconds(1)) + " ms";
}
}  // namespace

CoreHealth::Question::Question() noexcept
    : CoreJob([](rt::CoreJob& job) noexcept { static_cast<Question&>(job).answer(); }) {}

void CoreHealth::Question::answer() noexcept {
  const auto self = std::move(keep);
  core_ended.store(core->ended(), std::memory_order_relaxed);
  pending.store(false, std::memory_order_release);
}

CoreHealth::CoreHealth(rt::Runtime& runtime)
    : questions_(std::make_unique<Question[]>(runtime.size())), count_(runtime.size()) {
  for (unsigned core = 0; core < count_; ++core) {
    questions_[core].core = &runtime.core(core);
  }
}

void CoreHealth::ask(Instant now) {
  for (Question& question : std::span(questions_.get(), count_)) {
    if (!question.pending.load(std::memory_order_acquire)) {
      question.asked = now;
      question.keep = shared_from_this();
      question.pending.store(true, std::memory_order_relaxed);
      question.core->give(question);
    }
  }
}

bool CoreHealth::waits(Instant now, Duration timeout) const noexcept {
  const std::span all(questions_.get(), count_);
  return std::any_of(all.begin(), all.end(), [now, timeout](const Question& question) {
    return question.pending.load(std::memory_order_acquire) && now - question.asked < timeout;
  });
}

CoreHealth::Standing CoreHealth::standing(unsigned core, Instant now) const {
  const Question& question = questions_[core];
  Standing standing;
  if (question.pending.load(std::memory_order_acquire)) {
    standing.silent = now - question.asked;
    const auto busy = question.core->loop().activity()->busy_since(now - kYoung);
    standing.doing = busy ? busy->text() : std::string();
  } else {
    standing.ended = question.core_ended.load(std::memory_order_relaxed);
    standing.answered = !standing.ended;
  }
  return standing;
}

std::string CoreHealth::complaints(Instant now) const {
  std::string text;
  for (const Question& question : std::span(questions_.get(), count_)) {
    const std::string name = "core " + std::to_string(question.core->index());
    if (question.pending.load(std::memory_order_acquire)) {
      text += name + " has not answered for " + std::to_string((now - question.asked) / std::chrono::milliseconds(1)) +
              " ms" + busy_text(*question.core, now) + "\n";
    } else if (question.core_ended.load(std::memory_order_relaxed)) {
      text += name + " has ended\n";
    }
  }
  return text;
}

}  // namespace weft::serve
