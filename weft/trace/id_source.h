// SPDX-License-Identifier: MIT
#pragma once

#include "weft/trace/trace_context.h"

// Random ids. Affinity: any thread; each has two generators of its own.
// Cost: about 1 ns a number. A thread's first id, and the first one after a fork, costs a call of the system.
// The generators have 128 bits of seed from zmtp::SecureRandom, so that no two threads or processes make the same ids.
// If the system has no random numbers, the clock and the address of the thread are the seed. The ids are not secrets:
// an observer of some of them can foresee others.
namespace weft::trace {

[[nodiscard]] TraceId random_trace_id() noexcept;  // never zero
[[nodiscard]] SpanId random_span_id() noexcept;    // never zero

}  // namespace weft::trace
