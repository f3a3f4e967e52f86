// SPDX-License-Identifier: MIT
#include "tools/weft/serving.h"

#include <fstream>

#include "weft/net/tls/tls.h"

namespace weft::cli {

ServingPort::ServingPort(Console& console, const ServingOptions& options, std::function<Result<void>()> ready) {
  if (options.admin.empty()) {
    return;
  }
  rt::RuntimeOptions one;
  one.cores = 1;
  runtime_ = need(rt::Runtime::start(one), "a core");
  serve::AdminOptions all;
  all.endpoint = options.admin;
  if (!options.token_file.empty()) {
    std::ifstream file(options.token_file);
    if (!std::getline(file, all.token)) {
      throw Failure(printable(options.token_file) + ": there is no token in its first line");
    }
  }
  if (!options.tls_certificate.empty()) {
    net::TlsServerOptions tls;
    tls.certificate_file = options.tls_certificate;
    tls.key_file = options.tls_key;
    tls.client_ca_file = options.admin_no_client_cert ? std::string() : options.tls_authorities;
    all.tls = need(net::TlsServer::make(tls), "--tls-cert");
    all.remote = !all.token.empty();
  }
  all.ready = std::move(ready);
  admin_ = need(serve::Admin::make(*runtime_, std::move(all)), "--admin " + printable(options.admin));
  console.note("admin port at " + admin_->endpoint());
}

ServingPort::~ServingPort() {
  if (admin_ != nullptr) {
    (void)admin_->stop(Instant());
  }
}

}  // namespace weft::cli
