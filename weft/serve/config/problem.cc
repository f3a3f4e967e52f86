// SPDX-License-Identifier: MIT
#include "weft/serve/config/problem.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace weft::serve::config {

namespace {

constexpr std::size_t kWordMax = 64;  // bytes; a longer one is near to no other

// The number of edits between two words (optimal string alignment): three rows of the table of distances.
std::size_t distance(std::string_view a, std::string_view b) noexcept {
  using Row = std::array<std::size_t, kWordMax + 1>;
  Row rows[3] = {};
  for (std::size_t j = 0; j <= b.size(); ++j) {
    rows[0][j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    Row& row = rows[i % 3];
    const Row& above = rows[(i + 2) % 3];
    const Row& second_above = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], second_above[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string Origin::text() const {
  if (at.line == 0) {
    return source;
  }
  return source + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

std::string Problem::message() const {
  std::string out = origin.text();
  for (const std::string* part : {&key, &text}) {
    if (!part->empty()) {
      out += (out.empty() ? "" : ": ") + *part;
    }
  }
  return out;
}

void Problems::add(Problem problem) {
  if (full()) {
    ++omitted_;
  } else {
    list_.push_back(std::move(problem));
  }
}

void Problems::sort() {
  std::stable_sort(list_.begin(), list_.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.origin.at.line, a.origin.at.column, a.origin.source) <
           std::tie(b.origin.at.line, b.origin.at.column, b.origin.source);
  });
}

std::string Problems::text() const {
  std::string out;
  for (const Problem& each : list_) {
    out += each.message() + "\n";
  }
  return omitted_ == 0 ? out : out + "and " + std::to_string(omitted_) + " more\n";
}

std::string_view nearest(std::string_view name, std::span<const std::string> words) {
  std::string_view best;
  std::size_t least = (name.size() + 2) / 3 + 1;  // a third of the characters may differ
  for (const std::string_view word : words) {
    if (name.size() > kWordMax || word.size() > kWordMax) {
      continue;
    }
    if (const std::size_t edits = distance(name, word); edits < least) {
      least = edits;
      best = word;
    }
  }
  return best;
}

std::string suggestion(std::string_view name, std::span<const std::string> words) {
  const std::string_view word = nearest(name, words);
  return word.empty() ? "" : "; did you mean \"" + std::string(word) + "\"?";
}

}  // namespace weft::serve::config
