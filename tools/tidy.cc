// SPDX-License-Identifier: MIT
// tidy ROOT: the layering and style rules of this repository, as a program; tidy_test.cc proves that every rule bites.
// Prints `file:line: [rule] what is wrong; fix: what to do`, and exits 1 when there is an error; warnings do not count.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tools/tidy_tree.h"

namespace tidy {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxColumns = 120;
constexpr std::size_t kMaxFileLines = 800;      // past this: an error
constexpr std::size_t kComfortableLines = 400;  // past this: a warning
constexpr std::size_t kMaxReadmeLines = 30;

// The allowed includes of each folder of weft/, read from weft/layers.txt.
using Layers = std::map<std::string, std::set<std::string>>;

class Report {
 public:
  void error(const std::string& path, std::size_t line, const char* rule, const std::string& what, const char* fix) {
    errors_.emplace(path, line, rule, what, fix);
  }
  void warning(const std::string& path, std::size_t line, const char* rule, const std::string& what, const char* fix) {
    warnings_.emplace(path, line, rule, what, fix);
  }

  // Prints everything in the order of the files; true when there was no error.
  [[nodiscard]] bool print(std::size_t files) const {
    print_all(warnings_, "warning: ");
    print_all(errors_, "");
    std::printf("tidy: %zu files, %zu errors, %zu warnings\n", files, errors_.size(), warnings_.size());
    return errors_.empty();
  }

 private:
  using Finding = std::tuple<std::string, std::size_t, std::string, std::string, std::string>;

  static void print_all(const std::set<Finding>& findings, const char* kind) {
    for (const auto& [path, line, rule, what, fix] : findings) {
      std::printf("%s:%zu: %s[%s] %s; fix: %s\n", path.c_str(), line, kind, rule.c_str(), what.c_str(), fix.c_str());
    }
  }

  std::set<Finding> errors_;
  std::set<Finding> warnings_;
};

// "net" for "weft/net/linux/tcp.cc", "" for a path outside weft/ or directly in it.
std::string layer_of(std::string_view path) {
  if (!path.starts_with("weft/")) {
    return "";
  }
  path.remove_prefix(5);
  const std::size_t slash = path.find('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash));
}

bool is_internal(std::string_view path) { return path.find("/internal/") != std::string_view::npos; }

std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// Finds `word` where it is not part of a longer identifier.
bool has_word(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(line[at - 1])) && (end == line.size() || !is_word(line[end]))) {
      return true;
    }
  }
  return false;
}

// Lines of the form `folder: lower lower ...`, lowest first: naming only folders above keeps the order free of cycles.
Layers read_layers(const File& file, Report& report) {
  Layers layers;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    const std::size_t colon = line.find(':');
    if (line.empty() || line[0] == '#' || colon == std::string::npos) {
      continue;
    }
    std::set<std::string> allowed;
    static const std::regex word(R"(\w+)");
    for (std::sregex_iterator it(line.begin() + static_cast<std::ptrdiff_t>(colon), line.end(), word), end; it != end;
         ++it) {
      if (!layers.contains(it->str())) {
        report.error(file.path, i + 1, "layer-order", "`" + it->str() + "` is not declared above this line",
                     "keep the folders lowest first; a folder may name only folders above itself");
      }
      allowed.insert(it->str());
    }
    layers[line.substr(0, colon)] = std::move(allowed);
  }
  return layers;
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
  const std::string from = layer_of(file.path);
  const std::string to = layer_of(include.target);
  if (is_internal(include.target) && (from != to || (is_header(file.path) && !is_internal(file.path)))) {
    report.error(
        file.path, include.line, "internal", "`" + include.target + "` is internal to weft/" + to,
        "include it only from that folder's .cc files and internal headers: internal headers are not installed");
  }
  if (from.empty() || from == to) {
    return;
  }
  const auto allowed = layers.find(from);
  if (allowed != layers.end() && !allowed->second.contains(to)) {
    report.error(file.path, include.line, "layer", "weft/" + from + " may not include `" + include.target + "`",
                 "move what both need into a folder that both may include, or invert the dependency (weft/layers.txt)");
  }
}

// Tests and fuzzers may; so may the facade that swaps std::atomic for the model checker's.
bool may_use_test_support(std::string_view path) {
  return path.ends_with("_test.cc") || path.ends_with("_fuzz.cc") || path.find("/test_") != std::string_view::npos ||
         path == "weft/sync/atomic.h" || !path.starts_with("weft/");
}

