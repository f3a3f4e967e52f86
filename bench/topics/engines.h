// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "bench/engine/end.h"

// The carriers of pub_sub/ipc and round_trip/ipc cells, between two processes.
namespace bench {

// Topics of a local fleet: a handle for each lane. `directory` is the fleet's runtime directory.
std::unique_ptr<Engine> make_topics(const std::string& directory);
// Weft's PUB and SUB through the C++ interface. A message is [topic][body], as topics send it, or with `one_part` its
// body alone. Round trips: a PUB and a SUB on each side.
std::unique_ptr<Engine> make_sockets(const std::string& directory, bool one_part);
// PUBLISH to a Redis at that unix socket, pipelined, and SUBSCRIBE.
std::unique_ptr<Engine> make_redis(const std::string& path);

}  // namespace bench
