// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/time.h"
#include "weft/topic/wire/control.h"

namespace weft::topic {

// Resend: sends the control messages again that a peer may have missed. A round sends each message that the handle owes
// its peers, in the order of their keys. A message that a peer misses again makes another round. A round has turns,
// because the queue of a peer may have room for fewer messages than a round has.
// Owner: a MeshState. Affinity: its caller's. Cost: a turn sorts the owed messages.
// Invariants:
//   1. A round sends each message that is owed all the time, also if a queue has room for one message only.
//   2. A round follows each miss, except that of an answer that was sent kTries times.
//   3. At most kAnswersMax answers.
class Resend {
 public:
  static constexpr std::size_t kAnswersMax = 1024;
  static constexpr unsigned kTries = 16;  // a peer that reads nothing for longer has no claim under way
  static constexpr Duration kWaitFirst = std::chrono::milliseconds(10);  // then twice as long after each miss
  static constexpr Duration kWaitLast = std::chrono::seconds(30);

  // A peer missed the message. An answer to a claim is kept; the other messages follow from the state. Throws
  // std::bad_alloc: the answer is lost.
  void note_missed(const Control& control);
  [[nodiscard]] bool begins() const noexcept { return !active_; }  // the next turn begins a round
  // The next messages of the round, at most `window`. `owed`: all messages besides the answers to claims. Throws
  // std::bad_alloc: the caller takes the turn again.
  [[nodiscard]] std::vector<Control> turn(std::vector<Control>&& owed, std::size_t window);
  void note_sent(const Control& control, bool missed) noexcept;  // for each message of the turn
  // finished: nothing is left to send in this round. failed: the caller had no memory for the whole turn.
  enum class End : std::uint8_t { failed, more, finished };
  // Returns true if another turn follows after wait(). While a peer misses messages, the waits grow: no longer than
  // the peer has not read.
  bool end_turn(End end) noexcept;
  [[nodiscard]] Duration wait() const noexcept { return wait_; }
  [[nodiscard]] std::size_t answer_count() const noexcept { return answers_.size(); }

 private:
  struct Key {
    Control::Kind kind{};
    std::uint64_t to = 0;
    std::uint64_t id = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Answer {
    Control control;
    unsigned tries = 0;
  };
  // A newer roster takes the place of an older one.
  [[nodiscard]] static Key key_of(const Control& control) noexcept {
    return {control.kind, control.to, control.kind == Control::Kind::roster ? 0 : control.id};
  }

  std::vector<Answer> answers_;  // to claims
  bool missed_ = false;          // since the round began
  bool missed_in_turn_ = false;
  bool active_ = false;  // a round has begun
  Key sent_;             // of the round, the last one
  Duration wait_ = kWaitFirst;
};

}  // namespace weft::topic
