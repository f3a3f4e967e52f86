// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/pattern/pipe.h"
#include "weft/msg/pattern/pipe_list.h"

namespace weft::msg {

// LoadBalancer: gives whole messages to pipes in turn and skips full pipes.
// Owner: a pattern. Affinity: the send lock.
// Cost: a one-part message goes straight to its pipe. The parts of a longer one stay in staged_ until it is whole.
// Invariants:
// 1. The parts of a message go to one pipe. If that pipe is detached meanwhile, the message is dropped and counted.
// 2. Only the first part of a message may fail with would_block. Any part may fail with resource_exhausted, and then is
//    not sent: the caller sends it again.
class LoadBalancer {
 public:
  explicit LoadBalancer(MessageDrops& drops) noexcept : drops_(drops) {}
  LoadBalancer(const LoadBalancer&) = delete;
  LoadBalancer& operator=(const LoadBalancer&) = delete;
  ~LoadBalancer() { forget_staged(); }
  void attach(Pipe& pipe);           // idempotent
  void detach(Pipe& pipe) noexcept;  // idempotent

  [[nodiscard]] Result<void> send(Outbound& part) {
    if (!in_message_ && !part.more && !list_.pipes().empty() && try_next(part)) [[likely]] {
      return {};
    }
    return send(part, {});
  }
  // `prefix`: parts without buffers that go in front of the first part (REQ).
  [[nodiscard]] Result<void> send(Outbound& part, std::span<const Cell> prefix);
  [[nodiscard]] bool writable() noexcept;
  [[nodiscard]] Pipe* last() const noexcept { return last_; }  // got the last message; null: it was detached

 private:
  [[nodiscard]] Pipe* next_writable() noexcept;
  // Offers a message of one part to the pipe whose turn it is.
  [[nodiscard]] Offered try_next(Outbound& part) noexcept {
    Pipe* const pipe = list_.pipes()[current_];
    const Offered offered = pipe->try_send(part, false);
    advance();
    last_ = offered ? pipe : last_;
    return offered;
  }
  void advance() noexcept { current_ = current_ + 1 < list_.pipes().size() ? current_ + 1 : 0; }
  void forget_staged() noexcept;
  [[nodiscard]] bool stage(Outbound& part, std::span<const Cell> prefix) noexcept;
  [[nodiscard]] Result<void> refuse(bool first) noexcept;

  PipeList list_;
  std::size_t current_ = 0;
  Pipe* last_ = nullptr;
  Pipe* pinned_ = nullptr;  // gets the message that is being staged; null: it was detached
  bool in_message_ = false;
  std::vector<Cell> staged_;
  MessageDrops& drops_;
};

}  // namespace weft::msg
