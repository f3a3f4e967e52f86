// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/pattern/pipe.h"

namespace weft::msg {

// FairQueue: takes whole messages from pipes in turn.
// Owner: a pattern. Affinity: the receive lock.
// Cost: O(1) while the pipe in turn has input. A connection without input leaves the rotation until activate(). Inproc
// pipes stay in the rotation, because their senders do not announce each message.
// Invariants:
// 1. pipes_[0, active_) are in the rotation.
// 2. The parts of a message come from one pipe without a gap.
// 3. A connection that spends the socket's turn stays in the rotation, and the next turn begins after it.
class FairQueue {
 public:
  void attach(Pipe& pipe);           // idempotent
  bool detach(Pipe& pipe) noexcept;  // idempotent. Returns true if it cut a message of the pipe, whose rest is lost
  void activate(Pipe& pipe) noexcept;

  // The next part and its pipe. The view is valid until pop() or unpeek(), one of which must follow.
  [[nodiscard]] Pipe* peek(FrameView& view) noexcept {
    if (active_ != 0 && pipes_[current_]->peek(view)) [[likely]] {
      peeked_more_ = view.more;
      return pipes_[current_];
    }
    return peek_others(view);
  }
  void pop() noexcept {
    pipes_[current_]->pop();
    more_ = peeked_more_;
    if (!more_) {
      current_ = current_ + 1 < active_ ? current_ + 1 : 0;
    }
  }
  void unpeek() noexcept { pipes_[current_]->unpeek(); }
  // Instead of pop(), for a part that is not for the application. Returns false if the turn is spent, and the caller
  // returns would_block; the next turn goes on.
  [[nodiscard]] bool drop() noexcept {
    Turn& turn = pipes_[current_]->owner().share().turn;
    pop();
    turn.count_frame();
    return turn.may_decode();
  }
  // After peek(), instead of unpeek(): the next peek() returns this part again, before all others. Returns false, and
  // changes nothing, if the part cannot stay in its place.
  [[nodiscard]] bool hold() noexcept {
    if (!pipes_[current_]->peeked_in_place()) {
      return false;
    }
    unpeek();
    more_ = true;
    return true;
  }
  [[nodiscard]] bool has_input() noexcept;
  [[nodiscard]] bool in_message() const noexcept { return more_; }

  // Peeks, takes and pops: moves the next part into `part`. Fails with resource_exhausted if there is no memory; then
  // the part stays.
  [[nodiscard]] Result<void> receive(Inbound& part) noexcept {
    FrameView view;
    if (peek(view) == nullptr) {
      return Errc::would_block;
    }
    if (!part.take(view)) {
      unpeek();
      return Error(Errc::resource_exhausted, "no memory for a received message");
    }
    pop();
    return {};
  }

 private:
  void swap(std::size_t a, std::size_t b) noexcept;
  [[nodiscard]] Pipe* peek_others(FrameView& view) noexcept;

  std::vector<Pipe*> pipes_;
  std::size_t active_ = 0;
  std::size_t current_ = 0;
  bool more_ = false;         // pipes_[current_] has the next part: the rest of its message, or a held part
  bool peeked_more_ = false;  // the peeked part is not the last
};

}  // namespace weft::msg
