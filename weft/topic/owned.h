// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace weft {

namespace topic {
class Node;
}

// Owned: a topic that this handle owns. No other handle alive owns it, as far as the fleet is connected.
// Owner: a move-only value; destruction gives the topic up. Affinity: any thread.
// A partition of the network may make two owners. When it ends, the owner with the higher epoch stays; of equal epochs,
// the lower instance stays. From then on, the other owner's here() is false.
class Owned {
 public:
  Owned(Owned&&) noexcept;
  Owned& operator=(Owned&&) noexcept;
  ~Owned();

  [[nodiscard]] bool here() const noexcept;  // whether this is still the owner
  // Grows with each owner that claimed the topic while connected to another handle, otherwise with the clocks of the
  // hosts.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }

 private:
  friend class Topics;
  friend class AsyncTopics;
  Owned(std::shared_ptr<topic::Node> node, std::string wire, std::uint64_t epoch) noexcept;

  std::shared_ptr<topic::Node> node_;
  std::string wire_;
  std::uint64_t epoch_ = 0;
};

}  // namespace weft
