// SPDX-License-Identifier: MIT
#include "weft/net/ws/upgrade.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "weft/base/utf8.h"
#include "weft/net/ws/accept_key.h"

#ifdef WEFT_HAVE_HTTP_PARSER
#include <http_parser.h>
#endif

namespace weft::net::ws {
namespace {

#ifdef WEFT_HAVE_HTTP_PARSER
constexpr Error kNoMemoryForUpgrade(Errc::resource_exhausted, "no memory for the upgrade to a WebSocket");
#else
constexpr Error kNotBuilt(Errc::not_supported, "this build has no HTTP parser, so no WebSocket");
#endif

bool same(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

// Blanks around a value are no part of it.
std::string_view trim(std::string_view value) noexcept {
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  return value.substr(0, value.find_last_not_of(" \t") + 1);
}

// Calls `take` with each element of a header's list "a, b", until it returns true.
template <typename Take>
bool any_element(std::string_view list, Take take) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view element = trim(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (!element.empty() && take(element)) {
      return true;
    }
  }
  return false;
}

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
  enum Field : std::size_t {
    kUpgrade,
    kConnection,
    kKey,
    kVersion,
    kAccept,
    kProtocols,
    kExtensions,
    kHost,
    kLength,
    kCoding
  };
  static constexpr std::size_t kFields = 10;
  static constexpr std::array<std::string_view, kFields> kNames = {"upgrade",
                                                                   "connection",
                                                                   "sec-websocket-key",
                                                                   "sec-websocket-version",
                                                                   "sec-websocket-accept",
                                                                   "sec-websocket-protocol",
                                                                   "sec-websocket-extensions",
                                                                   "host",
                                                                   "content-length",
                                                                   "transfer-encoding"};
  struct Value {
    std::string text;
    std::size_t times = 0;
  };
  struct Events;

  void end_header();
  void end_head();
  [[nodiscard]] StaticText check_request() const;
  [[nodiscard]] StaticText check_answer() const;
  [[nodiscard]] bool choose_protocol();
  [[nodiscard]] bool has(Field field, std::string_view element) const {
    return any_element(values_[field].text, [&](std::string_view one) { return same(one, element); });
  }
  void fail(Error error) {
    if (!fault) {
      fault = error;
    }
  }
  void refuse(std::string_view status, StaticText why);

