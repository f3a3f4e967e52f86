// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/result.h"
#include "weft/msg/connection/receive_side.h"
#include "weft/msg/message/options.h"
#include "weft/msg/message/part.h"

namespace weft::msg {

// SendBounds: the bounds for a message at a peer with the same options. The sender applies them, too, so that its call
// fails, and no message vanishes at the peer.
// Owner: a socket. Affinity: its send lock. Cost: two comparisons for a message of one part.
// Invariant: after a refusal nothing has changed. A message whose next part is refused can end with one that fits.
class SendBounds {
 public:
  void set(const Options& options) noexcept {
    size_max_ = options.max_send_size < 0 ? SIZE_MAX : static_cast<std::size_t>(options.max_send_size);
    parts_max_ = options.message_parts_max == 0 ? SIZE_MAX : static_cast<std::size_t>(options.message_parts_max);
  }

  [[nodiscard]] bool permit(const Outbound& part) const noexcept {
    return part.relayed || (part.bytes.size() <= size_max_ && ((!part.more && parts_ == 0) || fits(part)));
  }
  // The error for a part that permit() refuses.
  [[nodiscard]] Error refusal(const Outbound& part) const noexcept {
    if (part.bytes.size() > size_max_) {
      return {Errc::message_too_large, "a part of more bytes than the option max_send_size permits"};
    }
    return parts_ + (part.more ? 1 : 0) >= parts_max_
               ? Error(Errc::message_too_large, "a message of more parts than the option message_parts_max permits")
               : Error(Errc::message_too_large, "a message of several parts has at most 2 GiB");
  }

  // After an attempt to send.
  [[nodiscard]] Result<void> count(bool more, std::size_t size, Result<void> sent) noexcept {
    if (sent && (more || parts_ != 0)) [[unlikely]] {
      parts_ = more ? parts_ + 1 : 0;
      bytes_ = more ? bytes_ + size : 0;
    }
    return sent;
  }

 private:
  // The last part has a place of its own.
  [[nodiscard]] bool fits(const Outbound& part) const noexcept {
    return parts_ + (part.more ? 1 : 0) < parts_max_ && bytes_ + part.bytes.size() <= ReceiveSide::kMultipartBytesMax;
  }

  std::size_t size_max_ = SIZE_MAX;
  std::size_t parts_max_ = SIZE_MAX;
  std::size_t parts_ = 0;  // of the message that is being sent
  std::size_t bytes_ = 0;  // of them
};

}  // namespace weft::msg
