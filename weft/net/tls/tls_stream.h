// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "weft/base/result.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/net/tls/tls_sessions.h"

struct ssl_ctx_st;  // OpenSSL's
struct ssl_st;

namespace weft::net {

// TlsContext: an SSL_CTX and the data of its callbacks. Owner: shared by a TlsServer or TlsClient and the streams made
// with it. Affinity: immutable, except the sessions.
struct TlsContext {
  explicit TlsContext(ssl_ctx_st* made) noexcept : ssl_ctx(made) {}
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  ssl_ctx_st* const ssl_ctx;
  std::string protocols;         // ALPN in the wire's form: each after its size
  mutable TlsSessions sessions;  // of a client
};

// The SSL has its side of the handshake. Error: resource_exhausted.
[[nodiscard]] Result<std::unique_ptr<ByteStream>> make_tls_stream(std::unique_ptr<ByteStream> below,
                                                                  std::shared_ptr<const TlsContext> context,
                                                                  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl);

}  // namespace weft::net