void check_includes(const File& file, const Layers& layers, Report& report) {
  const std::string layer = layer_of(file.path);
  const bool in_library = file.path.starts_with("weft/");
  for (const Include& include : includes_of(file)) {
    if (include.target.starts_with("weft/")) {
      check_weft_include(file, include, layers, report);
    } else if (include.target.starts_with("tests/support/") && may_use_test_support(file.path)) {
      continue;
    } else if (include.target.starts_with("bench/micro/") && file.path.ends_with("_bench.cc")) {
      continue;
    } else if (in_library && include.quoted) {
      report.error(file.path, include.line, "include-path", "`" + include.target + "` is not a path from the root",
                   "write #include \"weft/<folder>/<file>.h\", or <angle brackets> for other people's headers");
    } else if (in_library && layer != "sys" && is_os_header(include.target)) {
      report.error(file.path, include.line, "os-header", "<" + include.target + "> outside weft/sys",
                   "use or add a function in weft/sys: it is the only folder that talks to the operating system");
    }
  }
}

// x.cc, x_test.cc, x_fuzz.cc ...: the first include of x.cc is x.h, when there is one beside it.
void check_own_header_first(const File& file, const std::set<std::string>& paths, Report& report) {
  const std::string own = file.path.substr(0, file.path.size() - 3) + ".h";
  if (!file.path.ends_with(".cc") || !file.path.starts_with("weft/") || !paths.contains(own)) {
    return;
  }
  const std::vector<Include> includes = includes_of(file);
  if (includes.empty() || includes.front().target != own) {
    report.error(file.path, includes.empty() ? 1 : includes.front().line, "own-header-first",
                 "the first include is not `" + own + "`", "include it first: that proves that it compiles alone");
  }
}

void check_header_start(const File& file, Report& report) {
  // The second form is for headers and programs that any C compiler must take.
  if (file.lines.empty() || (!file.lines[0].starts_with("// SPDX-License-Identifier: ") &&
                             !file.lines[0].starts_with("/* SPDX-License-Identifier: "))) {
    report.error(file.path, 1, "spdx", "the first line is not the licence",
                 "start the file with `// SPDX-License-Identifier: MIT`");
  }
  const bool once = std::find(file.lines.begin(), file.lines.end(), "#pragma once") != file.lines.end();
  if (is_header(file.path) && !once) {
    report.error(file.path, 1, "pragma-once", "no include guard", "add `#pragma once` below the licence line");
  }
}

void check_code_lines(const File& file, Report& report) {
  const bool errno_allowed = !file.path.starts_with("weft/") || layer_of(file.path) == "sys";
  static const std::regex using_std(R"(\busing\s+namespace\s+std\s*;)");
  for (std::size_t i = 0; i < file.code.size(); ++i) {
    if (columns(file.lines[i]) > kMaxColumns) {
      report.error(file.path, i + 1, "line-length", std::to_string(columns(file.lines[i])) + " columns",
                   "run ./dev format, or break the line below 121 columns");
    }
    if (std::regex_search(file.code[i], using_std)) {
      report.error(file.path, i + 1, "using-namespace-std", "imports all of std", "name what you use: std::x");
    }
    if (!errno_allowed && has_word(file.code[i], "errno")) {
      report.error(file.path, i + 1, "errno", "errno is read outside weft/sys",
                   "call the function in weft/sys that returns a Result, and look at Error::os_errno()");
    }
  }
}

// The words are put together here so that this file passes its own rules.
void check_words(const File& file, Report& report) {
  static const std::string todo = std::string("TO") + "DO";
  static const std::vector<std::string> banned{std::string("FIX") + "ME", std::string("XX") + "X"};
  static const std::regex issue(todo + R"(\(#\d+\))");
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    for (const std::string& word : banned) {
      if (has_word(file.lines[i], word)) {
        report.error(file.path, i + 1, "marker", word + " in the tree", "repair it now, or file an issue and name it");
      }
    }
    if (has_word(file.lines[i], todo) && !std::regex_search(file.lines[i], issue)) {
      report.error(file.path, i + 1, "marker", todo + " without an issue", "name the open issue: (#12) after the word");
    }
  }
}

