// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tools/weft/console.h"
#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/server/admin.h"

namespace weft::cli {

// The admin port of a command that serves until a signal.
struct ServingOptions {
  std::string admin{};       // endpoint; empty: no admin port
  std::string token_file{};  // its first line is the token of the admin port
  std::string tls_certificate{};
  std::string tls_key{};
  std::string tls_authorities{};  // of clients
  bool admin_no_client_cert = false;
};

// ServingPort: the admin port of such a command. Without an endpoint it does nothing.
// Owner: the command. Affinity: its thread; `ready` is called on the port's.
class ServingPort {
 public:
  ServingPort(Console& console, const ServingOptions& options, std::function<Result<void>()> ready);
  ServingPort(const ServingPort&) = delete;
  ServingPort& operator=(const ServingPort&) = delete;
  ~ServingPort();

  template <typename Thing>
  void add(const std::string& name, Thing& thing) {
    if (admin_ != nullptr) {
      admin_->add(name, thing);
    }
  }

 private:
  std::unique_ptr<rt::Runtime> runtime_;
  std::unique_ptr<serve::Admin> admin_;
};

}  // namespace weft::cli
