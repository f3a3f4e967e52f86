// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "weft/net/stream/endpoint.h"
#include "weft/net/stream/transport_row.h"

namespace weft::net {

[[nodiscard]] std::span<const TransportRow> transports() noexcept;
[[nodiscard]] const TransportRow& transport_row(Transport transport) noexcept;

}  // namespace weft::net
