// SPDX-License-Identifier: MIT
#include "weft/serve/server/core_health.h"

#include <algorithm>
#include <span>
#include <utility>

namespace weft::serve {

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

bool CoreHealth::all_answered() const noexcept {
  const std::span all(questions_.get(), count_);
  return std::none_of(all.begin(), all.end(),
                      [](const Question& question) { return question.pending.load(std::memory_order_acquire); });
}

std::string CoreHealth::complaints(Instant now) const {
  std::string text;
  for (const Question& question : std::span(questions_.get(), count_)) {
    const std::string name = "core " + std::to_string(question.core->index());
    if (question.pending.load(std::memory_order_acquire)) {
      text += name + " has not answered for " + std::to_string((now - question.asked) / std::chrono::milliseconds(1)) +
              " ms\n";
    } else if (question.core_ended.load(std::memory_order_relaxed)) {
      text += name + " has ended\n";
    }
  }
  return text;
}

}  // namespace weft::serve
