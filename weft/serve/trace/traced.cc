// SPDX-License-Identifier: MIT
#include "weft/serve/trace/traced.h"

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "weft/net/http/field.h"
#include "weft/net/http/url.h"
#include "weft/serve/session/service.h"
#include "weft/serve/web/answer.h"

namespace weft::serve::web {

namespace {

using trace::Span;
using trace::SpanKind;
using trace::SpanStatus;

void set_failed(Span& span, unsigned status) noexcept {
  if (span.is_recording()) {
    const char digits[3] = {static_cast<char>('0' + status / 100 % 10), static_cast<char>('0' + status / 10 % 10),
                            static_cast<char>('0' + status % 10)};
    span.set("error.type", std::string_view(digits, sizeof digits));
    span.set_status(SpanStatus::error);
  }
}

// The handler of a route, and its tracer.
struct TracedHandler {
  std::shared_ptr<trace::Tracer> tracer;
  TracedOptions options;
  Handler inner;

  [[nodiscard]] Span begin(const Request& request) const noexcept {
    Span span = options.take_parent ? tracer->start(request.method(), SpanKind::server, context_of(request))
                                    : tracer->start(request.method(), SpanKind::server);
    if (span.is_recording()) {
      describe(span, request);
    }
    return span;
  }
  static void describe(Span& span, const Request& request) noexcept;
  static void finish(Span& span, const Result<Response>& outcome) noexcept {
    if (span.is_recording()) {
      const unsigned status = !outcome                       ? status_of(outcome.error())
                              : outcome->error() == Errc::ok ? outcome->status()
                                                             : 500;
      span.set("http.response.status_code", status);
      if (status >= 500) {
        set_failed(span, status);
        if (!outcome) {
          span.set_status(SpanStatus::error, describe_error(outcome.error()));
        }
      }
    }
  }
  static void finish_thrown(Span& span, const std::exception_ptr& thrown) noexcept;
  [[nodiscard]] static std::string describe_error(const Error& error) noexcept {
    try {
      return error.message();
    } catch (const std::bad_alloc&) {
      return {};
    }
  }
};

void TracedHandler::describe(Span& span, const Request& request) noexcept {
  char name[trace::SpanRecord::kTextMax];
  std::size_t size = 0;
  for (const std::string_view part : {request.method(), std::string_view(" "), request.route()}) {
    size += part.copy(name + size, sizeof name - size);
  }
  span.set_name(std::string_view(name, size));
  span.set("http.request.method", request.method());
  span.set("http.route", request.route());
  span.set("url.path", request.path());
  span.set("url.scheme", request.session().slot().layered ? "https" : "http");
  span.set("network.protocol.version", request.is_http_1_0() ? "1.0" : "1.1");
  if (const auto agent = request.find("User-Agent")) {
    span.set("user_agent.original", *agent);
  }
}

void TracedHandler::finish_thrown(Span& span, const std::exception_ptr& thrown) noexcept {
  if (!span.is_recording()) {
    return;
  }
  span.set("http.response.status_code", 500);
  set_failed(span, 500);
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& exception) {
    span.set_status(SpanStatus::error, exception.what());
  } catch (...) {  // NOLINT(bugprone-empty-catch): without a name
  }
}

// The span of a request while its handler runs.
class SpanOfRequest {
 public:
  SpanOfRequest(const Request& request, Span& span) noexcept : request_(request) { request_.set_span(&span); }
  SpanOfRequest(const SpanOfRequest&) = delete;
  SpanOfRequest& operator=(const SpanOfRequest&) = delete;
  ~SpanOfRequest() { request_.set_span(nullptr); }

