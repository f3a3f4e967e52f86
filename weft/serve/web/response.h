// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "weft/base/result.h"
#include "weft/serve/web/fields.h"

namespace weft::serve::web {

inline constexpr std::string_view kPlainText = "text/plain; charset=utf-8";

// Response: an answer: a status, fields and a whole body. A value.
//   return web::Response("hello");
//   return web::Response(201).set("Location", "/users/7");
// The server adds Date, Content-Length and Connection. The body of an answer to HEAD is measured and not sent.
class Response {
 public:
  Response() = default;  // 200 without a body
  // 200 with a text of that type.
  Response(std::string body, std::string_view content_type = kPlainText)  // NOLINT(google-explicit-constructor)
      : body_(std::move(body)) {
    set("Content-Type", content_type);
  }
  Response(const char* body) : Response(std::string(body)) {}  // NOLINT(google-explicit-constructor)
  // A status from 200 to 599.
  explicit Response(unsigned status) : status_(status) {}
  Response(unsigned status, std::string body, std::string_view content_type = kPlainText)
      : Response(std::move(body), content_type) {
    status_ = status;
  }

  // Sets a field instead of those of that name. If the name or value is not valid for a field, or the fields exceed
  // Fields::kBytesMax, the response remembers it: the peer gets 500 instead, and error() has the reason.
  Response& set(std::string_view name, std::string_view value) { return note(fields_.set(name, value)); }
  // Adds a field, such as a further Set-Cookie.
  Response& add(std::string_view name, std::string_view value) { return note(fields_.add(name, value)); }
  Response& set_status(unsigned status) noexcept {
    status_ = status;
    return *this;
  }
  // The connection ends after this answer.
  Response& close() noexcept {
    closes_ = true;
    return *this;
  }

  [[nodiscard]] unsigned status() const noexcept { return status_; }
  [[nodiscard]] std::string& body() noexcept { return body_; }
  [[nodiscard]] const std::string& body() const noexcept { return body_; }
  [[nodiscard]] const Fields& fields() const noexcept { return fields_; }
  [[nodiscard]] bool closes() const noexcept { return closes_; }
  // The first mistake; ok if there is none.
  [[nodiscard]] Error error() const noexcept {
    return status_ < 200 || status_ > 599 ? Error(Errc::invalid_argument, "a status is from 200 to 599") : error_;
  }

 private:
  Response& note(const Result<void>& outcome) noexcept {
    if (!outcome && error_ == Errc::ok) {
      error_ = outcome.error();
    }
    return *this;
  }

  unsigned status_ = 200;
  bool closes_ = false;
  Error error_;
  Fields fields_;
  std::string body_;
};

}  // namespace weft::serve::web
