// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/serve/web/request.h"
#include "weft/serve/web/response.h"
#include "weft/serve/web/router.h"

namespace weft::serve::web {

// Functions around the handlers of routes, for Router::use():
//   router.use(web::hsts(std::chrono::hours(24 * 365)));
//   router.use(web::filter([](const web::Request& request) { return refused_if_wrong(request["Authorization"]); }));

// `before` may answer instead of the handler; `after` changes each answer that is not an error. Either may be empty.
// The cores call them at the same time.
using Before = std::function<std::optional<Response>(const Request&)>;
using After = std::function<void(const Request&, Response&)>;
[[nodiscard]] Middleware filter(Before before, After after = {});

// Strict-Transport-Security (RFC 6797), on connections with TLS alone: browsers then use no others for so long.
[[nodiscard]] Middleware hsts(std::chrono::seconds max_age, bool with_subdomains = true);

// Fields that make a browser stricter with the site's content: X-Content-Type-Options: nosniff, X-Frame-Options: DENY,
// Referrer-Policy: no-referrer, Cross-Origin-Opener-Policy: same-origin and Content-Security-Policy. A field that the
// handler has set stays.
[[nodiscard]] Middleware security_fields(std::string content_security_policy = "default-src 'self'");

struct CompressOptions {
  std::size_t body_min = 1024;         // bytes; a shorter body hardly gets smaller
  std::size_t body_max = 1024 * 1024;  // a larger one is sent as it is: its core would work for long
  int level = 1;                       // of zlib, 1 to 9
};
// Compresses whole bodies of texts, JSON, XML, JavaScript and SVG by gzip for the clients that take it, and sets
// Content-Encoding and Vary. An ETag becomes a weak one. Streamed bodies, files and parts of a content stay as they
// are; a build without zlib changes nothing. Do not compress a secret together with text that others choose (BREACH).
[[nodiscard]] Middleware compress(CompressOptions options = {});

// Which pages of other sites may use a route from a browser (the Fetch standard).
struct CorsOptions {
  std::vector<std::string> origins{};  // such as "https://example.com", without case; "*": every one
  bool credentials = false;            // also with cookies; never for "*"
  std::string methods = "GET, HEAD, POST";
  std::string fields{};               // of requests, such as "Content-Type, X-Token"; empty: the simple ones
  std::chrono::seconds max_age{600};  // of the answer to a preflight
};
// Tells the origins that are taken so. A request that may change something (none of GET, HEAD and OPTIONS) from another
// origin gets 403; the site's own origin is always taken.
[[nodiscard]] Middleware cors(CorsOptions options);
// The handler for preflights, for each path that takes them: router.options("/users", web::preflight(options)).
[[nodiscard]] std::function<Response(const Request&)> preflight(CorsOptions options);

}  // namespace weft::serve::web
