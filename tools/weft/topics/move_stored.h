// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tools/weft/topics/fleet.h"
#include "weft/topic/kept/options.h"
#include "weft/topic/stream.h"

namespace weft::cli {

// Calls take(message) for each message after the sequence `after` that the stream has now, in order. `info`: of now.
// Failure: the stream was removed or made again meanwhile, or no server answers; `what` names the stream.
void each_stored(KeptLink& kept, Stream& stream, const StreamInfo& info, std::uint64_t after, const std::string& what,
                 const std::function<void(const KeptMessage&)>& take);

}  // namespace weft::cli
