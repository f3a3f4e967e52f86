// SPDX-License-Identifier: MIT
#pragma once

#include "weft/logging/log.h"
#include "weft/serve/web/router.h"

namespace weft::serve::web {

// Middleware: a line of each request of a route, for Router::use().
//   router.use(web::logged(WEFT_TRY(log->logger("web"))));
// The event is "request", with the fields method, path, route, status, duration_us and session, and trace_id if the
// request has a span (traced() is then used before). A status of 500 and above, and an exception, is of level error,
// others are of level info. The duration ends when the handler returns its answer; the body that a coroutine writes
// after it does not count. The query is left out, because it may have secrets.
// A request without a route, one that is refused before its handler, and a WebSocket have no line.
// Cost: a call of a function; with a line two clocks and the line. A coroutine has one frame more.
[[nodiscard]] Middleware logged(logging::Logger log);

}  // namespace weft::serve::web
