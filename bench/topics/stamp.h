// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "bench/cell.h"

namespace bench {

// Stamp: numbers the messages of a run on one side, and checks them on the other. The first eight bytes hold the run
// and the number, the last eight depend on the number, so that both ends of a message are written and read.
// Owner: one side of one lane. Affinity: one thread.
class Stamp {
 public:
  explicit Stamp(std::size_t size) : bytes_(size, 0x5a) {}

  void begin(std::uint64_t run) {
    run_ = run;
    next_ = 0;
    wrong_ = 0;
  }
  // The next message of the run; valid until the next call.
  [[nodiscard]] std::span<const std::uint8_t> write() {
    const std::uint64_t first = run_ << 40U | next_;
    const std::uint64_t last = next_++ * kFactor;
    std::memcpy(bytes_.data(), &first, sizeof first);
    std::memcpy(bytes_.data() + bytes_.size() - sizeof last, &last, sizeof last);
    return {reinterpret_cast<const std::uint8_t*>(bytes_.data()), bytes_.size()};
  }
  void read(std::span<const std::uint8_t> message) {
    if (message.size() != bytes_.size()) [[unlikely]] {
      fail("a message of " + std::to_string(message.size()) + " bytes");
    }
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::memcpy(&first, message.data(), sizeof first);
    std::memcpy(&last, message.data() + message.size() - sizeof last, sizeof last);
    wrong_ |= (first ^ (run_ << 40U | next_)) | (last ^ next_ * kFactor);
    ++next_;
  }
  // Ends the program if a message of the run was lost, doubled, out of order or damaged.
  void check(std::uint64_t count) const {
    if (wrong_ != 0 || next_ != count) {
      fail("a message was lost, doubled, out of order or damaged");
    }
  }

 private:
  static constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;

  std::string bytes_;
  std::uint64_t run_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t wrong_ = 0;
};

}  // namespace bench
