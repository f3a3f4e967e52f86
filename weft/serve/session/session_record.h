// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "weft/base/error.h"
#include "weft/serve/metrics/counters.h"
#include "weft/serve/session/log.h"

namespace weft::serve {

// SessionRecord: all that remains to be told of a session when it has ended: to on_close(), the counters and the log.
// Owner: a session. Affinity: one core.
struct SessionRecord {
  SessionCounts counts;
  std::unique_ptr<const std::string> peer;  // null: no log wants it. A closed socket no longer has the address
  Error why;
  std::uint32_t undelivered = 0;  // frames that were queued and not written
  CloseReason reason = CloseReason::service;

  void set_cause(CloseReason of, const Error& error) noexcept {
    reason = of;
    why = error;
  }
};

}  // namespace weft::serve
