// SPDX-License-Identifier: MIT
#include "weft/nats/client/options.h"

namespace weft::nats {

Result<void> ClientOptions::use_tls_files(std::string_view authorities, std::string_view certificate,
                                          std::string_view key) {
  if (authorities.empty() && certificate.empty()) {
    return {};
  }
  net::TlsClientOptions files;
  files.ca_file = authorities;
  files.certificate_file = certificate;
  files.key_file = key;
  tls = WEFT_TRY(net::TlsClient::make(files));
  return {};
}

}  // namespace weft::nats
