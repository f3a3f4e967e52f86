// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "weft/msg/pattern/pipe.h"

namespace weft::msg {

// PipeList: the pipes that a pattern sends to. Owner: a pattern. Affinity: the send lock.
// Cost: every call O(1); a pipe has its place (Pipe::Notes::balance_index), so it is in one PipeList at most.
class PipeList {
 public:
  [[nodiscard]] bool contains(const Pipe& pipe) const noexcept {
    const std::size_t place = pipe.notes.balance_index;
    return place < pipes_.size() && pipes_[place] == &pipe;
  }
  void add(Pipe& pipe) {  // idempotent
    if (!contains(pipe)) {
      pipe.notes.balance_index = pipes_.size();
      pipes_.push_back(&pipe);
    }
  }
  void remove(const Pipe& pipe) noexcept {  // idempotent. The last pipe takes the place
    if (contains(pipe)) {
      const std::size_t place = pipe.notes.balance_index;
      swap(place, pipes_.size() - 1);
      pipes_.pop_back();
    }
  }
  void swap(std::size_t a, std::size_t b) noexcept {
    std::swap(pipes_[a], pipes_[b]);
    pipes_[a]->notes.balance_index = a;
    pipes_[b]->notes.balance_index = b;
  }
  [[nodiscard]] const std::vector<Pipe*>& pipes() const noexcept { return pipes_; }

 private:
  std::vector<Pipe*> pipes_;
};

}  // namespace weft::msg
