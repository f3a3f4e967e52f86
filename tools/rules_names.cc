// SPDX-License-Identifier: MIT
#include <cstdio>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/rules.h"

namespace tidy {
namespace {

// Namespaces that carry the subject of their types: a program writes rpc::Method, and the names of such types are
// compared in this form.
bool carries_the_subject(std::string_view name) {
  static const std::set<std::string_view> names{"http", "jetstream", "logging", "nats", "rpc", "web"};
  return names.contains(name);
}

struct Definition {
  std::string_view file;
  std::size_t line;
};

// The types of namespaces in the headers of weft/, by name: one place in each file. A nested type has its class's name
// before its own.
std::map<std::string, std::vector<Definition>> types_of(const Files& files) {
  static const std::regex definition(
      R"(^(?:template <.*> )?(?:class|struct|union|enum class|enum) (?:alignas\([^)]*\) |WEFT_\w+(?:\([^)]*\))? )*)"
      R"((\w+)(?: final)?(?: :.*| ?\{.*|)$)");
  static const std::regex space(R"(^namespace (?:\w+::)*(\w+) \{$)");
  std::map<std::string, std::vector<Definition>> types;
  for (const File& file : files) {
    if (!file.path.starts_with("weft/") || !file.path.ends_with(".h") ||
        file.path.find("/test_") != std::string::npos) {
      continue;
    }
    std::string subject;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch found;
      const std::string line(file.lines[i]);
      if (std::regex_match(line, found, space)) {
        subject = carries_the_subject(found[1].str()) ? found[1].str() + "::" : "";
        continue;
      }
      if (!std::regex_match(line, found, definition)) {
        continue;
      }
      std::vector<Definition>& places = types[subject + found[1].str()];
      if (places.empty() || places.back().file != file.path) {  // a file may define a type twice, for two builds
        places.push_back({file.path, i + 1});
      }
    }
  }
  return types;
}

}  // namespace

void check_names(const Files& files, Report& report) {
  for (const auto& [name, places] : types_of(files)) {
    if (places.size() > 1) {
      const Definition& second = places.back();
      report.error(std::string(second.file), second.line, "type-name",
                   name + " is also a type of " + std::string(places.front().file),
                   "give it a name that carries its subject");
    }
  }
}

void print_names(const Files& files) {
  std::printf("\ntypes  of one name\n");
  for (const auto& [name, places] : types_of(files)) {
    if (places.size() > 1) {
      std::printf("%5zu  %s:", places.size(), name.c_str());
      for (const Definition& place : places) {
        std::printf(" %.*s:%zu", static_cast<int>(place.file.size()), place.file.data(), place.line);
      }
      std::printf("\n");
    }
  }
}

}  // namespace tidy
