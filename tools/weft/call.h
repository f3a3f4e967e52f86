// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "tools/weft/console.h"
#include "tools/weft/topics/shown.h"

namespace weft::cli {

struct CallOptions {
  std::string endpoint{};  // of a server of rpc::listen(): tcp://, tls+tcp:// or ipc://
  std::string method{};    // empty: the methods are listed
  ValueOptions body{};
  ShownOptions shown{};
  std::string schema{};  // .fbs: the body and the answer are JSON
  std::string request{};
  std::string response{};  // their tables; empty: the schema's root_type
  double timeout = 10;     // seconds, with connecting

  std::string tls_certificate{};
  std::string tls_key{};
  std::string tls_authorities{};
  std::string tls_name{};
  bool tls_insecure = false;
};

// Calls a method of a server, and prints the answer. Failure: no connection, or the refusal of the server.
int call(Console& console, const CallOptions& options);

}  // namespace weft::cli
