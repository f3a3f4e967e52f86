// SPDX-License-Identifier: MIT
#include "weft/serve/config/config.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string_view>

#include "weft/serve/config/table.h"
#include "weft/serve/server/server.h"
#include "weft/sys/files/whole_file.h"
#include "weft/sys/path.h"

namespace weft::serve::config {

namespace {

constexpr Error kRefused(Errc::invalid_argument, "the configuration is refused");
constexpr Error kNoMemoryToRead(Errc::resource_exhausted, "no memory for the configuration");

bool is_prefix(std::string_view prefix) {
  return std::all_of(prefix.begin(), prefix.end(),
                     [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

// Refuses the rows that change at the start and have another value than before.
template <typename Of>
void compare_rows(std::span<const Row<Of>> rows, const std::string& path, const Of& next, const Of& now,
                  const std::function<void(const std::string&, const Value&, const Value&)>& refuse) {
  for (const Row<Of>& row : rows) {
    if (row.key.change == Change::at_start) {
      const Value wanted = row.read(next);
      const Value used = row.read(now);
      if (!same_value(wanted, used)) {
        refuse(path + row.key.name, wanted, used);
      }
    }
  }
}

std::string directory_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

}  // namespace

Result<std::unique_ptr<Config>> Config::load(std::string file, ProgramKeys keys, LoadOptions options,
                                             Problems* problems) {
  Problems unread;
  Problems& all = problems != nullptr ? *problems : unread;
  all = {};
  try {
    std::unique_ptr<Config> config(new Config(std::move(file), std::move(keys), std::move(options)));
    auto draft = config->read(all);
    if (!draft) {
      return draft.error();
    }
    const sync::LockGuard lock(config->mutex_);
    config->current_ = std::make_shared<const Snapshot>(*std::move(draft), 1);
    return config;
  } catch (const std::bad_alloc&) {
    return kNoMemoryToRead;
  }
}

Result<Draft> Config::read(Problems& problems) const {
  Result<Draft> draft = read_file(problems);
  problems.sort();
  return draft;
}

Result<Draft> Config::read_file(Problems& problems) const {
  if (!keys_.mistake().empty()) {
    problems.add({{"the program"}, "", keys_.mistake()});
    return Error(Errc::invalid_argument, "a key of the program has a mistake");
  }
  if (!is_prefix(options_.environment_prefix)) {
    problems.add({{"the program"}, "", "a prefix of variables has capital letters, digits and '_'"});
    return Error(Errc::invalid_argument, "not a prefix of environment variables");
  }
  const auto text = sys::read_whole_file(file_, kFileMax);
  if (!text) {
    problems.add({{file_}, "", text.error().message()});
    return text.error();
  }
  Problem fault;
  fault.origin.source = file_;
  const auto root = parse_toml(*text, fault);
  if (!root) {
    problems.add(std::move(fault));
    return toml_available() ? kRefused : Error(Errc::not_supported, "this build has no TOML");
  }
  Draft draft;
  draft.program = keys_.defaults();
  read_tables(*root, file_, keys_, draft, problems);
  if (!options_.environment_prefix.empty()) {
    read_environment(options_.environment ? *options_.environment : sys::environment(), options_.environment_prefix,
                     keys_, draft, problems);
  }
  check_together(directory_of(file_), draft, problems);
  if (problems.empty()) {
    make_gates(options_.open_files, draft, problems);
  }
  return problems.empty() ? Result<Draft>(std::move(draft)) : kRefused;
}

std::shared_ptr<const Snapshot> Config::current() const {
  const sync::LockGuard lock(mutex_);
  return current_;
}

void Config::on_check(std::function<Result<void>(const Snapshot& next)> check) {
  const sync::LockGuard lock(mutex_);
  checks_.push_back(std::move(check));
}

void Config::on_change(std::function<void(const Snapshot& now, const Snapshot& before)> change) {
  const sync::LockGuard lock(mutex_);
  changes_.push_back(std::move(change));
}

void Config::govern(Server& server) {
  const sync::LockGuard lock(mutex_);
  governed_.push_back(&server);
}

void Config::govern(logging::Log& log) {
  const sync::LockGuard lock(mutex_);
  governed_log_ = &log;
}

// --- reload ---

Result<void> Config::reload(Problems* problems) {
  Problems unread;
  Problems& all = problems != nullptr ? *problems : unread;
  all = {};
  {
    const sync::LockGuard lock(mutex_);
    if (reloader_ == std::this_thread::get_id()) {
      return Error(Errc::invalid_state, "a function of reload() called it");
    }
  }
  const sync::LockGuard one_at_a_time(reloads_);
  set_reloader(std::this_thread::get_id());
  Result<void> result;
  try {
    result = reload_once(all);
  } catch (const std::bad_alloc&) {
    result = kNoMemoryToRead;
  }
  set_reloader({});
  return result;
}

void Config::set_reloader(std::thread::id thread) {
  const sync::LockGuard lock(mutex_);
  reloader_ = thread;
}

Result<void> Config::reload_once(Problems& problems) {
  Draft draft = WEFT_TRY(read(problems));
  const std::shared_ptr<const Snapshot> before = current();
  refuse_changes_at_start(draft, *before, problems);
  const auto next = std::make_shared<Snapshot>(std::move(draft), before->generation() + 1);
  if (problems.empty()) {
    ask_checks(*next, problems);
  }
  std::optional<logging::Log::Change> log_change;
  if (problems.empty()) {
    log_change = prepare_log(*next, problems);
  }
  problems.sort();
  return problems.empty() ? commit(next, *before, std::move(log_change)) : Result<void>(kRefused);
}

std::optional<logging::Log::Change> Config::prepare_log(const Snapshot& next, Problems& problems) const {
  logging::Log* log = nullptr;
  {
    const sync::LockGuard lock(mutex_);
    log = governed_log_;
  }
  if (log == nullptr) {
    return std::nullopt;
  }
  auto change = log->prepare(next.log.settings);
  if (!change) {
    const auto at = next.origins().find("logging.file");
    problems.add({at != next.origins().end() ? at->second : Origin{file_}, "logging.file",
                  quote(next.log.settings.file) + " is refused: " + change.error().message()});
    return std::nullopt;
  }
  return *std::move(change);
}

void Config::refuse_changes_at_start(const Draft& next, const Snapshot& now, Problems& problems) const {
  const auto refuse = [&](const std::string& key, const Value& wanted, const Value& used) {
    const auto at = next.origins.find(key);
    problems.add({at != next.origins.end() ? at->second : Origin{file_}, key,
                  "this key changes only at a start: " + to_text(used) + " is in use, and not " + to_text(wanted)});
  };
  compare_rows<Settings>(settings_rows(), "", next.settings, now, refuse);
  if (next.settings.admin_tls.certificate_file.empty() != now.admin_tls.certificate_file.empty()) {
    problems.add({{file_}, "admin.tls", "TLS begins and ends only at a start"});
  }
  const auto& listeners = next.settings.listeners;
  if (listeners.size() != now.listeners.size()) {
    problems.add({{file_},
                  "listener",
                  "listeners come and go only at a start: " + std::to_string(now.listeners.size()) +
                      " in use, and not " + std::to_string(listeners.size())});
    return;
  }
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    const std::string path = "listener[" + std::to_string(i) + "].";
    compare_rows<ListenerSettings>(listener_rows(), path, listeners[i], now.listeners[i], refuse);
    if (listeners[i].tls.certificate_file.empty() != now.listeners[i].tls.certificate_file.empty()) {
      problems.add({{file_}, path + "tls", "TLS begins and ends only at a start"});
    }
  }
  for (std::size_t i = 0; i < keys_.keys().size(); ++i) {
    const Key& key = keys_.keys()[i];
    if (key.change == Change::at_start && !same_value(next.program[i], now.program()[i])) {
      refuse("app." + key.name, next.program[i], now.program()[i]);
    }
  }
}

void Config::ask_checks(const Snapshot& next, Problems& problems) {
  std::vector<std::function<Result<void>(const Snapshot&)>> checks;
  {
    const sync::LockGuard lock(mutex_);
    checks = checks_;
  }
  for (const auto& check : checks) {
    try {
      if (const Result<void> good = check(next); !good) {
        problems.add({{"the program"}, "", good.error().message()});
      }
    } catch (const std::exception& thrown) {
      problems.add({{"the program"}, "", thrown.what()});
    } catch (...) {
      problems.add({{"the program"}, "", "a check threw an exception"});
    }
  }
}

Result<void> Config::commit(const std::shared_ptr<Snapshot>& next, const Snapshot& before,
                            std::optional<logging::Log::Change> log_change) {
  std::vector<std::function<void(const Snapshot&, const Snapshot&)>> changes;
  {
    const sync::LockGuard lock(mutex_);
    changes = changes_;
    // From here on nothing fails.
    if (before.admin.tls != nullptr) {
      before.admin.tls->adopt(*next->admin.tls);
      next->admin.tls = before.admin.tls;
    }
    for (std::size_t i = 0; i < next->listeners.size(); ++i) {
      ListenerOptions& options = next->listeners[i].options;
      const ListenerOptions& used = before.listeners[i].options;
      used.admission->adopt(*options.admission);
      options.admission = used.admission;
      if (used.tls != nullptr) {
        used.tls->adopt(*options.tls);
      }
      options.tls = used.tls;
      next->listeners[i].live_limits = before.listeners[i].live_limits;
      options.live_limits = used.live_limits;
      next->listeners[i].live_limits->set(options.limits);
    }
    for (Server* const server : governed_) {
      server->set_bounds(next->server.sessions_max, next->server.memory_max);
    }
    if (log_change) {
      governed_log_->adopt(*std::move(log_change));
    }
    current_ = next;
  }
  Result<void> result;
  for (const auto& change : changes) {
    try {
      change(*next, before);
    } catch (...) {
      result = Error(Errc::job_threw, "a function of on_change() threw; the new configuration is in use");
    }
  }
  return result;
}

}  // namespace weft::serve::config
