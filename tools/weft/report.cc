// SPDX-License-Identifier: MIT
#include "tools/weft/report.h"

#if __has_include(<gnu/libc-version.h>)
#include <gnu/libc-version.h>
#endif

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "tools/weft/admin_page.h"
#include "tools/weft/doctor.h"
#include "weft/msg/version.h"
#include "weft/sys/clock.h"
#include "weft/sys/small_file.h"

namespace weft::cli {

namespace {

struct Fact {
  const char* name;
  std::string value;
};

constexpr const char* kArchitecture =
#if defined(__x86_64__)
    "x86-64";
#elif defined(__aarch64__)
    "arm64";
#else
    "other";
#endif

constexpr const char* kSanitizer =
#if defined(__SANITIZE_ADDRESS__)
    "address";
#elif defined(__SANITIZE_THREAD__)
    "thread";
#else
    "none";
#endif

constexpr const char* kAssertions =
#ifdef NDEBUG
    "off";
#else
    "on";
#endif

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

std::string c_library() {
#if defined(__GLIBC__)
  return std::string("glibc ") + gnu_get_libc_version();
#else
  return "no glibc";
#endif
}

// The value of the first line of a file of /proc that begins with `name`, after its colon; empty: there is none.
std::string value_of_line(const char* file, std::string_view name) {
  std::istringstream lines(sys::read_small_file(file));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with(name) && colon != std::string::npos) {
      const std::size_t first = line.find_first_not_of(" \t", colon + 1);
      return first == std::string::npos ? "" : line.substr(first);
    }
  }
  return "";
}

std::vector<Fact> build_facts() {
  return {{"compiler", compiler()},
          {"standard", std::to_string(__cplusplus)},
          {"build_type", WEFT_CLI_BUILD_TYPE},
          {"assertions", kAssertions},
          {"sanitizer", kSanitizer},
          {"architecture", kArchitecture},
          {"c_library", c_library()},
          {"processor", value_of_line("/proc/cpuinfo", "model name")},
          {"memory", value_of_line("/proc/meminfo", "MemTotal")}};
}

struct Limit {
  std::string name;
  std::string soft;
  std::string hard;
};

// The lines of /proc/self/limits: columns of 26, 21 and 21 characters, and the unit.
std::vector<Limit> limits() {
  constexpr std::size_t kSoft = 26;
  constexpr std::size_t kHard = 47;
  std::vector<Limit> all;
  std::istringstream lines(sys::read_small_file("/proc/self/limits"));
  std::string line;
  std::getline(lines, line);  // the head
  while (std::getline(lines, line)) {
    if (line.size() < kHard) {
      continue;
    }
    std::string name = line.substr(0, kSoft);
    name.erase(name.find_last_not_of(' ') + 1);
    Limit limit{name, {}, {}};
    std::istringstream(line.substr(kSoft)) >> limit.soft >> limit.hard;
    all.push_back(limit);
  }
  return all;
}

Value number(double value) {
  if (value >= 0 && value < 9e15 && value == std::floor(value)) {
    return static_cast<std::uint64_t>(value);
  }
  return value;
}

std::string number_text(double value) {
  const Value exact = number(value);
  const auto* whole = std::get_if<std::uint64_t>(&exact);
  return whole != nullptr ? std::to_string(*whole) : format("%.9g", value);
}

void print_json(Console& console, const std::vector<Sample>* metrics) {
  Record record{{"weft", std::string(version())}};
  for (const Fact& fact : build_facts()) {
    record.emplace_back(fact.name, fact.value);
  }
  std::vector<Object> list;
  for (const Finding& each : examine_machine()) {
    list.push_back({{{"name", each.name},
                     {"state", std::string(state_name(each.state))},
                     {"value", each.value},
                     {"advice", each.advice}}});
  }
  record.emplace_back("findings", std::exchange(list, {}));
  for (const Limit& each : limits()) {
    list.push_back({{{"name", each.name}, {"soft", each.soft}, {"hard", each.hard}}});
  }
  record.emplace_back("limits", std::exchange(list, {}));
  if (metrics != nullptr) {
    for (const Sample& each : *metrics) {
      std::vector<Object> labels;
      for (const auto& [name, value] : each.labels) {
        labels.push_back({{{"name", name}, {"value", value}}});
      }
      list.push_back({{{"metric", each.metric}, {"labels", std::move(labels)}, {"value", number(each.value)}}});
    }
    record.emplace_back("metrics", std::move(list));
  }
  console.record(record);
}

std::string row(std::string name, const std::string& value) {
  name.resize(std::max<std::size_t>(name.size(), 29), ' ');
  return "  " + name + " " + printable(value) + "\n";
}

void print_text(Console& console, const std::vector<Sample>* metrics) {
  std::string text = std::string("weft ") + version() + "\n\nbuild and machine\n";
  for (const Fact& fact : build_facts()) {
    text += row(fact.name, fact.value);
  }
  text += "\nfindings of weft doctor\n";
  for (const Finding& each : examine_machine()) {
    text += row(each.name, each.value + (each.state == State::warning ? " (warning)" : ""));
  }
  text += "\nlimits of this process: soft, hard\n";
  for (const Limit& each : limits()) {
    text += row(each.name, each.soft + ", " + each.hard);
  }
  if (metrics != nullptr) {
    text += "\nmetrics\n";
    for (const Sample& each : *metrics) {
      std::string labels;
      for (const auto& [name, value] : each.labels) {
        labels += (labels.empty() ? "{" : ",") + name + "=\"" + value + "\"";
      }
      const std::string name = each.metric + (labels.empty() ? "" : labels + "}");
      text += "  " + printable(name) + " " + number_text(each.value) + "\n";
    }
  }
  console.print(text);
}

}  // namespace

int report(Console& console, const ReportOptions& options) {
  std::vector<Sample> metrics;
  const bool asks = !options.admin.endpoint.empty();
  if (asks) {
    metrics = read_metrics(options.admin, deadline_after(sys::now(), seconds(options.timeout)));
  }
  (console.json ? print_json : print_text)(console, asks ? &metrics : nullptr);
  return 0;
}

}  // namespace weft::cli
