// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "bench/topics/nats_pair.h"

namespace bench {

// The C client of NATS, if this program was built with it. `asap`: each publication is written at once.
std::unique_ptr<NatsPair> make_libnats(const std::string& url, bool asap, NatsPair::Arrived arrived);

// `ids`: each message has one, so that the stream keeps it once, as a message of weft::Stream.
std::unique_ptr<NatsStream> make_libnats_stream(const std::string& url, bool ids);

}  // namespace bench
