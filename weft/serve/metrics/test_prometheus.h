// SPDX-License-Identifier: MIT
#pragma once

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// A strict reader of the exposition format 0.0.4, for tests and fuzzers, written from the format's description.
namespace weft::serve::test {

struct Scrape {
  std::map<std::string, double> samples;  // by name and labels, as in the text
  std::map<std::string, std::string> types;
  std::map<std::string, std::string> helps;
  std::string mistake;  // empty: none
};

class ScrapeReader {
 public:
  static Scrape read(std::string_view text) {
    ScrapeReader reader;
    while (!text.empty() && reader.scrape_.mistake.empty()) {
      const std::size_t end = text.find('\n');
      if (end == std::string_view::npos) {
        reader.fail("the last line does not end", text);
        break;
      }
      reader.take_line(text.substr(0, end));
      text.remove_prefix(end + 1);
    }
    reader.check_histograms();
    return reader.scrape_;
  }

 private:
  void fail(const char* what, std::string_view where) {
    if (scrape_.mistake.empty()) {
      scrape_.mistake = std::string(what) + ": " + std::string(where);
    }
  }
  static std::string take_name(std::string_view& rest, bool colons) {
    std::string name;
    while (!rest.empty() &&
           (std::isalpha(static_cast<unsigned char>(rest[0])) != 0 || rest[0] == '_' || (colons && rest[0] == ':') ||
            (!name.empty() && std::isdigit(static_cast<unsigned char>(rest[0])) != 0))) {
      name += rest[0];
      rest.remove_prefix(1);
    }
    return name;
  }
  static bool take(std::string_view& rest, std::string_view expected) {
    const bool there = rest.starts_with(expected);
    rest.remove_prefix(there ? expected.size() : 0);
    return there;
  }
  // Undoes the escapes up to `end`; up to the end of the text if `end` is 0. Returns nullopt for an escape that the
  // format lacks.
  static std::optional<std::string> take_escaped(std::string_view& rest, char end) {
    std::string out;
    while (!rest.empty() && (end == '\0' || rest[0] != end)) {
      if (rest[0] == '\\') {
        if (rest.size() < 2 || (rest[1] != '\\' && rest[1] != 'n' && (rest[1] != '"' || end == '\0'))) {
          return std::nullopt;
        }
        out += rest[1] == 'n' ? '\n' : rest[1];
        rest.remove_prefix(2);
      } else {
        out += rest[0];
        rest.remove_prefix(1);
      }
    }
    if (end != '\0' && !take(rest, std::string_view(&end, 1))) {
      return std::nullopt;
    }
    return out;
  }
  static std::optional<double> number(std::string_view text) {
    if (text == "+Inf" || text == "-Inf" || text == "NaN") {
      return text == "NaN" ? std::nan("") : text[0] == '+' ? HUGE_VAL : -HUGE_VAL;
    }
    const std::string copy(text);
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    if (copy.empty() || *end != '\0' || std::isspace(static_cast<unsigned char>(copy[0])) != 0) {
      return std::nullopt;
    }
    return value;
  }

  void take_line(std::string_view line) {
    std::string_view rest = line;
    if (take(rest, "# HELP ")) {
      const std::string name = take_name(rest, true);
      const bool spaced = take(rest, " ");
      const auto help = take_escaped(rest, '\0');
      if (name.empty() || !spaced || !help || !scrape_.helps.emplace(name, *help).second || seen_.contains(name)) {
        fail("HELP", line);
      }
      family_ = name;
    } else if (take(rest, "# TYPE ")) {
      const std::string name = take_name(rest, true);
      const bool spaced = take(rest, " ");
      if (name.empty() || name != family_ || !spaced || (rest != "counter" && rest != "gauge" && rest != "histogram") ||
          !scrape_.types.emplace(name, rest).second || seen_.contains(name)) {
        fail("TYPE", line);
      }
    } else {
      take_sample(line);
    }
  }
  void take_sample(std::string_view line) {
    std::string_view rest = line;
    const std::string name = take_name(rest, true);
    std::map<std::string, std::string> labels;
    if (take(rest, "{")) {
      do {
        const std::string label = take_name(rest, false);
        const bool opened = take(rest, "=\"");
        const auto value = take_escaped(rest, '"');
        if (label.empty() || !opened || !value || !labels.emplace(label, *value).second) {
          return fail("label", line);
        }
      } while (take(rest, ","));
      if (!take(rest, "}")) {
        return fail("the labels do not end", line);
      }
    }
    const bool spaced = take(rest, " ");
    const auto value = number(rest);
    std::string base = name;
    const bool histogram = scrape_.types[family_] == "histogram";
    if (histogram) {
      for (const std::string_view suffix : {"_bucket", "_sum", "_count"}) {
        if (name == family_ + std::string(suffix)) {
          base = family_;
        }
      }
    }
    if (name.empty() || !spaced || !value || base != family_ || (histogram && base == name)) {
      return fail("sample", line);
    }
    seen_.insert(family_);
    if (!scrape_.samples.emplace(std::string(line.substr(0, line.rfind(' '))), *value).second) {
      fail("a sample twice", line);
    }
    if (histogram) {
      take_histogram(name, labels, *value, line);
    }
  }
  void take_histogram(const std::string& name, std::map<std::string, std::string> labels, double value,
                      std::string_view line) {
    const auto bound = labels.extract("le");
    std::string key = family_;
    for (const auto& [label, text] : labels) {
      key += '\x01' + label + '\x02' + text;
    }
    Series& series = series_[key];
    if (name == family_ + "_bucket") {
      const auto le = bound ? number(bound.mapped()) : std::nullopt;
      if (!le || *le <= series.bound || value < series.buckets) {
        fail("bucket", line);
      }
      series.bound = le.value_or(0);
      series.buckets = value;
    } else if (bound) {
      fail("le outside a bucket", line);
    } else if (name == family_ + "_count") {
      series.count = value;
    } else {
      series.summed = true;
    }
  }
  void check_histograms() {
    for (const auto& [key, series] : series_) {
      if (series.bound != HUGE_VAL || series.count != series.buckets || !series.summed) {
        fail("a histogram without +Inf, _sum or _count, or whose +Inf is not its count", key);
      }
    }
  }

  struct Series {
    double bound = -HUGE_VAL;
    double buckets = 0;
    double count = -1;
    bool summed = false;
  };
  Scrape scrape_;
  std::string family_;
  std::set<std::string> seen_;  // families with samples
  std::map<std::string, Series> series_;
};

}  // namespace weft::serve::test
