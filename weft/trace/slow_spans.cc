// SPDX-License-Identifier: MIT
#include "weft/trace/slow_spans.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace weft::trace {

namespace {

bool is_slower(const SlowSpan& a, const SlowSpan& b) noexcept { return a.duration > b.duration; }

bool is_operation(const SpanRecord& record) noexcept {
  return !record.parent || record.kind == SpanKind::server || record.kind == SpanKind::consumer;
}

}  // namespace

void SlowSpans::note(const SpanRecord& record) noexcept {
  const std::int64_t duration_ns = record.end_ns - record.start_ns;
  const std::int64_t number = record.end_ns / kWindowNs;
  if (!is_operation(record) ||
      (number == window_.load(std::memory_order_relaxed) && duration_ns <= least_ns_.load(std::memory_order_relaxed))) {
    return;
  }
  const sync::LockGuard lock(mutex_);
  const bool is_late = number == before_.number;
  if (!is_late && number != now_.number) {
    std::swap(now_, before_);  // the memory of the minute before that one is used again
    now_.number = number;
    now_.spans.clear();
    window_.store(number, std::memory_order_relaxed);
    least_ns_.store(-1, std::memory_order_relaxed);
  }
  try {
    std::vector<SlowSpan>& spans = is_late ? before_.spans : now_.spans;
    spans.reserve(kMost + 1);
    SlowSpan slow{
        record.context.trace_id(), record.context.span_id(), record.name, record.kind, record.status, record.end_ns,
        Duration(duration_ns)};
    spans.insert(std::upper_bound(spans.begin(), spans.end(), slow, is_slower), std::move(slow));
    if (spans.size() > kMost) {
      spans.pop_back();
    }
    if (!is_late && spans.size() == kMost) {
      least_ns_.store(spans.back().duration.count(), std::memory_order_relaxed);
    }
  } catch (const std::bad_alloc&) {  // the operation is not on the page
  }
}

void SlowSpans::slowest(std::int64_t now_ns, std::vector<SlowSpan>& into) const {
  const std::int64_t number = now_ns / kWindowNs;
  std::vector<SlowSpan> found;
  {
    const sync::LockGuard lock(mutex_);
    for (const Window* window : {&now_, &before_}) {
      if (window->number == number || window->number == number - 1) {
        found.insert(found.end(), window->spans.begin(), window->spans.end());
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), is_slower);
  found.resize(std::min(found.size(), kMost));
  into.insert(into.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
}

std::string_view describe(SpanKind kind) noexcept {
  constexpr std::string_view kNames[] = {"", "internal", "server", "client", "producer", "consumer"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view describe(SpanStatus status) noexcept {
  constexpr std::string_view kNames[] = {"unset", "ok", "error"};
  return kNames[static_cast<std::size_t>(status)];
}

}  // namespace weft::trace
