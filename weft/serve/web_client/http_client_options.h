// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "weft/base/time.h"
#include "weft/net/resolver.h"
#include "weft/net/tls/tls.h"
#include "weft/serve/web_client/answer_codec.h"
#include "weft/sys/socket.h"

namespace weft::serve::web {

// The bounds of an HttpClient. A negative duration: none.
struct HttpClientOptions {
  std::size_t connections_max = 8;                     // of an origin: scheme, host and port
  std::size_t waiting_max = 1024;                      // requests of an origin that wait for a connection
  Duration connect_timeout = std::chrono::seconds(5);  // for the look-up of the name, the connection and TLS together
  Duration head_timeout = std::chrono::seconds(30);    // from the last byte of the request to the head of the answer
  Duration body_timeout = std::chrono::seconds(30);    // without a byte of a body, in either direction
  // For a request with all its redirects, up to the last byte of its answer; of stream() up to the answer's head.
  Duration total_timeout = std::chrono::minutes(2);
  Duration idle_timeout = std::chrono::seconds(30);  // of a connection that is kept for the next request
  unsigned redirects_max = 0;                        // redirects of a request that are followed
  AnswerLimits limits{};
  // For https. Null: TLS 1.3 with the authorities that the system trusts, and "http/1.1" by ALPN. The certificate must
  // be for the host of the URL.
  std::shared_ptr<net::TlsClient> tls{};
  sys::SocketOptions socket{};
  net::Resolver* resolver = nullptr;  // null: Resolver::shared()
};

}  // namespace weft::serve::web
