// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "weft/base/result.h"
#include "weft/logging/log.h"
#include "weft/serve/config/problem.h"
#include "weft/serve/config/program_keys.h"
#include "weft/serve/config/read.h"
#include "weft/sync/lock.h"

namespace weft::serve {
class Server;
}

namespace weft::serve::config {

// Snapshot: a configuration at one moment: the settings of the server's parts, and the values of the program's keys.
// Owner: shared by all that use it. Affinity: immutable; any thread. Cost: get() copies the value.
class Snapshot : public Settings {
 public:
  explicit Snapshot(Draft draft, std::uint64_t generation)
      : Settings(std::move(draft.settings)),
        program_(std::move(draft.program)),
        others_(std::move(draft.others)),
        origins_(std::move(draft.origins)),
        generation_(generation) {}

  // The value of a key of the ProgramKeys that the Config was loaded with.
  template <typename T>
  [[nodiscard]] T get(const ProgramKey<T>& key) const {
    const T* const value = key.index() < program_.size() ? std::get_if<T>(&program_[key.index()]) : nullptr;
    return value != nullptr ? *value : key.fallback();
  }
  // The keys of [app] that no row of ProgramKeys has, and their values as texts.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& others() const noexcept { return others_; }
  [[nodiscard]] const std::vector<Value>& program() const noexcept { return program_; }
  [[nodiscard]] const std::map<std::string, Origin, std::less<>>& origins() const noexcept { return origins_; }
  // 1 after load(), and one more after each reload() that succeeded.
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

 private:
  std::vector<Value> program_;
  std::vector<std::pair<std::string, std::string>> others_;
  std::map<std::string, Origin, std::less<>> origins_;
  std::uint64_t generation_;
};

struct LoadOptions {
  // Environment variables PREFIX_SERVER_CORES and so on set keys over the file. Capital letters, digits and '_'. Empty:
  // no variable does.
  std::string environment_prefix = "WEFT";
  // "NAME=value", instead of the variables of the process.
  std::optional<std::vector<std::string>> environment{};
  bool open_files = true;  // false: certificates are not read, and no listener gets its TlsServer
};

// Config: the configuration of a server, from one TOML file (docs/configuration.md has its keys).
// A file has errors: load() and reload() report each of them, with its line, its key and the rule. Only a fault of the
// syntax hides those after it.
// Owner: the program. It outlives the functions that it calls. Affinity: any thread; a reload() waits for another one.
// Cost: current() is a lock and a reference count. The file has at most 1 MiB, and takes about 200 bytes of memory for
// each of its values while it is read.
// Invariants:
//   1. A snapshot never changes. A reload() that fails changes nothing.
//   2. reload() applies a file as a whole: every key, or none. It refuses a file that changes a key of
//      Change::at_start.
class Config {
 public:
  // Errors: invalid_argument (the file is refused: `problems` has the reasons); not_found and the others of
  // sys::read_whole_file(); not_supported (the build has no TOML); resource_exhausted (no memory). `problems` gets
  // the reason of each error.
  [[nodiscard]] static Result<std::unique_ptr<Config>> load(std::string file, ProgramKeys keys = {},
                                                            LoadOptions options = {}, Problems* problems = nullptr);
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;
  ~Config() = default;

  [[nodiscard]] std::shared_ptr<const Snapshot> current() const;
  [[nodiscard]] const ProgramKeys& keys() const noexcept { return keys_; }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }

  // Reads the file, the environment and the certificates again. If all are good, it
  // - gives the listeners' TlsServer, Admission and LiveLimits their new rules, for the connections from then on;
  // - gives the governed servers their new bounds, and the governed log its new settings;
  // - makes the new snapshot the current one;
  // - calls the functions of on_change().
  // Errors: those of load(); invalid_argument also if a key of Change::at_start has another value, or a function of
  // on_check() refuses; invalid_state (one of these functions called reload()); job_threw (a function of on_change()
  // threw: the new snapshot is the current one, and the other functions were called).
  Result<void> reload(Problems* problems = nullptr);

  // Decides about the next snapshot before reload() changes anything. An error, or an exception, refuses it. Called by
  // reload(), on its thread.
  void on_check(std::function<Result<void>(const Snapshot& next)> check);
  // Called by reload() after the change, on its thread.
  void on_change(std::function<void(const Snapshot& now, const Snapshot& before)> change);
  // reload() gives this server the bounds of [server] that change at run time. The server outlives the last reload().
  void govern(Server& server);
  // reload() gives this log the keys of [logging] that change at run time, and opens its file again: a file that cannot
  // be opened refuses the next snapshot. A second call replaces the log. It outlives the last reload().
  void govern(logging::Log& log);

 private:
  Config(std::string file, ProgramKeys keys, LoadOptions options)
      : file_(std::move(file)), keys_(std::move(keys)), options_(std::move(options)) {}

  Result<Draft> read(Problems& problems) const;
  Result<Draft> read_file(Problems& problems) const;
  void refuse_changes_at_start(const Draft& next, const Snapshot& now, Problems& problems) const;
  void set_reloader(std::thread::id thread);
  Result<void> reload_once(Problems& problems);
  void ask_checks(const Snapshot& next, Problems& problems);
  [[nodiscard]] std::optional<logging::Log::Change> prepare_log(const Snapshot& next, Problems& problems) const;
  Result<void> commit(const std::shared_ptr<Snapshot>& next, const Snapshot& before,
                      std::optional<logging::Log::Change> log_change);

  const std::string file_;
  const ProgramKeys keys_;
  const LoadOptions options_;

  sync::StdMutex reloads_;  // held by the reload() that runs
  mutable sync::StdMutex mutex_;
  std::shared_ptr<const Snapshot> current_ WEFT_GUARDED_BY(mutex_);
  std::thread::id reloader_ WEFT_GUARDED_BY(mutex_);  // the thread of the reload() that runs
  std::vector<std::function<Result<void>(const Snapshot&)>> checks_ WEFT_GUARDED_BY(mutex_);
  std::vector<std::function<void(const Snapshot&, const Snapshot&)>> changes_ WEFT_GUARDED_BY(mutex_);
  std::vector<Server*> governed_ WEFT_GUARDED_BY(mutex_);
  logging::Log* governed_log_ WEFT_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace weft::serve::config
