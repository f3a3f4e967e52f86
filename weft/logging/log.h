// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/base/error.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/logging/field.h"
#include "weft/logging/level.h"
#include "weft/logging/line.h"
#include "weft/logging/log_counts.h"
#include "weft/logging/output.h"
#include "weft/sys/fork.h"
#include "weft/sys/thread.h"

namespace weft::logging {

// LogSettings: the part of a log that may change while it runs.
struct LogSettings {
  Level level = Level::info;
  // "serve=debug": the level of a component and of those below it. The longest name that fits decides.
  std::vector<std::string> levels{};
  Format format = Format::text;
  std::string file{};  // empty: standard error
  Rotation rotation{std::uint64_t{64} << 20, 5};
  // Lines of one event in one second, of each core; the others are suppressed and counted. 0: no bound.
  std::uint32_t repeats_max = 100;
};

struct LogOptions {
  LogSettings settings{};
  std::size_t queue_bytes = std::size_t{4} << 20;  // of lines that wait for a slow output; 1 MiB at least
  Output::Function output{};                       // instead of the file
};

struct LogState;
class Log;

// LogComponent: a named part of the program, with its level. Owner: the state of a Log.
struct LogComponent {
  std::string name;
  std::atomic<Level> level{Level::off};
};

// Logger: writes the lines of one component.
//   const auto log = WEFT_TRY(program_log->logger("shop.orders"));
//   log.info("order placed", {{"order", 7}, {"customer", name}});
// The event is a literal: the values are fields. Lines of one event beyond `repeats_max` in a second are counted only.
// Owner: a value, which may outlive the Log: its lines are then dropped and counted. Affinity: any thread.
// Cost: a line below the component's level is a load and a branch, and the cost of its arguments. A written line
// costs a clock, a lock that threads rarely share, and its bytes. It waits for no output. Now and then it
// allocates a chunk of 64 KiB. It does not throw.
class Logger {
 public:
  using Fields = std::initializer_list<Field>;

  Logger() noexcept = default;  // writes no line

  [[nodiscard]] bool writes(Level level) const noexcept {
    // Relaxed: a change of the level reaches each thread soon.
    return component_ != nullptr && level >= component_->level.load(std::memory_order_relaxed);
  }
  void trace(StaticText event, Fields fields = {}) const noexcept { write(Level::trace, event, fields); }
  void debug(StaticText event, Fields fields = {}) const noexcept { write(Level::debug, event, fields); }
  void info(StaticText event, Fields fields = {}) const noexcept { write(Level::info, event, fields); }
  void warning(StaticText event, Fields fields = {}) const noexcept { write(Level::warning, event, fields); }
  void error(StaticText event, Fields fields = {}) const noexcept { write(Level::error, event, fields); }
  void write(Level level, StaticText event, Fields fields = {}) const noexcept {
    if (writes(level)) [[unlikely]] {
      add(level, event, {fields.begin(), fields.size()});
    }
  }
  // The same for fields that the program has in an array.
  void write_fields(Level level, StaticText event, std::span<const Field> fields) const noexcept {
    if (writes(level)) [[unlikely]] {
      add(level, event, fields);
    }
  }

 private:
  friend class Log;
  Logger(std::shared_ptr<LogState> state, const LogComponent* component) noexcept
      : state_(std::move(state)), component_(component) {}
  void add(Level level, StaticText event, std::span<const Field> fields) const noexcept;

  std::shared_ptr<LogState> state_;
  const LogComponent* component_ = nullptr;  // of the state
};

// Log: the log of a program: components with levels, a bounded queue, and a thread that writes it to one output.
//   const auto log = WEFT_TRY(logging::Log::make());
// Owner: a shared_ptr of the program. The destructor writes the lines that wait, for 5 s at most.
// Affinity: any thread; stop() and the destructor one. In a forked child, which has no writer, lines are dropped and
// counted, and calls fail with invalid_state: the child makes a Log of its own.
// Cost: a thread. It sleeps until a line comes, then writes the lines of every 20 ms, until 20 ms bring none. The
// last 20 ms are lost if the process dies of a signal.
// Invariants:
//   1. No caller waits for the output, or for room.
//   2. A line is written, or counted as suppressed or as dropped with its reason, once. Lines `event=suppressed` and
//      `event=dropped` of the component "logging" report the numbers.
//   3. Lines of one thread keep their order. Those of several threads are in the order of time within one write.
class Log {
 public:
  static constexpr std::size_t kComponentsMax = 1024;

  // Change: settings that were checked, with the file that they name.
  class Change {
   private:
    friend class Log;
    LogSettings settings_;
    std::vector<std::pair<std::string, Level>> rules_;
    std::optional<Output> output_;  // none: the one that is open
  };

  // Errors: invalid_argument (a rule of `levels`, a rotation to 0 files, a queue of less than 1 MiB); those of
  // sys::AppendFile::open(); resource_exhausted (no memory, no thread).
  [[nodiscard]] static Result<std::shared_ptr<Log>> make(LogOptions options = {});
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  // The same name leads to the same component. Errors: invalid_argument (not a name, see is_component());
  // resource_exhausted (kComponentsMax names, or no memory).
  [[nodiscard]] Result<Logger> logger(std::string_view component);

  // The level of a component and of those below it, until apply() replaces the rules; "" is about all without a rule.
  // Errors: invalid_argument (not a name); resource_exhausted.
  Result<void> set_level(std::string_view component, Level level);
  [[nodiscard]] Level level_of(std::string_view component) const;

  // Replaces the settings from the next line on; lines that still wait go to the new output, too. The file is opened,
  // also if it has the same name. Errors: those of make(); then nothing has changed.
  Result<void> apply(const LogSettings& settings);
  // The same in two steps, of which the second does not fail.
  [[nodiscard]] Result<Change> prepare(const LogSettings& settings) const;
  void adopt(Change change) noexcept;
  // Opens the file again after another program has renamed it, with the next write. If that fails, the lines go to the
  // old one.
  void reopen() noexcept;

  // Waits until the lines of before this call are written, or dropped. Errors: timed_out; closed (the log has stopped).
  Result<void> flush_until(Instant deadline);
  // Writes the lines that wait, and ends the thread. After the deadline it gives up an output that takes no bytes; a
  // disk and a function of the program are waited for. Later lines are dropped. Idempotent.
  void stop(Instant deadline) noexcept;

  [[nodiscard]] LogCounts counts() const noexcept;
  // The same for a page of metrics, as long as the log or a logger of it exists: admin->add("program", *log).
  [[nodiscard]] CounterSource counter_source() const;

 private:
  explicit Log(std::shared_ptr<LogState> state) noexcept : state_(std::move(state)) {}

  const std::shared_ptr<LogState> state_;
  const sys::Birth birth_;
  sys::Thread thread_;
};

}  // namespace weft::logging
