// SPDX-License-Identifier: MIT
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include "tools/rules.h"

namespace tidy {
namespace {

// A folder of weft/: the folders that it may include, and for each of its rooms the rooms that this one may include.
struct Folder {
  std::set<std::string> lower;
  std::map<std::string, std::set<std::string>> rooms;
};
using Layers = std::map<std::string, Folder>;

// Where a file of weft/ stands: "msg" and "pattern" for weft/msg/pattern/x.h; the room is "." at the folder's root.
struct Place {
  std::string folder;
  std::string room;
};

// No place: outside weft/, or directly in it.
std::optional<Place> place_of(std::string_view path) {
  if (!path.starts_with("weft/")) {
    return std::nullopt;
  }
  path.remove_prefix(5);
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t last = path.rfind('/');
  return Place{std::string(path.substr(0, slash)),
               last == slash ? "." : std::string(path.substr(slash + 1, last - slash - 1))};
}

std::set<std::string> words_of(const std::string& text) {
  static const std::regex word(R"(\S+)");
  std::set<std::string> words;
  for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) {
    words.insert(it->str());
  }
  return words;
}

// Lines `folder: lower lower ...`, and indented below it `room: lower lower ...`, lowest first. A line that names only
// those above it keeps the order free of cycles.
Layers read_layers(const File& file, Report& report) {
  Layers layers;
  Folder* current = nullptr;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    const std::size_t begin = line.find_first_not_of(' ');
    const std::size_t colon = line.find(':');
    if (begin == std::string::npos || line[begin] == '#' || colon == std::string::npos) {
      continue;
    }
    const bool is_room = begin > 0 && current != nullptr;
    const std::string name = line.substr(begin, colon - begin);
    const std::set<std::string> allowed = words_of(line.substr(colon + 1));
    for (const std::string& lower : allowed) {
      if (is_room ? !current->rooms.contains(lower) : !layers.contains(lower)) {
        report.error(file.path, i + 1, "layer-order", "`" + lower + "` is not declared above this line",
                     "keep folders and rooms lowest first; a line may name only lines above itself");
      }
    }
    if (is_room) {
      current->rooms[name] = allowed;
    } else {
      current = &layers[name];
      current->lower = allowed;
    }
  }
  return layers;
}

// Tests and fuzzers, and the headers that only they include. They may include every room of their own folder.
bool is_test_file(std::string_view path) {
  return path.ends_with("_test.cc") || path.ends_with("_fuzz.cc") || path.find("/test_") != std::string_view::npos;
}

// Also the facade that swaps std::atomic for the model checker's.
bool may_use_test_support(std::string_view path) {
  return is_test_file(path) || path == "weft/sync/atomic.h" || !path.starts_with("weft/");
}

bool is_os_header(std::string_view target) {
  static const std::set<std::string_view> exact{
      "unistd.h", "poll.h",  "fcntl.h",   "errno.h",   "pthread.h",   "sched.h", "signal.h",   "netdb.h",
      "dirent.h", "dlfcn.h", "ifaddrs.h", "syscall.h", "semaphore.h", "spawn.h", "ucontext.h", "termios.h"};
  static const std::vector<std::string_view> folders{"sys/", "netinet/", "arpa/", "net/", "linux/", "asm/", "bits/"};
  return exact.contains(target) || std::any_of(folders.begin(), folders.end(),
                                               [&](std::string_view folder) { return target.starts_with(folder); });
}

void check_weft_include(const File& file, const Include& include, const Layers& layers, Report& report) {
  if (!is_test_file(file.path) && is_test_file(include.target)) {
    report.error(file.path, include.line, "test-header", "`" + include.target + "` is for tests",
                 "only tests and fuzzers include weft/**/test_*.h: test headers are not installed");
    return;
  }
  const std::optional<Place> from = place_of(file.path);
  if (!from || !layers.contains(from->folder)) {
    return;
  }
  const Place to = place_of(include.target).value_or(Place{});
  const Folder& folder = layers.at(from->folder);
  if (to.folder != from->folder) {
    if (!folder.lower.contains(to.folder)) {
      report.error(file.path, include.line, "layer",
                   "weft/" + from->folder + " may not include `" + include.target + "`",
                   "move what both need into a lower folder, or invert the dependency (weft/layers.txt)");
    }
    return;
  }
  const auto room = folder.rooms.find(from->room);
  if (room != folder.rooms.end() && to.room != from->room && !room->second.contains(to.room) &&
      !is_test_file(file.path)) {
    report.error(file.path, include.line, "room",
                 "room `" + from->room + "` of weft/" + from->folder + " may not include `" + include.target + "`",
                 "move what both need into a lower room, or invert the dependency (weft/layers.txt)");
  }
}

