// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/pattern/pipe.h"

namespace weft::msg {

// Distributor: gives a message to many pipes. A pipe that is full, or for which memory ran out, misses
// the message, and its socket counts that.
// Owner: a pattern. Affinity: the send lock.
// Cost: a payload that does not fit into a cell is copied at most once, and all pipes share it.
class Distributor {
 public:
  ~Distributor() { forget_staged(); }

  [[nodiscard]] bool in_message() const noexcept { return in_message_; }
  // Sets the pipes for the message that begins now, each of them once.
  void choose(std::vector<Pipe*> pipes) { chosen_ = std::move(pipes); }
  std::vector<Pipe*>& chosen() noexcept { return chosen_; }
  // Between two messages this forgets the whole choice, in O(1) for each of many pipes that leave.
  void detach(Pipe& pipe) noexcept {
    if (in_message_) {
      std::erase(chosen_, &pipe);
    } else {
      chosen_.clear();
    }
  }

  [[nodiscard]] Result<void> send(Outbound& part);
  // Reserves room for a message of that number of parts. Returns false if there is no memory.
  [[nodiscard]] bool reserve(std::size_t parts) noexcept;
  // Sends a whole message of several parts to the pipes `to`, not to chosen(); takes over the references. Requires
  // reserve().
  void send_parts(std::span<Cell> parts, std::span<Pipe* const> to) noexcept;

 private:
  void send_single(Outbound& part, const Message* shared) noexcept;
  void forget_staged() noexcept;

  static constexpr std::size_t kWide = 4;  // to more pipes than this, the I/O thread flushes

  std::vector<Pipe*> chosen_;
  std::vector<Cell> staged_;
  std::vector<Cell> copies_;
  bool in_message_ = false;
};

}  // namespace weft::msg
