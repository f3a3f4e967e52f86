// SPDX-License-Identifier: MIT
#include "weft/trace/span_queue.h"

#include <algorithm>
#include <utility>

namespace weft::trace {

SpanQueue::~SpanQueue() {
  while (SpanRecord* const record = list_.pop_front()) {
    delete record;
  }
}

SpanQueue::Outcome SpanQueue::push(std::unique_ptr<SpanRecord> record) noexcept {
  const std::size_t size = record->bytes();
  const sync::LockGuard lock(mutex_);
  const std::size_t spans = spans_.load(std::memory_order_relaxed);
  const std::size_t bytes = bytes_.load(std::memory_order_relaxed);
  if (spans >= spans_max_) {
    return Outcome::full_spans;
  }
  if (size > bytes_max_ || bytes > bytes_max_ - size) {
    return Outcome::full_bytes;
  }
  list_.push_back(*record.release());
  spans_.store(spans + 1, std::memory_order_relaxed);
  bytes_.store(bytes + size, std::memory_order_relaxed);
  if (on_batch_ && spans + 1 >= batch_) {
    on_batch_();
  }
  return Outcome::taken;
}

void SpanQueue::take(std::size_t spans_most, std::size_t bytes_most, std::vector<std::unique_ptr<SpanRecord>>& into) {
  into.reserve(into.size() + std::min(spans_most, spans_max_));
  const sync::LockGuard lock(mutex_);
  std::size_t spans = spans_.load(std::memory_order_relaxed);
  std::size_t bytes = bytes_.load(std::memory_order_relaxed);
  std::size_t taken_bytes = 0;
  for (std::size_t taken = 0; taken < spans_most && !list_.empty(); ++taken) {
    const std::size_t size = list_.front().bytes();
    taken_bytes += size;
    if (taken != 0 && taken_bytes > bytes_most) {
      break;
    }
    into.emplace_back(list_.pop_front());
    --spans;
    bytes -= size;
  }
  spans_.store(spans, std::memory_order_relaxed);
  bytes_.store(bytes, std::memory_order_relaxed);
}

void SpanQueue::notify(std::size_t spans, std::function<void()> on_batch) {
  const sync::LockGuard lock(mutex_);
  batch_ = spans;
  on_batch_ = std::move(on_batch);
}

}  // namespace weft::trace
