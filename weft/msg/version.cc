// SPDX-License-Identifier: MIT
#include "weft/msg/version.h"

#include "weft/base/version.h"

#define WEFT_TEXT_OF(number) #number
#define WEFT_TEXT(number) WEFT_TEXT_OF(number)

namespace weft {

const char* version() noexcept {
  return WEFT_TEXT(WEFT_VERSION_MAJOR) "." WEFT_TEXT(WEFT_VERSION_MINOR) "." WEFT_TEXT(WEFT_VERSION_PATCH);
}

}  // namespace weft
