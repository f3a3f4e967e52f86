// SPDX-License-Identifier: MIT
#include "weft/sys/call.h"

namespace weft::sys {
Error make_error(int os_errno, StaticText what) noexcept { return {errc_of(os_errno), what, os_errno}; }

}  // namespace weft::sys
