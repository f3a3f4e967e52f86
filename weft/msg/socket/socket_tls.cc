// SPDX-License-Identifier: MIT
// SocketCore: the layers of its endpoints, and their certificates.
#include <vector>

#include "weft/msg/socket/socket_core.h"
#include "weft/net/tls/server_name.h"
#include "weft/net/tls/tls.h"
#include "weft/net/transport/layering.h"
#include "weft/net/transport/transport.h"

namespace weft::msg {
namespace {

bool is_wss(const net::Endpoint& endpoint) noexcept { return endpoint.transport == net::Transport::wss; }

net::TlsServerOptions server_options(const net::Endpoint& endpoint, const Options& options) {
  net::TlsServerOptions how{options.tls_certificate, options.tls_key, options.tls_authorities,
                            options.tls_client_required};
  if (is_wss(endpoint)) {
    how.certificate_pem = options.wss_certificate_pem;
    how.key_pem = options.wss_key_pem;
  }
  return how;
}

net::TlsClientOptions client_options(const net::Endpoint& endpoint, const Options& options) {
  net::TlsClientOptions how{options.tls_authorities, options.tls_verify, options.tls_certificate, options.tls_key};
  if (is_wss(endpoint)) {
    how.ca_pem = options.wss_trust_pem;
    how.system_too = options.wss_trust_system;
    // libzmq's rule. With authorities that give every applicant a certificate, the name is checked here nevertheless.
    const bool named = !options.wss_hostname.empty() || !options.tls_server_name.empty();
    how.check_name = named || how.ca_pem.empty() || !how.ca_file.empty() || how.system_too;
  }
  return how;
}

std::string server_name(const net::Endpoint& endpoint, const Options& options) {
  if (is_wss(endpoint) && !options.wss_hostname.empty()) {
    return options.wss_hostname;
  }
  return options.tls_server_name.empty() ? endpoint.host : options.tls_server_name;
}

}  // namespace

Result<std::shared_ptr<const net::Layering>> SocketCore::make_layering(const net::Endpoint& endpoint, bool accepts,
                                                                       const Options& options) {
  const net::TransportRow& row = net::transport_row(endpoint.transport);
  if (row.layer == nullptr) {
    return std::shared_ptr<const net::Layering>();
  }
  auto layering = std::make_shared<net::Layering>(net::Layering{row, endpoint, accepts});
  layering->socket_type = share_.traits.wire;
  if (options.max_message_size >= 0) {
    layering->message_max = static_cast<std::uint64_t>(options.max_message_size);
  }
  if (row.has_tls && !net::tls_available()) {
    return Error(Errc::unknown_transport, "this build has no TLS");
  }
  if (row.has_tls && accepts) {
    net::TlsServerOptions how = server_options(endpoint, options);
    const bool pem = !how.certificate_pem.empty();
    if (pem ? how.key_pem.empty() : how.certificate_file.empty() || how.key_file.empty()) {
      return Error(Errc::invalid_argument, "to bind with TLS takes the options tls_certificate and tls_key");
    }
    auto server = WEFT_TRY(net::TlsServer::make(how));
    layering->tls_server = server;
    const sync::LockGuard lock(table_mutex_);
    endpoints_.add_tls_server(server);
  } else if (row.has_tls) {
    const net::TlsClientOptions how = client_options(endpoint, options);
    layering->tls_client = WEFT_TRY(net::TlsClient::make(how));
    layering->tls_name = how.check_name ? server_name(endpoint, options) : std::string();
    if (const auto name = net::parse_server_name(layering->tls_name); how.verify && how.check_name && !name) {
      return name.error();
    }
  }
  return std::shared_ptr<const net::Layering>(std::move(layering));
}

// Every endpoint reads its files, also after one that fails: the first error is returned.
Result<void> SocketCore::reload_certificates() {
  if (closed()) {
    return refusal();
  }
  std::vector<std::shared_ptr<net::TlsServer>> servers;
  {
    const sync::LockGuard lock(table_mutex_);
    servers = endpoints_.tls_servers();
  }
  Result<void> result;
  for (const auto& server : servers) {
    const auto reloaded = server->reload();
    result = result ? reloaded : result;
  }
  return result;
}

}  // namespace weft::msg
