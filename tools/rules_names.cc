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

// The names that have two types or more today. A name leaves the list when one type at most still has it.
const std::set<std::string_view>& shared_names() {
  static const std::set<std::string_view> names{
      "Answer",  "Client",         "ClientCounts", "ClientEvent", "ClientOptions", "Codec",     "Delivery", "Field",
      "Headers", "Message",        "Method",       "Op",          "PoolOptions",   "Published", "Reader",   "Response",
      "Service", "ServiceOptions", "SocketType",   "Stream"};
  return names;
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
  std::map<std::string, std::vector<Definition>> types;
  for (const File& file : files) {
    if (!file.path.starts_with("weft/") || !file.path.ends_with(".h") ||
        file.path.find("/test_") != std::string::npos) {
      continue;
    }
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch found;
      const std::string line(file.lines[i]);
      if (!std::regex_match(line, found, definition)) {
        continue;
      }
      std::vector<Definition>& places = types[found[1]];
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
    if (places.size() > 1 && !shared_names().contains(name)) {
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
