// SPDX-License-Identifier: MIT
#pragma once

#include "weft/net/backoff.h"
#include "weft/net/dialer.h"

namespace weft::msg {

// Connector: what a connecting session needs to reach its endpoint again and again.
// Owner: the session. Affinity: the I/O thread.
struct Connector {
  net::Dialer dialer;
  net::Backoff backoff;
};

}  // namespace weft::msg
