// SPDX-License-Identifier: MIT
#include "weft/sys/small_file.h"

#include <sys/vfs.h>

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

bool is_in_memory(const std::string& path) noexcept {
  constexpr unsigned long kTmpfs = 0x01021994;  // linux/magic.h
  constexpr unsigned long kRamfs = 0x858458f6;
  struct statfs status{};
  if (::statfs(path.c_str(), &status) != 0) {
    return false;
  }
  const auto type = static_cast<unsigned long>(status.f_type) & 0xFFFFFFFFUL;
  return type == kTmpfs || type == kRamfs;
}

}  // namespace weft::sys
