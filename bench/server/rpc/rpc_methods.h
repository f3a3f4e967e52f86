// SPDX-License-Identifier: MIT
#pragma once

#include "bench/server/wire.h"
#include "weft/serve/client/owned_bytes.h"
#include "weft/serve/rpc/method.h"

// The methods of the benchmark, by their numbers. A handler's request is a view of the bytes that came.
namespace bench {

namespace rpc = weft::serve::rpc;
using weft::serve::OwnedBytes;

using ServedEcho = rpc::Method<"bench.echo", weft::Bytes, weft::Bytes, kEcho>;
using CalledEcho = rpc::Method<"bench.echo", weft::Bytes, OwnedBytes, kEcho>;
using ServedPush = rpc::ClientStream<"bench.push", OwnedBytes, OwnedBytes, kCount>;
using CalledPush = rpc::ClientStream<"bench.push", weft::Bytes, OwnedBytes, kCount>;

}  // namespace bench
