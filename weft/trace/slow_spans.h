// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/time.h"
#include "weft/sync/lock.h"
#include "weft/trace/span_record.h"

namespace weft::trace {

// One of the slowest spans, for a page.
struct SlowSpan {
  TraceId trace{};
  SpanId span{};
  std::string name{};
  SpanKind kind = SpanKind::internal;
  SpanStatus status = SpanStatus::unset;
  std::int64_t end_ns = 0;  // since 1970
  Duration duration{};
};

// SlowSpans: the slowest operations of a program in the last minute or two. An operation is a recorded span that began
// a trace, or that another process asked for: server and consumer. Its children are a part of it.
// Owner: a Tracer. Affinity: any thread. Cost of note(): a comparison; for one of the slowest, a lock and a copy.
// Invariant: it holds at most kMost spans of this minute and kMost of the one before, with at most
// SpanRecord::kTextMax bytes of name each.
class SlowSpans {
 public:
  static constexpr std::size_t kMost = 32;
  static constexpr std::int64_t kWindowNs = 60'000'000'000;

  // A minute is one of the span's end, by the clock of the day. Without memory the span is left out.
  void note(const SpanRecord& record) noexcept;
  // Appends those of the minute of `now_ns` and of the one before, at most kMost, the slowest first.
  void slowest(std::int64_t now_ns, std::vector<SlowSpan>& into) const;

 private:
  struct Window {
    std::int64_t number = -1;       // of its minute since 1970
    std::vector<SlowSpan> spans{};  // the slowest first
  };

  mutable sync::StdMutex mutex_;
  Window now_ WEFT_GUARDED_BY(mutex_);
  Window before_ WEFT_GUARDED_BY(mutex_);
  // Relaxed: note() compares with them before it takes the lock. A span that is as fast as the least one of a full
  // window does not enter that window.
  std::atomic<std::int64_t> window_{-1};
  std::atomic<std::int64_t> least_ns_{-1};
};

// The name of a tracer and its slowest operations, for a page. It may outlive the tracer.
using SlowSpanSource = std::function<void(std::vector<SlowSpan>& into)>;

[[nodiscard]] std::string_view describe(SpanKind kind) noexcept;      // "server"
[[nodiscard]] std::string_view describe(SpanStatus status) noexcept;  // "error"

}  // namespace weft::trace
