// SPDX-License-Identifier: MIT
#pragma once

#include "weft/net/backoff.h"
#include "weft/net/dialer.h"

namespace weft::msg {

// Connector: what a connecting connection needs to reach its endpoint again and again.
// Owner: the connection. Affinity: the I/O thread.
struct Connector {
  net::Dialer dialer;
  net::Backoff backoff;
};

}  // namespace weft::msg
