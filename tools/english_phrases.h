// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tidy {

// A phrase that the table "English" of HACKING.md forbids, at its place in a paragraph.
struct Phrase {
  std::size_t offset;
  std::string text;
  const char* fix;
};

// The phrases of a paragraph of prose, by rule. Text in `code` or "quotes" is another language's.
[[nodiscard]] std::vector<Phrase> phrases_in(const std::string& paragraph);

}  // namespace tidy
