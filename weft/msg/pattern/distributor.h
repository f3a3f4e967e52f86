// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/pattern/pipe.h"

namespace weft::msg {

// Distributor: gives a message to many pipes; who is full misses it, and that is counted.
// Owner: a pattern. Affinity: the send lock.
// Cost: the payload is copied once, if it does not fit into a cell, and shared by all.
class Distributor {
 public:
  ~Distributor() { forget_staged(); }

  [[nodiscard]] bool in_message() const noexcept { return in_message_; }
  // Whose turn it is for the message that begins now. Each pipe once.
  void choose(std::vector<Pipe*> pipes) { chosen_ = std::move(pipes); }
  std::vector<Pipe*>& chosen() noexcept { return chosen_; }
  void detach(Pipe& pipe) noexcept { std::erase(chosen_, &pipe); }

  [[nodiscard]] Result<void> send(Outbound& part);
  // A whole message of several parts to others than chosen(); takes over the references.
  void send_parts(std::span<Cell> parts, std::span<Pipe* const> to);

 private:
  void send_single(Outbound& part, const Message* shared) noexcept;
  void forget_staged() noexcept;

  static constexpr std::size_t kWide = 4;  // more pipes than this are flushed by the I/O thread

  std::vector<Pipe*> chosen_;
  std::vector<Cell> staged_;
  std::vector<Cell> copies_;
  bool in_message_ = false;
};

}  // namespace weft::msg
