// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/topic/kept/channel_end.h"
#include "weft/topic/kept/kept_message.h"

namespace weft {

// Reader: the messages of a stream in their order, without a gap and without acknowledgements: first the stored ones,
// then the new ones.
// Owner: a move-only value; destruction closes. It may outlive the handle.
// Affinity: any thread, also several at once. Each message goes to one of them.
// Promise: the reader returns each message that the stream still keeps at that time once, also when the hub changes.
class Reader : public topic::ChannelEnd {
 public:
  using ChannelEnd::ChannelEnd;

  // Errors: closed (the reader or its handle); not_found (the stream was removed).
  Result<KeptMessage> next() { return wait_next(held(), kNever); }
  Result<KeptMessage> next_until(Instant deadline) { return wait_next(held(), deadline); }  // fails with timed_out, too
  Result<KeptMessage> try_next() { return try_take(); }  // never waits; fails with would_block
  // Returns the next one of the messages that were stored when the reader was opened. Returns nullopt if all of them
  // were taken: the reader is live.
  Result<std::optional<KeptMessage>> next_stored() { return wait_next_stored(held()); }
  // Whether all messages that were stored when the reader was opened have been taken.
  [[nodiscard]] bool live() const noexcept { return took_all_stored(); }
};

}  // namespace weft
