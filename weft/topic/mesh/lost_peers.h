// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::topic {

// LostPeers: the handles whose connection ended, until a new one exists: the last kMax of them. It allocates nothing,
// because it notes a loss also when memory runs out.
// Owner: a Node. Affinity: under its mesh lock. Cost: each call reads 2 KiB.
class LostPeers {
 public:
  static constexpr std::size_t kMax = 256;

  void note(std::uint64_t instance) noexcept {
    if (instance != 0 && !contains(instance)) {
      instances_[next_++ % kMax] = instance;
    }
  }
  void found(std::uint64_t instance) noexcept {
    std::replace(instances_.begin(), instances_.end(), instance, std::uint64_t{0});
  }
  template <typename Each>
  void each(Each&& visit) const {
    for (const std::uint64_t instance : instances_) {
      if (instance != 0) {
        visit(instance);
      }
    }
  }
  [[nodiscard]] bool contains(std::uint64_t instance) const noexcept {
    return instance != 0 && std::find(instances_.begin(), instances_.end(), instance) != instances_.end();
  }

 private:
  std::array<std::uint64_t, kMax> instances_{};  // 0: none
  std::size_t next_ = 0;
};

}  // namespace weft::topic
