// SPDX-License-Identifier: MIT
// SocketCore: the layers of its endpoints, and their certificates.
#include "weft/msg/socket/socket_core.h"
#include "weft/net/layering.h"
#include "weft/net/tls.h"
#include "weft/net/transport.h"

namespace weft::msg {

Result<std::shared_ptr<const net::Layering>> SocketCore::make_layering(const net::Endpoint& endpoint, bool accepts,
                                                                       const Options& options) {
  const net::TransportRow& row = net::transport_row(endpoint.transport);
  if (row.layer == nullptr) {
    return std::shared_ptr<const net::Layering>();
  }
  auto layering = std::make_shared<net::Layering>(net::Layering{endpoint, accepts});
  layering->socket_type = share_.traits.wire;
  if (options.max_message_size >= 0) {
    layering->message_max = static_cast<std::uint64_t>(options.max_message_size);
  }
  if (row.has_tls && !net::tls_available()) {
    return Error(Errc::unknown_transport, "this build has no TLS");
  }
  if (row.has_tls && accepts) {
    if (options.tls_certificate.empty() || options.tls_key.empty()) {
      return Error(Errc::invalid_argument, "to bind with TLS takes the options tls_certificate and tls_key");
    }
    auto server = WEFT_TRY(net::TlsServer::make(
        {options.tls_certificate, options.tls_key, options.tls_authorities, options.tls_client_required}));
    layering->tls_server = server;
    const std::lock_guard lock(table_mutex_);
    std::erase_if(tls_servers_, [](const auto& known) { return known.expired(); });
    tls_servers_.push_back(server);
  } else if (row.has_tls) {
    layering->tls_client = WEFT_TRY(
        net::TlsClient::make({options.tls_authorities, options.tls_verify, options.tls_certificate, options.tls_key}));
    layering->tls_name = options.tls_server_name.empty() ? endpoint.host : options.tls_server_name;
  }
  return std::shared_ptr<const net::Layering>(std::move(layering));
}

// Every endpoint reads its files, also behind one that fails: the first error is returned.
Result<void> SocketCore::reload_servers() {
  if (closed()) {
    return refusal();
  }
  std::vector<std::shared_ptr<net::TlsServer>> servers;
  {
    const std::lock_guard lock(table_mutex_);
    for (const auto& known : tls_servers_) {
      if (auto server = known.lock(); server != nullptr) {
        servers.push_back(std::move(server));
      }
    }
  }
  Result<void> result;
  for (const auto& server : servers) {
    const auto reloaded = server->reload();
    result = result ? reloaded : result;
  }
  return result;
}

}  // namespace weft::msg
