// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/error.h"

namespace weft::nats {

// ServerError: the meaning of a line `-ERR 'text'`. A value.
struct ServerError {
  enum class Scope : std::uint8_t {
    publish,       // a message to `subject` was dropped; the connection stays
    subscription,  // the subscription to `subject` was refused; the connection stays
    call,          // one operation was dropped; the connection stays
    connection,    // the server ends the connection; another attempt may succeed
    login,         // the server refuses these credentials; the attempts become slow
  };
  Scope scope = Scope::connection;
  Error error{};  // its text is static
  std::string subject{};
  std::string group{};  // of the refused subscription; empty: it has none
};

// Throws std::bad_alloc; fails in no other way: a text that is not in the table ends the connection with
// connection_closed, as a server does after it.
[[nodiscard]] ServerError read_server_error(std::string_view text);

}  // namespace weft::nats
