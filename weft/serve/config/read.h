// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/serve/config/program_keys.h"
#include "weft/serve/config/settings.h"

namespace weft::serve::config {

inline constexpr std::size_t kListenersMax = 256;

// Draft: a configuration that was read, and is not in use.
struct Draft {
  Settings settings{};
  std::vector<Value> program{};                               // in the order of ProgramKeys
  std::vector<std::pair<std::string, std::string>> others{};  // see ProgramKeys::take_others()
  // Where each key was set, by its full name; also "listener[0]". A key without an origin has its default.
  std::map<std::string, Origin, std::less<>> origins{};
};

// Reads the tables of a file into the draft, whose program values are the defaults. Adds a problem for each wrong one.
void read_tables(const TomlNode& root, const std::string& source, const ProgramKeys& keys, Draft& into,
                 Problems& problems);

// Reads the variables ("NAME=value") that set a key over the draft. A variable of PREFIX_SERVER_, _STOP_, _ADMIN_,
// _LOGGING_, _LISTENER_ or _APP_ that sets no key is a problem.
void read_environment(std::span<const std::string> variables, std::string_view prefix, const ProgramKeys& keys,
                      Draft& into, Problems& problems);
// "WEFT_LISTENER_0_LIMITS_IDLE_TIMEOUT" for the prefix "WEFT" and the key "listener[0].limits.idle_timeout".
[[nodiscard]] std::string variable_of(std::string_view prefix, std::string_view key);

// Checks the settings that depend on each other, and makes paths of files that are relative to the directory
// (without a '/' at its end).
void check_together(const std::string& directory, Draft& draft, Problems& problems);

// Makes the TlsServer and the Admission of each listener. `open_files` false: without the TlsServer, which reads files.
void make_gates(bool open_files, Draft& draft, Problems& problems);

}  // namespace weft::serve::config