void check_machine_names(const File& file, Report& report) {
  static const std::vector<std::string> folders{std::string("/ho") + "me/", std::string("/ro") + "ot/",
                                                std::string("/Use") + "rs/"};
  static const std::vector<std::string> hosts{
      std::string("pypi") + ".org",           std::string("pythonhosted") + ".org", std::string("deb.debian") + ".org",
      std::string("archive.ubuntu") + ".com", std::string("npmjs") + ".org",        std::string("crates") + ".io",
      std::string("proxy.golang") + ".org",   std::string("maven.apache") + ".org", std::string("maven") + ".org"};
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    for (const std::string& folder : folders) {
      const std::size_t at = file.lines[i].find(folder);
      if (at != std::string::npos && (at == 0 || !is_word(file.lines[i][at - 1]))) {
        report.error(file.path, i + 1, "machine-path", "`" + folder + "...` is a path of one machine",
                     "derive the path from the checkout, an argument or the environment");
      }
    }
    for (const std::string& host : hosts) {
      if (file.lines[i].find(host) != std::string::npos) {
        report.error(file.path, i + 1, "registry-host", "`" + host + "` is named",
                     "name the package only: the package client knows its registry");
      }
    }
  }
}

void check_file_length(const File& file, Report& report) {
  const std::size_t count = file.lines.size();
  const std::string what = std::to_string(count) + " lines";
  if (count > kMaxFileLines) {
    report.error(file.path, count, "file-length", what,
                 "find the second thing that hides in this file and move it out");
  } else if (count > kComfortableLines) {
    report.warning(file.path, count, "file-length", what, "look for the second thing that hides in this file");
  }
}

void check_readmes(const std::vector<File>& files, Report& report) {
  std::map<std::string, std::size_t> readmes;  // folder -> lines
  std::set<std::string> folders;
  for (const File& file : files) {
    const std::string folder = fs::path(file.path).parent_path().generic_string();
    if (file.path.ends_with("/README.md")) {
      readmes[folder] = file.lines.size();
    }
    if (!folder.empty() && folder != "weft" && (is_cpp(file.path) || file.path.ends_with(".py"))) {
      folders.insert(folder);
    }
  }
  for (const std::string& folder : folders) {
    const auto readme = readmes.find(folder);
    if (readme == readmes.end()) {
      report.error(folder + "/README.md", 1, "readme", "missing",
                   "write at most 30 lines: purpose, what it may include, where to start, invariants");
    } else if (readme->second > kMaxReadmeLines) {
      report.error(folder + "/README.md", readme->second, "readme", std::to_string(readme->second) + " lines",
                   "keep it to 30 lines; details belong beside the code or in docs/");
    }
  }
}

void check_known_folders(const std::vector<File>& files, const Layers& layers, Report& report) {
  for (const File& file : files) {
    const std::string layer = layer_of(file.path);
    if (is_cpp(file.path) && !layer.empty() && !layers.contains(layer)) {
      report.error(file.path, 1, "layer-unknown", "weft/" + layer + " is not in weft/layers.txt",
                   "give the folder its place in the order: one line in weft/layers.txt");
    }
  }
}

// Depth-first over the headers; a header that is reached again while it is still open closes a cycle.
void check_cycles(const std::vector<File>& files, Report& report) {
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

bool check_tree(const fs::path& root) {
  Report report;
  const std::vector<File> files = read_tree(root);
  std::set<std::string> paths;
  Layers layers;
  for (const File& file : files) {
    paths.insert(file.path);
    if (file.path == "weft/layers.txt") {
      layers = read_layers(file, report);
    }
  }
  if (layers.empty()) {
    report.error("weft/layers.txt", 1, "layer-order", "missing or empty",
                 "declare the folders of weft/ in it, lowest first, as `folder: lower lower`");
  }
  for (const File& file : files) {
    check_words(file, report);
    check_machine_names(file, report);
    if (is_cpp(file.path)) {
      check_header_start(file, report);
      check_includes(file, layers, report);
      check_own_header_first(file, paths, report);
      check_code_lines(file, report);
    }
    if (is_cpp(file.path) || file.path.ends_with(".py")) {
      check_file_length(file, report);
    }
  }
  check_readmes(files, report);
  check_known_folders(files, layers, report);
  check_cycles(files, report);
  return report.print(files.size());
}

}  // namespace
}  // namespace tidy

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "usage: tidy ROOT\n");
    return 2;
  }
  return tidy::check_tree(std::filesystem::canonical(argv[1])) ? 0 : 1;
}
