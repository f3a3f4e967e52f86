// SPDX-License-Identifier: MIT
#include "weft/sys/small_file.h"

#include <cstdio>

namespace weft::sys {

std::string read_small_file(const std::string& path) {
  std::string text;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char buffer[4096];
    std::size_t count = 0;
    while ((count = std::fread(buffer, 1, sizeof buffer, file)) > 0) {
      text.append(buffer, count);
    }
    std::fclose(file);
  }
  return text;
}

}  // namespace weft::sys
