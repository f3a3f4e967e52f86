// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>

#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/topic/kept/channel.h"
#include "weft/topic/kept/kept_message.h"

namespace weft {

namespace topic {
class HubLink;
}

// Reader: the messages of a stream in their order, without a gap and without acknowledgements; then those that come.
// Owner: a move-only value; destruction closes. It may outlive the handle.
// Affinity: any thread, also several at once; each message goes to one of them.
// Promise: each message that the stream still keeps when it is read, once, also when the hub changes meanwhile.
class Reader {
 public:
  Reader(std::shared_ptr<topic::HubLink> link, IntrusivePtr<topic::KeptChannel> channel) noexcept;
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();
  void close() noexcept;  // idempotent

  // closed: the reader or its handle; not_found: the stream was removed.
  Result<KeptMessage> next();
  Result<KeptMessage> next_until(Instant deadline);  // also timed_out
  Result<KeptMessage> try_next();                    // never waits: would_block
  // The next one of those that were stored when the reader was opened. None: all were taken, and the reader is live.
  Result<std::optional<KeptMessage>> next_stored();
  [[nodiscard]] bool live() const noexcept;  // all that was stored when the reader was opened was taken

 private:
  friend class Stream;
  friend class KeyValue;
  Result<void> wait_open();

  std::shared_ptr<topic::HubLink> link_;
  IntrusivePtr<topic::KeptChannel> channel_;
};

}  // namespace weft
