// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace weft::serve {

// The page /debug: it reads /debug/cores, /debug/sessions, /debug/handlers and /debug/traces once a second and shows
// them as tables. The text itself holds no data, and loads nothing else. Affinity: immutable; static storage.
extern const std::string_view kDebugPage;

// The field Content-Security-Policy of that page: its own style and script, and requests to its own port, alone.
inline constexpr std::string_view kDebugPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace weft::serve
