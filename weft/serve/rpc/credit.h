// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::serve::rpc {

// Flow control of one direction of a stream, in bytes. Its sender begins with kWindow, each message costs its body and
// kMessageCost, and the receiver grants the bytes of messages that its program took. A message may overdraw a credit
// that is not spent: so a receiver holds at most kWindow and one message.
inline constexpr std::int64_t kWindow = 256 * 1024;
inline constexpr std::int64_t kMessageCost = 32;
inline constexpr std::int64_t kCreditMax = (std::int64_t{1} << 31U) - 1;  // a sender never has more than this

[[nodiscard]] constexpr std::int64_t cost_of(std::size_t body) noexcept {
  return static_cast<std::int64_t>(body) + kMessageCost;
}

// Credit: the sender's end. A value. Affinity: one thread.
class Credit {
 public:
  [[nodiscard]] bool may_send() const noexcept { return left_ > 0; }
  void spend(std::size_t body) noexcept { left_ -= cost_of(body); }  // requires may_send()
  // Returns false, and changes nothing, if the peer grants nothing, or more than kCreditMax together.
  [[nodiscard]] bool add(std::uint32_t granted) noexcept {
    if (granted == 0 || left_ + std::int64_t{granted} > kCreditMax) {
      return false;
    }
    left_ += granted;
    return true;
  }
  [[nodiscard]] std::int64_t left() const noexcept { return left_; }

 private:
  std::int64_t left_ = kWindow;
};

// Window: the receiver's end. A value. Affinity: one thread.
// Invariant: the bytes that the sender may send, those that wait, and those that are not granted yet are kWindow.
class Window {
 public:
  // A message came. Returns false if its sender had no credit.
  [[nodiscard]] bool take(std::size_t body) noexcept {
    if (left_ <= 0) {
      return false;
    }
    left_ -= cost_of(body);
    return true;
  }
  // The program took a message. Returns the bytes to grant; 0: none yet, so that a grant serves many messages.
  [[nodiscard]] std::uint32_t consume(std::size_t body) noexcept {
    owed_ += cost_of(body);
    if (owed_ < kWindow / 2) {
      return 0;
    }
    const auto granted = static_cast<std::uint32_t>(owed_);  // at most kWindow and one message
    left_ += owed_;
    owed_ = 0;
    return granted;
  }

 private:
  std::int64_t left_ = kWindow;
  std::int64_t owed_ = 0;
};

}  // namespace weft::serve::rpc
