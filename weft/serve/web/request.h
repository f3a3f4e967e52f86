// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/net/http/field.h"
#include "weft/net/http/request_head.h"
#include "weft/serve/web/form.h"
#include "weft/trace/span.h"

namespace weft::serve {
class Session;
}  // namespace weft::serve

namespace weft::serve::web {

struct JsonSupport;  // of json.h

inline constexpr std::size_t kParamsMax = 8;  // "{name}"s of one route

// A part of a path that matches a "{name}" of its route.
struct PathParams {
  struct Param {
    std::string_view name;
    std::string_view value;  // percent-encoded
  };
  std::array<Param, kParamsMax> params{};
  std::size_t count = 0;
  std::string_view route{};  // the pattern
};

// Request: the argument of a handler: views into the bytes of the request.
// Owner: the server. It lives until the handler returns; if that is a coroutine, until the coroutine has ended.
// Affinity: the session's core. Cost: a look-up is linear. It decodes the value that it finds; nothing is decoded
// before.
class Request {
 public:
  Request(const net::http::RequestHead& head, Bytes body, const PathParams& params, Session* session) noexcept
      : head_(head), body_(body), params_(params), session_(session) {}

  [[nodiscard]] std::string_view method() const noexcept { return head_.method; }
  [[nodiscard]] std::string_view target() const noexcept { return head_.target; }  // unchanged from the peer
  [[nodiscard]] std::string_view path() const noexcept { return head_.path; }      // percent-encoded
  [[nodiscard]] std::string_view host() const noexcept { return head_.host; }      // of the target, or the field Host
  [[nodiscard]] std::string_view route() const noexcept { return params_.route; }  // the pattern, "/users/{id}"
  [[nodiscard]] bool is_http_1_0() const noexcept { return head_.minor == 0; }

  // Returns the value of the first field of that name, which is compared without case; empty if there is none.
  [[nodiscard]] std::string_view operator[](std::string_view name) const noexcept { return find(name).value_or(""); }
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept {
    return net::http::find_field(head_.fields, name);
  }
  // The fields as lines with CRLF, for net::http::any_field().
  [[nodiscard]] std::string_view fields() const noexcept { return head_.fields; }

  // Returns the value of the first cookie of that name, unchanged from the client: scripts and other hosts of the
  // domain may have set it. nullopt: there is none.
  [[nodiscard]] std::optional<std::string_view> cookie(std::string_view name) const noexcept {
    std::optional<std::string_view> found;
    net::http::any_field(head_.fields, [&](const net::http::Field& field) noexcept {
      if (net::http::same_text(field.name, "cookie")) {
        found = find_cookie(field.value, name);
      }
      return found.has_value();
    });
    return found;
  }

  // Returns the segment that matches the "{name}" of the route, percent-decoded. It may have any byte except 0, '/'
  // included. Empty if there is no such name.
  [[nodiscard]] std::string param(std::string_view name) const {
    for (std::size_t i = 0; i < params_.count; ++i) {
      if (params_.params[i].name == name) {
        return percent_decode(params_.params[i].value);
      }
    }
    return {};
  }
  // Returns the first value of that name in the query, decoded like a form's; nullopt if the query does not have the
  // name.
  [[nodiscard]] std::optional<std::string> query(std::string_view name) const { return find_pair(head_.query, name); }
  [[nodiscard]] std::string_view query() const noexcept { return head_.query; }  // encoded
  // The same of the body of a form: application/x-www-form-urlencoded. Returns nullopt if the body has another type.
  [[nodiscard]] std::optional<std::string> form(std::string_view name) const {
    const std::string_view type = (*this)["Content-Type"];
    const std::string_view essence = net::http::without_spaces_around(type.substr(0, type.find(';')));
    return net::http::same_text(essence, "application/x-www-form-urlencoded") ? find_pair(body(), name) : std::nullopt;
  }

  [[nodiscard]] std::string_view body() const noexcept { return as_text(body_); }
  // The body as Result<nlohmann::json>; invalid_argument: it is not JSON. Needs nlohmann/json, and json.h.
  template <typename Support = JsonSupport>
  [[nodiscard]] auto json() const {
    return Support::parse(body());
  }
  // The connection: its peer's address, TLS, or an id to find it later.
  [[nodiscard]] Session& session() const noexcept { return *session_; }

  // The span of the request, if the route has the middleware traced() (weft/serve/trace/traced.h). Without it, a span
  // that belongs to no trace and records nothing.
  [[nodiscard]] trace::Span& span() const noexcept { return span_ == nullptr ? trace::no_span() : *span_; }
  // For traced(). Null: none.
  void set_span(trace::Span* span) const noexcept { span_ = span; }

 private:
  net::http::RequestHead head_;
  Bytes body_;
  PathParams params_;
  Session* session_;
  mutable trace::Span* span_ = nullptr;
};

}  // namespace weft::serve::web
