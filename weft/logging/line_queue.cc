// SPDX-License-Identifier: MIT
#include "weft/logging/line_queue.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "weft/sys/thread_id.h"

namespace weft::logging {

namespace {

constexpr std::size_t kSpare = 4;  // chunks that are kept for the next lines
constexpr std::int64_t kSecondNs = 1'000'000'000;

// Under the stripe's lock, so no other thread adds. Relaxed: a number stands alone.
void add_to(std::atomic<std::uint64_t>& number, std::uint64_t by = 1) noexcept {
  number.store(number.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace

LineQueue::~LineQueue() {
  const auto drop = [](Chunk* chunk) {
    while (chunk != nullptr) {
      delete std::exchange(chunk, chunk->next);
    }
  };
  for (Stripe& stripe : stripes_) {
    drop(stripe.first);
  }
  drop(spare_);
}

LineQueue::Stripe& LineQueue::own_stripe() noexcept { return stripes_[sys::thread_number() % kStripes]; }

LineQueue::Outcome LineQueue::add(const LineParts& parts, const void* component, const char* event,
                                  const Manner& manner) noexcept {
  std::size_t bound = 0;
  LineParts fitting = parts;
  fitting.fields = parts.fields.first(count_fitting(parts, bound));
  Stripe& stripe = own_stripe();
  const sync::LockGuard lock(stripe.mutex);
  if (stripe.closed) {
    add_to(stripe.dropped_stopped);
    return Outcome::refused;
  }
  if (!stripe.repeats.admit(component, event, parts.time_ns / kSecondNs, manner.repeats_max)) {
    add_to(stripe.suppressed);
    return Outcome::taken;
  }
  Outcome outcome = Outcome::taken;
  Chunk* chunk = stripe.last;
  if (chunk == nullptr || chunk->bytes.size() - chunk->used < kHeadSize + bound) {
    chunk = make_chunk(stripe);
    if (chunk == nullptr) {
      return Outcome::refused;
    }
    // Relaxed: the writer is called early or a little later.
    outcome = chunks_.load(std::memory_order_relaxed) > chunks_max_ / 2 ? Outcome::pressing : Outcome::taken;
  }
  add_to(stripe.lines);
  add_to(stripe.fields_dropped, parts.fields.size() - fitting.fields.size());
  char* const head = chunk->bytes.data() + chunk->used;
  char* const line = head + kHeadSize;
  const char* const end = write_line(fitting, manner.format, manner.with_priority, stripe.time, line);
  stripe.newest_ns = std::max(stripe.newest_ns, parts.time_ns);
  const auto size = static_cast<std::uint32_t>(end - line);
  std::memcpy(head, &stripe.newest_ns, sizeof stripe.newest_ns);
  std::memcpy(head + sizeof stripe.newest_ns, &size, sizeof size);
  chunk->used += kHeadSize + size;
  return outcome;
}

// Returns null, and counts why, if there is no chunk.
LineQueue::Chunk* LineQueue::make_chunk(Stripe& stripe) noexcept {
  if (chunks_.fetch_add(1, std::memory_order_relaxed) >= chunks_max_) {
    chunks_.fetch_sub(1, std::memory_order_relaxed);
    add_to(stripe.dropped_queue);
    return nullptr;
  }
  Chunk* chunk = nullptr;
  {
    const sync::LockGuard lock(spare_mutex_);
    if (spare_ != nullptr) {
      chunk = std::exchange(spare_, spare_->next);
      --spares_;
    }
  }
  if (chunk == nullptr) {
    chunk = new (std::nothrow) Chunk;
    if (chunk == nullptr) {
      chunks_.fetch_sub(1, std::memory_order_relaxed);
      add_to(stripe.dropped_memory);
      return nullptr;
    }
  }
  chunk->next = nullptr;
  chunk->used = 0;
  (stripe.last == nullptr ? stripe.first : stripe.last->next) = chunk;
  stripe.last = chunk;
  return chunk;
}

bool LineQueue::has_work() noexcept {
  return std::any_of(stripes_.begin(), stripes_.end(), [](Stripe& stripe) {
    const sync::LockGuard lock(stripe.mutex);
    return stripe.first != nullptr || stripe.repeats.waiting();
  });
}

LineQueue::Taken LineQueue::take_chunks() noexcept {
  Taken taken;
  for (Stripe& stripe : stripes_) {
    Chunk* first = nullptr;
    {
      const sync::LockGuard lock(stripe.mutex);
      first = std::exchange(stripe.first, nullptr);
      stripe.last = nullptr;
    }
    if (first != nullptr) {
      taken.first[taken.used] = first;
      taken.lanes[taken.used].chunk = first;
      read_head(taken.lanes[taken.used++]);
    }
  }
  return taken;
}

// Goes to the next chunk with a line. Every chunk has one at least.
void LineQueue::read_head(Lane& lane) noexcept {
  if (lane.at == lane.chunk->used) {
    lane.chunk = lane.chunk->next;
    lane.at = 0;
  }
  if (lane.chunk != nullptr) {
    const char* const head = lane.chunk->bytes.data() + lane.at;
    std::memcpy(&lane.head.time_ns, head, sizeof lane.head.time_ns);
    std::memcpy(&lane.head.size, head + sizeof lane.head.time_ns, sizeof lane.head.size);
  }
}

bool LineQueue::next_line(Taken& taken, std::string_view& line) noexcept {
  Lane* first = nullptr;
  for (std::size_t i = 0; i < taken.used; ++i) {
    Lane& lane = taken.lanes[i];
    if (lane.chunk != nullptr && (first == nullptr || lane.head.time_ns < first->head.time_ns)) {
      first = &lane;
    }
  }
  if (first == nullptr) {
    return false;
  }
  line = {first->chunk->bytes.data() + first->at + kHeadSize, first->head.size};
  first->at += kHeadSize + first->head.size;
  read_head(*first);
  return true;
}

void LineQueue::give_back(Taken& taken) noexcept {
  for (std::size_t i = 0; i < taken.used; ++i) {
    for (Chunk* chunk = taken.first[i]; chunk != nullptr;) {
      Chunk* const each = std::exchange(chunk, chunk->next);
      chunks_.fetch_sub(1, std::memory_order_relaxed);
      const sync::LockGuard lock(spare_mutex_);
      if (spares_ < kSpare) {
        each->next = std::exchange(spare_, each);
        ++spares_;
      } else {
        delete each;
      }
    }
  }
}

std::vector<LineQueue::Suppressed> LineQueue::take_suppressed(std::int64_t second, bool all) {
  std::vector<Suppressed> counts;
  for (Stripe& stripe : stripes_) {
    const sync::LockGuard lock(stripe.mutex);
    if (!stripe.repeats.waiting()) {
      continue;
    }
    counts.reserve(counts.size() + Repeats::kEvents + 1);  // before a count is taken
    stripe.repeats.take(second, all, [&](const Repeats::Entry& entry) {
      const auto same = std::find_if(counts.begin(), counts.end(), [&](const Suppressed& each) {
        return each.component == entry.component && each.event == entry.event;
      });
      if (same != counts.end()) {
        same->lines += entry.suppressed;
      } else {
        counts.push_back({entry.component, entry.event, entry.suppressed});
      }
    });
  }
  return counts;
}

void LineQueue::close() noexcept {
  for (Stripe& stripe : stripes_) {
    const sync::LockGuard lock(stripe.mutex);
    stripe.closed = true;
  }
}

void LineQueue::add_counts(LogCounts& sum) const noexcept {
  for (const Stripe& stripe : stripes_) {
    sync::add_counters(static_cast<StripeNumbers<std::uint64_t>&>(sum), stripe);
  }
}

// Without the lock, which a thread of the parent may have held.
void LineQueue::count_forked() noexcept { own_stripe().dropped_forked.fetch_add(1, std::memory_order_relaxed); }

}  // namespace weft::logging
