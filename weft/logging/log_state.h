// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
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
  std::atomic<Format> format{Format::text};
  std::atomic<bool> with_priority{false};
  std::atomic<std::uint32_t> repeats_max{0};
  // Whether the writer sleeps until a line comes. The stripes' locks order it: the writer sets it before it checks each
  // stripe under its lock, and a caller reads it after it has added a line under that lock.
  std::atomic<bool> asleep{false};

  // The level of a component by the rules. Under components_mutex.
  [[nodiscard]] Level level_of(std::string_view component) const noexcept;
  void set_levels() noexcept;  // of all components, by the rules

  mutable std::mutex components_mutex;
  std::deque<LogComponent> components;  // guarded by components_mutex, like the next two
  Level fallback = Level::info;         // of components without a rule
  std::vector<std::pair<std::string, Level>> rules;

  std::mutex wake_mutex;  // guards the rest, except the writer's
  std::condition_variable wake_writer;
  std::condition_variable flushed_changed;
  bool wanted = false;  // the writer has work now
  bool reopen = false;
  bool ending = false;
  Instant end_deadline{};
  std::optional<Output> next_output;
  Rotation rotation{};
  std::uint64_t flushes_wanted = 0;
  std::uint64_t flushes_done = 0;

  const bool output_is_function;
  Output output;  // the writer's

 private:
  // The writer's steps.
  void wait_for_work(std::unique_lock<std::mutex>& lock, bool idle);
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
