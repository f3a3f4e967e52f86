// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "weft/base/bytes.h"
#include "weft/base/endian.h"
#include "weft/base/error.h"
#include "weft/base/text/utf8.h"

namespace weft::net::ws {

// The statuses of RFC 6455 section 7.4.1 that this end sends.
enum class CloseStatus : std::uint16_t {
  none = 0,  // the frame has no status
  normal = 1000,
  going_away = 1001,
  protocol = 1002,
  kind = 1003,
  text = 1007,
  policy = 1008,
  size = 1009,
  failure = 1011,
  try_later = 1013,
};

// RFC 6455 section 7.4: whether an end may send that status.
[[nodiscard]] constexpr bool is_close_status(std::uint16_t status) noexcept {
  return (status >= 1000 && status <= 1014 && status != 1004 && status != 1005 && status != 1006) ||
         (status >= 3000 && status <= 4999);
}

// The body of a close frame.
struct CloseBody {
  std::uint16_t status = 0;                    // 0: there is none
  StaticText problem;                          // the broken rule; null: there is none
  CloseStatus answer = CloseStatus::protocol;  // to a broken rule
};
[[nodiscard]] inline CloseBody parse_close_body(Bytes body) noexcept {
  CloseBody parsed;
  if (body.size() >= 2) {
    parsed.status = load_big_endian<std::uint16_t>(body.data());
  }
  if (body.size() == 1 || (body.size() > 1 && !is_close_status(parsed.status))) {
    parsed.problem = "a WebSocket close frame with a wrong status";
  } else if (!is_utf8(as_text(body.subspan(std::min<std::size_t>(body.size(), 2))))) {
    parsed.problem = "the reason of a WebSocket close frame is not UTF-8";
    parsed.answer = CloseStatus::text;
  }
  return parsed;
}

}  // namespace weft::net::ws