void check_includes(const File& file, const Layers& layers, Report& report) {
  const std::optional<Place> place = place_of(file.path);
  const bool in_library = file.path.starts_with("weft/");
  for (const Include& include : includes_of(file)) {
    if (include.target.starts_with("weft/")) {
      check_weft_include(file, include, layers, report);
    } else if (include.target.starts_with("tests/support/") && may_use_test_support(file.path)) {
      continue;
    } else if (in_library && include.quoted) {
      report.error(file.path, include.line, "include-path", "`" + include.target + "` is not a path from the root",
                   "write #include \"weft/<folder>/<file>.h\", or <angle brackets> for other people's headers");
    } else if (in_library && !(place && place->folder == "sys") && is_os_header(include.target)) {
      report.error(file.path, include.line, "os-header", "<" + include.target + "> outside weft/sys",
                   "use or add a function in weft/sys: it is the only folder that talks to the operating system");
    }
  }
}

// A folder without rooms in layers.txt is one room, its root.
void check_place(const File& file, const Layers& layers, Report& report) {
  const std::optional<Place> place = place_of(file.path);
  if (!place) {
    return;
  }
  const auto folder = layers.find(place->folder);
  if (folder == layers.end()) {
    report.error(file.path, 1, "layer-unknown", "weft/" + place->folder + " is not in weft/layers.txt",
                 "give the folder its place in the order: one line in weft/layers.txt");
  } else if (folder->second.rooms.empty() ? place->room != "." : !folder->second.rooms.contains(place->room)) {
    report.error(file.path, 1, "room-unknown",
                 "room `" + place->room + "` of weft/" + place->folder + " is not in weft/layers.txt",
                 "give the room its place in the order: one indented line below its folder");
  }
}

// Depth-first over the headers; a header that is reached again while it is still open closes a cycle.
void check_cycles(const Files& files, Report& report) {
  std::map<std::string, std::vector<Include>> graph;
  for (const File& file : files) {
    if (is_header(file.path)) {
      graph[file.path] = includes_of(file);
    }
  }
  std::map<std::string, int> state;  // 1: open, 2: done
  const std::function<void(const std::string&)> visit = [&](const std::string& path) {
    state[path] = 1;
    for (const Include& include : graph[path]) {
      if (!graph.contains(include.target)) {
        continue;
      }
      if (state[include.target] == 1) {
        report.error(path, include.line, "cycle", "`" + include.target + "` includes this header, directly or not",
                     "declare the class forward, or move what both need into a third header");
      } else if (state[include.target] == 0) {
        visit(include.target);
      }
    }
    state[path] = 2;
  };
  for (const File& file : files) {
    if (is_header(file.path) && state[file.path] == 0) {
      visit(file.path);
    }
  }
}

}  // namespace

void check_layers(const Files& files, Report& report) {
  const auto source =
      std::find_if(files.begin(), files.end(), [](const File& file) { return file.path == "weft/layers.txt"; });
  Layers layers;
  if (source != files.end()) {
    layers = read_layers(*source, report);
  }
  if (layers.empty()) {
    report.error("weft/layers.txt", 1, "layer-order", "missing or empty",
                 "declare the folders of weft/ in it, lowest first, as `folder: lower lower`");
  }
  for (const File& file : files) {
    if (is_cpp(file.path)) {
      check_place(file, layers, report);
      check_includes(file, layers, report);
    }
  }
  check_cycles(files, report);
}

}  // namespace tidy
