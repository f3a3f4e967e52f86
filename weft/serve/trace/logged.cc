// SPDX-License-Identifier: MIT
#include "weft/serve/trace/logged.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "weft/serve/session/session.h"
#include "weft/serve/web/answer.h"
#include "weft/sys/clock.h"
#include "weft/trace/trace_context.h"

namespace weft::serve::web {

namespace {

using logging::Level;

// The handler of a route, and the log of its requests.
struct LoggedHandler {
  logging::Logger log;
  Handler inner;

  void write(const Request& request, Instant began, unsigned status) const noexcept {
    const Level level = status >= 500 ? Level::error : Level::info;
    if (!log.writes(level)) {
      return;
    }
    std::array<char, trace::TraceContext::kTraceparentSize> parent;
    std::string_view trace_id;
    if (const trace::TraceContext& context = request.span().context(); !context.empty()) {
      context.write_traceparent(parent);
      trace_id = std::string_view(parent.data() + 3, trace::TraceId::kHexSize);  // after "00-"
    }
    const std::array<logging::Field, 7> fields{{
        {"method", request.method()},
        {"path", request.path()},
        {"route", request.route()},
        {"status", status},
        {"duration_us", (sys::now() - began) / std::chrono::microseconds(1)},
        {"session", logging::Hex{request.session().id().value}},
        {"trace_id", trace_id},
    }};
    log.write_fields(level, "request", std::span(fields).first(trace_id.empty() ? 6 : 7));
  }
  [[nodiscard]] static unsigned status_of_outcome(const Result<Response>& outcome) noexcept {
    return !outcome ? status_of(outcome.error()) : outcome->error() == Errc::ok ? outcome->status() : 500;
  }
};

Result<Response> call_logged(const LoggedHandler& handler, const Request& request) {
  if (!handler.log.writes(Level::error)) {
    return handler.inner.call(request);
  }
  const Instant began = sys::now();
  try {
    Result<Response> outcome = handler.inner.call(request);
    handler.write(request, began, LoggedHandler::status_of_outcome(outcome));
    return outcome;
  } catch (...) {
    handler.write(request, began, 500);
    throw;
  }
}

// `body`: of a handler that takes it as it comes; otherwise null. The router owns the handler, and outlives the task.
rt::Task<Result<Response>> run_logged(const LoggedHandler* handler, const Request* request, BodyReader* body) {
  const Instant began = sys::now();
  try {
    rt::Task<Result<Response>> task =
        body != nullptr ? handler->inner.receive(*request, *body) : handler->inner.start(*request);
    Result<Response> outcome = co_await std::move(task);
    handler->write(*request, began, LoggedHandler::status_of_outcome(outcome));
    co_return outcome;
  } catch (...) {
    handler->write(*request, began, 500);
    throw;
  }
}

}  // namespace

Middleware logged(logging::Logger log) {
  return [log = std::move(log)](Handler inner) {
    const auto handler = std::make_shared<const LoggedHandler>(LoggedHandler{log, std::move(inner)});
    Handler outer;
    if (handler->inner.call) {
      outer.call = [handler](const Request& request) { return call_logged(*handler, request); };
    } else if (handler->inner.start) {
      outer.start = [handler](const Request& request) {
        // Without a line there is no further frame.
        return handler->log.writes(Level::error) ? run_logged(handler.get(), &request, nullptr)
                                                 : handler->inner.start(request);
      };
    } else {
      outer.receive = [handler](const Request& request, BodyReader& body) {
        return handler->log.writes(Level::error) ? run_logged(handler.get(), &request, &body)
                                                 : handler->inner.receive(request, body);
      };
    }
    return outer;
  };
}

}  // namespace weft::serve::web
