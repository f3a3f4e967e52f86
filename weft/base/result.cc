// SPDX-License-Identifier: MIT
#include "weft/base/result.h"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace weft {

void detail::die_of_no_value(Error error) noexcept {
  std::array<char, 512> buffer;
  const std::string_view text = error.write_message(buffer);
  std::fprintf(
      stderr,
      "weft: the program took the value of a Result that holds an error (check it first, or use WEFT_TRY): %.*s\n",
      static_cast<int>(text.size()), text.data());
  std::abort();
}

}  // namespace weft
