// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/serve/web/fields.h"
#include "weft/serve/web/response.h"

namespace weft::serve::web {

// ClientRequest: a request of a client: a method, a URL, fields and a body: whole, or written by a coroutine. A value.
//   web::ClientRequest::get("https://example.com/users?id=7").set("Accept", "application/json")
//   web::ClientRequest::post(url, "name=Ada", "application/x-www-form-urlencoded")
// The client adds Host, Content-Length and Transfer-Encoding.
class ClientRequest {
 public:
  static constexpr std::size_t kFieldsMax = 16 * 1024;  // bytes of all lines

  ClientRequest(std::string method, std::string url) : method_(std::move(method)), url_(std::move(url)) {}
  [[nodiscard]] static ClientRequest get(std::string url) { return {"GET", std::move(url)}; }
  [[nodiscard]] static ClientRequest head(std::string url) { return {"HEAD", std::move(url)}; }
  [[nodiscard]] static ClientRequest del(std::string url) { return {"DELETE", std::move(url)}; }
  [[nodiscard]] static ClientRequest post(std::string url, std::string body, std::string_view content_type) {
    ClientRequest request("POST", std::move(url));
    request.set_body(std::move(body), content_type);
    return request;
  }
  [[nodiscard]] static ClientRequest put(std::string url, std::string body, std::string_view content_type) {
    ClientRequest request("PUT", std::move(url));
    request.set_body(std::move(body), content_type);
    return request;
  }

  // Sets a field instead of those of that name; adds one. If the name or value is not valid for a field, the client
  // writes the field itself, or the fields exceed kFieldsMax, the request remembers it, and is refused.
  ClientRequest& set(std::string_view name, std::string_view value);
  ClientRequest& add(std::string_view name, std::string_view value);
  ClientRequest& set_body(std::string body, std::string_view content_type);
  // The value as JSON is the body. Needs nlohmann/json, and weft/serve/web/json.h.
  template <typename Value, typename Support = JsonSupport>
  ClientRequest& json(const Value& value) {
    return set_body(Support::write(value), "application/json");
  }
  // A body that a coroutine writes, as of Response::stream(): in chunks, or of `length` bytes. The client neither
  // repeats such a request nor follows a redirect with it.
  template <typename Function>
  ClientRequest& stream_body(Function produce, std::string_view content_type = "application/octet-stream",
                             std::optional<std::uint64_t> length = {}) {
    produce_ = Response::stream(std::move(produce), content_type, length).producer();
    length_ = length;
    body_.clear();
    return set("Content-Type", content_type);
  }

  // The end of the time for everything: the wait for a connection, redirects, the whole answer. It is bounded by
  // HttpClientOptions::total_timeout, too.
  ClientRequest& set_deadline(Instant deadline) noexcept {
    deadline_ = deadline;
    return *this;
  }
  // Follows up to that many redirects, instead of HttpClientOptions::redirects_max.
  ClientRequest& follow_redirects(unsigned most) noexcept {
    redirects_max_ = most;
    return *this;
  }
  // Whether a second execution does no harm. By default GET, HEAD, OPTIONS, TRACE, PUT and DELETE are repeatable (RFC
  // 9110 section 9.2.2).
  ClientRequest& set_repeatable(bool repeatable) noexcept {
    repeatable_ = repeatable;
    return *this;
  }

  [[nodiscard]] const std::string& method() const noexcept { return method_; }
  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  [[nodiscard]] const Fields& fields() const noexcept { return fields_; }
  [[nodiscard]] const std::string& body() const noexcept { return body_; }
  [[nodiscard]] const Response::Produce& producer() const noexcept { return produce_; }  // empty: the body is whole
  [[nodiscard]] const std::optional<std::uint64_t>& length() const noexcept { return length_; }
  [[nodiscard]] Instant deadline() const noexcept { return deadline_; }
  [[nodiscard]] const std::optional<unsigned>& redirects_max() const noexcept { return redirects_max_; }
  [[nodiscard]] bool is_repeatable() const noexcept;
  // The first mistake; ok if there is none.
  [[nodiscard]] Error error() const noexcept;
  // The head on the wire, for that target and value of the field Host.
  [[nodiscard]] std::string head_text(std::string_view target, std::string_view host) const;

  // --- for redirects ---
  void become_get();        // without a body
  void drop_credentials();  // the fields that are for one origin alone
  [[nodiscard]] bool has_credentials() const noexcept;

 private:
  [[nodiscard]] bool is(std::string_view method) const noexcept { return method_ == method; }
  ClientRequest& note(const Result<void>& outcome) noexcept;
  [[nodiscard]] static Result<void> check(std::string_view name) noexcept;

  std::string method_;
  std::string url_;
  Fields fields_{kFieldsMax};
  std::string body_;
  Response::Produce produce_;
  std::optional<std::uint64_t> length_;  // of the body that `produce_` writes
  Instant deadline_ = kNever;
  std::optional<unsigned> redirects_max_;
  std::optional<bool> repeatable_;
  Error error_;
};

}  // namespace weft::serve::web
