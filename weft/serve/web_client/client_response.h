// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/net/http/answer_head.h"
#include "weft/net/http/field.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web_client/http_exchange.h"

namespace weft::serve::web {

// ClientResponse: the answer to a request of a client. A move-only value. Its views live as long as it, and stay valid
// when it is moved.
// Affinity: a value; with a reader() the core of its client. Cost: a look-up is linear.
class ClientResponse {
 public:
  // For the client. `exchange`: of a body that is read in pieces; null: `body` is all of it.
  ClientResponse(std::vector<char> head, std::string body, std::string url, std::unique_ptr<HttpExchange> exchange)
      : head_(std::move(head)), body_(std::move(body)), url_(std::move(url)), exchange_(std::move(exchange)) {
    (void)net::http::parse_answer_head({head_.data(), head_.size()}, parsed_);
  }

  [[nodiscard]] unsigned status() const noexcept { return parsed_.status; }
  [[nodiscard]] bool is_success() const noexcept { return status() >= 200 && status() < 300; }
  [[nodiscard]] std::string_view reason() const noexcept { return parsed_.reason; }
  // Returns the value of the first field of that name, which is compared without case; empty if there is none.
  [[nodiscard]] std::string_view operator[](std::string_view name) const noexcept { return find(name).value_or(""); }
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept {
    return net::http::find_field(parsed_.fields, name);
  }
  // The fields as lines with CRLF, for net::http::any_field().
  [[nodiscard]] std::string_view fields() const noexcept { return parsed_.fields; }
  // The URL that was answered: another one than the request's after a redirect.
  [[nodiscard]] const std::string& url() const noexcept { return url_; }

  // The whole body; empty if it is read in pieces.
  [[nodiscard]] const std::string& body() const noexcept { return body_; }
  [[nodiscard]] std::string take_body() noexcept { return std::move(body_); }
  // The body as Result<nlohmann::json>; invalid_argument: it is not JSON. Needs nlohmann/json, and the header
  // weft/serve/web/json.h.
  template <typename Support = JsonSupport>
  [[nodiscard]] auto json() const {
    return Support::parse(body_);
  }
  // Of HttpClient::stream(): the body in pieces. Destroying the response before the last one ends the connection.
  [[nodiscard]] BodyReader& reader() noexcept { return exchange_->reader(); }

 private:
  std::vector<char> head_;
  std::string body_;
  std::string url_;
  net::http::AnswerHead parsed_;  // views into head_
  std::unique_ptr<HttpExchange> exchange_;
};

}  // namespace weft::serve::web
