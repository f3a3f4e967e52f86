// SPDX-License-Identifier: MIT
#include "weft/logging/log.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "weft/logging/log_state.h"
#include "weft/sync/condition.h"
#include "weft/sys/clock.h"
#include "weft/sys/signals.h"

namespace weft::logging {

namespace {

constexpr Duration kStopTimeout = std::chrono::seconds(5);
constexpr std::uint32_t kRotatedFilesMax = 10'000;
constexpr std::size_t kRulesMax = 4096;
constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for a log");
constexpr Error kElsewhere(Errc::invalid_state, "the log is of the parent process");

using Rules = std::vector<std::pair<std::string, Level>>;

Result<Rules> check_settings(const LogSettings& settings) {
  if (settings.rotation.files == 0 || settings.rotation.files > kRotatedFilesMax) {
    return Error(Errc::invalid_argument, "a log keeps 1 to 10,000 rotated files");
  }
  if (settings.levels.size() > kRulesMax) {
    return Error(Errc::invalid_argument, "a log has at most 4,096 rules for levels");
  }
  Rules rules;
  for (const std::string& text : settings.levels) {
    const auto rule = parse_level_rule(text);
    if (!rule) {
      return Error(Errc::invalid_argument, "a rule for levels is like \"serve=debug\"");
    }
    rules.emplace_back(rule->component, rule->level);
  }
  return rules;
}

}  // namespace

void Logger::add(Level level, StaticText event, std::span<const Field> fields) const noexcept {
  state_->add(level, *component_, event, fields);
}

Result<std::shared_ptr<Log>> Log::make(LogOptions options) {
  try {
    if (options.queue_bytes < LineQueue::kBytesMin) {
      return Error(Errc::invalid_argument, "the queue of a log has 1 MiB at least");
    }
    Rules rules = WEFT_TRY(check_settings(options.settings));
    const bool function = static_cast<bool>(options.output);
    Result<Output> output = function ? Output(std::move(options.output)) : Output::open(options.settings.file);
    if (!output) {
      return output.error();
    }
    const auto state = std::make_shared<LogState>(options.queue_bytes, *std::move(output), function);
    {
      const sync::LockGuard lock(state->components_mutex);
      state->fallback = options.settings.level;
      state->rules = std::move(rules);
    }
    state->manner.set(options.settings);
    state->manner.set(state->output);
    {
      const sync::LockGuard lock(state->wake_mutex);
      state->rotation = options.settings.rotation;
    }
    state->output.rotate_by(options.settings.rotation);
    std::shared_ptr<Log> log(new Log(state));
    const sys::SignalsBlocked blocked;
    log->thread_ = WEFT_TRY(sys::Thread::start([](void* self) { static_cast<LogState*>(self)->run(); }, state.get()));
    return log;
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
}

Log::~Log() {
  if (birth_.elsewhere()) {
    // The condition variables still count the writer of the parent: their destruction would wait for it.
    (void)new (std::nothrow) std::shared_ptr<LogState>(state_);
    return;
  }
  stop(deadline_after(sys::now(), kStopTimeout));
}

Result<Logger> Log::logger(std::string_view component) {
  if (birth_.elsewhere()) {
    return kElsewhere;
  }
  if (!is_component(component)) {
    return Error(Errc::invalid_argument, "not the name of a component, like \"shop.orders\"");
  }
  try {
    const sync::LockGuard lock(state_->components_mutex);
    auto& all = state_->components;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const LogComponent& each) { return each.name == component; });
    if (found != all.end()) {
      return Logger(state_, &*found);
    }
    if (all.size() == kComponentsMax) {
      return Error(Errc::resource_exhausted, "a log has at most 1,024 components");
    }
    LogComponent& made = all.emplace_back();
    made.name = component;
    made.level.store(state_->level_of(component), std::memory_order_relaxed);  // see Logger::writes()
    return Logger(state_, &made);
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
}

Result<void> Log::set_level(std::string_view component, Level level) {
  if (birth_.elsewhere()) {
    return kElsewhere;
  }
  if (!component.empty() && !is_component(component)) {
    return Error(Errc::invalid_argument, "not the name of a component, like \"shop.orders\"");
  }
  try {
    const sync::LockGuard lock(state_->components_mutex);
    Rules& rules = state_->rules;
    const auto found =
        std::find_if(rules.begin(), rules.end(), [&](const auto& rule) { return rule.first == component; });
    if (component.empty()) {
      state_->fallback = level;
    } else if (found != rules.end()) {
      found->second = level;
    } else if (rules.size() == kRulesMax) {
      return Error(Errc::resource_exhausted, "a log has at most 4,096 rules for levels");
    } else {
      rules.emplace_back(component, level);
    }
    state_->set_levels();
    return {};
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
}

Level Log::level_of(std::string_view component) const {
  if (birth_.elsewhere()) {
    return Level::off;
  }
  const sync::LockGuard lock(state_->components_mutex);
  return state_->level_of(component);
}

Result<Log::Change> Log::prepare(const LogSettings& settings) const {
  if (birth_.elsewhere()) {
    return kElsewhere;
  }
  try {
    Change change;
    change.rules_ = WEFT_TRY(check_settings(settings));
    change.settings_ = settings;
    if (!state_->output_is_function) {
      change.output_ = WEFT_TRY(Output::open(settings.file));
    }
    return change;
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
}

void Log::adopt(Change change) noexcept {
  if (birth_.elsewhere()) {
    return;
  }
  {
    const sync::LockGuard lock(state_->components_mutex);
    state_->fallback = change.settings_.level;
    state_->rules = std::move(change.rules_);
    state_->set_levels();
  }
  state_->manner.set(change.settings_);
  {
    const sync::LockGuard lock(state_->wake_mutex);
    state_->rotation = change.settings_.rotation;
    state_->next_output = std::move(change.output_);
    state_->wanted = true;
  }
  state_->wake_writer.notify_one();
}

Result<void> Log::apply(const LogSettings& settings) {
  adopt(WEFT_TRY(prepare(settings)));
  return {};
}

void Log::reopen() noexcept {
  if (birth_.elsewhere()) {
    return;
  }
  {
    const sync::LockGuard lock(state_->wake_mutex);
    state_->reopen = true;
    state_->wanted = true;
  }
  state_->wake_writer.notify_one();
}

Result<void> Log::flush_until(Instant deadline) {
  if (birth_.elsewhere()) {
    return kElsewhere;
  }
  sync::UniqueLock lock(state_->wake_mutex);
  if (state_->ending) {
    return Error(Errc::closed, "the log has stopped");
  }
  const std::uint64_t flush = ++state_->flushes_wanted;
  state_->wake_writer.notify_one();
  while (state_->flushes_done < flush) {
    if (!sync::sleep_until(state_->flushed_changed, lock, deadline)) {
      return Error(Errc::timed_out, "the output has not taken all lines");
    }
  }
  return {};
}

void Log::stop(Instant deadline) noexcept {
  if (birth_.elsewhere()) {
    return;
  }
  {
    const sync::LockGuard lock(state_->wake_mutex);
    if (!state_->ending) {
      state_->ending = true;
      state_->end_deadline = deadline;
    }
  }
  state_->wake_writer.notify_one();
  thread_.join();
}

LogCounts Log::counts() const noexcept { return state_->counts(); }

CounterSource Log::counter_source() const {
  return [weak = std::weak_ptr<const LogState>(state_)](std::string_view name, CounterReadings& into) {
    if (const auto state = weak.lock()) {
      into.push_back({&kLogTable, {{"log", std::string(name)}}, sync::read_counters(state->counts())});
    }
  };
}

}  // namespace weft::logging
