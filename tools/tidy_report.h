// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdio>
#include <set>
#include <string>
#include <tuple>

namespace tidy {

// Report: every finding of a run. Rules add to it in any order; it prints in the order of the files.
class Report {
 public:
  void error(const std::string& path, std::size_t line, const char* rule, const std::string& what, const char* fix) {
    errors_.emplace(path, line, rule, what, fix);
  }
  void warning(const std::string& path, std::size_t line, const char* rule, const std::string& what, const char* fix) {
    warnings_.emplace(path, line, rule, what, fix);
  }

  // Prints everything; true when there was no error.
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

}  // namespace tidy
