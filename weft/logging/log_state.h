// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/time.h"
#include "weft/logging/line_queue.h"
#include "weft/logging/log.h"
#include "weft/logging/output.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"
#include "weft/sys/fork.h"

namespace weft::logging {

// LogState: the members that a Log, its loggers and its writer share.
// Owner: shared_ptrs of the Log and the loggers. The writer ends before the Log.
// Affinity: any thread, where a comment does not say more.
struct LogState {
  LogState(std::size_t queue_bytes, Output first, bool first_is_function);

  void add(Level level, const LogComponent& component, StaticText event, std::span<const Field> fields) noexcept;
  void run() noexcept;  // the writer's thread
  void wake() noexcept;
  [[nodiscard]] LogCounts counts() const noexcept;

  const sys::Birth birth{};
  LineQueue queue;
  WriterCounters counters{};
  // How a line is written. Relaxed: a change reaches each thread soon.
  struct Manner {
    std::atomic<Format> format{Format::text};
    std::atomic<bool> with_priority{false};
    std::atomic<std::uint32_t> repeats_max{0};

    void set(const LogSettings& settings) noexcept {
      format.store(settings.format, std::memory_order_relaxed);
      repeats_max.store(settings.repeats_max, std::memory_order_relaxed);
    }
    void set(const Output& output) noexcept {
      with_priority.store(output.takes_priorities(), std::memory_order_relaxed);
    }
    [[nodiscard]] LineQueue::Manner read() const noexcept {
      return {format.load(std::memory_order_relaxed), with_priority.load(std::memory_order_relaxed),
              repeats_max.load(std::memory_order_relaxed)};
    }
  };
  Manner manner;
  // Whether the writer sleeps until a line comes. The stripes' locks order it: the writer sets it before it checks each
  // stripe under its lock, and a caller reads it after it has added a line under that lock.
  std::atomic<bool> asleep{false};

  // The level of a component by the rules.
  [[nodiscard]] Level level_of(std::string_view component) const noexcept WEFT_REQUIRES(components_mutex);
  void set_levels() noexcept WEFT_REQUIRES(components_mutex);  // of all components, by the rules

  mutable sync::StdMutex components_mutex;
  std::deque<LogComponent> components WEFT_GUARDED_BY(components_mutex);
  Level fallback WEFT_GUARDED_BY(components_mutex) = Level::info;  // of components without a rule
  std::vector<std::pair<std::string, Level>> rules WEFT_GUARDED_BY(components_mutex);

  sync::StdMutex wake_mutex;
  sync::Condition wake_writer;
  sync::Condition flushed_changed;
  bool wanted WEFT_GUARDED_BY(wake_mutex) = false;  // the writer has work now
  bool reopen WEFT_GUARDED_BY(wake_mutex) = false;
  bool ending WEFT_GUARDED_BY(wake_mutex) = false;
  Instant end_deadline WEFT_GUARDED_BY(wake_mutex){};
  std::optional<Output> next_output WEFT_GUARDED_BY(wake_mutex);
  Rotation rotation WEFT_GUARDED_BY(wake_mutex){};
  std::uint64_t flushes_wanted WEFT_GUARDED_BY(wake_mutex) = 0;
  std::uint64_t flushes_done WEFT_GUARDED_BY(wake_mutex) = 0;

  const bool output_is_function;
  Output output;  // the writer's

 private:
  // The writer's steps.
  [[nodiscard]] bool has_call() const noexcept WEFT_REQUIRES(wake_mutex) {
    return wanted || ending || flushes_wanted != flushes_done;
  }
  void wait_for_work(sync::UniqueLock<sync::StdMutex>& lock, bool idle) WEFT_REQUIRES(wake_mutex);
  void take_settings();
  void write_lines() noexcept;
  void write_reports(bool all) noexcept;
  [[nodiscard]] bool report(StaticText event, std::span<const Field> fields) noexcept;
  void flush_buffer() noexcept;
  [[nodiscard]] bool gives_up();

  // The writer's own.
  std::string buffer_;  // whole lines; its memory is reserved
  TimeText time_{};
  std::uint64_t reported_drops_ = 0;
};

}  // namespace weft::logging
