// SPDX-License-Identifier: MIT
#include "weft/serve/web/middleware.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weft/net/http/chars.h"
#include "weft/net/http/field.h"
#include "weft/net/http/gzip.h"
#include "weft/serve/session/service.h"
#include "weft/serve/web/answer.h"

namespace weft::serve::web {

namespace {

namespace http = net::http;

// The handler of one kind of functions, with both around it.
struct Around {
  Before before;
  After after;

  [[nodiscard]] std::optional<Response> refuse(const Request& request) const {
    std::optional<Response> refused = before ? before(request) : std::nullopt;
    if (refused && after) {
      after(request, *refused);
    }
    return refused;
  }
  void finish(const Request& request, Result<Response>& outcome) const {
    if (outcome && after) {
      after(request, *outcome);
    }
  }
};

rt::Task<Result<Response>> run(const Around& around, const Request& request, rt::Task<Result<Response>> task) {
  Result<Response> outcome = co_await std::move(task);
  around.finish(request, outcome);
  co_return outcome;
}
rt::Task<Result<Response>> refusal(Response response) { co_return Result<Response>(std::move(response)); }

bool is_safe(std::string_view method) noexcept { return method == "GET" || method == "HEAD" || method == "OPTIONS"; }

bool is_own(const Request& request, std::string_view origin) noexcept {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (origin.starts_with(scheme) && http::same_text(origin.substr(scheme.size()), request.host())) {
      return true;
    }
  }
  return false;
}

bool takes(const CorsOptions& options, std::string_view origin) {
  return std::any_of(options.origins.begin(), options.origins.end(),
                     [origin](const std::string& one) { return one == "*" || http::same_text(one, origin); });
}

// Types of texts, by the part before the parameters. Others are compressed already, or unknown.
bool is_compressible(std::string_view type) noexcept {
  type = http::without_spaces_around(type.substr(0, type.find(';')));
  constexpr std::string_view kTextTypes[] = {"application/json", "application/javascript", "application/xml",
                                             "application/manifest+json", "image/svg+xml"};
  return http::same_text(type.substr(0, 5), "text/") ||
         std::any_of(std::begin(kTextTypes), std::end(kTextTypes),
                     [type](auto one) { return http::same_text(one, type); });
}

void pack(const CompressOptions& options, const Request& request, Response& response) {
  const std::size_t size = response.body().size();
  const Fields& fields = response.fields();
  if (size < options.body_min || size > options.body_max || response.producer() || response.status() == 206 ||
      fields.find("Content-Encoding") || !is_compressible(fields.find("Content-Type").value_or(""))) {
    return;
  }
  response.add("Vary", "Accept-Encoding");
  if (!http::takes_gzip(request["Accept-Encoding"])) {
    return;
  }
  std::optional<std::string> packed = http::gzip(response.body(), std::clamp(options.level, 1, 9));
  if (!packed) {
    return;
  }
  response.body() = *std::move(packed);
  response.set("Content-Encoding", "gzip");
  if (const auto tag = fields.find("ETag"); tag && tag->starts_with('"')) {
    response.set("ETag", "W/" + std::string(*tag));
  }
}

// Adds the fields that permit the origin. The field Vary of every answer names Origin.
void allow(const CorsOptions& options, const Request& request, Response& response) {
  if (response.fields().find("Vary") != "Origin") {
    response.add("Vary", "Origin");
  }
  const std::string_view origin = request["Origin"];
  if (origin.empty() || !takes(options, origin)) {
    return;
  }
  const bool all = std::find(options.origins.begin(), options.origins.end(), "*") != options.origins.end();
  response.set("Access-Control-Allow-Origin", all ? "*" : origin);
  if (options.credentials && !all) {
    response.set("Access-Control-Allow-Credentials", "true");
  }
}

}  // namespace

Middleware filter(Before before, After after) {
  return [around = Around{std::move(before), std::move(after)}](Handler inner) {
    Handler outer;
    if (inner.call) {
      outer.call = [around, inner = std::move(inner.call)](const Request& request) -> Result<Response> {
        if (std::optional<Response> refused = around.refuse(request)) {
          return *std::move(refused);
        }
        Result<Response> outcome = inner(request);
        around.finish(request, outcome);
        return outcome;
      };
    } else if (inner.start) {
      outer.start = [around, inner = std::move(inner.start)](const Request& request) {
        std::optional<Response> refused = around.refuse(request);
        return refused ? refusal(*std::move(refused)) : run(around, request, inner(request));
      };
    } else {
      outer.receive = [around, inner = std::move(inner.receive)](const Request& request, BodyReader& body) {
        std::optional<Response> refused = around.refuse(request);
        return refused ? refusal(*std::move(refused)) : run(around, request, inner(request, body));
      };
    }
    return outer;
  };
}

Middleware hsts(std::chrono::seconds max_age, bool with_subdomains) {
  const std::string value = "max-age=" + std::to_string(std::max<std::chrono::seconds::rep>(max_age.count(), 0)) +
                            (with_subdomains ? "; includeSubDomains" : "");
  return filter({}, [value](const Request& request, Response& response) {
    if (request.session().slot().layered) {
      response.set("Strict-Transport-Security", value);
    }
  });
}

Middleware security_fields(std::string content_security_policy) {
  return filter({}, [policy = std::move(content_security_policy)](const Request&, Response& response) {
    const std::pair<std::string_view, std::string_view> fields[] = {{"X-Content-Type-Options", "nosniff"},
                                                                    {"X-Frame-Options", "DENY"},
                                                                    {"Referrer-Policy", "no-referrer"},
                                                                    {"Cross-Origin-Opener-Policy", "same-origin"},
                                                                    {"Content-Security-Policy", policy}};
    for (const auto& [name, value] : fields) {
      if (!value.empty() && !response.fields().find(name)) {
        response.set(name, value);
      }
    }
  });
}

Middleware compress(CompressOptions options) {
  if (!http::gzip_available()) {
    return [](Handler inner) { return inner; };
  }
  return filter({}, [options](const Request& request, Response& response) { pack(options, request, response); });
}

Middleware cors(CorsOptions options) {
  const Before before = [options](const Request& request) -> std::optional<Response> {
    const std::string_view origin = request["Origin"];
    const bool taken = origin.empty() || is_safe(request.method()) || is_own(request, origin) || takes(options, origin);
    return taken ? std::nullopt : std::optional(status_response(403));
  };
  return filter(before, [options = std::move(options)](const Request& request, Response& response) {
    allow(options, request, response);
  });
}

std::function<Response(const Request&)> preflight(CorsOptions options) {
  return [options = std::move(options)](const Request& request) {
    Response response(204);
    allow(options, request, response);
    if (response.fields().find("Access-Control-Allow-Origin")) {
      response.set("Access-Control-Allow-Methods", options.methods);
      response.set("Access-Control-Max-Age", std::to_string(options.max_age.count()));
      if (!options.fields.empty()) {
        response.set("Access-Control-Allow-Headers", options.fields);
      }
    }
    return response;
  };
}

}  // namespace weft::serve::web