 private:
  const Request& request_;
};

Result<Response> call_traced(const TracedHandler& handler, const Request& request) {
  Span span = handler.begin(request);
  const SpanOfRequest attached(request, span);
  try {
    Result<Response> outcome = handler.inner.call(request);
    TracedHandler::finish(span, outcome);
    return outcome;
  } catch (...) {
    TracedHandler::finish_thrown(span, std::current_exception());
    throw;
  }
}

// `body`: of a handler that takes it as it comes; otherwise null. The router owns the handler, and outlives the task.
rt::Task<Result<Response>> run_traced(const TracedHandler* handler, const Request* request, BodyReader* body) {
  Span span = handler->begin(*request);
  const SpanOfRequest attached(*request, span);
  try {
    rt::Task<Result<Response>> task =
        body != nullptr ? handler->inner.receive(*request, *body) : handler->inner.start(*request);
    Result<Response> outcome = co_await std::move(task);
    TracedHandler::finish(span, outcome);
    co_return outcome;
  } catch (...) {
    TracedHandler::finish_thrown(span, std::current_exception());
    throw;
  }
}

rt::Task<Result<ClientResponse>> request_traced(HttpClient* http, Span span, ClientRequest request) {
  inject(span.context(), request);
  Result<ClientResponse> answer = co_await http->request(std::move(request));
  if (!answer) {
    span.set("error.type", describe(answer.error().code()));
    span.set_status(SpanStatus::error, TracedHandler::describe_error(answer.error()));
  } else {
    span.set("http.response.status_code", answer->status());
    if (answer->status() >= 400) {
      set_failed(span, answer->status());
    }
  }
  co_return answer;
}

void describe_request(Span& span, const ClientRequest& request) {
  span.set("http.request.method", request.method());
  const auto url = net::http::parse_url(request.url());
  if (url) {
    const std::string full = url->text();
    span.set("url.full", std::string_view(full).substr(0, full.find('?')));
    span.set("server.address", url->host);
    span.set("server.port", url->port);
  }
}

}  // namespace

Middleware traced(std::shared_ptr<trace::Tracer> tracer, TracedOptions options) {
  return [tracer = std::move(tracer), options](Handler inner) {
    const auto handler = std::make_shared<const TracedHandler>(TracedHandler{tracer, options, std::move(inner)});
    Handler outer;
    if (handler->inner.call) {
      outer.call = [handler](const Request& request) { return call_traced(*handler, request); };
    } else if (handler->inner.start) {
      outer.start = [handler](const Request& request) { return run_traced(handler.get(), &request, nullptr); };
    } else {
      outer.receive = [handler](const Request& request, BodyReader& body) {
        return run_traced(handler.get(), &request, &body);
      };
    }
    return outer;
  };
}

trace::TraceContext context_of(const Request& request) noexcept {
  std::string_view parent;
  std::string_view state;
  std::size_t parents = 0;
  std::size_t states = 0;
  for (std::string_view lines = request.fields(); !lines.empty();) {
    const std::string_view line = net::http::take_line(lines);
    if (line.empty() || (line.front() != 't' && line.front() != 'T')) {
      continue;  // most of the fields, in the time of one comparison
    }
    const net::http::Field field = net::http::field_of(line);
    if (net::http::same_text(field.name, "traceparent")) {
      parent = field.value;
      ++parents;
    } else if (net::http::same_text(field.name, "tracestate")) {
      state = field.value;
      ++states;
    }
  }
  if (parents != 1) {
    return {};
  }
  char joined[trace::TraceContext::kStateMax];
  if (states > 1) {
    std::size_t size = 0;
    bool fits = true;
    net::http::any_field(request.fields(), [&](const net::http::Field& field) {
      if (net::http::same_text(field.name, "tracestate") && !field.value.empty()) {
        fits = size + (size != 0 ? 1 : 0) + field.value.size() <= sizeof joined;
        if (fits) {
          if (size != 0) {
            joined[size++] = ',';
          }
          size += field.value.copy(joined + size, sizeof joined - size);
        }
      }
      return !fits;
    });
    state = fits ? std::string_view(joined, size) : std::string_view();
  }
  auto context = trace::TraceContext::parse(parent, state);
  return context ? *std::move(context) : trace::TraceContext();
}

void inject(const trace::TraceContext& context, ClientRequest& request) {
  if (context.empty()) {
    return;
  }
  char parent[trace::TraceContext::kTraceparentSize];
  context.write_traceparent(parent);
  request.set("traceparent", std::string_view(parent, sizeof parent));
  if (!context.tracestate().empty()) {
    request.set("tracestate", net::http::without_spaces_around(context.tracestate()));
  }
}

rt::Task<Result<ClientResponse>> traced_request(HttpClient& http, const trace::Span& parent, ClientRequest request) {
  Span span = parent.child(request.method(), SpanKind::client);
  if (span.is_recording()) {
    describe_request(span, request);
  }
  return request_traced(&http, std::move(span), std::move(request));
}

}  // namespace weft::serve::web
