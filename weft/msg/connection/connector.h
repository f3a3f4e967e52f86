// SPDX-License-Identifier: MIT
#pragma once

#include "weft/net/backoff.h"
#include "weft/net/dialer.h"

namespace weft::msg {

// Connector: the means of a connecting connection to reach its endpoint again and again.
// Owner: the connection. Affinity: the I/O thread.
struct Connector {
  net::Dialer dialer;
  net::Backoff backoff;
};

}  // namespace weft::msg
