// SPDX-License-Identifier: MIT
#pragma once

#include "weft/net/stream/transport_row.h"

namespace weft::net {

// vsock://: streams between virtual machines and their host, without a network (vsock(7)). A machine has a number, its
// CID; the host has 2, and each machine is 1 to itself where its kernel has the module vsock_loopback. A port has 32
// bits.
[[nodiscard]] TransportRow vsock_transport() noexcept;

}  // namespace weft::net
