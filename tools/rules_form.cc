// SPDX-License-Identifier: MIT
#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include "tools/rules.h"

namespace tidy {
namespace {

constexpr std::size_t kMaxColumns = 120;
constexpr std::size_t kMaxReadmeLines = 30;

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
  const bool errno_allowed = !file.path.starts_with("weft/") || file.path.starts_with("weft/sys/");
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

void check_readmes(const Files& files, Report& report) {
  std::map<std::string, std::size_t> readmes;  // folder -> lines
  std::set<std::string> folders;
  for (const File& file : files) {
    const std::string folder = std::filesystem::path(file.path).parent_path().generic_string();
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

}  // namespace

void check_form(const Files& files, Report& report) {
  std::set<std::string> paths;
  for (const File& file : files) {
    paths.insert(file.path);
  }
  for (const File& file : files) {
    check_words(file, report);
    check_machine_names(file, report);
    if (is_cpp(file.path)) {
      check_header_start(file, report);
      check_own_header_first(file, paths, report);
      check_code_lines(file, report);
    }
  }
  check_readmes(files, report);
}

}  // namespace tidy
