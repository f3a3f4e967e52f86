// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/rt/task/task.h"
#include "weft/serve/web/fields.h"
#include "weft/serve/web/form.h"

namespace weft::serve::web {

inline constexpr std::string_view kPlainText = "text/plain; charset=utf-8";

class BodyWriter;
struct JsonSupport;  // of json.h

// Response: an answer: a status, fields and a body: whole, or written by a coroutine. A value.
//   return web::Response("hello");
//   return web::Response(201).set("Location", "/users/7");
//   return web::Response::stream([](web::BodyWriter& out) -> rt::Task<Result<>> { … });
// The server adds Date, Content-Length and Connection. The body of an answer to HEAD is measured and not sent.
class Response {
 public:
  // Why a handler of this library refuses, for a counter of its own.
  enum class Cause : std::uint8_t { none, files_busy };

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

  // A body that a coroutine writes after the head was sent (body_stream.h): rt::Task<Result<>> or rt::Task<>. Its
  // captures live until it has ended. The body is sent in chunks, or has `length` bytes.
  using Produce = std::function<rt::Task<Result<void>>(BodyWriter&)>;
  template <typename Function>
  [[nodiscard]] static Response stream(Function produce, std::string_view content_type = "application/octet-stream",
                                       std::optional<std::uint64_t> length = {}) {
    Response response;
    response.set("Content-Type", content_type);
    response.produce_ = producer_of(std::move(produce));
    response.length_ = length;
    return response;
  }

  // Sets a field instead of those of that name. If the name or value is not valid for a field, or the fields exceed
  // Fields::kBytesMax, the response remembers it: the peer gets 500 instead, and error() has the reason.
  Response& set(std::string_view name, std::string_view value) { return note(fields_.set(name, value)); }
  // Adds a field beside those of that name.
  Response& add(std::string_view name, std::string_view value) { return note(fields_.add(name, value)); }
  // Adds a field Set-Cookie. A cookie that is not valid is remembered like a field that is not.
  Response& set_cookie(const Cookie& cookie) {
    const Result<std::string> text = cookie.text();
    return text ? add("Set-Cookie", *text) : note(text.error());
  }
  // The value as JSON is the body: whatever nlohmann::json can be made of. Needs nlohmann/json, and json.h.
  //   return web::Response(201).json(user);
  template <typename Value, typename Support = JsonSupport>
  Response& json(const Value& value) {
    body_ = Support::write(value);
    return set("Content-Type", "application/json");
  }
  Response& set_status(unsigned status) noexcept {
    status_ = status;
    return *this;
  }
  Response& set_cause(Cause cause) noexcept {
    cause_ = cause;
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
  [[nodiscard]] Cause cause() const noexcept { return cause_; }
  [[nodiscard]] const Produce& producer() const noexcept { return produce_; }  // empty: the body is whole
  [[nodiscard]] const std::optional<std::uint64_t>& length() const noexcept { return length_; }
  // The first mistake; ok if there is none.
  [[nodiscard]] Error error() const noexcept {
    return status_ < 200 || status_ > 599 ? Error(Errc::invalid_argument, "a status is from 200 to 599") : error_;
  }

 private:
  template <typename Function>
  static Produce producer_of(Function produce) {
    static_assert(std::is_invocable_v<const Function&, BodyWriter&>,
                  "weft: the body of a response is written by a coroutine of (web::BodyWriter&)");
    using Outcome = std::invoke_result_t<const Function&, BodyWriter&>;
    if constexpr (std::is_same_v<Outcome, rt::Task<Result<void>>>) {
      return produce;
    } else {
      static_assert(std::is_same_v<Outcome, rt::Task<void>>,
                    "weft: the coroutine of a response's body returns rt::Task<> or rt::Task<Result<>>");
      return [produce = std::move(produce)](BodyWriter& out) { return run(produce, out); };
    }
  }
  template <typename Function>
  static rt::Task<Result<void>> run(const Function& produce, BodyWriter& out) {
    co_await produce(out);
    co_return Result<void>();
  }

  Response& note(const Result<void>& outcome) noexcept {
    if (!outcome && error_ == Errc::ok) {
      error_ = outcome.error();
    }
    return *this;
  }

  unsigned status_ = 200;
  bool closes_ = false;
  Cause cause_ = Cause::none;
  Error error_;
  Fields fields_;
  std::string body_;
  Produce produce_;
  std::optional<std::uint64_t> length_;  // of the body that `produce_` writes
};

}  // namespace weft::serve::web
