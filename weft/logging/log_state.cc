// SPDX-License-Identifier: MIT
#include "weft/logging/log_state.h"

#include <chrono>
#include <exception>

#include "weft/sys/clock.h"
#include "weft/sys/thread.h"

namespace weft::logging {

namespace {

constexpr Duration kInterval = std::chrono::milliseconds(20);  // between two writes
constexpr std::size_t kWriteSize = 128 * 1024;                 // bytes of one write
static_assert(kWriteSize >= LineQueue::kChunkSize && kWriteSize >= 2 * kLineMax);

std::int64_t wall_ns() noexcept { return sys::wall_now().time_since_epoch().count(); }

}  // namespace

LogState::LogState(std::size_t queue_bytes, Output first, bool first_is_function)
    : queue(queue_bytes), output_is_function(first_is_function), output(std::move(first)) {
  buffer_.reserve(kWriteSize);
}

void LogState::add(Level level, const LogComponent& component, StaticText event,
                   std::span<const Field> fields) noexcept {
  if (birth.elsewhere()) {
    return queue.count_forked();
  }
  const char* const text = event.c_str() == nullptr ? "" : event.c_str();
  const LineQueue::Outcome outcome =
      queue.add({wall_ns(), level, component.name, text, fields}, &component, text, manner.read());
  // Relaxed: the stripe's lock orders it, see `asleep`.
  if (outcome == LineQueue::Outcome::pressing ||
      (asleep.load(std::memory_order_relaxed) && asleep.exchange(false, std::memory_order_relaxed))) {
    wake();
  }
}

void LogState::wake() noexcept {
  {
    const sync::LockGuard lock(wake_mutex);
    wanted = true;
  }
  wake_writer.notify_one();
}

Level LogState::level_of(std::string_view component) const noexcept {
  Level level = fallback;
  std::size_t longest = 0;
  for (const auto& [name, ruled] : rules) {
    const bool fits = component.starts_with(name) && (component.size() == name.size() || component[name.size()] == '.');
    if (fits && name.size() >= longest) {  // of two rules for one name the later one
      longest = name.size();
      level = ruled;
    }
  }
  return level;
}

void LogState::set_levels() noexcept {
  for (LogComponent& component : components) {
    component.level.store(level_of(component.name), std::memory_order_relaxed);  // see Logger::writes()
  }
}

LogCounts LogState::counts() const noexcept {
  LogCounts sum;
  // The writer's numbers first: no line is counted there that is not yet counted in the queue.
  sync::add_counters(static_cast<WriterNumbers<std::uint64_t>&>(sum), counters);
  queue.add_counts(sum);
  return sum;
}

// --- the writer ---

void LogState::run() noexcept {
  sys::set_up_thread("log", {});
  bool idle = true;
  for (bool last = false; !last;) {
    std::uint64_t flushes = 0;
    bool all = false;
    {
      sync::UniqueLock lock(wake_mutex);
      wait_for_work(lock, idle);
      last = ending;
      flushes = flushes_wanted;
      all = last || flushes != flushes_done;
    }
    take_settings();
    if (last) {
      queue.close();
    }
    idle = !queue.has_work();
    write_lines();
    write_reports(all);
    {
      const sync::LockGuard lock(wake_mutex);
      flushes_done = flushes;
    }
    flushed_changed.notify_all();
  }
}

void LogState::wait_for_work(sync::UniqueLock<sync::StdMutex>& lock, bool idle) {
  if (idle) {
    asleep.store(true, std::memory_order_relaxed);  // see `asleep`
    while (!queue.has_work() && !has_call()) {
      wake_writer.wait(lock);
    }
    asleep.store(false, std::memory_order_relaxed);
  } else {
    const Instant next = deadline_after(sys::now(), kInterval);
    while (!has_call() && sync::sleep_until(wake_writer, lock, next)) {
    }
  }
  wanted = false;
}

// Before the lines are taken: a line after a change goes to the output of the change.
void LogState::take_settings() {
  std::optional<Output> next;
  bool open_again = false;
  Rotation by;
  {
    const sync::LockGuard lock(wake_mutex);
    next.swap(next_output);
    open_again = std::exchange(reopen, false);
    by = rotation;
  }
  if (next) {
    output = *std::move(next);
  } else if (open_again) {
    (void)output.reopen();  // if it fails, the lines go to the file that is open
  }
  output.rotate_by(by);
  manner.set(output);
}

void LogState::write_lines() noexcept {
  queue.take([this](std::string_view line) noexcept {
    if (line.size() > kWriteSize - buffer_.size()) {
      flush_buffer();
    }
    buffer_.append(line);
  });
  flush_buffer();
}

void LogState::flush_buffer() noexcept {
  if (!buffer_.empty()) {
    output.write(buffer_, [this] { return gives_up(); }, counters);
    buffer_.clear();
  }
}

bool LogState::gives_up() {
  const sync::LockGuard lock(wake_mutex);
  return ending && sys::now() >= end_deadline;
}

void LogState::write_reports(bool all) noexcept {
  try {
    for (const LineQueue::Suppressed& each : queue.take_suppressed(wall_ns() / 1'000'000'000, all)) {
      const auto* const component = static_cast<const LogComponent*>(each.component);
      const std::string_view of = each.event == nullptr ? "several events" : each.event;
      const std::string_view by = component == nullptr ? std::string_view("several components") : component->name;
      const Field fields[] = {{"of", of}, {"by", by}, {"lines", each.lines}};
      (void)report("suppressed", fields);
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory; the counters have the numbers
  }
  LogCounts sum;
  queue.add_counts(sum);
  // Relaxed: the writer itself counts it.
  const std::uint64_t drops =
      sum.dropped_queue + sum.dropped_memory + counters.dropped_failed.load(std::memory_order_relaxed);
  if (drops != reported_drops_) {
    const Field fields[] = {{"lines", drops - reported_drops_}};
    if (report("dropped", fields)) {
      reported_drops_ = drops;
    }
  }
}

// A report that the output does not take is not a dropped line.
bool LogState::report(StaticText event, std::span<const Field> fields) noexcept {
  const LineParts parts{wall_ns(), Level::warning, "logging", event.c_str(), fields};
  std::size_t bound = 0;
  (void)count_fitting(parts, bound);  // they all fit
  buffer_.resize(bound);
  const LineQueue::Manner now = manner.read();
  const char* const end = write_line(parts, now.format, now.with_priority, time_, buffer_.data());
  buffer_.resize(static_cast<std::size_t>(end - buffer_.data()));
  WriterCounters own{};
  output.write(buffer_, [this] { return gives_up(); }, own);
  buffer_.clear();
  const bool written = own.written.load(std::memory_order_relaxed) != 0;
  // Relaxed: numbers stand alone.
  counters.reports.fetch_add(written ? 1 : 0, std::memory_order_relaxed);
  counters.written_bytes.fetch_add(own.written_bytes.load(std::memory_order_relaxed), std::memory_order_relaxed);
  counters.rotations.fetch_add(own.rotations.load(std::memory_order_relaxed), std::memory_order_relaxed);
  counters.rotations_failed.fetch_add(own.rotations_failed.load(std::memory_order_relaxed), std::memory_order_relaxed);
  return written;
}

}  // namespace weft::logging
