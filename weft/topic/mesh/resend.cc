// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/resend.h"

#include <algorithm>
#include <utility>

namespace weft::topic {

void Resend::note_missed(const Control& control) {
  missed_ = missed_in_turn_ = true;
  if (control.kind != Control::Kind::claim_answer) {
    return;
  }
  const auto known = std::find_if(answers_.begin(), answers_.end(),
                                  [&](const Answer& each) { return key_of(each.control) == key_of(control); });
  if (known != answers_.end()) {
    known->control.number = control.number;
  } else if (answers_.size() < kAnswersMax) {
    answers_.push_back({control, 0});
  }
}

std::vector<Control> Resend::turn(std::vector<Control>&& owed, std::size_t window) {
  const Key behind = active_ ? sent_ : Key();
  for (const Answer& answer : answers_) {
    owed.push_back(answer.control);
  }
  std::erase_if(owed, [&](const Control& control) { return key_of(control) <= behind; });
  std::sort(owed.begin(), owed.end(), [](const Control& a, const Control& b) { return key_of(a) < key_of(b); });
  owed.resize(std::min(owed.size(), window));
  if (!std::exchange(active_, true)) {
    missed_ = false;
  }
  missed_in_turn_ = false;
  sent_ = behind;
  return std::move(owed);
}

void Resend::note_sent(const Control& control, bool missed) noexcept {
  sent_ = key_of(control);
  bool again = missed;
  if (control.kind == Control::Kind::claim_answer) {
    const auto answer = std::find_if(answers_.begin(), answers_.end(),
                                     [&](const Answer& each) { return key_of(each.control) == sent_; });
    if (answer != answers_.end()) {
      again = missed && ++answer->tries < kTries;
      if (!again) {
        answers_.erase(answer);
      }
    }
  }
  missed_ |= again;
  missed_in_turn_ |= missed;
}

bool Resend::end_turn(End end) noexcept {
  active_ = end != End::finished;
  const bool more = active_ || missed_;
  if (missed_in_turn_ || end == End::failed) {
    wait_ = std::min(2 * wait_, kWaitLast);
  } else if (!more) {
    wait_ = kWaitFirst;
  }
  return more;
}

}  // namespace weft::topic