  const bool server_;
  std::vector<std::string> protocols_;
  std::string key_;  // the client's
  std::array<Value, kFields> values_;
  std::string name_;
  std::string value_;
  std::size_t headers_ = 0;
  std::size_t taken_ = 0;
  bool in_value_ = false;
  bool whole_ = false;
  bool get_ = false;
  bool version_ = false;  // HTTP/1.1
  unsigned status_ = 0;
#ifdef WEFT_HAVE_HTTP_PARSER
  http_parser parser_{};
#endif
};

#ifdef WEFT_HAVE_HTTP_PARSER

struct Upgrade::Parser::Events {
  static Parser& self(http_parser* parser) noexcept { return *static_cast<Parser*>(parser->data); }
  // No exception may cross the library, which is C.
  static int append(Parser& now, std::string& to, const char* at, std::size_t size) noexcept {
    try {
      to.append(at, size);
    } catch (const std::bad_alloc&) {
      now.fail(kNoMemoryForUpgrade);
    }
    return now.fault ? 1 : 0;
  }
  static void end_header(Parser& now) noexcept {
    if (std::exchange(now.in_value_, false)) {
      try {
        now.end_header();
      } catch (const std::bad_alloc&) {
        now.fail(kNoMemoryForUpgrade);
      }
    }
  }
  static int on_field(http_parser* parser, const char* at, std::size_t size) noexcept {
    Parser& now = self(parser);
    end_header(now);
    return append(now, now.name_, at, size);
  }
  static int on_value(http_parser* parser, const char* at, std::size_t size) noexcept {
    Parser& now = self(parser);
    now.in_value_ = true;
    return append(now, now.value_, at, size);
  }
  static int on_headers_complete(http_parser* parser) noexcept {
    Parser& now = self(parser);
    end_header(now);
    now.get_ = parser->type == HTTP_REQUEST && parser->method == HTTP_GET;
    now.version_ = parser->http_major == 1 && parser->http_minor == 1;
    now.status_ = parser->status_code;
    now.whole_ = true;
    return 2;  // what follows is no body
  }
  static const http_parser_settings& settings() noexcept {
    static const http_parser_settings kSettings = [] {
      http_parser_settings settings;
      http_parser_settings_init(&settings);
      settings.on_header_field = &on_field;
      settings.on_header_value = &on_value;
      settings.on_headers_complete = &on_headers_complete;
      return settings;
    }();
    return kSettings;
  }
};

Upgrade::Parser::Parser(bool server, std::vector<std::string> protocols, std::string key)
    : server_(server), protocols_(std::move(protocols)), key_(std::move(key)) {
  http_parser_init(&parser_, server ? HTTP_REQUEST : HTTP_RESPONSE);
  parser_.data = this;
}

std::size_t Upgrade::Parser::handle_input(Bytes input) {
  if (fault || done || input.empty()) {  // an empty input would be an end for the library
    return 0;
  }
  const Bytes head = input.first(std::min(input.size(), kUpgradeHeadMax - taken_));
  std::size_t parsed =
      http_parser_execute(&parser_, &Events::settings(), reinterpret_cast<const char*>(head.data()), head.size());
  taken_ += parsed;
  if (whole_) {
    end_head();
  } else if (!fault && HTTP_PARSER_ERRNO(&parser_) != HPE_OK) {
    refuse("400 Bad Request", server_ ? StaticText("the request for a WebSocket is no HTTP")
                                      : StaticText("the server's answer is no HTTP"));
  } else if (!fault && taken_ == kUpgradeHeadMax) {
    refuse("431 Request Header Fields Too Large", "the head of the WebSocket's upgrade is too long");
  }
  return parsed;
}

#else

Upgrade::Parser::Parser(bool server, std::vector<std::string> protocols, std::string key)
    : server_(server), protocols_(std::move(protocols)), key_(std::move(key)) {
  fault = kNotBuilt;
}
std::size_t Upgrade::Parser::handle_input(Bytes /*input*/) { return 0; }

#endif

// The value of a header that nobody here uses may have any bytes (RFC 9110 section 5.5): a browser sends what its user
// gave to a cookie.
void Upgrade::Parser::end_header() {
  const auto at =
      std::find_if(kNames.begin(), kNames.end(), [this](std::string_view name) { return same(name, name_); });
  if (++headers_ > kUpgradeHeadersMax) {
    refuse("431 Request Header Fields Too Large", "the head of the WebSocket's upgrade has too many lines");
  } else if (at != kNames.end() && !is_utf8(value_)) {
    refuse("400 Bad Request", "a header of the WebSocket's upgrade is not UTF-8");
  } else if (at != kNames.end()) {
    Value& value = values_[static_cast<std::size_t>(at - kNames.begin())];
    value.text.append(value.times++ == 0 ? "" : ", ").append(trim(value_));
  }
  name_.clear();
  value_.clear();
}

bool Upgrade::Parser::choose_protocol() {
  return any_element(values_[kProtocols].text, [this](std::string_view offered) {
    const bool known = std::find(protocols_.begin(), protocols_.end(), offered) != protocols_.end();
    protocol = known ? offered : std::string_view();
    return known;
  });
}

StaticText Upgrade::Parser::check_request() const {
  if (!get_ || !version_ || values_[kHost].times != 1) {
    return "the request for a WebSocket is no GET of HTTP/1.1 with a host";
  }
  const bool length = values_[kLength].text.find_first_not_of('0') != std::string::npos;  // the library read digits
  if (values_[kCoding].times != 0 || length) {
    return "the request for a WebSocket has a body";
  }
  return nullptr;
}

StaticText Upgrade::Parser::check_answer() const {
  if (!has(kUpgrade, "websocket") || !has(kConnection, "upgrade")) {
    return "the server's answer does not upgrade to a WebSocket";
  }
  if (values_[kAccept].text != accept_key(key_)) {
    return "the server's answer does not prove that it read the request";
  }
  if (!values_[kExtensions].text.empty()) {
    return "the server wants a WebSocket extension that was not offered";
  }
  return nullptr;
}

void Upgrade::Parser::end_head() {
  if (fault) {
    return;
  }
  if (!server_) {
    if (status_ != 101) {
      return fail(Error(Errc::connection_failed, "the server's answer to the request for a WebSocket is not 101"));
    }
    const StaticText problem = check_answer();
    done = problem == nullptr && values_[kProtocols].times == 1 && choose_protocol();
    if (!done) {
      fail(Error(Errc::protocol_error,
                 problem != nullptr ? problem : StaticText("the server chose no WebSocket sub-protocol of ours")));
    }
    return;
  }
  if (const StaticText problem = check_request(); problem != nullptr) {
    return refuse("400 Bad Request", problem);
  }
  if (!has(kUpgrade, "websocket") || !has(kConnection, "upgrade")) {
    return refuse("426 Upgrade Required", "the request asks for no WebSocket");
  }
  if (values_[kVersion].text != "13") {
    return refuse("426 Upgrade Required", "the request is for another version of WebSocket than 13");
  }
  if (!is_key(values_[kKey].text)) {
    return refuse("400 Bad Request", "the request for a WebSocket has no key");
  }
  if (!choose_protocol()) {
    return refuse("400 Bad Request", "the client offers no WebSocket sub-protocol of ours");
  }
  output = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
           accept_key(values_[kKey].text) + "\r\nSec-WebSocket-Protocol: " + protocol + "\r\n\r\n";
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

bool upgrade_available() noexcept {
#ifdef WEFT_HAVE_HTTP_PARSER
  return true;
#else
  return false;
#endif
}

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
  parser->output = parser->fault ? std::string() : std::move(request);
  return Upgrade(std::move(parser));
}

std::size_t Upgrade::handle_input(Bytes input) { return parser_->handle_input(input); }
std::string Upgrade::take_output() { return std::exchange(parser_->output, {}); }
bool Upgrade::done() const noexcept { return parser_->done; }
const std::optional<Error>& Upgrade::fault() const noexcept { return parser_->fault; }
const std::string& Upgrade::protocol() const noexcept { return parser_->protocol; }

}  // namespace weft::net::ws
