// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "weft/base/list.h"
#include "weft/sync/lock.h"
#include "weft/trace/span_record.h"

namespace weft::trace {

// SpanQueue: finished spans that wait for an exporter, in the order of their ends.
// Owner: a Tracer. Affinity: any thread. Cost: a lock; push() allocates nothing.
// Invariant: at most spans_max spans of at most bytes_max bytes are in the queue.
class SpanQueue {
 public:
  enum class Outcome : std::uint8_t { taken, full_spans, full_bytes };

  SpanQueue(std::size_t spans_max, std::size_t bytes_max) noexcept : spans_max_(spans_max), bytes_max_(bytes_max) {}
  SpanQueue(const SpanQueue&) = delete;
  SpanQueue& operator=(const SpanQueue&) = delete;
  ~SpanQueue();

  // A span that is not taken is destroyed.
  Outcome push(std::unique_ptr<SpanRecord> record) noexcept;
  // Appends the first spans of the queue to `into`, up to a number and up to the span that exceeds a sum of bytes, but
  // one at least. Throws std::bad_alloc: then the queue is unchanged.
  void take(std::size_t spans_most, std::size_t bytes_most, std::vector<std::unique_ptr<SpanRecord>>& into);

  // `on_batch` is called by a push() that leaves `spans` or more spans in the queue, under its lock: it neither throws
  // nor waits nor calls this object. When notify() returns, the function before is not called any more. An empty one
  // ends the calls.
  void notify(std::size_t spans, std::function<void()> on_batch);

  // Any thread, without the lock.
  [[nodiscard]] std::size_t spans() const noexcept { return spans_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  const std::size_t spans_max_;
  const std::size_t bytes_max_;
  sync::StdMutex mutex_;
  List<SpanRecord> list_ WEFT_GUARDED_BY(mutex_);
  std::size_t batch_ WEFT_GUARDED_BY(mutex_) = 0;
  std::function<void()> on_batch_ WEFT_GUARDED_BY(mutex_);
  // Written with the lock. Relaxed: a number stands alone.
  std::atomic<std::size_t> spans_{0};
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace weft::trace
