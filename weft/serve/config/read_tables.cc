// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <iterator>

#include "weft/serve/config/read.h"
#include "weft/serve/config/table.h"

namespace weft::serve::config {

namespace {

const std::array<std::string, 6> kSections{"server", "stop", "admin", "logging", "listener", "app"};

template <typename Of>
std::vector<std::string> names_of(std::span<const Row<Of>> rows) {
  std::vector<std::string> names;
  for (const Row<Of>& row : rows) {
    names.push_back(row.key.name);
  }
  return names;
}

std::string last_part(std::string_view name) { return std::string(name.substr(name.rfind('.') + 1)); }

// The key that an unknown one was probably meant to be: near in its full name, or in its last part.
std::string suggest_key(const std::string& name, std::span<const std::string> names) {
  if (std::string text = suggestion(name, names); !text.empty()) {
    return text;
  }
  std::vector<std::string> parts;
  std::transform(names.begin(), names.end(), std::back_inserter(parts), last_part);
  const std::string_view part = nearest(last_part(name), parts);
  const auto at = std::find(parts.begin(), parts.end(), part);
  return at == parts.end() ? "" : "; did you mean \"" + names[static_cast<std::size_t>(at - parts.begin())] + "\"?";
}

// A name as a part of a path, for a message.
std::string shown(const std::string& name) {
  const bool plain = !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return plain ? name : quote(name);
}

// TableReader: one file into one draft.
class TableReader {
 public:
  TableReader(const std::string& source, const ProgramKeys& keys, Draft& into, Problems& problems)
      : source_(source), keys_(keys), into_(into), problems_(problems) {
    for (const Key& key : keys.keys()) {
      program_names_.push_back(key.name);
    }
  }

  void read(const TomlNode& root) {
    static const std::vector<std::string> kNames = names_of(settings_rows());
    TomlNode rest;
    for (const TomlNode& node : root.items) {
      if (node.name == "listener") {
        read_listeners(node);
      } else if (node.name == "app") {
        read_program(node);
      } else if (!begins_section(node.name) && is_table(node)) {
        refuse(node, shown(node.name), "unknown table" + suggestion(node.name, kSections));
      } else {
        rest.items.push_back(node);
      }
    }
    walk(rest, "", "", kNames, [this](std::size_t at, const TomlNode& node, const std::string& path) {
      set(settings_rows()[at], into_.settings, node, path);
    });
  }

 private:
  static bool begins_section(const std::string& name) {
    return std::find(kSections.begin(), kSections.end(), name) != kSections.end();
  }

  // [x] or [[x]].
  static bool is_table(const TomlNode& node) {
    return node.kind == TomlNode::Kind::table ||
           (node.kind == TomlNode::Kind::list && !node.items.empty() && node.items[0].kind == TomlNode::Kind::table);
  }

  void refuse(const TomlNode& node, std::string path, std::string text) {
    problems_.add({{source_, node.at}, std::move(path), std::move(text)});
  }

  // Calls take(index, node, path) for each member of the table that is one of the names, and refuses the others.
  // `path` is before each name in a message; `below` is the part of the names that led to this table.
  template <typename Take>
  void walk(const TomlNode& table, const std::string& path, const std::string& below,
            std::span<const std::string> names, const Take& take) {
    for (const TomlNode& node : table.items) {
      const std::string name = below + node.name;
      const std::string full = path + below + shown(node.name);
      const bool plain = node.name.find('.') == std::string::npos;  // otherwise a name in quotes
      const auto at = plain ? std::find(names.begin(), names.end(), name) : names.end();
      if (at != names.end()) {
        take(static_cast<std::size_t>(at - names.begin()), node, full);
        continue;
      }
      const std::string inside = name + ".";
      const bool has_keys = plain && std::any_of(names.begin(), names.end(),
                                                 [&](const std::string& each) { return each.starts_with(inside); });
      if (has_keys && node.kind == TomlNode::Kind::table) {
        walk(node, path, inside, names, take);
      } else if (has_keys) {
        refuse(node, full, std::string(describe(node.kind)) + ", and not a table");
      } else if (names.data() == program_names_.data() && keys_.takes_others()) {
        keep_other(node, name, full);
      } else {
        refuse(node, full, "unknown key" + (problems_.full() ? "" : suggest_key(name, names)));
      }
    }
  }

  template <typename Of>
  void set(const Row<Of>& row, Of& into, const TomlNode& node, const std::string& path) {
    Value value;
    std::string why;
    if (!read_value(row.key, node, value, why) || !row.write(into, value, why)) {
      refuse(node, path, std::move(why));
    } else {
      into_.origins[path] = {source_, node.at};
    }
  }

  void read_listeners(const TomlNode& list) {
    static const std::vector<std::string> kNames = names_of(listener_rows());
    if (list.kind != TomlNode::Kind::list) {
      return refuse(list, "listener", std::string(describe(list.kind)) + ", and not [[listener]], with two brackets");
    }
    for (const TomlNode& each : list.items) {
      const std::string path = "listener[" + std::to_string(into_.settings.listeners.size()) + "]";
      if (each.kind != TomlNode::Kind::table) {
        refuse(each, path, std::string(describe(each.kind)) + ", and not a table");
        continue;
      }
      if (into_.settings.listeners.size() == kListenersMax) {
        return refuse(each, path, "more than " + std::to_string(kListenersMax) + " listeners");
      }
      ListenerSettings& listener = into_.settings.listeners.emplace_back();
      into_.origins[path] = {source_, each.at};
      walk(each, path + ".", "", kNames, [&](std::size_t at, const TomlNode& node, const std::string& full) {
        set(listener_rows()[at], listener, node, full);
      });
    }
  }

  void read_program(const TomlNode& table) {
    if (table.kind != TomlNode::Kind::table) {
      return refuse(table, "app", std::string(describe(table.kind)) + ", and not a table");
    }
    if (program_names_.empty() && !keys_.takes_others()) {
      return refuse(table, "app", "this program has no keys of its own");
    }
    walk(table, "app.", "", program_names_, [this](std::size_t at, const TomlNode& node, const std::string& path) {
      Value value;
      std::string why;
      if (!read_value(keys_.keys()[at], node, value, why)) {
        return refuse(node, path, std::move(why));
      }
      into_.program[at] = std::move(value);
      into_.origins[path] = {source_, node.at};
    });
  }

  void keep_other(const TomlNode& node, const std::string& name, const std::string& path) {
    std::string why;
    Value value;
    switch (node.kind) {
      case TomlNode::Kind::table:
        for (const TomlNode& each : node.items) {
          keep_other(each, name + "." + each.name, path + "." + shown(each.name));
        }
        return;
      case TomlNode::Kind::date: return refuse(node, path, "a date or a time");
      case TomlNode::Kind::list:
        if (!read_value({name, Kind::texts, "", Change::at_run_time, 0, kTextsMax}, node, value, why)) {
          return refuse(node, path, std::move(why));
        }
        break;
      default: std::visit([&value](const auto& held) { value = held; }, node.scalar);
    }
    into_.others.emplace_back(name, to_text(value));
    into_.origins[path] = {source_, node.at};
  }

  const std::string& source_;
  const ProgramKeys& keys_;
  Draft& into_;
  Problems& problems_;
  std::vector<std::string> program_names_;
};

}  // namespace

void read_tables(const TomlNode& root, const std::string& source, const ProgramKeys& keys, Draft& into,
                 Problems& problems) {
  TableReader(source, keys, into, problems).read(root);
}

}  // namespace weft::serve::config
