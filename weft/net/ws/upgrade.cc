// SPDX-License-Identifier: MIT
#include "weft/net/ws/upgrade.h"

#include <algorithm>
#include <new>
#include <utility>

#include "weft/net/http/field.h"
#include "weft/net/http/head_scanner.h"
#include "weft/net/http/request_head.h"
#include "weft/net/ws/handshake.h"

namespace weft::net::ws {
namespace {

using http::HttpRefusal;

constexpr Error kNoMemoryForUpgrade(Errc::resource_exhausted, "no memory for the upgrade to a WebSocket");
constexpr http::HeadLimits kUpgradeLimits{kUpgradeHeadMax, kUpgradeHeadMax, kUpgradeHeadersMax};
constexpr StaticText kNoGet("the request for a WebSocket is no GET of HTTP/1.1 with a host");
constexpr StaticText kHasBody("the request for a WebSocket has a body");

}  // namespace

class Upgrade::Parser {
 public:
  Parser(bool server, std::vector<std::string> protocols, std::string key);

  std::size_t handle_input(Bytes input);

  std::string output;
  std::string protocol;
  std::optional<Error> fault;
  bool done = false;

 private:
  void handle_head(std::string_view head);
  void end_request(std::string_view head);
  void end_answer(std::string_view head);
  [[nodiscard]] bool is_other_protocol() const noexcept;
  [[nodiscard]] StaticText check_answer() const;
  [[nodiscard]] bool choose_protocol();
  void fail(Error error) {
    if (!fault) {
      fault = error;
    }
  }
  void refuse(std::string_view status, StaticText why);
  void refuse_for(http::HttpRefusal why);

