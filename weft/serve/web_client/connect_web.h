// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string_view>

#include "weft/base/result.h"
#include "weft/net/http/url.h"
#include "weft/net/resolver.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/net/stream/endpoint.h"
#include "weft/net/tls/tls.h"
#include "weft/rt/task/task.h"
#include "weft/sys/socket.h"

namespace weft::serve {
class Shard;
}

namespace weft::serve::web {

// The endpoint of a URL's host and port.
[[nodiscard]] net::Endpoint endpoint_of(const net::http::Url& url);

// The error with the name of its server: "https://host:443: certificate has expired". Kept with the texts of peers.
[[nodiscard]] Error error_at(std::string_view scheme, std::string_view name, const Error& why) noexcept;

// `made`; null: a client with the authorities that the system trusts, and "http/1.1" by ALPN. Then it reads their file.
[[nodiscard]] Result<std::shared_ptr<net::TlsClient>> tls_of(std::shared_ptr<net::TlsClient> made);

// Connects once, and with TLS shakes hands and checks that the certificate is for the endpoint's host. Null: no TLS.
// Bound it with with_timeout(). Errors: those of Dialling and shake_hands(); protocol_error (the server chose another
// protocol than http/1.1 by ALPN).
[[nodiscard]] rt::Task<Result<std::unique_ptr<net::ByteStream>>> connect_web(Shard& shard, net::Endpoint endpoint,
                                                                             std::shared_ptr<net::TlsClient> tls,
                                                                             sys::SocketOptions socket,
                                                                             net::Resolver* resolver);

}  // namespace weft::serve::web
