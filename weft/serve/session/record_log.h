// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/base/result.h"
#include "weft/logging/log.h"
#include "weft/serve/session/log.h"

namespace weft::serve {

// Returns a sink for ServerOptions::log and ClientHostOptions::log that writes each record as a line of the log. The
// components are "serve.session" (connections that end), "serve.admission" (those that became no session),
// "serve.handler" (exceptions) and "serve.core" (turns that last too long). The sink does not keep the log open.
// Errors: those of Log::logger().
[[nodiscard]] Result<LogSink> log_records(logging::Log& log);

// The same with a log of its own, by default on standard error. The last copy of the sink stops it. Errors: those of
// Log::make().
[[nodiscard]] Result<LogSink> log_to_stderr(logging::LogOptions options = {});

}  // namespace weft::serve
