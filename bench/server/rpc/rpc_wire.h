// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>

#include "bench/server/web_wire.h"

namespace bench {

// Calls of Weft's rpc with the bodies of wire.h, which come back. It does not use Weft, so that a mistake in its codec
// cannot hide here too. Each request has the number of its method and a time of ten seconds, as a client writes it by
// default. The server has plain handlers, so its answers come in the order of the requests.
std::unique_ptr<const WebWire> make_rpc_wire(std::uint32_t size);

}  // namespace bench
