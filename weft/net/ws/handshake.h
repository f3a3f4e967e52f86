// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/error.h"
#include "weft/net/http/field.h"
#include "weft/net/http/request_head.h"

namespace weft::net::ws {

// HandshakeFields: the fields of a head that concern the handshake of a WebSocket (RFC 6455 section 4). A value.
class HandshakeFields {
 public:
  enum Name : std::size_t { kUpgrade, kConnection, kKey, kVersion, kAccept, kProtocols, kExtensions };
  static constexpr std::size_t kNames = 7;

  // `fields`: lines with their CRLF. Returns false if a field that is used is not UTF-8. The value of an unused field
  // may have any bytes (RFC 9110 section 5.5): a browser sends any text that its user gave to a cookie.
  [[nodiscard]] bool take(std::string_view fields);

  [[nodiscard]] const std::string& text(Name name) const noexcept { return values_[name].text; }  // a list if several
  [[nodiscard]] std::size_t times(Name name) const noexcept { return values_[name].times; }
  // Whether the list has that element, which is compared without case.
  [[nodiscard]] bool has(Name name, std::string_view element) const {
    return http::any_element(values_[name].text, [&](std::string_view one) { return http::same_text(one, element); });
  }

 private:
  struct Value {
    std::string text;
    std::size_t times = 0;
  };
  std::array<Value, kNames> values_;
};

// The reason why a request does not begin a WebSocket. Status 0: it begins one.
struct HandshakeRefusal {
  std::uint16_t status = 0;
  StaticText why;
};
[[nodiscard]] HandshakeRefusal check_request(const http::RequestHead& head, const HandshakeFields& fields);

// The head of the answer 101 to such a request. `protocol`: the sub-protocol, `extensions`: those that both ends use;
// empty: none.
[[nodiscard]] std::string accept_head(const HandshakeFields& fields, std::string_view protocol,
                                      std::string_view extensions = {});

// The broken rule of a server's answer 101 to a request with that key; null: none. Sub-protocols and extensions are for
// the caller.
[[nodiscard]] StaticText check_answer(const HandshakeFields& fields, std::string_view key);

}  // namespace weft::net::ws
