// SPDX-License-Identifier: MIT
#include "weft/serve/web_client/client_request.h"

#include <algorithm>
#include <array>

#include "weft/net/http/chars.h"
#include "weft/net/http/head_scanner.h"

namespace weft::serve::web {

namespace {

namespace http = net::http;

constexpr std::array<std::string_view, 3> kClientsOwn = {"host", "te", "expect"};
constexpr std::array<std::string_view, 3> kCredentials = {"authorization", "cookie", "proxy-authorization"};
constexpr std::array<std::string_view, 4> kOfBody = {"content-type", "content-encoding", "content-language",
                                                     "content-location"};
constexpr std::array<std::string_view, 6> kRepeatable = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};

template <std::size_t kSize>
bool is_one_of(const std::array<std::string_view, kSize>& names, std::string_view name) noexcept {
  return std::any_of(names.begin(), names.end(), [name](std::string_view one) { return http::same_text(one, name); });
}

}  // namespace

Result<void> ClientRequest::check(std::string_view name) noexcept {
  return is_one_of(kClientsOwn, name) ? Error(Errc::invalid_argument, "the client writes this field itself")
                                      : Result<void>();
}

ClientRequest& ClientRequest::note(const Result<void>& outcome) noexcept {
  if (!outcome && error_ == Errc::ok) {
    error_ = outcome.error();
  }
  return *this;
}

ClientRequest& ClientRequest::set(std::string_view name, std::string_view value) {
  return note(check(name).and_then([&] { return fields_.set(name, value); }));
}

ClientRequest& ClientRequest::add(std::string_view name, std::string_view value) {
  return note(check(name).and_then([&] { return fields_.add(name, value); }));
}

ClientRequest& ClientRequest::set_body(std::string body, std::string_view content_type) {
  body_ = std::move(body);
  produce_ = nullptr;
  length_.reset();
  return set("Content-Type", content_type);
}

bool ClientRequest::is_repeatable() const noexcept {
  const bool idempotent =
      std::find(kRepeatable.begin(), kRepeatable.end(), std::string_view(method_)) != kRepeatable.end();
  return !produce_ && repeatable_.value_or(idempotent);
}

Error ClientRequest::error() const noexcept {
  if (!http::is_token(method_) || method_.size() > http::kMethodMax || is("CONNECT")) {
    return {Errc::invalid_argument, "the method of a request is a token, and not CONNECT"};
  }
  return error_;
}

std::string ClientRequest::head_text(std::string_view target, std::string_view host) const {
  std::string text;
  text.reserve(method_.size() + target.size() + host.size() + fields_.lines().size() + 80);
  text.append(method_).append(" ").append(target).append(" HTTP/1.1\r\nHost: ").append(host).append("\r\n");
  text.append(fields_.lines());
  const bool expects_body = is("POST") || is("PUT") || is("PATCH");
  if (produce_ && !length_) {
    text.append("Transfer-Encoding: chunked\r\n");
  } else if (produce_ || !body_.empty() || expects_body) {
    text.append("Content-Length: ").append(std::to_string(length_.value_or(body_.size()))).append("\r\n");
  }
  return text.append("\r\n");
}

void ClientRequest::become_get() {
  if (!is("HEAD")) {
    method_ = "GET";
  }
  body_.clear();
  produce_ = nullptr;
  length_.reset();
  for (const std::string_view name : kOfBody) {
    fields_.remove(name);
  }
}

void ClientRequest::drop_credentials() {
  for (const std::string_view name : kCredentials) {
    fields_.remove(name);
  }
}

bool ClientRequest::has_credentials() const noexcept {
  return std::any_of(kCredentials.begin(), kCredentials.end(),
                     [this](std::string_view name) { return fields_.find(name).has_value(); });
}

}  // namespace weft::serve::web
