// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/tidy_tree.h"

namespace tidy {

// A class, struct or union with the data members that it declares itself; those of a nested class are the nested one's.
struct ClassSize {
  std::string name;
  std::size_t line;  // of its opening brace
  std::size_t members;
};

// Found by braces, semicolons and keywords in the text without comments and literals; static members are not counted.
// A member that a macro declares is not seen.
[[nodiscard]] std::vector<ClassSize> classes_of(const File& file);

}  // namespace tidy
