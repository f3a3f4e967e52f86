// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/base/time.h"

namespace weft::nats::jetstream {

// The time of day, as servers count it.
using WallTime = std::chrono::sys_time<Duration>;

// RFC 3339 with up to nine digits of a second, as Go writes it: "2026-01-02T03:04:05.6Z", or with "+02:00". A time that
// WallTime does not hold, as Go's zero "0001-01-01T00:00:00Z", becomes its least or its greatest value.
// Errors: protocol_error (another form).
[[nodiscard]] Result<WallTime> read_wall_time(std::string_view text) noexcept;
// "2026-01-02T03:04:05.600000000Z".
void append_wall_time(WallTime time, std::string& out);

}  // namespace weft::nats::jetstream
