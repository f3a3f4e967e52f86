// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/topic/kept/channel_end.h"
#include "weft/topic/kept/kept_message.h"

namespace weft {

// Reader: the messages of a stream in their order, without a gap and without acknowledgements; then those that come.
// Owner: a move-only value; destruction closes. It may outlive the handle.
// Affinity: any thread, also several at once; each message goes to one of them.
// Promise: each message that the stream still keeps when it is read, once, also when the hub changes meanwhile.
class Reader : public topic::ChannelEnd {
 public:
  using ChannelEnd::ChannelEnd;

  // closed: the reader or its handle; not_found: the stream was removed.
  Result<KeptMessage> next() { return wait_next(held(), kNever); }
  Result<KeptMessage> next_until(Instant deadline) { return wait_next(held(), deadline); }  // also timed_out
  Result<KeptMessage> try_next() { return try_take(); }                                     // never waits: would_block
  // The next one of those that were stored when the reader was opened. None: all were taken, and the reader is live.
  Result<std::optional<KeptMessage>> next_stored() { return wait_next_stored(held()); }
  // All that was stored when the reader was opened was taken.
  [[nodiscard]] bool live() const noexcept { return took_all_stored(); }
};

}  // namespace weft
