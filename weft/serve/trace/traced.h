// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/base/result.h"
#include "weft/rt/task/task.h"
#include "weft/serve/web/request.h"
#include "weft/serve/web/router.h"
#include "weft/serve/web_client/client_request.h"
#include "weft/serve/web_client/client_response.h"
#include "weft/serve/web_client/http_client.h"
#include "weft/trace/span.h"
#include "weft/trace/trace_context.h"
#include "weft/trace/tracer.h"

namespace weft::serve::web {

struct TracedOptions {
  // Whether the span of a request continues the trace that its fields name, and is recorded if that trace is. If false,
  // each request begins a trace: for strangers, who would otherwise decide which of their requests are recorded.
  bool take_parent = true;
};

// Middleware: a span of each request of a route, for Router::use(); the first one, so that it measures the others.
//   router.use(web::traced(tracer));
// Request::span() is the span, in the handler and in the middleware inside. It ends when the handler returns its
// answer; the body that a coroutine writes after it does not count. Its name is "GET /users/{id}". It has the
// attributes of OpenTelemetry's conventions for HTTP: http.request.method, http.route, url.path, url.scheme,
// network.protocol.version, user_agent.original, http.response.status_code; the query is left out, because it may have
// secrets. A status of 500 and above, and an exception, is an error, with error.type.
// A request without a route, one that is refused before its handler, and a WebSocket have no span.
// Cost: for a plain function no allocation if the trace is not recorded; a coroutine has one frame more.
[[nodiscard]] Middleware traced(std::shared_ptr<trace::Tracer> tracer, TracedOptions options = {});

// The context that the fields of the request name; empty if no traceparent is valid, and if there are several. Several
// fields tracestate are joined (RFC 9110 section 5.2).
[[nodiscard]] trace::TraceContext context_of(const Request& request) noexcept;

// Sets the fields traceparent and tracestate of a client's request, so that the server continues the trace. An empty
// context changes nothing.
void inject(const trace::TraceContext& context, ClientRequest& request);

// Sends the request with the context of a new child of `parent`, which ends with the answer. The span has the name of
// the method and the attributes http.request.method, url.full without the query, server.address, server.port and
// http.response.status_code. An error, and a status of 400 and above, is an error of the span, with error.type. The
// result and the errors are those of HttpClient::request(). The client outlives the task.
[[nodiscard]] rt::Task<Result<ClientResponse>> traced_request(HttpClient& http, const trace::Span& parent,
                                                              ClientRequest request);

}  // namespace weft::serve::web
