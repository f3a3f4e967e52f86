// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>

#include "weft/serve/config/read.h"
#include "weft/serve/config/table.h"

namespace weft::serve::config {

namespace {

constexpr std::array<std::string_view, 6> kSectionsOfVariables{"SERVER_",  "STOP_",     "ADMIN_",
                                                               "LOGGING_", "LISTENER_", "APP_"};

// VariableReader: the variables of one environment into one draft.
class VariableReader {
 public:
  VariableReader(std::string_view prefix, Draft& into, Problems& problems)
      : prefix_(prefix), into_(into), problems_(problems) {}

  void collect(std::span<const std::string> variables) {
    for (const std::string& each : variables) {
      const std::size_t equals = each.find('=');
      if (equals == std::string::npos || !each.starts_with(prefix_) || equals <= prefix_.size() ||
          each[prefix_.size()] != '_') {
        continue;
      }
      const std::string_view name = std::string_view(each).substr(0, equals);
      const std::string_view section = name.substr(prefix_.size() + 1);
      if (std::any_of(kSectionsOfVariables.begin(), kSectionsOfVariables.end(),
                      [&](std::string_view begin) { return section.starts_with(begin); })) {
        found_.emplace(name, std::string_view(each).substr(equals + 1));
      }
    }
  }
  [[nodiscard]] bool empty() const noexcept { return found_.empty(); }

  // Reads the variable of the key, if there is one, and writes its value by write(value, why).
  template <typename Write>
  void read(const Key& key, const std::string& path, const Write& write) {
    std::string variable = variable_of(prefix_, path);
    if (const auto at = found_.find(variable); at != found_.end()) {
      Value value;
      std::string why;
      if (read_value(key, at->second, value, why) && write(value, why)) {
        into_.origins[path] = {variable};
      } else {
        problems_.add({{variable}, path, std::move(why)});
      }
      found_.erase(at);
    }
    names_.push_back(std::move(variable));
  }

  template <typename Of>
  void read_rows(std::span<const Row<Of>> rows, const std::string& path, Of& into) {
    for (const Row<Of>& row : rows) {
      read(row.key, path + row.key.name,
           [&](const Value& value, std::string& why) { return row.write(into, value, why); });
    }
  }

  void refuse_others() {
    for (const auto& [name, value] : found_) {
      std::string text = "this variable sets no key";
      text += problems_.full() ? "" : suggestion(name, names_);
      problems_.add({{std::string(name)}, "", std::move(text)});
    }
  }

 private:
  std::string_view prefix_;
  Draft& into_;
  Problems& problems_;
  std::map<std::string, std::string_view, std::less<>> found_;  // the ones that no key has taken
  std::vector<std::string> names_;                              // of all keys
};

}  // namespace

std::string variable_of(std::string_view prefix, std::string_view key) {
  std::string name(prefix);
  name += '_';
  for (const char c : key) {
    if (c == ']') {
      continue;
    }
    const bool small = c >= 'a' && c <= 'z';
    name += c == '.' || c == '[' ? '_' : small ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

void read_environment(std::span<const std::string> variables, std::string_view prefix, const ProgramKeys& keys,
                      Draft& into, Problems& problems) {
  VariableReader reader(prefix, into, problems);
  reader.collect(variables);
  if (reader.empty()) {
    return;
  }
  reader.read_rows(settings_rows(), "", into.settings);
  for (std::size_t i = 0; i < into.settings.listeners.size(); ++i) {
    reader.read_rows(listener_rows(), "listener[" + std::to_string(i) + "].", into.settings.listeners[i]);
  }
  for (std::size_t i = 0; i < keys.keys().size(); ++i) {
    reader.read(keys.keys()[i], "app." + keys.keys()[i].name, [&](Value& value, std::string& /*why*/) {
      into.program[i] = std::move(value);
      return true;
    });
  }
  reader.refuse_others();
}

}  // namespace weft::serve::config
