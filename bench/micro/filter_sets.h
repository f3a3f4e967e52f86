// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/filter.h"
#include "weft/base/random.h"

// Names, topics and filters for the benchmarks of FilterIndex. Equal seeds make equal sets.
namespace bench {

// Three tokens of 4 to 9 letters.
inline std::string random_name(weft::Random& random) {
  std::string name;
  for (int token = 0; token < 3; ++token) {
    name += token == 0 ? "" : ".";
    for (std::uint64_t size = 4 + random.below(6); size != 0; --size) {
      name += static_cast<char>('a' + random.below(26));
    }
  }
  return name;
}

inline std::vector<std::string> random_names(std::size_t count, std::uint64_t seed) {
  weft::Random random(seed);
  std::vector<std::string> names(count);
  std::generate(names.begin(), names.end(), [&] { return random_name(random); });
  return names;
}

// Half of the topics are those of the filters.
inline std::vector<std::string> random_topics(const std::vector<std::string>& names) {
  constexpr std::size_t kTopics = std::size_t{1} << 16;
  std::vector<std::string> topics = random_names(kTopics, 2);
  weft::Random random(3);
  for (std::size_t i = 0; i < kTopics; i += 2) {
    topics[i] = names[random.below(names.size())];
  }
  return topics;
}

inline weft::Filter exact_filter(std::string_view name) { return *weft::Filter::exact(name); }

// A third each: the last token, the one in the middle, the rest.
inline weft::Filter tokens_filter(std::string_view name) {
  const std::size_t first = name.find('.');
  const std::size_t last = name.rfind('.');
  const std::string head(name.substr(0, last + 1));
  const std::string middle = std::string(name.substr(0, first)) + ".*" + std::string(name.substr(last));
  return *weft::Filter::parse(name.size() % 3 == 0 ? head + "*" : name.size() % 3 == 1 ? middle : head + ">");
}

inline weft::Filter glob_filter(std::string_view name) {
  return *weft::Filter::glob(std::string(name.substr(0, name.rfind('.'))) + ".*" + name.back());
}

// Globs that take many steps each and never match a topic of nothing but `a`; each differs from the others.
inline std::string hostile_run(std::size_t i) {
  std::string text("*");
  return text.append(std::to_string(i)).append(100, 'a').append("b*");
}
inline std::string hostile_classes(std::size_t i) {
  std::string text = "*";
  while (text.size() < 240) {
    text += "[bca]";  // the last byte of each class is the one that is there
  }
  return text.append(std::to_string(i)).append("*");
}
inline std::string hostile_heads(std::size_t i) {
  std::string text(i % 245, 'a');
  return text.append("*").append(std::to_string(i));
}

}  // namespace bench
