// SPDX-License-Identifier: MIT
#include "tools/weft/configuration.h"

#include <memory>
#include <utility>
#include <vector>

#include "weft/serve/config/config.h"
#include "weft/serve/config/listing.h"

namespace weft::cli {

namespace {

namespace config = serve::config;

// The keys of [app] belong to the program, which checks them itself.
config::ProgramKeys any_keys() {
  config::ProgramKeys keys;
  keys.take_others();
  return keys;
}

std::vector<Object> objects_of(const config::Problems& problems) {
  std::vector<Object> list;
  for (const config::Problem& each : problems.list()) {
    list.push_back(Object{Record{{"source", each.origin.source},
                                 {"line", std::uint64_t{each.origin.at.line}},
                                 {"column", std::uint64_t{each.origin.at.column}},
                                 {"key", each.key},
                                 {"text", each.text}}});
  }
  return list;
}

}  // namespace

int refuse_file(Console& console, const std::string& file, std::string_view why, const config::Problems& problems) {
  if (console.json) {
    console.record({{"file", file},
                    {"good", false},
                    {"problems", objects_of(problems)},
                    {"omitted", std::uint64_t{problems.omitted()}}});
  } else {
    for (const config::Problem& each : problems.list()) {
      console.line(printable(each.message()));
    }
    if (problems.omitted() != 0) {
      console.line("and " + std::to_string(problems.omitted()) + " more");
    }
  }
  console.note(printable(file + ": " + std::string(why)));
  return kExitFailed;
}

namespace {

std::string counted(std::uint64_t count, const std::string& name) {
  return std::to_string(count) + " " + name + (count == 1 ? "" : "s");
}

int check(Console& console, const ConfigurationOptions& options, const config::Snapshot& now) {
  const std::uint64_t listeners = now.listeners.size();
  const std::uint64_t keys = now.origins().size() - listeners;  // a listener has an origin of its own
  if (console.json) {
    console.record({{"file", options.file},
                    {"good", true},
                    {"problems", std::vector<Object>()},
                    {"omitted", std::uint64_t{0}},
                    {"keys", keys},
                    {"listeners", listeners}});
  } else {
    console.line(printable(options.file) + ": good: " + counted(keys, "key") + ", " + counted(listeners, "listener"));
  }
  return 0;
}

std::string change_of(const config::Key& key) {
  return key.change == config::Change::at_run_time ? "at run time" : "at a start";
}

void show_entry(Console& console, const config::Entry& entry) {
  std::string line = entry.name + " = " + entry.value;
  if (!entry.origin.empty()) {
    line += "  (" + entry.origin + (entry.key != nullptr ? "; default " + entry.fallback : "") + ")";
  }
  console.prose(printable(line), 4);
  if (entry.key != nullptr) {
    const std::string bounds = entry.key->bounds();
    console.prose("    " + std::string(config::describe(entry.key->kind)) + (bounds.empty() ? "" : ", " + bounds) +
                      ", changes " + change_of(*entry.key) + ": " + entry.key->doc,
                  4);
  }
}

Record record_of(const config::Entry& entry, const std::string& prefix) {
  Record record = {{"key", entry.name}, {"value", entry.value}, {"origin", entry.origin}};
  if (entry.key != nullptr) {
    record.emplace_back("default", entry.fallback);
    record.emplace_back("type", std::string(config::describe(entry.key->kind)));
    record.emplace_back("bounds", entry.key->bounds());
    record.emplace_back("changes", change_of(*entry.key));
    record.emplace_back("variable", prefix.empty() ? std::string() : config::variable_of(prefix, entry.name));
    record.emplace_back("doc", entry.key->doc);
  }
  return record;
}

int show_keys(Console& console, const ConfigurationOptions& options, const config::Snapshot* now) {
  const config::ProgramKeys keys = any_keys();
  for (const config::Entry& entry : config::list_entries(now, keys)) {
    if (console.json) {
      console.record(record_of(entry, options.prefix));
    } else {
      show_entry(console, entry);
    }
  }
  return 0;
}

}  // namespace

int configuration(Console& console, const ConfigurationOptions& options) {
  const bool checks = options.action == "check";
  if (!checks && options.action != "show") {
    throw Usage("the action is check or show, and not '" + printable(options.action) + "'");
  }
  if (options.file.empty()) {
    if (checks) {
      throw Usage("check needs a FILE");
    }
    return show_keys(console, options, nullptr);
  }
  config::LoadOptions load;
  load.environment_prefix = options.prefix;
  load.open_files = !options.no_files;
  config::Problems problems;
  const auto loaded = config::Config::load(options.file, any_keys(), std::move(load), &problems);
  if (!loaded) {
    return refuse_file(console, options.file, loaded.error().message(), problems);
  }
  const auto now = (*loaded)->current();
  return checks ? check(console, options, *now) : show_keys(console, options, now.get());
}

}  // namespace weft::cli
