// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/filter.h"
#include "weft/base/random.h"

// Filters by definition instead of by algorithm, for tests and fuzzers, and random filters and topics.
namespace weft::naive {

// Tries every length for each star: exponential, so only for short texts.
inline bool glob_matches(std::string_view glob, std::string_view topic) {
  if (glob.empty()) {
    return topic.empty();
  }
  if (glob[0] == '*') {
    for (std::size_t skip = 0; skip <= topic.size(); ++skip) {
      if (glob_matches(glob.substr(1), topic.substr(skip))) {
        return true;
      }
    }
    return false;
  }
  if (topic.empty()) {
    return false;
  }
  const auto byte = static_cast<unsigned char>(topic[0]);
  bool same = glob[0] == '?' || glob[0] == topic[0];
  std::size_t size = 1;
  if (glob[0] == '\\') {
    same = glob[1] == topic[0];
    size = 2;
  } else if (glob[0] == '[') {
    const bool inverted = glob[1] == '^';
    bool any = false;
    for (size = inverted ? 2 : 1; glob[size] != ']';) {
      unsigned char low = static_cast<unsigned char>(glob[size]);
      unsigned char high = low;
      if (low == '\\') {
        low = high = static_cast<unsigned char>(glob[size + 1]);
        size += 2;
      } else if (glob.size() > size + 2 && glob[size + 1] == '-') {
        high = static_cast<unsigned char>(glob[size + 2]);
        size += 3;
      } else {
        size += 1;
      }
      any = any || (byte >= low && byte <= high) || (byte >= high && byte <= low);
    }
    same = any != inverted;
    ++size;
  }
  return same && glob_matches(glob.substr(size), topic.substr(1));
}

inline std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> tokens;
  for (;;) {
    const std::size_t end = text.find('.');
    tokens.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return tokens;
    }
    text.remove_prefix(end + 1);
  }
}

inline bool tokens_match(std::string_view text, std::string_view topic) {
  const auto want = split(text);
  const auto have = split(topic);
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (want[i] == ">") {
      std::size_t bytes = have.size() - std::min(have.size(), i + 1);  // separators
      for (std::size_t j = i; j < have.size(); ++j) {
        bytes += have[j].size();
      }
      return bytes != 0;
    }
    if (i >= have.size() || (want[i] == "*" ? have[i].empty() : want[i] != have[i])) {
      return false;
    }
  }
  return want.size() == have.size();
}

inline bool matches(const FilterView& filter, std::string_view topic) {
  switch (filter.kind) {
    case FilterKind::exact: return filter.text == topic;
    case FilterKind::prefix: return topic.substr(0, filter.text.size()) == filter.text;
    case FilterKind::tokens: return tokens_match(filter.text, topic);
    case FilterKind::glob: return glob_matches(filter.text, topic);
  }
  return false;
}

inline std::string random_text(Random& random, std::string_view alphabet, std::size_t size_max) {
  std::string text(random.below(size_max + 1), ' ');
  for (char& c : text) {
    c = alphabet[random.below(alphabet.size())];
  }
  return text;
}

inline Filter random_filter(Random& random) {
  for (;;) {
    const auto kind = static_cast<FilterKind>(1 + random.below(4));
    const std::string_view alphabet = kind == FilterKind::glob     ? "ab.**?[]^-\\"
                                      : kind == FilterKind::tokens ? "ab..**>"
                                                                   : "ab.";
    if (const auto filter = Filter::make(kind, random_text(random, alphabet, 9)); filter) {
      return *filter;
    }
  }
}

}  // namespace weft::naive