  const bool server_;
  std::vector<std::string> protocols_;
  std::string key_;  // the client's
  HandshakeFields fields_;
  http::HeadScanner scanner_;
  std::string input_;  // the head, as far as it has come
};

Upgrade::Parser::Parser(bool server, std::vector<std::string> protocols, std::string key)
    : server_(server), protocols_(std::move(protocols)), key_(std::move(key)) {}

std::size_t Upgrade::Parser::handle_input(Bytes input) {
  if (fault || done) {
    return 0;
  }
  const std::size_t before = input_.size();
  try {
    input_.append(as_text(input.first(std::min(input.size(), kUpgradeHeadMax - before))));
    if (is_other_protocol()) {
      refuse_for(HttpRefusal::malformed);
      return input_.size() - before;
    }
    switch (scanner_.scan(as_bytes(input_), kUpgradeLimits)) {
      case http::HeadScanner::Found::head:
        handle_head(std::string_view(input_).substr(scanner_.begin(), scanner_.size() - scanner_.begin()));
        break;
      case http::HeadScanner::Found::refusal: refuse_for(scanner_.refusal()); break;
      case http::HeadScanner::Found::nothing: return input_.size() - before;
    }
  } catch (const std::bad_alloc&) {
    fail(kNoMemoryForUpgrade);
  }
  return std::max(scanner_.size(), before) - before;
}

// The first bytes of a server that speaks something else; it may send no more until it receives our bytes.
bool Upgrade::Parser::is_other_protocol() const noexcept {
  constexpr std::string_view kHttp = "HTTP/";
  return !server_ && !std::string_view(input_).starts_with(kHttp.substr(0, input_.size()));
}

void Upgrade::Parser::handle_head(std::string_view head) {
  std::string_view rest = head;
  (void)http::take_line(rest);
  if (!fields_.take(rest)) {
    return refuse("400 Bad Request", "a header of the WebSocket's upgrade is not UTF-8");
  }
  server_ ? end_request(head) : end_answer(head);
}

void Upgrade::Parser::refuse_for(HttpRefusal why) {
  switch (why) {
    case HttpRefusal::head_large:
      return refuse("431 Request Header Fields Too Large", "the head of the WebSocket's upgrade is too long");
    case HttpRefusal::many_fields:
      return refuse("431 Request Header Fields Too Large", "the head of the WebSocket's upgrade has too many lines");
    case HttpRefusal::host: return refuse("400 Bad Request", kNoGet);
    case HttpRefusal::coding: return refuse("400 Bad Request", kHasBody);
    default:
      return refuse("400 Bad Request", server_ ? StaticText("the request for a WebSocket is no HTTP")
                                               : StaticText("the server's answer is no HTTP"));
  }
}

bool Upgrade::Parser::choose_protocol() {
  return http::any_element(fields_.text(HandshakeFields::kProtocols), [this](std::string_view offered) {
    const bool known = std::find(protocols_.begin(), protocols_.end(), offered) != protocols_.end();
    protocol = known ? offered : std::string_view();
    return known;
  });
}

StaticText Upgrade::Parser::check_answer() const {
  const StaticText problem = net::ws::check_answer(fields_, key_);
  if (problem == nullptr && !fields_.text(HandshakeFields::kExtensions).empty()) {
    return "the server wants a WebSocket extension that was not offered";
  }
  return problem;
}

void Upgrade::Parser::end_answer(std::string_view head) {
  const http::StatusLine line = http::parse_status_line(http::take_line(head));
  if (line.status == 0 || !http::are_fields(head.substr(0, head.size() - 2))) {
    return refuse_for(HttpRefusal::malformed);
  }
  if (line.status != 101) {
    return fail(Error(Errc::connection_failed, "the server's answer to the request for a WebSocket is not 101"));
  }
  const StaticText problem = check_answer();
  done = problem == nullptr && fields_.times(HandshakeFields::kProtocols) == 1 && choose_protocol();
  if (!done) {
    fail(Error(Errc::protocol_error,
               problem != nullptr ? problem : StaticText("the server chose no WebSocket sub-protocol of ours")));
  }
}

void Upgrade::Parser::end_request(std::string_view head) {
  http::RequestHead request;
  const HttpRefusal why = http::parse_request_head(head, kUpgradeLimits, request);
  if (why != HttpRefusal::none) {
    return refuse_for(why);
  }
  if (const HandshakeRefusal refusal = check_request(request, fields_); refusal.status != 0) {
    return refuse(refusal.status == 426 ? "426 Upgrade Required" : "400 Bad Request", refusal.why);
  }
  if (!choose_protocol()) {
    return refuse("400 Bad Request", "the client offers no WebSocket sub-protocol of ours");
  }
  output = accept_head(fields_, protocol);
  done = true;
}

void Upgrade::Parser::refuse(std::string_view status, StaticText why) {
  if (fault) {
    return;
  }
  fault = Error(Errc::protocol_error, why);
  if (server_) {
    output.append("HTTP/1.1 ").append(status).append("\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
    output.append("Connection: close\r\nContent-Length: 0\r\n\r\n");
  }
}

Upgrade::Upgrade(std::unique_ptr<Parser> parser) noexcept : parser_(std::move(parser)) {}
Upgrade::Upgrade(Upgrade&&) noexcept = default;
Upgrade& Upgrade::operator=(Upgrade&&) noexcept = default;
Upgrade::~Upgrade() = default;

Upgrade Upgrade::as_server(std::vector<std::string> protocols) {
  return Upgrade(std::make_unique<Parser>(true, std::move(protocols), std::string()));
}

Upgrade Upgrade::as_client(std::string_view host, std::string_view path, std::vector<std::string> protocols,
                           std::string key) {
  std::string request = "GET ";
  request.append(path).append(" HTTP/1.1\r\nHost: ").append(host);
  request.append("\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ").append(key);
  request.append("\r\nSec-WebSocket-Protocol: ");
  for (std::size_t i = 0; i < protocols.size(); ++i) {
    request.append(i == 0 ? "" : ",").append(protocols[i]);  // without a space, as libzmq writes it
  }
  request.append("\r\nSec-WebSocket-Version: 13\r\n\r\n");
  auto parser = std::make_unique<Parser>(false, std::move(protocols), std::move(key));
  parser->output = std::move(request);
  return Upgrade(std::move(parser));
}

std::size_t Upgrade::handle_input(Bytes input) { return parser_->handle_input(input); }
std::string Upgrade::take_output() { return std::exchange(parser_->output, {}); }
bool Upgrade::done() const noexcept { return parser_->done; }
const std::optional<Error>& Upgrade::fault() const noexcept { return parser_->fault; }
const std::string& Upgrade::protocol() const noexcept { return parser_->protocol; }

}  // namespace weft::net::ws
